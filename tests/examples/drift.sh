#!/usr/bin/env bash
# drift.sh PROGRAM: what examples/drift prints of a checkpoint, and with bad input.
set -u
source "${BASH_SOURCE[0]%/*}/checkpoints.sh"

default=$(checkpoint default) other=$(checkpoint other --mixer dplr)

said=$("$program" "$default") || fail "a checkpoint ended with status $?"
shares='(  [0-9]+\.[0-9]{4}){8}'
for t0 in 8 16 64 256; do
    grep -qE "^after +$t0 tokens$shares\$" <<<"$said" || fail "no shares after $t0 tokens in: $said"
done
# Nothing has been learnt: states forget what they have read, and are far apart before they read the same.
awk '/^after/ && !($4 > 0.9 && $4 < 1.1 && $11 < 0.01) { exit 1 }' <<<"$said" || fail "states do not forget in: $said"

for options in "--gate inside-sees-y" "--reflection-scale 2"; do
    of_these=$(checkpoint "${options// /}" $options)
    said=$("$program" "$of_these") || fail "a checkpoint with $options ended with status $?"
    [[ $(grep -cE "^after +[0-9]+ tokens$shares\$" <<<"$said") == 4 ]] || fail "with $options: $said"
done

refused 2 "expected CHECKPOINT, got 2 arguments" "$default" S3
refused 1 "/nope: No such file or directory" /nope
refused 1 "$other: expected a checkpoint of experiment with mixer = \"householder\", got \"dplr\"" "$other"
refused 1 "$0: " "$0"

((failures == 0))
