#!/usr/bin/env bash
# bare.sh FOLDER HEADER COMPILER FLAGS…: no build system, two translation units, one program.
set -eu
folder=$1 header=$2
shift 2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
rm -rf "$folder"
mkdir -p "$folder"
"$@" -DWITH_SECOND_UNIT "-DFPRNN_HEADER=<$header>" "$source/main.cpp" "$source/second.cpp" -o "$folder/consumer"
"$folder/consumer"
