#!/usr/bin/env bash
# train_on_ranks.sh PROGRAM: what examples/train_on_ranks does on one and on several processes, with mistakes
# and when one of them is killed. MPIEXEC is the launcher. Nothing may hang: each command has a minute.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none  # containers refuse a process to read another's memory
program=$1 launcher=${MPIEXEC:-mpirun}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
tiny=(--group Z3 --batch 16)
small=("${tiny[@]}" --steps 60 --checkpoint-every 10)

# on N ARGUMENTS…: so many processes; what they print is in log and errors.
on() {
    local n=$1
    shift
    timeout 60 "$launcher" -n "$n" "$program" "$@" >"$folder/log" 2>"$folder/errors"
}
# said TEXT TIMES: how often the program's own lines have it, the launcher's own words aside.
said() {
    local times
    times=$(cat "$folder/log" "$folder/errors" | grep -cF -- "$1")
    [[ $times == "$2" ]] || fail "said $times times instead of $2: $1
$(head -n 20 "$folder/log" "$folder/errors")"
}

# at_work: the program's own processes of the run that is to be killed.
at_work() {
    local p
    for p in /proc/[0-9]*; do
        [[ $(readlink "$p/exe") == "$(readlink -f "$program")" ]] || continue
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -qF -- "--out $folder/killed" && echo "${p#/proc/}"
    done
}

# The same steps and the same answers on any number of processes, without a launcher, too.
"$program" "${small[@]}" --out "$folder/alone" >"$folder/alone.log" || fail "alone: $(<"$folder/alone.log")"
grep -q '^1 ranks, 60 steps: ' "$folder/alone.log" || fail "alone: $(<"$folder/alone.log")"
for n in 1 2 3; do
    on $n "${small[@]}" --out "$folder/run$n" || fail "$n processes: $(<"$folder/errors")"
    cmp <(sed 's/^1 ranks/'$n' ranks/' "$folder/alone.log") "$folder/log" || fail "$n processes: $(<"$folder/log")"
done

# What all of them meet is said once.
on 2 "${small[@]}" && fail "no folder"
said "rank 0 of 2: --out is required" 1
on 2 --out "$folder/none" --group Q8 && fail "group Q8"
said "finite_group: 'Q8' is not a known group" 1
on 2 "${small[@]}" --out "$folder/none" --micro-batches 1 && fail "one micro-batch"
said "rank 0 of 2: train: micro_batches must be at least the number of ranks = 2, got 1" 1
# So is what they disagree on, and what rank 0 alone meets.
timeout 60 "$launcher" -n 1 "$program" "${small[@]}" --out "$folder/none" : -n 1 "$program" --group Z3 --batch 24 --steps 60 --out "$folder/none" \
    >"$folder/log" 2>"$folder/errors" && fail "two batches"
said "rank 0 of 2: train: rank 1: rank 0's state: " 1
said "batch" 1
: >"$folder/file"
on 3 "${small[@]}" --out "$folder/file" && fail "a file as folder"
said "rank 0 of 3: cannot write $folder/file: Not a directory" 1
# A rank that ends alone, because it has another command line, ends the others.
timeout 60 "$launcher" -n 1 "$program" "${small[@]}" --out "$folder/none" : -n 1 "$program" --batch many --out "$folder/none" \
    >"$folder/log" 2>"$folder/errors"
status=$?
((status != 0 && status != 124)) || fail "one rank that ended alone: $status"
said "rank 1 of 2: Could not convert: --batch = many" 1
[[ ! -e $folder/none ]] || fail "a refused run left files"

# One of three is killed; the rest end, and two go on from the last checkpoint.
long=("${tiny[@]}" --steps 100000 --checkpoint-every 5)
timeout 60 "$launcher" -n 3 "$program" "${long[@]}" --out "$folder/killed" >"$folder/log" 2>"$folder/errors" &
child=$!
for ((i = 0; i < 3000; ++i)); do
    compgen -G "$folder/killed/checkpoint-*.safetensors" >/dev/null && break
    sleep 0.02
done
victim=$(at_work | tail -n 1)
kill -s KILL "$victim" || fail "no process to kill"
wait $child && fail "a killed rank ended well"
for ((i = 0; i < 500; ++i)); do
    [[ -n $(at_work) ]] || break
    sleep 0.02
done
[[ -z $(at_work) ]] || fail "processes were left behind"
rm -f "$folder"/killed/*.part
last=$(ls "$folder/killed" | tail -n 1)
last=$((10#$(tr -dc 0-9 <<<"${last%.safetensors}")))
((last >= 5)) || fail "no checkpoint"
on 2 "${tiny[@]}" --steps $((last + 10)) --checkpoint-every 5 --resume --out "$folder/killed" ||
    fail "two processes did not go on: $(<"$folder/errors")"
[[ $(head -n 1 "$folder/log") == "step $(printf %4d $((last + 5)))"* ]] || fail "not from step $last on: $(<"$folder/log")"

((failures == 0)) && echo "any number of processes gives the same training"
exit $((failures > 0))
