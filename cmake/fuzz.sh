#!/usr/bin/env bash
# fuzz.sh PROGRAM SECONDS [DICTIONARY]: runs a fuzz target from its seeds. What it finds is kept beside the
# program and printed, so that `PROGRAM FILE` shows it again.
set -u
program=$1 seconds=$2 dictionary=${3-}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/seeds" "$folder/corpus" || exit 1
found=$program.found
rm -rf "$found" && mkdir "$found" || exit 1

# AddressSanitizer keeps what is freed until its quarantine is full, 256 MiB unless told otherwise. With 16 a
# target needs 90 MiB, and the limits below are limits on the reader.
export ASAN_OPTIONS=quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1
FPRNN_FUZZ_SEEDS=$folder/seeds "$program" || { echo "the seeds cannot be written"; exit 1; }

options=(-timeout=1 -rss_limit_mb=256 -malloc_limit_mb=32)
"$program" "${options[@]}" -max_total_time="$seconds" -max_len=4096 -use_value_profile=1 -print_final_stats=1 \
    -artifact_prefix="$found/" ${dictionary:+"-dict=$dictionary"} "$folder/corpus" "$folder/seeds" 2>&1 |
    grep -vE '^(#[0-9]+[[:space:]]+(NEW|REDUCE|pulse|RELOAD)|"|###|\sNEW_FUNC)'
result=${PIPESTATUS[0]}
((result)) || exit 0

input=$(find "$found" -type f | head -n 1)
if [[ -n $input ]]; then
    # A second by the clock, while others use the machine: it counts when the same input takes it again.
    if [[ $input == */timeout-* ]] && "$program" "${options[@]}" "$input" 2>&1; then
        echo "the machine paused, not the reader: $input is read in time"
        exit 0
    fi
    echo "$program $input shows it again; in base64 that input is"
    base64 "$input"
fi
exit 1
