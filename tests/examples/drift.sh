#!/usr/bin/env bash
# drift.sh PROGRAM: what examples/drift prints of a checkpoint, and with bad input.
set -u
program=$1 experiment=${1%/*}/experiment
if [[ ! -x $program || ! -x $experiment ]]; then
    echo "FAILED: $program or $experiment is not there"
    exit 1
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# checkpoint OPTIONS…: path of one of a model that has learnt for two steps
checkpoint() {
    "$experiment" --group S3 --batch 8 --steps 2 --checkpoint-every 2 --test-lengths 4 --test-sequences 8 --out "$folder/$1" "${@:2}" \
        >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    echo "$folder/$1/checkpoint-00000002.safetensors"
}
default=$(checkpoint default) other=$(checkpoint other --mixer dplr)

said=$("$program" "$default") || fail "a checkpoint ended with status $?"
shares='(  [0-9]+\.[0-9]{4}){8}'
for t0 in 8 16 64 256; do
    grep -qE "^after +$t0 tokens$shares\$" <<<"$said" || fail "no shares after $t0 tokens in: $said"
done
# Nothing has been learnt: states forget what they have read, and are far apart before they read the same.
awk '/^after/ && !($4 > 0.9 && $4 < 1.1 && $11 < 0.01) { exit 1 }' <<<"$said" || fail "states do not forget in: $said"

# refused STATUS MESSAGE ARGUMENTS…
refused() {
    local status=$1 message=$2 got
    shift 2
    got=$("$program" "$@" 2>&1 >"$folder/said")
    [[ $? == "$status" ]] || fail "$* did not end with status $status"
    [[ $got == "drift: $message"* ]] || fail "$* said: $got
        instead of: drift: $message"
    [[ ! -s $folder/said ]] || fail "$* printed: $(<"$folder/said")"
}
refused 2 "expected CHECKPOINT, got 2 arguments" "$default" S3
refused 1 "/nope: No such file or directory" /nope
refused 1 "$other: expected a checkpoint of experiment with mixer = \"householder\", got \"dplr\"" "$other"
refused 1 "$0: " "$0"

((failures == 0))
