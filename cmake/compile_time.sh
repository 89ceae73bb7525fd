#!/usr/bin/env bash
# compile_time.sh RATIO SOURCE COMPILER FLAGS…: fails when each of five compilations takes longer than RATIO
# times YARDSTICK, which is compiled beside each. The first that does not ends it. Each is compared with the
# yardstick beside it, by processor time, which is steadier on a busy machine than time by the clock; the
# shortest times of both would not be of one moment. A ratio says on every machine whether the library takes
# longer than it did; seconds, which grew only where a machine was slow, let it grow on fast ones. Like what
# it measures, the yardstick is templates to instantiate and to optimise: neighbours slow down headers alone
# much less.
set -u
ratio=$1 source=$2
shift 2
yardstick='#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <ranges>
#include <regex>
#include <string>
#include <vector>
int main(int argc, char** argv) { return std::regex_search(argv[argc - 1], std::regex(argv[0])); }'
export LC_ALL=C
TIMEFORMAT='%U %S'

# seconds COMMAND…: the processor time that it takes
seconds() {
    local log
    log=$({ time "$@"; } 2>&1) || { echo "$log" >&2; return 1; }
    tail -n 1 <<<"$log" | awk '{ print $1 + $2 }'
}
verdict=1 best=
for attempt in 1 2 3 4 5; do
    measure=$(seconds "$1" -std=c++20 -O2 -x c++ -c - -o /dev/null <<<"$yardstick") || exit 1
    taken=$(seconds "$@" -c "$source" -o /dev/null) || exit 1
    times=$(awk -v a="$taken" -v b="$measure" 'BEGIN { printf "%.3f", a / b }')
    echo "attempt $attempt: $taken s, the yardstick $measure s, $times times as much"
    best=$(awk -v a="$times" -v b="${best:-$times}" 'BEGIN { print (a < b) ? a : b }')
    awk -v a="$times" -v b="$ratio" 'BEGIN { exit !(a <= b) }' && verdict=0 && break
done
echo "$(basename "$source") compiles in $best times the processor time of the yardstick; the budget is $ratio"
exit $verdict
