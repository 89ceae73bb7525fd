#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/io/picture.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace fprnn {

/// The path of a program that a shell would find; empty when there is none.
inline std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    const std::string_view folders = path ? path : "";
    for (std::size_t begin = 0, end; begin < folders.size(); begin = end + 1) {
        end = std::min(folders.find(':', begin), folders.size());
        const std::string_view folder = folders.substr(begin, end - begin);
        std::string candidate = std::string(folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

namespace detail {

/// The smallest and the largest of some numbers.
struct extent {
    double low = HUGE_VAL, high = -HUGE_VAL;
    void take(double v) {
        low = std::min(low, v);
        high = std::max(high, v);
    }
    bool empty() const { return low > high; }
};

inline bool can_be_drawn(double v, const axis& a) { return math::is_finite(v) && (a.log == 0 || v > 0); }

/// Calls f(x, y) for each point of c that can be drawn in the figure.
template <class F>
void for_each_point(const figure& f, const curve& c, F&& take) {
    for (std::size_t i = 0; i < c.x.size(); ++i)
        if (can_be_drawn(c.x[i], f.x) && can_be_drawn(c.y[i], f.y)) take(c.x[i], c.y[i]);
}
/// Calls f(x, low, high) for each of them that has an interval.
template <class F>
void for_each_interval(const figure& f, const curve& c, F&& take) {
    for (std::size_t i = 0; i < c.low.size(); ++i)
        if (can_be_drawn(c.x[i], f.x) && can_be_drawn(c.low[i], f.y) && can_be_drawn(c.high[i], f.y))
            take(c.x[i], c.low[i], c.high[i]);
}

struct extents {
    extent x, y;
};
inline extents extents_of(const figure& f) {
    extents e;
    for (const curve& c : f.curves) {
        for_each_point(f, c, [&](double x, double y) {
            e.x.take(x);
            e.y.take(y);
        });
        for_each_interval(f, c, [&](double x, double low, double high) {
            e.x.take(x);
            e.y.take(low);
            e.y.take(high);
        });
    }
    if (f.upright) e.x.take(f.upright->at);
    if (f.level) e.y.take(f.level->at);
    for (const auto& [a, range] : {std::pair(&f.x, &e.x), std::pair(&f.y, &e.y)}) {
        if (a->limits) *range = {a->limits->first, a->limits->second};
        if (range->empty()) *range = {1, 2};
    }
    if (f.y.log == 0 && !f.y.limits) e.y.take(0);
    return e;
}

/// Where a figure stands in its picture, as shares of it.
struct box {
    double left, right, bottom, top;
};

class gnuplot_writer {
public:
    gnuplot_writer(const picture& p, const std::string& name) : p_(p), name_(name) {
        // gnuplot takes numbers without commas alone.
        s_.imbue(std::locale::classic());
        s_.precision(7);
    }

    std::string script() {
        s_ << "# gnuplot " << name_ << ".gp\n"
           << "set encoding utf8\n";
        for (std::size_t k = 0; k < p_.figures.size(); ++k)
            for (std::size_t i = 0; i < p_.figures[k].curves.size(); ++i) data(k, i);
        const int width = single() ? 800 : 1000, height = static_cast<int>(this->height());
        s_ << "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
           << "    set terminal pngcairo size " << 2 * width << "," << 2 * height
           << " fontscale 1.6 linewidth 1.6 pointscale 1.6 font 'sans," << (single() ? 16 : 14) << "'\n"
           << "} else {\n"
           << "    set terminal png size " << 2 * width << "," << 2 * height << " font 'sans,22'\n"
           << "}\n";
        draw("png");
        s_ << "set terminal svg size " << width << "," << height << " dynamic background 'white' font 'sans-serif,"
           << (single() ? 14 : 12) << "' linewidth 0.8\n";
        draw("svg");
        return s_.str();
    }

private:
    bool single() const { return p_.figures.size() == 1; }
    std::size_t rows() const { return (p_.figures.size() + 1) / 2; }

    static std::string quoted(const std::string& text) {
        std::string q = "'";
        for (const char c : text) q += c == '\'' ? "''" : std::string(1, c);
        return q + "'";
    }
    static std::string block(std::size_t k, std::size_t i) {
        return "$figure" + std::to_string(k) + "_curve" + std::to_string(i);
    }

    static std::string band(std::size_t k, std::size_t i) { return block(k, i) + "_band"; }

    void data(std::size_t k, std::size_t i) {
        const figure& f = p_.figures[k];
        s_ << block(k, i) << " << EOD\n";
        for_each_point(f, f.curves[i], [&](double x, double y) { s_ << x << " " << y << "\n"; });
        s_ << "EOD\n";
        if (f.curves[i].low.empty()) return;
        s_ << band(k, i) << " << EOD\n";
        for_each_interval(f, f.curves[i],
                          [&](double x, double low, double high) { s_ << x << " " << low << " " << high << "\n"; });
        s_ << "EOD\n";
    }

    void draw(const std::string& terminal) {
        s_ << "set output " << quoted(name_ + "." + terminal) << "\n";
        if (!single()) s_ << "set multiplot\n";
        for (std::size_t k = 0; k < p_.figures.size(); ++k) {
            s_ << "reset\n";
            if (k == 0 && !single())
                s_ << "set label " << quoted(p_.title) << " at screen 0.5,screen " << 1 - 28.0 / height()
                   << " center font '," << title_size(p_.title, 18, 100) << "'\n";
            frame(p_.figures[k], place(k));
            if (k == 0)
                key();
            else
                s_ << "set key off\n";
            plot(p_.figures[k], k);
        }
        s_ << (single() ? "" : "unset multiplot\n") << "unset output\n";
    }

    /// In points; where the key has more rows than one figure or several leave room for, the picture is that
    /// much higher.
    double height() const { return (single() ? 520.0 : 80 + 330.0 * static_cast<double>(rows())) + room_for_key(); }
    double room_for_key() const {
        constexpr double row = 24;
        const std::size_t fit = single() ? 2 : 1, needed = key_rows();
        return needed > fit ? row * static_cast<double>(needed - fit) : 0;
    }
    std::size_t key_rows() const {
        std::size_t entries = 0, longest = 0;
        for (const curve& c : p_.figures.front().curves) {
            entries += !c.label.empty();
            longest = std::max(longest, c.label.size());
        }
        const std::size_t columns = std::max<std::size_t>(1, (single() ? 92 : 104) / (longest + 10));
        return std::max<std::size_t>(1, (entries + columns - 1) / columns);
    }

    box place(std::size_t k) const {
        if (single()) return {0.124, 0.945, 1 - 395 / height(), 1 - 80 / height()};
        const std::size_t rows_above = k / 2;
        const double column = k % 2 == 0 ? 0 : 1, row = static_cast<double>(rows_above);
        const double top = 1 - (82 + 330 * row) / height();
        return {0.5 * column + 0.09, 0.5 * column + 0.475, top - 220 / height(), top};
    }

    /// Ticks at powers of the base: every one, or every second, third … where there would be many; at the
    /// ends where fewer than two powers lie between them.
    void power_ticks(const char* name, double base, double low, double high) {
        const double first = std::ceil(std::log(low) / std::log(base) - 1e-9),
                     last = std::floor(std::log(high) / std::log(base) + 1e-9), every = std::ceil((last - first) / 11);
        s_ << "set " << name << "tics (";
        const char* comma = "";
        if (first >= last) {
            s_ << low;
            if (low < high) s_ << ", " << high;
            s_ << ")\n";
            return;
        }
        for (double e = first; e <= last; e += std::max(every, 1.0), comma = ", ") {
            const double tick = std::pow(base, e);
            if (base == 10)
                s_ << comma << "'10^{" << e << "}' " << tick;
            else
                s_ << comma << "'" << tick << "' " << tick;
        }
        s_ << ")\n";
    }

    /// 1, 2 or 5 times a power of ten: the smallest that divides `length` into at most five.
    static double round_step(double length) {
        const double power = std::pow(10, std::floor(std::log10(length / 5)));
        for (const double digit : {1.0, 2.0, 5.0})
            if (digit * power >= length / 5) return digit * power;
        return 10 * power;
    }

    /// Digits behind the point that a multiple of the step has, at most six.
    static int decimals(double step) {
        int digits = 0;
        for (double scaled = step; digits < 6 && std::abs(scaled - std::round(scaled)) > 1e-6 * scaled; scaled *= 10)
            ++digits;
        return digits;
    }

    void scale(const char* name, const axis& a, extent e, double below, double above) {
        if (a.log != 0) {
            const double base = a.log, step = std::log(base);
            if (base == 10) {
                e.low = std::pow(base, std::floor(std::log(e.low) / step + 1e-9));
                e.high = std::pow(base, std::ceil(std::log(e.high) / step - 1e-9));
                if (!(e.low < e.high)) e.high = e.low * base;
            }
            s_ << "set logscale " << name << " " << a.log << "\n"
               << "set " << name << "range [" << e.low / (base == 10 ? 1.1 : 1.12) << ":"
               << e.high * (base == 10 ? 1.4 : 1.12) << "]\n";
            power_ticks(name, base, e.low, e.high);
            return;
        }
        const double length = e.high > e.low ? e.high - e.low : 1;
        s_ << "set " << name << "range [" << e.low - below * length << ":" << e.high + above * length << "]\n";
        if (a.limits) {
            const double fifth = length / 5;
            const bool is_round = std::abs(10 * fifth - std::round(10 * fifth)) < 1e-9;
            const double step = is_round ? fifth : round_step(0.9 * length),
                         first = is_round ? e.low : std::ceil(e.low / step - 1e-9) * step + 0.0;
            s_ << "set " << name << "tics " << first << "," << step << "," << e.high << " format '%." << decimals(step)
               << "f'\n";
        } else if (*name == 'x') {  // numbers of ticks that stand side by side must not touch
            s_ << "set xtics " << round_step(length) << "\n";
        }
    }

    /// The size that a title has, or one that is so much smaller that it fits, as `fit` characters do.
    static int title_size(const std::string& title, int size, int fit) {
        const auto characters = std::count_if(title.begin(), title.end(), [](char c) { return (c & 0xc0) != 0x80; });
        return characters <= fit ? size : std::max(8, static_cast<int>(size * fit / characters));
    }
    /// Whether a text around x would be cut off at the right.
    static bool is_near_the_end(double x, const axis& a, extent e) {
        const auto place = [&](double v) { return a.log != 0 ? std::log(v) : v; };
        return place(x) > place(e.low) + 0.9 * (place(e.high) - place(e.low)) && e.low < e.high;
    }

    void frame(const figure& f, const box& b) {
        const extents e = extents_of(f);
        s_ << "set title " << quoted(f.title) << " font ',"
           << (single() ? title_size(f.title, 20, 62) : title_size(f.title, 15, 52)) << "' offset 0,"
           << (single() ? 0.6 : 0.2) << "\n"
           << "set xlabel " << quoted(f.x.label) << " offset 0,0.4\n"
           << "set ylabel " << quoted(f.y.label + (f.dashed.empty() ? "" : " (dashed: " + f.dashed + ")"))
           << " offset -0.5,0\n"
           << "set border 3 linewidth 1.5 linecolor rgb '#444444'\n"
           << "set tics nomirror out textcolor rgb '#222222' format '%g'\n"
           << "set grid ytics linetype 1 linewidth 1 linecolor rgb '#e4e4e4'\n"
           << "set lmargin at screen " << b.left << "\nset rmargin at screen " << b.right << "\nset bmargin at screen "
           << b.bottom << "\nset tmargin at screen " << b.top << "\n";
        scale("x", f.x, e.x, 0.03, 0.03);
        scale("y", f.y, e.y, 0.02, 0.04);
        if (f.upright) {
            s_ << "set arrow from " << f.upright->at << ",graph 0 to " << f.upright->at
               << ",graph 1 nohead dashtype 2 linewidth 1.5 linecolor rgb '#8a8a8a' back\n"
               << "set label " << quoted(f.upright->label) << " at " << f.upright->at << ",graph 1 "
               << (is_near_the_end(f.upright->at, f.x, e.x) ? "right" : "center")
               << " offset 0,0.7 font ',13' textcolor rgb '#6a6a6a'\n"
               << "set object rectangle from " << f.upright->at << ",graph 0 to graph 1,graph 1 behind "
               << "fillcolor rgb '#f4f6fa' fillstyle solid noborder\n";
        }
        if (f.level)
            s_ << "set arrow from graph 0,first " << f.level->at << " to graph 1,first " << f.level->at
               << " nohead dashtype 2 linewidth 1.5 linecolor rgb '#8a8a8a' back\n"
               << "set label " << quoted(f.level->label) << " at graph 0.99,first " << f.level->at
               << " right offset 0,0.6 font ',13' textcolor rgb '#6a6a6a'\n";
    }

    /// Below the picture, in as few rows as its labels allow.
    void key() {
        s_ << "set key at screen " << (single() ? 0.53 : 0.5) << ",screen "
           << ((single() ? 39 : 24) + room_for_key() / 2) / height() << " center center vertical Left reverse maxrows "
           << key_rows() << " samplen 3 spacing 1.25 width 2 font ',14'\n";
    }

    void plot(const figure& f, std::size_t k) {
        if (f.curves.empty()) s_ << "plot 2 notitle";
        const char* before = "plot ";
        constexpr const char* next = ", \\\n    ";
        for (std::size_t i = 0; i < f.curves.size(); ++i) {
            const curve& c = f.curves[i];
            bool any = false;
            for_each_interval(f, c, [&](double, double, double) { any = true; });
            if (!any) continue;
            s_ << before << band(k, i) << " using 1:2:3 with filledcurves fillcolor rgb '" << c.colour
               << "' fillstyle transparent solid 0.18 noborder notitle";
            before = next;
        }
        for (std::size_t i = 0; i < f.curves.size(); ++i, before = next) {
            const curve& c = f.curves[i];
            bool any = false;
            for_each_point(f, c, [&](double, double) { any = true; });
            // A curve without a point still has its place in the key.
            s_ << before << (any ? block(k, i) + " using 1:2" : "NaN") << " with "
               << (c.points ? "linespoints" : "lines") << " linewidth " << c.width << " dashtype " << c.dash
               << " linecolor rgb '" << c.colour << "'";
            if (c.points) s_ << " pointtype 7 pointsize 0.9";
            s_ << (c.label.empty() ? std::string(" notitle") : " title " + quoted(c.label));
        }
        s_ << "\n";
    }

    const picture& p_;
    const std::string& name_;
    std::ostringstream s_;
};

}  // namespace detail

/// A gnuplot script that writes name.png and name.svg into the folder it is run in. The data are inside.
/// Errors: what picture::validate refuses.
inline std::string gnuplot_script(const picture& p, const std::string& name) {
    p.validate();
    return detail::gnuplot_writer(p, name).script();
}

}  // namespace fprnn
