# awk -v root=DIR -f markdown.awk FILE: a page that is written for GitHub, as doxygen reads it, line by line.
#
#   $…$, $$…$$             \f$…\f$, \f[…\f]
#   # Heading              # Heading {#page_heading}, with GitHub's anchor after the page's own name
#   [text](page.md#part)   a reference; so are links to headers, to examples and to the README of a folder of docs/
#   [text](other/file)     text alone, because the site has no such page
#
# Code, fenced or between backticks, stays as it is.

function page(path) {  # docs/decisions/0001-x.md is page-decisions-0001-x, docs/decisions/README.md is page-decisions
    sub(/^docs\//, "", path)
    sub(/(\/README)?\.md$/, "", path)
    gsub(/\//, "-", path)
    return path == "README" ? "index" : "page-" tolower(path)
}

function anchor(heading) {
    heading = tolower(heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

function within(folder, path,    n, i, k, part, all) {  # folder/path without "." and ".."
    n = split(folder "/" path, part, "/")
    for (i = 1; i <= n; i++) {
        if (part[i] == "..") k--
        else if (part[i] != "." && part[i] != "") all[++k] = part[i]
    }
    path = all[1]
    for (i = 2; i <= k; i++) path = path "/" all[i]
    return path
}

function link(text, target,    path, part, cut) {
    if (target ~ /^[a-z]+:/) return text "(" target ")"
    cut = index(target, "#")
    path = cut ? substr(target, 1, cut - 1) : target
    part = cut ? "_" anchor(substr(target, cut + 1)) : ""
    path = path == "" ? file : within(folder, path)
    if (path ~ /^docs\/[a-z]+$/) path = path "/README.md"
    if (path ~ /\.(md|hpp)$/) gsub(/`/, "", text)  # doxygen shows no code in a reference
    if (path ~ /^(docs\/.*|[A-Z_]+)\.md$/) return text "(@ref " page(path) part ")"
    if (path ~ /^include\/.*\.hpp$/) {
        sub(/^include\/fprnn\//, "", path)
        sub(/\.hpp$/, "", path)
        gsub(/\//, "-", path)
        return text "(@ref " path ")"
    }
    if (path ~ /^examples\/[a-z_]+\.cpp$/) {
        sub(/^examples\//, "", path)
        sub(/\.cpp$/, "_8cpp-example.html", path)
        return text "(" path ")"
    }
    return substr(text, 2, length(text) - 2)
}

FNR == 1 {
    file = substr(FILENAME, length(root) + 2)
    folder = file
    if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
}

/^ *```/ { fenced = !fenced; print; next }
fenced { print; next }

{
    line = $0
    out = ""
    while (line != "") {
        if (!maths && match(line, /^`+/)) {
            ticks = substr(line, 1, RLENGTH)
            end = index(substr(line, RLENGTH + 1), ticks)
            n = end ? RLENGTH + end + RLENGTH - 1 : RLENGTH
            out = out substr(line, 1, n)
            line = substr(line, n + 1)
        } else if (match(line, /^\$\$?/)) {
            out = out (RLENGTH == 1 ? "\\f$" : maths ? "\\f]" : "\\f[")
            maths = !maths
            line = substr(line, RLENGTH + 1)
        } else if (!maths && match(line, /^!\[[^]]*\]\([^)]*\)/)) {
            out = out substr(line, 1, RLENGTH)
            line = substr(line, RLENGTH + 1)
        } else if (!maths && match(line, /^\[[^]]*\]\([^)]*\)/)) {
            n = RLENGTH
            cut = index(line, "](")
            out = out link(substr(line, 1, cut), substr(line, cut + 2, n - cut - 2))
            line = substr(line, n + 1)
        } else {
            out = out substr(line, 1, 1)
            line = substr(line, 2)
        }
    }
    if (!maths && $0 ~ /^#+ /) {
        gsub(/`/, "", out)  # doxygen shows the markup of code in a title
        if (file != "README.md" || titled) {
            heading = $0
            sub(/^#+ /, "", heading)
            out = out " {#" page(file) (titled ? "_" anchor(heading) : "") "}"
        }
        titled = 1
    }
    print out
}
