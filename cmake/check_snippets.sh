#!/usr/bin/env bash
# check_snippets.sh [--write] FOLDER PAGE…: every block of C++ in a page is a piece of a program that is
# compiled. A line
#
#   <!-- examples/scan.cpp: value -->
#
# above the block says which: the lines between the two //! [value] of that file, which is named from FOLDER.
# --write puts them there.
set -u
write=0
[[ $1 == --write ]] && { write=1; shift; }
cd "$1" || exit 1
shift

made=$(mktemp)
trap 'rm -f "$made"' EXIT
failed=0
for page in "$@"; do
    awk '
        function fail(message) { print page ":" FNR ": " message > "/dev/stderr"; bad = 1 }
        function snippet(file, name,    line, inside, found, text, indent) {
            while ((getline line < file) > 0) {
                if (line ~ "^ *//! \\[" name "\\]$") {
                    inside = !inside
                    found = 1
                    match(line, /^ */)
                    indent = RLENGTH
                } else if (inside && line !~ /^ *\/\/! \[/) text = text substr(line, indent + 1) "\n"
            }
            close(file)
            if (!found || inside) fail(file " has no lines between two //! [" name "]")
            return text
        }
        /^<!-- [^ ]+: [^ ]+ -->$/ { marker = FNR; file = substr($2, 1, length($2) - 1); name = $3 }
        inside && /^```$/ { inside = 0 }
        inside { next }
        { print }
        /^```cpp$/ {
            if (marker != FNR - 1) fail("a block of C++ without its source: <!-- file: name --> on the line above")
            else { printf "%s", snippet(file, name); inside = 1 }
        }
        END { exit bad }' page="$page" "$page" >"$made" || { failed=1; continue; }
    if ((write)); then
        cmp -s "$page" "$made" || cp "$made" "$page"
    elif ! diff -u --label "$page" --label "what is compiled" "$page" "$made"; then
        failed=1
    fi
done
((failed)) && echo "cmake/check_snippets.sh --write . docs/tutorial/*.md puts the pieces into the pages" >&2
exit "$failed"
