#!/usr/bin/env bash
# without_cuda.sh PROJECT CMAKE CTEST ARGUMENTS…: a copy of the project without its folder cuda/ is configured with everything, an
# example is built and run, and the links between its pages hold. The copy is not in the build folder, for the site takes pictures
# from anywhere in the project.
set -eu
project=$1 cmake=$2 ctest=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/project"
cd "$project"
cp -r bench cmake docs examples include tests CMakeLists.txt LICENSE ./*.md "$folder/project"
"$cmake" -G Ninja -S "$folder/project" -B "$folder/build" "$@"
"$cmake" --build "$folder/build" --target scan
"$ctest" --test-dir "$folder/build" --output-on-failure --no-tests=error -R '^(links|examples\.scan)$'
"$ctest" --test-dir "$folder/build" -N >"$folder/tests"
! grep 'Test *#.*cuda' "$folder/tests"  # neither run nor skipped
