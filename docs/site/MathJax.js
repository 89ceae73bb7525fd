// Doxygen writes \( … \) and \[ … \] and loads this file; see Doxyfile.in. KaTeX sets the equations.
(() => {
    const here = document.currentScript.src.replace(/[^/]*$/, "");
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = here + "katex.min.css";
    document.head.append(style);

    const load = name => new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = here + name;
        script.onload = done;
        script.onerror = failed;
        document.head.append(script);
    });
    const ready = new Promise(done => document.readyState == "loading" ?
        document.addEventListener("DOMContentLoaded", done) : done());
    load("katex.min.js").then(() => load("contrib/auto-render.js")).then(() => ready).then(() =>
        renderMathInElement(document.body, {
            delimiters: [{left: "\\[", right: "\\]", display: true}, {left: "\\(", right: "\\)", display: false}],
            // A mistake stays on the page as red source.
            throwOnError: false
        }));
})();
