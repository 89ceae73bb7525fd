#!/usr/bin/env bash
# check_locales.sh ROOT: no number below ROOT depends on a locale. In some, printf, strtod and streams write
# and read 0,5 for 0.5 and group digits: a comma parts the cells of a table, and no program reads such a
# number. Headers run in their users' locales, so there std::to_chars and std::from_chars write and read what
# has a point, and streams are imbued with std::locale::classic(). The programs of examples/ and bench/ never
# leave the locale "C", so they may print to a terminal; what else they write is as in headers.
set -u -o pipefail
cd "$1" || exit 1

conversion='"[^"]*%[-+ #0]*[0-9*]*(\.[0-9*]*)?[lL]?[aAeEfFgG]'
function='\b(strto(d|f|ld)|ato[fl]|sto(d|f|ld)|v?[sf]?scanf|strfmon|[ef]cvt)\(|\bstd::(format|print|println|put_money|put_time)\('
stream='\b[io]?stringstream\b|\bo?fstream\b'
printed='\b(cout|cerr|clog)\b *<<'
locale='\bsetlocale\(|\blocale::global\('
terminal='\bprintf\("|\bfprintf\(stderr, *"'  # and its text

# refuse WHY KIND PATTERN [BUT]: reads "FILE: code", a line each, and says which lines have PATTERN and not
# BUT.
refuse() {
    local found
    found=$(grep -P -- "^[^:]*: .*($2)" | grep -vP -- "^[^:]*: .*(${3:-^})") || return 0
    printf '%s\n^^^ %s\n' "$found" "$1"
    return 1
}

# code FILE…: "FILE: code" of each line, without comments, directives and gnuplot's formats, a call of printf
# on a line with all of its text.
code() {
    local file
    for file; do
        sed -z 's/printf(\n */printf(/g; s/"\n *"//g' "$file" | sed -E "s/(^|[ ;{])\/\/.*//; /^ *#/d; s/format '%[^']*'//g; s|^ *|$file: |"
    done
}

# of_headers FILE… and of_programs FILE…: whether the files are as said above.
of_headers() { of "$conversion|$printed" '' "$@"; }
of_programs() { of "$conversion" "$terminal" "$@"; }
of() {
    local prints=$1 but=$2 good=0 lines file
    shift 2
    lines=$(code "$@")
    refuse "printf and streams write a number as the locale says: std::to_chars, or number_text of core/number_text.hpp" \
        "$prints" "$but" <<<"$lines" || good=1
    refuse "it reads or writes numbers as the locale says: std::from_chars, std::to_chars" "$function" <<<"$lines" || good=1
    refuse "the locale is the user's: uselocale, of this thread alone" "$locale" <<<"$lines" || good=1
    for file; do
        grep -q 'imbue(std::locale::classic())' "$file" && continue
        refuse "a stream reads and writes numbers as the locale says, unless it is imbued with std::locale::classic()" \
            "$stream" < <(code "$file") || good=1
    done
    return $good
}

# What must be refused, and what must not, so that a pattern that matches nothing is noticed.
try=$(mktemp) || exit 1
trap 'rm -f "$try"' EXIT
while IFS= read -r line; do
    printf '%s\n' "$line" >"$try"
    if of_headers "$try" >/dev/null; then echo "not refused: $line"; exit 1; fi
done <<'END'
    std::snprintf(digits, sizeof digits, "%.7g", x);
    part("loss %-8.*lf", loss);
    const double x = std::stod(text);
    std::ostringstream text;
    std::cout << x;
    std::setlocale(LC_ALL, "");
END
while IFS= read -r line; do
    printf '%s\n' "$line" >"$try"
    if ! of_programs "$try"; then echo "refused: $line"; exit 1; fi
done <<'END'
    std::printf("%.3f\n", x);  // setlocale(
    std::fprintf(stderr, "%g\n", x);
    std::snprintf(text, sizeof text, "%08lld", n);
    std::ifstream file(path);
    s_ << " format '%.1f'\n";
END

mapfile -d '' headers < <(find include cuda -type f \( -name '*.hpp' -o -name '*.cuh' \) -print0 2>/dev/null | sort -z)
mapfile -d '' programs < <(find examples bench -type f \( -name '*.?pp' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null | sort -z)
((${#headers[@]})) || { echo "no headers below $1"; exit 1; }
good=0
of_headers "${headers[@]}" || good=1
((${#programs[@]} == 0)) || of_programs "${programs[@]}" || good=1
((good)) || echo "in ${#headers[@]} headers and ${#programs[@]} sources of programs, no number depends on a locale"
exit $good
