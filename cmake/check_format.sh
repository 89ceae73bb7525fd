#!/usr/bin/env bash
# check_format.sh ROOT CLANG_FORMAT: every C++ and CUDA source below ROOT is as .clang-format would write it,
# and its comments, which clang-format leaves alone, are at most 110 columns wide.
set -u
cd "$1" || exit 1
mapfile -d '' sources < <(find include src cuda tests examples bench docs -type f \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null | sort -z)
((${#sources[@]})) || { echo "no sources below $1"; exit 1; }
colours=--fno-color-diagnostics
[[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]] && colours=--fcolor-diagnostics
printf '%s\0' "${sources[@]}" | xargs -0 -n 20 -P 2 "$2" --dry-run -Werror "$colours" 2>&1 || {
    echo "^^^ these lines are not as .clang-format says; $2 -i FILE writes them so"
    exit 1
}
wide=$(printf '%s\0' "${sources[@]}" | LC_ALL=C.UTF-8 xargs -0 grep -nE '^.{111}' /dev/null |
    grep -E '^[^:]*:[0-9]+: *//' | grep -v '// expect: ')
if [[ -n $wide ]]; then
    echo "$wide"
    echo "^^^ these comments are wider than 110 columns"
    exit 1
fi
echo "${#sources[@]} sources are formatted"
