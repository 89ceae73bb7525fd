#!/usr/bin/env bash
# resume.sh PROGRAM [KILLS] [SEED]: what examples/experiment does with checkpoints. In the end it is killed at
# random moments, which SEED gives, and resumed until it is done, and what it has written is to the bit what
# an uninterrupted run writes.
set -u
program=$1 kills=${2:-100} seed=${3:-$(($(date +%s) % 32768))}
if [[ ! -x $program ]]; then
    echo "FAILED: $program is not there"
    exit 1
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

small=(--d-model 6 --d-inner 6 --d-state 3 --batch 8 --length 6 --learning-rate 0.01
    --test-lengths 3,6 --test-sequences 16)

# track ARGUMENTS…: a small training, without gnuplot, which would take most of the time.
track() { PATH=/none "$program" "${small[@]}" "$@" >"$folder/log" 2>"$folder/errors"; }

# start ARGUMENTS…: the same beside the script, as the process $child.
start() {
    PATH=/none "$program" "${small[@]}" "$@" >"$folder/log" 2>"$folder/errors" &
    child=$!
}
# killed: whether SIGKILL ended $child.
killed() {
    kill -s KILL $child 2>/dev/null
    wait $child 2>/dev/null
    status=$?
    ((status == 137))
}

# same WHOLE RESUMED: equal metrics but for the time, which is their tenth column, equal accuracies and
# parameters, and, where there is one, an equal picture of all steps.
same() {
    cmp <(cut -d, -f1-9,11- "$1/metrics.csv") <(cut -d, -f1-9,11- "$2/metrics.csv") || fail "$2: other metrics"
    cmp "$1/accuracy.csv" "$2/accuracy.csv" || fail "$2: other accuracies"
    cmp "$1/parameters.safetensors" "$2/parameters.safetensors" || fail "$2: other parameters"
    [[ ! -e $1/training.gp ]] || cmp "$1/training.gp" "$2/training.gp" || fail "$2: another picture of the training"
}

# refused STATUS MESSAGE ARGUMENTS…: exactly this one line, and no file is another one than before.
refused() {
    local status=$1 message=$2 before
    shift 2
    before=$(cd "$folder/run" && cksum ./*)
    track --out "$folder/run" "$@"
    [[ $? == "$status" ]] || fail "$* did not end with status $status"
    [[ $(<"$folder/errors") == "experiment: $message" ]] || fail "$* said: $(<"$folder/errors")
        instead of: experiment: $message"
    [[ $(cd "$folder/run" && cksum ./*) == "$before" ]] || fail "$*: refused, and files have changed"
}

# until_rows N FILE: waits until a table has more than N rows.
until_rows() {
    for ((i = 0; i < 3000; ++i)); do
        [[ -s $2 ]] && (($(wc -l <"$2") > $1 + 1)) && return
        sleep 0.01
    done
    fail "$2 has no $1 rows"
}

work=(--group S3 --steps 60 --checkpoint-every 9)
whole=$folder/whole run=$folder/run
track "${work[@]}" --out "$whole" || fail "$(<"$folder/errors")"
[[ $(cd "$whole" && echo checkpoint-*) == "checkpoint-00000054.safetensors checkpoint-00000060.safetensors" ]] ||
    fail "not the last two checkpoints: $(ls "$whole")"

# A run without a checkpoint starts anew; one that is over is only evaluated again.
track "${work[@]}" --out "$run" --resume || fail "$(<"$folder/errors")"
grep -q "^starts anew: there is no checkpoint in $run$" "$folder/log" || fail "not anew: $(<"$folder/log")"
same "$whole" "$run"
rm "$run/accuracy.csv" "$run/parameters.safetensors"
track "${work[@]}" --out "$run" --resume || fail "$(<"$folder/errors")"
grep -q "^goes on from $run/checkpoint-00000060.safetensors$" "$folder/log" || fail "does not go on: $(<"$folder/log")"
same "$whole" "$run"

# Checkpoints are neither mixed with another run's nor overwritten.
refused 2 "--out: expected a folder without checkpoints, or --resume, got '$run' with checkpoint-00000060.safetensors" \
    "${work[@]}"
other="$run/checkpoint-00000060.safetensors has"
needs="--resume needs the options that the run was started with, or another --out"
for option in "--d-model 7 6" "--seed 3 0" "--steps 80 60" "--time-limit 60 none" "--group A4 S3" "--reflections 1 4" \
    "--learning-rate 0.02 0.01" "--schedule parallel sequential" "--adjoint one-step implicit" "--model mamba fp-mamba"; do
    read -r name value had <<<"$option"
    refused 2 "$name: $other $had, got $value; $needs" "${work[@]}" "$name" "$value" --resume
done
refused 2 "--steps: $other 60, got 12000, the default; $needs" --group S3 --checkpoint-every 9 --resume
refused 2 "--begin-token: $other false, got true; $needs" "${work[@]}" --begin-token --resume
refused 2 "--task: $other word-problem, got copy; $needs" "${work[@]:2}" --task copy --shortest 1 --longest 2 --resume

# The newest is damaged: the one before it is taken. Both are: the run is refused.
truncate -s -1 "$run/checkpoint-00000060.safetensors"
track "${work[@]}" --out "$run" --resume --threads 3 || fail "$(<"$folder/errors")"
grep -q "^experiment: $run/checkpoint-00000060.safetensors: .*; the checkpoint before it is tried$" "$folder/errors" ||
    fail "a damaged checkpoint is not named: $(<"$folder/errors")"
grep -q "^goes on from $run/checkpoint-00000054.safetensors$" "$folder/log" || fail "does not go on: $(<"$folder/log")"
same "$whole" "$run"
for step in 54 60; do : >"$run/checkpoint-000000$step.safetensors"; done
empty="too short for the 8 bytes of a header's length, got 0"
refused 1 "no checkpoint in $run can be taken: $run/checkpoint-00000060.safetensors: $empty; \
$run/checkpoint-00000054.safetensors: $empty" "${work[@]}" --resume

# A run that an earlier version began has no columns of the adjoint, and goes on without them.
rm -rf "$run" && cp -r "$whole" "$run" && rm "$run/checkpoint-00000060.safetensors"
cut -d, -f1-10 "$whole/metrics.csv" >"$run/metrics.csv"
track "${work[@]}" --out "$run" --resume || fail "$(<"$folder/errors")"
cmp <(cut -d, -f1-9 "$whole/metrics.csv") <(cut -d, -f1-9 "$run/metrics.csv") || fail "an earlier run: other metrics"
[[ $(sed 's/[^,]//g' "$run/metrics.csv" | sort -u) == ",,,,,,,,," ]] || fail "an earlier run: not ten columns in all rows"

# A disk that is full ends the run, and what it had written is there to go on from: here files end after 12
# KiB.
rm -rf "$run" && cp -r "$whole" "$run" && rm "$run/checkpoint-00000060.safetensors"
kept=$(cksum "$run/checkpoint-00000054.safetensors")
(trap '' XFSZ && ulimit -f 12 && track "${work[@]}" --out "$run" --resume)
[[ $? == 1 ]] || fail "a full disk did not end with status 1"
[[ $(<"$folder/errors") == "experiment: cannot write $run/checkpoint-00000060.safetensors: File too large" ]] ||
    fail "a full disk said: $(<"$folder/errors")"
[[ $(cksum "$run/checkpoint-00000054.safetensors") == "$kept" ]] || fail "a full disk took a checkpoint away"
ls "$run" | grep -q part && fail "a full disk left $(ls "$run")"
track "${work[@]}" --out "$run" --resume || fail "$(<"$folder/errors")"
same "$whole" "$run"

# The jobs of several models: the second one has a checkpoint, those after it have none, and the first, which
# is done, is not trained again.
for job in "--compare fp_mamba mamba lstm" "--figure=interpolation ell_max_2 ell_max_4 ell_max_8 ell_max_16 lstm transformer"; do
    read -r option first second others <<<"$job"
    several=("$option" --group Z3 --steps 20 --checkpoint-every 9)
    # Attempts are in folders of their own, see experiment.sh; --heads is of its Transformer.
    [[ $option == --compare ]] && several+=(--restarts 0) || several+=(--heads 3)
    several+=(--time-limit 1000)
    rm -rf "$whole" "$run"
    track "${several[@]}" --out "$whole" || fail "$option: $(<"$folder/errors")"
    cp -r "$whole" "$run" && rm "$run/$second/checkpoint-00000020.safetensors" "$run/$first/accuracy.csv"
    for model in $others; do rm -r "${run:?}/$model"; done
    track "${several[@]}" --out "$run" --resume || fail "$option: $(<"$folder/errors")"
    [[ $(grep -E '^(goes on|starts anew)' "$folder/log" | sed "s|$run/||") == "$(
        printf 'goes on from %s/checkpoint-000000%s.safetensors\n' $first 20 $second 18
        for model in $others; do echo "starts anew: there is no checkpoint in $model"; done
    )" ]] || fail "$option went on otherwise: $(<"$folder/log")"
    cmp "$whole/$first/metrics.csv" "$run/$first/metrics.csv" || fail "$option trained $first again"
    for model in $first $second $others; do same "$whole/$model" "$run/$model"; done
    [[ $option == --compare ]] || cmp "$whole/interpolation.csv" "$run/interpolation.csv" || fail "$option: another figure"
    track "${several[@]}" --out "$run"
    [[ $? == 2 ]] || fail "$option overwrote the checkpoints of $first"
    # What a version with other limits of time left is refused before anything is trained, and what can be
    # done is said.
    track "${several[@]:0:${#several[@]}-2}" --out "$run" --resume
    [[ $? == 2 && $(<"$folder/errors") == "experiment: --time-limit: $run/$first/checkpoint-00000020.safetensors has \
1000, got "*", the default; $needs; where they were those of an earlier version, '$run/$first' has to be removed and is then \
trained anew" ]] || fail "$option: other limits: $(<"$folder/errors")"
done

# Ctrl-C leaves a checkpoint of the step that was done, and every step is in the table once.
rm -rf "$whole" "$run"
rows() { head -n "$((rows + 1))" "$1/metrics.csv" | cut -d, -f1-9,11-; }
for out in "$whole" "$run" "$run"; do
    start --group S3 --steps 100000000 --checkpoint-every 100000000 --out "$out" --resume
    rows=$([[ -e $out/metrics.csv ]] && wc -l <"$out/metrics.csv" || echo 0)
    until_rows $((rows + 9)) "$out/metrics.csv"
    kill -s INT $child && wait $child || fail "a signal ended with status $?"
    rows=$(($(wc -l <"$out/metrics.csv") - 1))
    grep -q "^ended after step $rows, from which --resume goes on$" "$folder/log" || fail "said $(<"$folder/log")"
    [[ -e $(printf '%s/checkpoint-%08d.safetensors' "$out" "$rows") ]] || fail "a signal left no checkpoint of its step"
done
(($(wc -l <"$whole/metrics.csv") > rows)) || rows=$(($(wc -l <"$whole/metrics.csv") - 1))
cmp <(rows "$whole") <(rows "$run") || fail "two signals gave other metrics than one"
[[ $(tail -n +2 "$run/metrics.csv" | cut -d, -f1) == "$(seq "$(($(wc -l <"$run/metrics.csv") - 1))")" ]] ||
    fail "two signals left gaps"
rm -rf "$whole" "$run"

# Killed at random moments.
RANDOM=$seed
echo "seed $seed"
now() { echo $(($(date +%s%N) / 1000000)); }
kinds=("--model fp-mamba --group S3" "--model mamba --group Z3" "--model fp-rnn --group Z3 --curriculum 6"
       "--model lstm --group Z2 --windows 5 --windows-from 0.2 --micro-batches 3")
count=0 runs=0 started=$(now)
for ((kind = 0; count < kills; kind = (kind + 1) % ${#kinds[@]})); do
    read -ra model <<<"${kinds[kind]}"
    work=("${model[@]}" --steps 160 --checkpoint-every 5)
    whole=$folder/whole$kind run=$folder/run$runs
    if [[ ! -e $whole ]]; then
        before=$(now)
        track "${work[@]}" --threads 1 --out "$whole" || fail "${kinds[kind]}: $(<"$folder/errors")"
        # Milliseconds between kills; a random moment is at most twice as late.
        mean[kind]=$((($(now) - before) / 8))
        ((mean[kind] <= 200)) || mean[kind]=200
    fi
    for ((lives = 1; ; ++lives)); do
        start "${work[@]}" --threads $((1 + RANDOM % 3)) --resume --out "$run"
        # The last of too many lives is left in peace: on a slow machine none may be long enough.
        if ((lives <= 40 && count < kills)); then
            life=$((mean[kind] * 2 * RANDOM / 32768))
            sleep "0.$(printf %03d $life)"
            killed && count=$((count + 1))
        else
            wait $child
            status=$?
        fi
        [[ ! -s $folder/errors ]] || fail "$run: $(<"$folder/errors")"
        ((status == 137)) || break
    done
    ((status == 0)) || fail "$run ended with status $status: $(<"$folder/log")"
    same "$whole" "$run"
    ls "$run" | grep -q refused && fail "$run: a checkpoint was damaged"
    # Kills between a checkpoint and the removal of older ones leave more, which the next life removes.
    [[ $(cd "$run" && echo checkpoint-*.safetensors) == "checkpoint-00000155.safetensors checkpoint-00000160.safetensors" ]] ||
        fail "$run: not the last two checkpoints: $(ls "$run")"
    runs=$((runs + 1))
done
# Windows go on in the last kind's checkpoints, and a run without them is another one.
(($(grep -c ongoing.carry.0 "$folder"/whole3/checkpoint-00000155.safetensors) == 1)) || fail "no window goes on"
"$program" "${small[@]}" --model lstm --group Z2 --steps 160 --checkpoint-every 5 --micro-batches 3 --resume --out "$folder/whole3" >"$folder/log" 2>&1
grep -q -- "--windows: .* has 5, got 1, the default" "$folder/log" || fail "--resume without --windows said: $(<"$folder/log")"

echo "$count kills in $runs runs, $(($(now) - started)) ms"

((failures == 0)) && echo "a run that is killed and resumed is the run that is not"
exit $((failures > 0))
