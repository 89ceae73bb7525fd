#!/usr/bin/env bash
# newton.sh PROGRAM: what examples/newton prints of checkpoints, and with bad input.
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

# checkpoint NAME OPTIONS…: path of one of a model that has learnt for two steps
checkpoint() {
    "$experiment" --group S3 --batch 8 --steps 2 --checkpoint-every 2 --test-lengths 4 --test-sequences 8 --out "$folder/$1" "${@:2}" \
        >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    echo "$folder/$1/checkpoint-00000002.safetensors"
}

for model in fp-mamba fp-rnn lstm; do
    said=$("$program" "$(checkpoint "$model" --model "$model")" 8 40) || fail "$model ended with status $?"
    columns=' +[0-9]+[ *] +1\.0000 +[0-9.e+]+( +[0-9]+[ *] +[01]\.[0-9]{4} +[0-9.e+]+){2}'
    for tokens in 8 40; do
        grep -qE "^ +$tokens$columns\$" <<<"$said" || fail "no line of $tokens tokens that are the same by Newton's method in: $said"
    done
    # Nothing has been learnt, so that what tokens hand on is soon forgotten, but not at once.
    awk '$1 == 40 && !($2 + 0 > 2 && $2 + 0 < 12) { exit 1 }' <<<"$said" || fail "$model takes as many iterations as tokens: $said"
done

# refused STATUS MESSAGE ARGUMENTS…
refused() {
    local status=$1 message=$2 got
    shift 2
    got=$("$program" "$@" 2>&1 >"$folder/said")
    [[ $? == "$status" ]] || fail "$* did not end with status $status"
    [[ $got == "newton: $message"* ]] || fail "$* said: $got
        instead of: newton: $message"
    [[ ! -s $folder/said ]] || fail "$* printed: $(<"$folder/said")"
}
other=$(checkpoint other --mixer dplr) twice=$(checkpoint twice --layers 2)
refused 2 "expected CHECKPOINT [TOKENS...], got nothing"
refused 1 "expected tokens, from 1 to 9999999, got '0'" "$other" 0
refused 1 "/nope: No such file or directory" /nope
refused 1 "$other: expected a checkpoint of experiment with mixer = \"householder\", got \"dplr\"" "$other"
refused 1 "$twice: expected a checkpoint of experiment with layers = 1, got 2" "$twice"
refused 1 "$0: " "$0"

((failures == 0))
