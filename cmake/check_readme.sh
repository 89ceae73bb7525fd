#!/usr/bin/env bash
# check_readme.sh README COMPILER FLAGS…: the first C++ block of the README compiles as it stands.
set -u
readme=$1
shift
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
awk '/^```cpp$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$readme" >"$folder/readme.cpp"
if [[ ! -s $folder/readme.cpp ]]; then
    echo "$readme holds no block of C++" >&2
    exit 1
fi
"$@" -fsyntax-only "$folder/readme.cpp"
