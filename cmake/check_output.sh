#!/usr/bin/env bash
# check_output.sh PROGRAM SOURCE PAGE…: PROGRAM, which was made of SOURCE, ends well and prints what pages say
# that it prints. A line
#
#   <!-- examples/scan.cpp prints -->
#
# above a block says so: its lines are lines of the output, in this order. A "…" stands for any text, for
# figures that differ from machine to machine.
set -u
program=$1 source=$2
shift 2
printed=$(mktemp) || exit 1
trap 'rm -f "$printed"' EXIT
"$program" >"$printed"
status=$?
cat "$printed"
((status == 0)) || exit "$status"

failed=0
for page in "$@"; do
    awk -v page="$page" -v marker="<!-- $source prints -->" '
        # Whether the text is the pattern, in whose place of "…" anything may stand.
        function matches(text, pattern,    parts, n, i, at) {
            n = split(pattern, parts, "…")
            if (n < 2) return text == pattern
            if (substr(text, 1, length(parts[1])) != parts[1]) return 0
            text = substr(text, length(parts[1]) + 1)
            for (i = 2; i < n; ++i) {
                at = index(text, parts[i])
                if (!at) return 0
                text = substr(text, at + length(parts[i]))
            }
            return length(text) >= length(parts[n]) && substr(text, length(text) - length(parts[n]) + 1) == parts[n]
        }
        NR == FNR { output[++count] = $0; next }
        $0 == marker { marked = FNR; next }
        /^```$/ && marked && marked == FNR - 1 { inside = 1; next_line = 1; next }
        marked && marked == FNR - 1 { print page ":" FNR ": no block without a language below " marker > "/dev/stderr"; bad = 1 }
        inside && /^```$/ { inside = 0 }
        inside {
            for (at = next_line; at <= count && !matches(output[at], $0); ++at) {}
            if (at > count) { print page ":" FNR ": the program does not print this line, here: " $0 > "/dev/stderr"; bad = 1 }
            else next_line = at + 1
        }
        END { exit bad }' "$printed" "$page" || failed=1
done
exit "$failed"
