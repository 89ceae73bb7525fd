#!/usr/bin/env bash
# readme.sh FOLDER README CMAKE ARGUMENTS…: the project that the README shows, its first block of CMake beside
# its first of C++, is built and run as it stands, but for the path of the library.
set -eu
folder=$1 readme=$(realpath "$2") cmake=$3
shift 3
rm -rf "$folder"
mkdir -p "$folder"
block() { awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } /^```$/ { if (inside) exit } inside' "$readme"; }
block cpp >"$folder/app.cpp"
block cmake | sed "s|/path/to/fprnn|$(dirname "$readme")|" >"$folder/CMakeLists.txt"
grep -q "SOURCE_DIR $(dirname "$readme")" "$folder/CMakeLists.txt"
"$cmake" -S "$folder" -B "$folder/build" "$@"
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$folder/build/CMakeCache.txt"  # the project itself says Release
"$cmake" --build "$folder/build" --verbose >"$folder/log"
grep -q -- ' -O3 .*app\.cpp' "$folder/log"
"$folder/build/app"
