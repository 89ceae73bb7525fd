#!/usr/bin/env bash
# check_headers.sh INCLUDE_DIR WITHOUT COMPILER FLAGS…: compiles every header below INCLUDE_DIR alone, two at
# a time, but for those whose path matches the shell's pattern WITHOUT.
set -u
directory=$1 without=$2
shift 2
cd "$directory" || exit 1

# Read from standard input and included by name, as a user would: a header compiled as the main file trips on
# #pragma once.
one() {
    local header=$1
    shift
    printf '#include <%s>\n' "$header" | "$@" -fsyntax-only -fdiagnostics-color=never -x c++ - 2>&1 && return
    echo "^^^ $header does not compile alone"
    return 1
}
export -f one

count=$(find . -name '*.hpp' -not -path "./$without" | wc -l)
find . -name '*.hpp' -not -path "./$without" -printf '%P\0' | sort -z |
    xargs -0 -P 2 -I '{}' bash -c 'one "$@"' bash '{}' "$@" || exit 1
echo "$count headers compile alone"
