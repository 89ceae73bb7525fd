#!/usr/bin/env bash
# newton.sh PROGRAM: what examples/newton prints of checkpoints, and with bad input.
set -u
source "${BASH_SOURCE[0]%/*}/checkpoints.sh"

for model in fp-mamba fp-rnn lstm; do
    said=$("$program" "$(checkpoint "$model" --model "$model")" 8 40) || fail "$model ended with status $?"
    columns=' +[0-9]+[ *] +1\.0000 +[0-9.e+]+( +[0-9]+[ *] +[01]\.[0-9]{4} +[0-9.e+]+){2}'
    for tokens in 8 40; do
        grep -qE "^ +$tokens$columns\$" <<<"$said" || fail "no line of $tokens tokens that are the same by Newton's method in: $said"
    done
    # Nothing has been learnt, so that what tokens hand on is soon forgotten, but not at once.
    awk '$1 == 40 && !($2 + 0 > 2 && $2 + 0 < 12) { exit 1 }' <<<"$said" || fail "$model takes as many iterations as tokens: $said"
done

other=$(checkpoint other --mixer dplr) twice=$(checkpoint twice --layers 2)
refused 2 "expected CHECKPOINT [TOKENS...], got nothing"
refused 1 "expected tokens, from 1 to 9999999, got '0'" "$other" 0
refused 1 "/nope: No such file or directory" /nope
refused 1 "$other: expected a checkpoint of experiment with mixer = \"householder\", got \"dplr\"" "$other"
refused 1 "$twice: expected a checkpoint of experiment with layers = 1, got 2" "$twice"
refused 1 "$0: " "$0"

((failures == 0))
