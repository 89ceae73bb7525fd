#!/usr/bin/env bash
# without_cuda.sh PROJECT CMAKE CTEST ARGUMENTS…: a copy of the project without its folder cuda/ is configured
# with everything, an example and a test are built and run, no other test lacks a header, and the links
# between its pages hold. The copy is not in the build folder, for the site takes pictures from anywhere in
# the project. The project itself is configured as one without CUDA, and as where there is no toolkit.
set -eu
project=$1 cmake=$2 ctest=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/project"
cd "$project"
cp -r bench cmake docs examples include src tests CMakeLists.txt LICENSE ./*.md "$folder/project"
# configure SOURCE BUILD ARGUMENTS…
configure() {
    local source=$1 build=$folder/$2
    shift 2
    "$cmake" -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
        "-DFETCHCONTENT_BASE_DIR=$folder/fetched" "$@"
}
# neither run nor skipped
has_no_test_of_cuda() {
    "$ctest" --test-dir "$folder/$1" -N >"$folder/tests"
    ! grep 'Test *#.*cuda' "$folder/tests" | grep -v ': consumers\.without_cuda$' || exit 1
}

configure "$folder/project" build "$@"
"$cmake" --build "$folder/build" --target scan test_core
"$ctest" --test-dir "$folder/build" --output-on-failure --no-tests=error -R '^(links|examples\.scan|test_core)$'
has_no_test_of_cuda build

# All tests as one source, whose headers are looked for.
cd "$folder/project/tests"
command=$(grep -m1 '"command".*/core/[a-z_0-9]*\.test\.cpp"' "$folder/build/compile_commands.json")
compiler=$(sed 's/^ *"command": "//; s/ .*//' <<<"$command")
read -ra directories <<<"$(grep -oE '(-I|-isystem )[^ ]+' <<<"$command" | tr '\n' ' ')"
find . -path ./cuda -prune -o -name '*.test.cpp' -printf '#include "%p"\n' >all.cpp
(($(wc -l <all.cpp) > 50))
"$compiler" -std=c++20 "${directories[@]}" -M all.cpp >"$folder/headers"

configure "$project" off "$@" -DFPRNN_CUDA=OFF
has_no_test_of_cuda off
configure "$project" no_toolkit "$@" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
"$ctest" --test-dir "$folder/no_toolkit" --no-tests=error -R '^(cuda\..*|consumers\.cuda)$' >"$folder/tests"
! grep -E 'Test *#.*(Passed|Failed)' "$folder/tests"
