#!/usr/bin/env bash
# generate.sh PROGRAM: each of its models learns a rhyme, and goes on with it token by token to the bits of
# one call.
set -u
program=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
failed=0

bash "$here/cmake/check_output.sh" "$program" examples/generate.cpp "$here"/docs/tutorial/06-generation.md || failed=1
known=$("$program" none 2>&1)
[[ $? == 2 ]] || { echo "generate none did not end with status 2"; failed=1; }
[[ $known == "generate: expected one of "*", got 'none'" ]] || { echo "generate none said: $known"; failed=1; }
names=${known#*one of }
names=${names%, got*}
count=0
for name in ${names//,/}; do
    said=$("$program" "$name" 2>&1) || { echo "generate $name: $said"; failed=1; }
    count=$((count + 1))
done
((count >= 8)) || { echo "generate knows $count models"; failed=1; }
exit $failed
