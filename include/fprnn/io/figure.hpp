#pragma once

#include <fprnn/io/files.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace fprnn {

struct curve {
    std::string label;  ///< in the key; empty: none
    std::vector<double> x;
    std::vector<double> y;
    std::string colour = "#1f4e9c";
    double width = 3.5;
    int dash = 1;  ///< gnuplot's dash type, 1 for solid
    bool points = true;
};

/// Curves of shares in [0,1] over lengths.
struct figure {
    std::string title;
    std::string x_label;
    std::string y_label;
    std::vector<curve> curves;
    std::optional<double> mark{};  ///< a vertical line here
    std::string mark_label{};
    bool log_x = false;  ///< base 2
};

/// The path of a program that a shell would find; empty when there is none.
inline std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

/// A gnuplot script that writes name.png and name.svg into the folder it is run in. The data are inside.
inline std::string gnuplot_script(const figure& f, const std::string& name) {
    const auto quoted = [](const std::string& text) {
        std::string q = "'";
        for (const char c : text) q += c == '\'' ? "''" : std::string(1, c);
        return q + "'";
    };
    std::ostringstream s;
    s.precision(7);
    s << "# gnuplot " << name << ".gp\n"
      << "set encoding utf8\n";
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (std::size_t i = 0; i < f.curves.size(); ++i) {
        s << "$curve" << i << " << EOD\n";
        for (std::size_t j = 0; j < f.curves[i].x.size(); ++j) {
            s << f.curves[i].x[j] << " " << f.curves[i].y[j] << "\n";
            low = std::min(low, f.curves[i].x[j]);
            high = std::max(high, f.curves[i].x[j]);
        }
        s << "EOD\n";
    }
    if (f.mark) low = std::min(low, *f.mark), high = std::max(high, *f.mark);
    if (low > high) low = 1, high = 2;
    const double margin = f.log_x ? 1.12 : 0.03 * (high - low);
    const double left = f.log_x ? low / margin : low - margin, right = f.log_x ? high * margin : high + margin;

    s << "set title " << quoted(f.title) << " font ',20' offset 0,0.6\n"
      << "set xlabel " << quoted(f.x_label) << " offset 0,0.4\n"
      << "set ylabel " << quoted(f.y_label) << " offset -0.5,0\n"
      << "set border 3 linewidth 1.5 linecolor rgb '#444444'\n"
      << "set tics nomirror out textcolor rgb '#222222'\n"
      << "set grid ytics linetype 1 linewidth 1 linecolor rgb '#e4e4e4'\n"
      << "set xrange [" << left << ":" << right << "]\n"
      << "set yrange [-0.02:1.04]\n"
      << "set ytics 0,0.2,1 format '%.1f'\n"
      << "set key at screen 0.53,screen 0.075 center center vertical Left reverse maxrows " << (f.curves.size() + 1) / 2
      << " samplen 3 spacing 1.25 width 2 font ',14'\n"
      << "set lmargin 9\nset rmargin 4\nset tmargin 4\nset bmargin 6.3\n";
    if (f.log_x) {
        s << "set logscale x 2\nset xtics (";
        const char* comma = "";
        for (double tick = std::exp2(std::ceil(std::log2(low) - 1e-9)); tick <= high * 1.001; tick *= 2, comma = ", ")
            s << comma << "'" << tick << "' " << tick;
        s << ")\n";
    }
    if (f.mark)
        s << "set arrow from " << *f.mark << ",graph 0 to " << *f.mark
          << ",graph 1 nohead dashtype 2 linewidth 1.5 linecolor rgb '#8a8a8a' back\n"
          << "set label " << quoted(f.mark_label) << " at " << *f.mark
          << ",graph 1 center offset 0,0.7 font ',13' textcolor rgb '#6a6a6a'\n"
          << "set object rectangle from " << *f.mark << ",graph 0 to graph 1,graph 1 behind "
          << "fillcolor rgb '#f4f6fa' fillstyle solid noborder\n";
    for (const char* terminal : {"png", "svg"}) {
        if (terminal[0] == 'p')
            s << "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
              << "    set terminal pngcairo size 1600,1040 fontscale 1.6 linewidth 1.6 pointscale 1.6 font 'sans,16'\n"
              << "} else {\n"
              << "    set terminal png size 1600,1040 font 'sans,22'\n"
              << "}\n";
        else
            s << "set terminal svg size 800,520 dynamic background 'white' font 'sans-serif,14' linewidth 0.8\n";
        s << "set output '" << name << "." << terminal << "'\n";
        if (f.curves.empty()) {
            s << "plot 2 notitle\n";
            continue;
        }
        s << "plot";
        for (std::size_t i = 0; i < f.curves.size(); ++i) {
            const curve& c = f.curves[i];
            s << (i ? ", \\\n    " : " ") << "$curve" << i << " using 1:2 with " << (c.points ? "linespoints" : "lines")
              << " linewidth " << c.width << " dashtype " << c.dash << " linecolor rgb '" << c.colour << "'";
            if (c.points) s << " pointtype 7 pointsize 0.9";
            s << (c.label.empty() ? std::string(" notitle") : " title " + quoted(c.label));
        }
        s << "\n";
    }
    s << "unset output\n";
    return s.str();
}

/// The same as text: one block a curve, one bar a point. Braces, which group gnuplot's subscripts, are left out.
inline std::string text_chart(const figure& f) {
    constexpr int width = 50;
    std::string text = f.title + "\n" + f.y_label + "; " + f.x_label;
    if (f.mark) text += "; * " + f.mark_label;
    text += "\n";
    for (const curve& c : f.curves) {
        if (c.label.empty()) continue;
        text += "\n" + c.label + "\n";
        for (std::size_t i = 0; i < c.x.size(); ++i) {
            const double share = std::isfinite(c.y[i]) ? std::clamp(c.y[i], 0.0, 1.0) : 0;
            const auto full = static_cast<std::size_t>(std::lround(width * share));
            char line[64];
            std::snprintf(line, sizeof line, "%6g %c|", c.x[i], f.mark && *f.mark == c.x[i] ? '*' : ' ');
            text += line + std::string(full, '#') + std::string(width - full, ' ');
            std::snprintf(line, sizeof line, "| %.3f\n", c.y[i]);
            text += line;
        }
    }
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    return text;
}

/// Writes name.gp into the folder and runs gnuplot on it, which writes name.png and name.svg; without gnuplot, or when it
/// fails, writes name.txt. Returns the text chart in that case, otherwise nothing.
inline std::optional<std::string> draw(const figure& f, const std::filesystem::path& folder, const std::string& name) {
    write_file(folder / (name + ".gp"), gnuplot_script(f, name));
    const std::string program = find_program("gnuplot");
    if (!program.empty()) {
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
        std::string script = name + ".gp", self = "gnuplot";
        char* arguments[] = {self.data(), script.data(), nullptr};
        pid_t child = 0;
        int state = -1;
        const bool started = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ) == 0;
        ::posix_spawn_file_actions_destroy(&actions);
        if (started) {
            while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
            }
            if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return std::nullopt;
        }
    }
    std::string text = text_chart(f);
    write_file(folder / (name + ".txt"), text);
    return text;
}

}  // namespace fprnn
