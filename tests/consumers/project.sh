#!/usr/bin/env bash
# project.sh FOLDER CMAKE ARGUMENTS…: configures this consumer project in FOLDER, builds and runs it, and
# looks at the flags that it was compiled with: the library adds directories of headers and the language
# standard, and nothing else.
set -eu
folder=$1 cmake=$2
shift 2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
rm -rf "$folder"
"$cmake" -G Ninja -S "$source" -B "$folder" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@"
"$cmake" --build "$folder" --parallel 2
"$folder/consumer"
[[ ! -e $folder/ranks ]] || "$folder/ranks"

# flags_of FILE: one a line, without directories of headers, the standard and names of files
flags_of() {
    awk -v file="/$1" '
        index($0, "\"command\"") && index($0, file " \"") + index($0, file "\",") {
            gsub(/^ *"command": "|",?$/, "")
            for (i = 2; i <= NF; ++i) {
                if ($i == "-isystem" || $i == "-o" || $i == "-c") { ++i; continue }
                if ($i !~ /^(-I|-std=)/) print $i
            }
        }' "$folder/compile_commands.json"
}
added=$(diff <(flags_of plain.cpp) <(flags_of main.cpp)) || {
    echo "the library changes the flags of its consumer:"
    echo "$added"
    exit 1
}
[[ -n $(flags_of main.cpp) ]]  # the commands were found
grep -q '"command".*-std=[a-z+]*2[03b] .*/main.cpp"' "$folder/compile_commands.json"
