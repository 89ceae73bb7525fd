#!/usr/bin/env bash
# experiment.sh PROGRAM [cuda]: what examples/experiment, which may have been built with CUDA, does with bad
# input, with little work, and with a signal.
set -u
program=$1 built_with=${2-}
if [[ ! -x $program ]]; then
    echo "FAILED: $program is not there"
    exit 1
fi
program=$(realpath "$program") || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# Small enough to be over in a moment.
small=(--group S3 --d-model 8 --d-inner 8 --d-state 4 --reflections 2 --batch 8 --test-sequences 16 --threads 2)

# The same for models without a mixer.
unmixed=(--group S3 --d-model 8 --d-inner 8 --d-state 4 --batch 8 --test-sequences 16 --threads 2)

# refused MESSAGE ARGUMENTS…: exit status 2, exactly this one line, and nothing trained.
refused() {
    local message=$1 said status
    shift
    said=$("$program" "${small[@]}" --steps 3 --out "$folder/refused" "$@" 2>&1)
    status=$?
    [[ $status == 2 ]] || fail "$* ended with status $status instead of 2"
    [[ $said == "experiment: $message" ]] || fail "$* said: $said
        instead of: experiment: $message"
    [[ ! -e $folder/refused/metrics.csv ]] || fail "$* was trained"
}

groups="expected S1 to S7, A1 to A7, Z1 to Z1000 or a direct product of these such as A4xZ5"
refused "--group: finite_group: 'Q8' is not a known group; $groups" --group Q8
refused "--group: finite_group: 'A4xB' is not a known group; $groups, got the factor 'B'" --group A4xB
refused "--model: expected one of fp-mamba, fp-mamba2, fp-rnn, mamba, published-mamba, mamba2, delta-product, deltanet, \
gated-deltanet, gated-delta-product, lstm, mlstm, slstm, transformer, \
got 'gru'" --model gru
itself="to stand without --compare, --figure or --table, which choose it themselves"
refused "--model: expected $itself, got 'lstm'" --compare --model lstm
refused "--task: expected $itself, got 'copy'" --compare --task copy
refused "--task: expected $itself, got 'arithmetic'" --figure interpolation --task arithmetic
refused "--mixer: expected $itself, got 'dplr'" --figure interpolation --mixer dplr
refused "--layers: expected a whole number from 1 to 1000, got '0'" --layers 0
refused "--d-inner: expected a whole number from 1 to 65536, got '1.5'" --d-inner 1.5
refused "--reflections: expected one of 1, 2, 4, 8, got '3'" --reflections 3
refused "--reflections: expected at most --d-inner = 3, got '4'" --reflections 4 --d-inner 3
refused "--reflection-scale: expected one of 1, 2, got '0'" --reflection-scale 0
refused "--mixer: expected one of householder, dplr, kronecker, block-diagonal, got 'dense'" --mixer dense
refused "--mixer: expected dplr with --d-inner of at least 4, got '3'" --mixer dplr --d-inner 3
refused "--mixer: expected block-diagonal with --d-inner a multiple of 8, got '12'" --mixer block-diagonal --d-inner 12
refused "--reflections: expected to stand with --mixer householder, got '--mixer kronecker'" --mixer kronecker --reflections 2
refused "--mixer-bias: expected to stand with --mixer kronecker or block-diagonal, got '--mixer householder'" --mixer-bias 1
refused "--mixer-bias: expected to stand with --model fp-mamba, fp-mamba2 or fp-rnn, got '--model lstm'" --model lstm --mixer-bias 1
refused "--mixer-bias: expected a number from -20 to 20, got '21'" --mixer kronecker --mixer-bias 21
refused "--mixer: expected to stand with --model fp-mamba, fp-mamba2 or fp-rnn, got '--model lstm'" --model lstm --mixer kronecker
refused "--reflections: expected 1 or 4 with fp-mamba2, got '2'" --model fp-mamba2 --reflections 2
refused "--heads: expected a divisor of --d-inner = 12, got '5'" --model delta-product --d-inner 12 --heads 5
refused "--heads: expected to stand with a model that has heads, got '--model mamba'" --model mamba --heads 2
refused "--heads: expected a divisor of --d-inner = 8, got '3'" --model transformer --heads 3
refused "--heads: expected a number that gives each an even number of the channels of --d-inner = 6, got '2'" \
    --model transformer --d-inner 6 --heads 2
refused "--sees-y: expected mixer+bc, or --convolution with --mixer householder --reflections 4, got 'none'" --sees-y none
refused "--sees-y: expected none or mixer+bc with fp-rnn, got 'lambda'" --model fp-rnn --sees-y lambda
refused "--gate: expected one of outside, inside, inside-sees-y, got 'in'" --gate in
refused "--gate: expected to stand with --model fp-mamba, got '--model fp-rnn'" --model fp-rnn --gate inside
refused "--gate: expected outside with --convolution or --sees-y, got 'inside'" --convolution --gate inside
refused "--mixer: expected householder or kronecker with a --gate inside, got 'block-diagonal'" --gate inside --mixer block-diagonal
refused "--reflections: expected 1, 2 or 4 with a --gate inside, got '8'" --gate inside-sees-y --reflections 8
refused "--reflection-scale: expected 1 with a --gate inside, got '2'" --gate inside-sees-y --reflection-scale 2
refused "--context: expected at least 128, the longest sequence, got '100'" --model transformer --context 100
refused "--mixer: expected householder or kronecker with --convolution, got 'dplr'" --convolution --mixer dplr
refused "--reflections: expected 1, 2 or 4 with --convolution, got '8'" --convolution --reflections 8
: >"$folder/file"
refused "--out: expected a folder, got '$folder/file'" --out "$folder/file"
refused "--out: expected a value, DIR, got ''" --out= --resume
refused "--group: expected a value, GROUP, got ''" --group= --convolution
refused "--task: expected one of word-problem, copy, arithmetic, catbabi, text, got 'chess'" --task chess
refused "--group: expected to stand with --task word-problem, got '--task arithmetic'" --task arithmetic
refused "--length: expected a whole number from 1 to 1048576, got '0'" --length 0
refused "--batch: expected a whole number from 1 to 1048576, got '0'" --batch 0
refused "--batch: expected a whole number from 1 to 1048576, got '-4'" --batch -4
refused "--steps: expected a whole number from 1 to 1099511627776, got 'many'" --steps many
refused "--time-limit: expected a positive number, got '0'" --time-limit 0
refused "--learning-rate: expected a positive number, got 'nan'" --learning-rate nan
refused "--learning-rate: expected a positive number, got '-1'" --learning-rate -1
refused "--weight-decay: expected a number of at least 0, got '-0.1'" --weight-decay -0.1
refused "--weight-decay: expected a number of at least 0, got 'nan'" --weight-decay nan
refused "--max-norm: expected a positive number or none, got '0'" --max-norm 0
refused "--max-norm: expected a positive number or none, got 'inf'" --max-norm inf
refused "--max-norm: expected a positive number or none, got 'nan'" --max-norm nan
refused "--label-smoothing: expected a number of at least 0 and below 1, got '1'" --label-smoothing 1
refused "--label-smoothing: expected a number of at least 0 and below 1, got '-0.1'" --label-smoothing -0.1
refused "--micro-batches: expected at most --batch = 8, got '9'" --micro-batches 9
refused "--micro-batches: expected a whole number from 1 to 1048576, got '0'" --micro-batches 0
refused "--curriculum: expected at most --length = 16, got '17'" --curriculum 17
refused "--curriculum: expected a whole number from 1 to 1048576, got '0'" --curriculum 0
refused "--curriculum: expected to stand with --task word-problem or arithmetic, got '--task copy'" --task copy --curriculum 4
refused "--curriculum: expected at least 3 tokens, such as -1=, got '2'" --task arithmetic --curriculum 2
refused "--lengthen-at: expected a number of at least 0 and below 1, got '1'" --lengthen-at 1
refused "--lengthen-at: expected to stand with a --curriculum that is shorter than --length, got 'none'" --task arithmetic --lengthen-at 0.5
refused "--windows: expected a whole number from 1 to 1048576, got '0'" --windows 0
refused "--windows: expected to stand with --task word-problem or text, got '--task copy'" --task copy --windows 4
refused "--windows: expected at most 67108864 tokens that are held, that is --windows times --length times --batch, got '1048576 times 16 times 8'" --windows 1048576
refused "--windows-from: expected a number from 0 to 1, got '1.5'" --windows 4 --windows-from 1.5
refused "--windows-from: expected a number from 0 to 1, got 'nan'" --windows 4 --windows-from nan
refused "--windows-from: expected to stand with --windows of at least 2, got '1'" --windows-from 0.5
refused "--context: expected at least 128, the longest sequence, got '100'" --model transformer --context 100 --windows 8 --test-lengths 16
refused "--schedule: expected parallel, sequential or a chunk length of at least 1 token, got '0'" --schedule 0
refused "--tolerance: expected a positive number, got '0'" --tolerance 0
refused "--tolerance: expected a positive number, got 'inf'" --tolerance inf
refused "--ell-max: expected a whole number from 1 to 1000000 or gamma, got '0'" --ell-max 0
refused "--ell-max: expected a whole number from 1 to 1000000 or gamma, got 'Gamma'" --ell-max Gamma
refused "--learning-rate: expected a positive number, got '5e-324'" --learning-rate 5e-324
refused "--convolution: expected true or false, or nothing, behind it, got '2'" --convolution=2
refused "--sees-y: expected to stand without --figure fp-rnn-mixer-variants, which chooses it itself, got 'none'" --figure fp-rnn-mixer-variants --sees-y none
refused "--out: expected a folder (File name too long), got '$(printf 'x%.0s' {1..300})'" --out "$(printf 'x%.0s' {1..300})"
refused "--adjoint: expected one of one-step, implicit, got 'exact'" --adjoint exact
lengths="expected at most 10000 lengths from 1 to 1048576 such as 16,32,64 or ranges such as 2-50"
for garbage in 16,x 16,,32 0 9-3 "" 16, - 1-10001; do
    refused "--test-lengths: $lengths, got '$garbage'" --test-lengths "$garbage"
done
refused "--test-sequences: expected a whole number from 1 to 16777216, got '0'" --test-sequences 0
refused "--seed: expected a whole number from 0 to 9223372036854775806, got '-1'" --seed -1
refused "--restarts: expected a whole number from 0 to 1000, got '-1'" --restarts -1
refused "--restarts: expected to stand with --task word-problem, got '--task copy'" --task copy --restarts 1
refused "--threads: expected a whole number from 1 to 1024, got '0'" --threads 0
for garbage in gpu cuda: cuda:x cuda:-1 cuda:1,2; do
    refused "--device: expected cpu, cuda or cuda:N, got '$garbage'" --device $garbage
done
if [[ $built_with != cuda ]]; then
    for device in cuda cuda:1; do
        refused "--device: expected cpu, because this program was built without CUDA, got '$device'" --device $device
    done
fi
refused "--tf32: expected to stand with --device cuda, got '--device cpu'" --tf32
refused "--checkpoint-every: expected a whole number from 0 to 1099511627776, got '-1'" --checkpoint-every -1
figures="interpolation, params, params-copying, fp-rnn-mixer-variants, fp-rnn-number-iters, fp-mamba-a5-s5, copying, \
generalization-vs-train-time, fp-iters-lm, lm-learning-curve, seqlen128, mod-arith-max-iters, interpolation-lmax-lstar, seq-vs-parallel"
refused "--figure: expected one of $figures, got 'pie'" --figure pie
refused "--table: expected one of h_t-1, complexity, catbabi, mod-arithm, got 'pie'" --table pie
of_some="expected to stand with a job that has a model or a task with it"
refused "--heads: $of_some, got '--compare'" --compare --heads 2
refused "--context: $of_some, got '--compare'" --compare --context 7
refused "--operators: $of_some, got '--compare'" --compare --operators +-
# What an exhibit chooses, or varies.
refused "--group: expected to stand without --figure fp-mamba-a5-s5, which chooses it itself, got 'S3'" --figure fp-mamba-a5-s5
refused "--reflections: expected to stand without --figure copying, which chooses it itself, got '2'" --figure copying
refused "--reflections: expected to stand without --table mod-arithm, which chooses it itself, got '2'" --table mod-arithm --operators +-*
refused "--ell-max: expected to stand without --figure interpolation, which chooses it itself, got 'gamma'" --figure interpolation --ell-max gamma
refused "--layers: expected to stand without --figure interpolation, which chooses it itself, got '3'" --figure interpolation --layers 3
refused "--reflections: expected to stand without --figure params, which chooses it itself, got '2'" --figure params
refused "--layers: expected to stand without --table catbabi, which chooses it itself, got '2'" --table catbabi --layers 2
refused "--reflections: expected to stand with --model fp-mamba, fp-mamba2 or fp-rnn, got '--model mamba'" --model mamba
refused "--context: expected to stand with --model transformer, got '--model fp-mamba'" --context 7
# Beginnings of sequences that are iterated to a loose tolerance, and of tasks that answer at the end, are no
# shorter sequences.
refused "--test-prefixes: expected --schedule sequential, or --tolerance of at most 1e-4, got '--tolerance 0.1'" \
    --test-prefixes --schedule parallel --tolerance 0.1
refused "--test-prefixes: expected to stand with --task word-problem, got '--task copy'" \
    --test-prefixes --task copy --group Z3
refused "--test-prefixes: expected to stand without --figure fp-rnn-number-iters, got 'true'" --figure fp-rnn-number-iters --test-prefixes
refused "--table: expected to stand without --figure, got 'h_t-1'" --figure copying --table h_t-1
refused "--compare: expected to stand alone, got '--figure interpolation'" --compare --figure interpolation
refused "--seeds: expected to stand with --compare, --figure or --table, got 'neither'" --seeds 2
refused "--paper-size: expected to stand with --figure or --table, got 'neither'" --paper-size
refused "--paper-size: expected an exhibit that has a size in the paper, got '--compare'" --compare --paper-size
refused "--lenght: expected an option of --help, got '--lenght'" --lenght 3
refused "--out: expected a folder, got ''" --out ""
refused "x: expected an option of --help, got 'x'" -- x
# A value that was forgotten is said of the option whose it is, not of what comes next.
refused "--group: expected a value, GROUP, got the option '--out'" --group --out x
refused "--group: expected a value, GROUP, got the option '--sed'" --group --sed=3 x
refused "--out: expected a value, DIR, got the option '--seed'" --out --seed 3
refused "--out: expected a value, DIR, got the option '-h'" --out -h
refused "--out: expected a value, DIR, got the option '--'" --out -- x
refused "--steps: expected a value, N, got the option '--resume'" --steps --resume
refused "--steps: expected a value, N, got nothing" --steps
refused "--seed: expected a whole number from 0 to 9223372036854775806, got '--1'" --seed=--1
touch "$folder/file"
refused "--out: expected a folder that can be written, got '$folder/file/below' (Not a directory)" \
    --out "$folder/file/below"

# Every mixer that is offered trains, is evaluated and is written down.
for mixer in dplr kronecker block-diagonal; do
    PATH=/none "$program" --group S3 --d-model 8 --d-inner 8 --d-state 4 --batch 8 --test-sequences 16 --steps 2 --test-lengths 4 \
        --mixer $mixer --out "$folder/$mixer" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
    grep -q "\"mixer\": \"$mixer\"" "$folder/$mixer/config.json" || fail "config.json does not name $mixer"
done
# Kronecker's gates start open in word problems alone.
grep -q '"mixer_bias": 4.0' "$folder/kronecker/config.json" || fail "Kronecker's gates do not start open on S3"
grep -q '"mixer_bias": 0.0' "$folder/block-diagonal/config.json" || fail "the gates of blocks do not start half closed"
for bias in "" "--mixer-bias 0"; do
    PATH=/none "$program" --task text --files "$0" --mixer kronecker --d-model 8 --d-inner 8 --d-state 4 --batch 2 --length 8 \
        --test-sequences 2 --steps 2 --test-lengths 8 $bias --out "$folder/of bytes$bias" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
done
cut -d, -f1-9 "$folder/of bytes/metrics.csv" | cmp - <(cut -d, -f1-9 "$folder/of bytes--mixer-bias 0/metrics.csv") ||
    fail "Kronecker's gates do not start half closed on text"

# A folder is of one job: what another one left there is neither written over nor mixed with this one's,
# --resume or not.
few=(--steps 2 --test-lengths 4 --checkpoint-every 1)
PATH=/none "$program" "${small[@]}" "${few[@]}" --out "$folder/one" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
PATH=/none "$program" "${small[@]}" "${few[@]}" --compare --out "$folder/three" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
PATH=/none "$program" "${small[@]}" --steps 2 --test-lengths 4 --figure interpolation --out "$folder/four" \
    >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
cksums() { (cd "$folder" && find one three four -type f -exec cksum {} + | sort); }
before=$(cksums)
other_job="--out: expected a folder without files of another job, got"
for resume in "" --resume; do
    for job in --compare "--figure interpolation"; do
        refused "$other_job '$folder/one' with checkpoint-00000002.safetensors of a single model" \
            --out "$folder/one" $job $resume
    done
    for job in "" "--figure interpolation"; do
        refused "$other_job '$folder/three' of --compare" \
            --out "$folder/three" $job $resume
    done
    for job in "" --compare; do
        refused "$other_job '$folder/four' of --figure interpolation" \
            --out "$folder/four" $job $resume
    done
done
refused "--out: expected a folder without files of another job, got '$folder/three/lstm' of --compare" --out "$folder/three/lstm"
[[ $(cksums) == "$before" ]] || fail "refused, and files have changed"

# Limits of the system: fewer threads are enough, and what does not fit is said with its sizes.
PATH=/none "$program" "${small[@]}" "${few[@]}" --threads 1 --out "$folder/alone" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
if (ulimit -s $((1 << 38))) 2>/dev/null; then
    # Stacks larger than the address space: no thread can be started.
    (ulimit -s $((1 << 38)) && PATH=/none "$program" "${small[@]}" "${few[@]}" --threads 3 --out "$folder/threadless") \
        >"$folder/log" 2>"$folder/errors" || fail "without threads it ended with status $?"
    [[ $(<"$folder/errors") == "experiment: the system started only 1 of --threads 3; the numbers are the same" ]] ||
        fail "without threads it said: $(<"$folder/errors")"
    cmp <(cut -d, -f1-9 "$folder/alone/metrics.csv") <(cut -d, -f1-9 "$folder/threadless/metrics.csv") ||
        fail "without threads the numbers are others"
fi
# What it takes to start, which is much where it is linked with CUDA's libraries, and 350 MB.
limit=50000
{
    until (ulimit -v $limit && "$program" --version) >/dev/null || ((limit > 4000000)); do limit=$((limit + 50000)); done
} 2>/dev/null
(ulimit -v $((limit + 350000)) && PATH=/none "$program" "${small[@]}" --d-inner 8192 --steps 2 --out "$folder/large") >"$folder/log" 2>&1
[[ $? == 1 && $(<"$folder/log") == "experiment: not enough memory to make FP-Mamba with --group S3, --batch 8, --length \
16, --layers 1, --d-model 8, --d-inner 8192, --d-state 4, --threads 2; smaller numbers need less" ]] ||
    fail "without memory it said: $(<"$folder/log")"

# What is printed is lost where nobody listens, is missed where it cannot be written, and never comes into a
# file.
work=("${small[@]}" "${few[@]}")
PATH=/none "$program" "${work[@]}" --out "$folder/closed1" >&- || fail "a closed standard output ended it with status $?"
PATH=/none "$program" "${work[@]}" --out "$folder/closed3" <&- >&- 2>&- || fail "closed streams ended it with status $?"
for closed in 1 3; do
    cmp "$folder/alone/accuracy.csv" "$folder/closed$closed/accuracy.csv" || fail "closed streams: another accuracy.csv"
    cmp <(cut -d, -f1-9 "$folder/alone/metrics.csv") <(cut -d, -f1-9 "$folder/closed$closed/metrics.csv") ||
        fail "closed streams: another metrics.csv"
done
if [[ -e /dev/full ]]; then
    PATH=/none "$program" "${work[@]}" --out "$folder/full" >/dev/full 2>"$folder/errors"
    [[ $? == 1 && $(<"$folder/errors") == "experiment: cannot write the standard output: No space left on device" ]] ||
        fail "a standard output that is full: $(<"$folder/errors")"
    cmp "$folder/alone/accuracy.csv" "$folder/full/accuracy.csv" || fail "a standard output that is full: no results"
    "$program" --help >/dev/full 2>"$folder/errors" && fail "--help that nobody can read ended with status 0"
fi

# What it says of itself fits a narrow terminal.
widest() { awk '{ if (length($0) > m) m = length($0) } END { print m + 0 }' "$@"; }
"$program" --help >"$folder/help" || fail "--help ended with status $?"
(($(widest "$folder/help") <= 80)) || fail "--help is wider than 80 columns"

# Little work: every file, each of them well formed.
is_json() { python3 -m json.tool "$1" >/dev/null 2>&1 || ! command -v python3 >/dev/null; }
for model in "fp-mamba --reflections 2" "fp-rnn --reflections 2" mamba lstm; do
    out=$folder/${model%% *}
    "$program" "${unmixed[@]}" --model $model --steps 20 --test-lengths 5,16 --d-inner 9 --out "$out" >"$folder/log" ||
        fail "$model ended with status $?: $(cat "$folder/log")"
    for file in config.json summary.json; do
        [[ -s $out/$file ]] && is_json "$out/$file" || fail "$model wrote no good $file"
    done
    [[ $(wc -l <"$out/metrics.csv") == 21 ]] || fail "$model: metrics.csv has not 20 rows"
    [[ $(cut -d, -f1 "$out/accuracy.csv" | paste -sd' ') == "length 5 16" ]] || fail "$model: accuracy.csv is wrong"
    [[ -s $out/parameters.safetensors ]] || fail "$model wrote no parameters"
    for figure in accuracy training; do
        [[ -s $out/$figure.gp ]] || fail "$model wrote no script of $figure"
        [[ -s $out/$figure.txt || (-s $out/$figure.png && -s $out/$figure.svg) ]] || fail "$model did not draw $figure"
    done
done
# Every model that is offered, and every task.
tiny=(--d-model 8 --d-inner 8 --d-state 4 --batch 8 --test-sequences 16 --threads 2 --steps 3)
for model in fp-mamba2 published-mamba mamba2 delta-product deltanet gated-deltanet gated-delta-product mlstm slstm transformer \
    "fp-mamba --convolution" \
    "fp-mamba --gate inside" "fp-mamba --gate inside-sees-y --reflections 1" "fp-mamba --gate inside-sees-y --mixer kronecker"; do
    PATH=/none "$program" "${tiny[@]}" --test-lengths 5 --model $model --out "$folder/model $model" >"$folder/log" 2>&1 ||
        fail "$model ended with status $?: $(<"$folder/log")"
done
refused "--heads: expected a divisor of --d-model = 8, got '3'" --model slstm --heads 3
refused "--d-inner: expected a multiple of 4 with --model mlstm, got '6'" --model mlstm --heads 2 --d-inner 6
# Of a stack the block that iterates is validated.
stack=("$program" "${tiny[@]}" --model slstm --layers 2 --validate-every 1 --checkpoint-every 1 --test-lengths 5 --out "$folder/stack")
PATH=/none "${stack[@]}" >"$folder/log" 2>&1 || fail "slstm: $(<"$folder/log")"
PATH=/none "${stack[@]}" --resume >"$folder/log" 2>&1 || fail "slstm with --resume: $(<"$folder/log")"
[[ $(grep -c '^[1-3],[^,]*,[^,]*,[^,]*,1,1$' "$folder/stack/validation.csv") == 3 ]] || fail "validation.csv of slstm: $(<"$folder/stack/validation.csv")"
# The authors' layout: one token more, before the elements, is asked for.
refused "--begin-token: expected to stand with --task word-problem, got '--task copy'" --task copy --begin-token
PATH=/none "$program" "${tiny[@]}" --begin-token --group Z3 --model transformer --test-prefixes --test-lengths 4,5 --out "$folder/begins" >"$folder/log" 2>&1 ||
    fail "--begin-token ended with status $?: $(<"$folder/log")"
grep -q '"begin_token": true' "$folder/begins/config.json" || fail "config.json does not name the begin token"
grep -q '"context": 16' "$folder/begins/config.json" || fail "a begin token's room: $(<"$folder/begins/config.json")"
said=$("$program" --config "$folder/begins/config.json" --out "$folder/begins" 2>&1)
[[ $? == 0 && $said != *"holds the results of another run"* ]] || fail "--begin-token of --config: $said"
PATH=/none "$program" "${tiny[@]}" --task arithmetic --operators +- --test-lengths 20,50 --out "$folder/arithmetic" >"$folder/log" 2>&1 ||
    fail "arithmetic ended with status $?: $(<"$folder/log")"
grep -q '"operators": "+-"' "$folder/arithmetic/config.json" || fail "config.json does not name the operators"
PATH=/none "$program" "${tiny[@]}" --task arithmetic --curriculum 5 --lengthen-at 0 --test-shortest 3 --test-lengths 20 --out "$folder/short rows" >"$folder/log" 2>&1 ||
    fail "arithmetic with a curriculum ended with status $?: $(<"$folder/log")"
grep -q '"lengthen_at": 0.0' "$folder/short rows/config.json" || fail "config.json does not say when sequences grow"
grep -q '"test_shortest": 3' "$folder/short rows/config.json" || fail "config.json does not name the shortest rows of tests"
grep -q '^2,[67],' "$folder/short rows/metrics.csv" || fail "rows of arithmetic do not grow: $(<"$folder/short rows/metrics.csv")"
said=$(PATH=/none "$program" "${tiny[@]}" --task arithmetic --curriculum 5 --lengthen-at 0.5 --test-lengths 20 --out "$folder/short rows" 2>&1)
[[ $said == *"'$folder/short rows' holds the results of another run (lengthen_at: 0.0), which are written over"* ]] ||
    fail "another run's results were written over: $said"
grep -q '"lengthen_at": 0.5' "$folder/short rows/config.json" || fail "config.json leaves out what is not arithmetic's default"
mkdir "$folder/words"
for name in a b c; do printf 'the rain in spain stays mainly in the plain %.0s' 1 2 3 4 5 6 7 8 >"$folder/words/$name"; done
PATH=/none "$program" "${tiny[@]}" --task text --files "$folder/words" --length 16 --test-lengths 16 --out "$folder/text task" >"$folder/log" 2>&1 ||
    fail "text ended with status $?: $(<"$folder/log")"
mkdir "$folder/nothing"
said=$("$program" "${tiny[@]}" --task text --files "$folder/nothing" --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --files: text_files: "* ]] || fail "a folder without text: $said"
said=$("$program" "${tiny[@]}" --task text --files "$folder/words" --length 16 --test-lengths 16,999999 --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == *"T = 999999"* && ! -e $folder/refused/metrics.csv ]] || fail "tests without data: $said"
said=$("$program" "${tiny[@]}" --task text --files "$folder/words" --length 999999 --test-lengths 16 --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --length: text_files: "*"T = 999999"* && ! -e $folder/refused ]] || fail "no window is as long: $said"
said=$(cd "$folder/words" && "$program" "${tiny[@]}" --task text --files "$folder/words" --length 16 --out out 2>&1)
[[ $? == 2 && $said == "experiment: --out: expected a folder outside of --files $folder/words, all of which is read, got 'out'" ]] ||
    fail "results among what is trained on: $said"
# A test of some of the questions has those of all tasks: one answer is right in half of them.
mkdir "$folder/babi"
story() { printf '1 Mary went to the %s.\n2 Where is Mary?\t%s\t1\n' "$1" "$1"; }
for part in train valid test; do
    for ((i = 0; i < 200; ++i)); do story kitchen; done >"$folder/babi/qa1_$part.txt"
    for ((i = 0; i < 200; ++i)); do story garden; done >"$folder/babi/qa2_$part.txt"
done
babi=("$program" --d-model 8 --d-inner 8 --d-state 4 --batch 8 --threads 2 --steps 40 --learning-rate 0.02
    --task catbabi --model mamba --files "$folder/babi" --length 20 --test-lengths 20)
for rows in 1000000 100; do
    PATH=/none "${babi[@]}" --test-sequences $rows --out "$folder/$rows rows" >"$folder/log" 2>&1 || fail "catbabi: $(<"$folder/log")"
    score=$(sed -n '2s/.*,//p' "$folder/$rows rows/accuracy.csv")
    [[ $score == 0.5 ]] || fail "of at most $rows rows of two tasks with one answer each $score are right"
done
printf '1 Mary went to the kitchen.\n' | tee "$folder/babi/qa1_test.txt" >"$folder/babi/qa2_test.txt"
said=$("${babi[@]}" --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --files: catbabi: expected a question for tests in "*", got none" ]] || fail "no question: $said"
printf '1 Mary went to the kitchen.\n3 Where is Mary?\tkitchen\t1\n' >"$folder/babi/qa1_test.txt"
said=$("${babi[@]}" --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --files: parse_babi: $folder/babi/qa1_test.txt:2: expected the id 1 or 2, got '3'" ]] || fail "a lying line: $said"
# Root reads everything, so that it asks as another user, where it may and one reaches the folder.
as_nobody=()
[[ $EUID == 0 ]] && as_nobody=(setpriv --reuid=65534 --clear-groups)
cp "$program" "$folder/program" && chmod -R a+rX "$folder/program" "$folder/babi" && chmod 711 "$folder" && chmod 0 "$folder/babi/qa1_test.txt"
if "${as_nobody[@]}" test -x "$folder/program" && "${as_nobody[@]}" test -r "$folder/babi/qa1_train.txt"; then
    said=$("${as_nobody[@]}" "$folder/program" "${babi[@]:1}" --out "$folder/refused" 2>&1)
    [[ $? == 2 && $said == "experiment: --files: expected files that can be read, got $folder/babi/qa1_test.txt: Permission denied" ]] ||
        fail "a file that cannot be read: $said"
fi
said=$("$program" "${tiny[@]}" --task text --files $'by\xff' --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --files: expected a name in UTF-8, got 'by"* ]] || fail "a name that is not UTF-8: $said"
said=$("$program" "${tiny[@]}" --task text --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --files: expected a file or a folder of text, got 'nothing'" ]] || fail "no text: $said"

"$program" "${small[@]}" --compare --steps 3 --test-lengths 4,8 --out "$folder/compare" >"$folder/log" ||
    fail "--compare ended with status $?: $(cat "$folder/log")"
for key in task train_length seconds_total fp_mamba mamba lstm parameters sequence_accuracy share_converged; do
    grep -q "\"$key\"" "$folder/compare/summary.json" || fail "--compare: no $key in summary.json"
done
"$program" "${small[@]}" --compare --steps 3 --test-lengths 4 --windows 1 --micro-batches 1 --label-smoothing 0 --restarts 0 --out "$folder/plain" \
    >"$folder/log" 2>&1 || fail "--compare with defaults ended with status $?: $(cat "$folder/log")"
[[ ! -e $folder/plain/lstm/attempt_1 ]] || fail "--restarts 0 has attempts"
# All models are given the same.
given() { for model in fp_mamba mamba lstm; do sed -n "s/^ *\"$1\": \(.*\),$/\1/p" "$folder/compare/$model/config.json"; done; }
for what in time_limit steps batch length curriculum; do
    [[ $(given $what | wc -l) == 3 && $(given $what | sort -u | wc -l) == 1 ]] ||
        fail "--compare gives its models $what $(given $what | paste -sd' ')"
done
! grep -qw inf "$folder/compare/training.points.csv" || fail "--compare: a model without a fixed point has an interval of residuals"
# FP-Mamba has a gate in the loop, where it can have one and none was asked for.
grep -q '"gate": "inside-sees-y"' "$folder/compare/fp_mamba/config.json" && ! grep -q '"gate"' "$folder"/compare/{mamba,lstm}/config.json ||
    fail "--compare: not FP-Mamba alone has a gate that sees y"
for other in "--gate outside" "--mixer dplr" "--reflection-scale 2"; do
    "$program" "${small[@]:0:8}" --batch 8 --test-sequences 16 --compare --steps 1 --test-lengths 4 --restarts 0 $other --out "$folder/compare ${other#--}" >"$folder/log" 2>&1 ||
        fail "--compare $other ended with status $?: $(<"$folder/log")"
    ! grep -q '"gate"' "$folder/compare ${other#--}/fp_mamba/config.json" || fail "--compare $other has a gate in the loop"
done
"$program" "${small[@]}" --figure interpolation --steps 3 --test-lengths 2-9 --out "$folder/figure" >"$folder/log" ||
    fail "--figure ended with status $?: $(cat "$folder/log")"
[[ $(wc -l <"$folder/figure/interpolation.csv") == 49 ]] || fail "interpolation.csv has not 6 times 8 rows"
# The loss of sequences is known of the longest; that of their beginnings would be another.
[[ $(cut -d, -f7,11 "$folder/figure/interpolation.csv" | tail -n +2 | grep -vc ',$') == 6 ]] || fail "interpolation.csv has losses of prefixes"
# An LSTM is trained through time, whatever is asked of FP-Mamba's iteration; an exhibit's defaults stand
# where nothing else was said.
value() { sed -n "s/^ *\"$2\": \(.*[^,]\),*$/\1/p" "$1/config.json"; }
expect() { [[ $(value "$folder/$1" "$2") == "$3" ]] || fail "$1 has $2 $(value "$folder/$1" "$2"), not $3"; }
expect figure/lstm schedule '"sequential"'
expect figure/lstm adjoint '"implicit"'
expect figure/ell_max_2 schedule '"parallel"'
"$program" "${small[@]}" --figure interpolation --paper-size --steps 3 --seeds 1 --test-lengths 4 --out "$folder/paper" >"$folder/log" ||
    fail "--paper-size ended with status $?: $(cat "$folder/log")"
expect paper/ell_max_2 curriculum 16
expect paper/ell_max_2 tolerance 0.1
expect paper/lstm tolerance 0.0001
expect paper/ell_max_2 test_prefixes ""
expect paper/lstm test_prefixes true
one_step=(--steps 1 --batch 1 --test-sequences 1 --ell-max 2 --test-ell-max 2 --threads 2 --seeds 1)
PATH=/none "$program" "${one_step[@]}" --figure seqlen128 --group A5 --paper-size --length 2 --test-lengths 2 --out "$folder/paper128" >"$folder/log" ||
    fail "--figure seqlen128 --paper-size ended with status $?: $(tail -n 1 "$folder/log")"
expect paper128/delta-product heads 12
expect paper128/delta-product d_state 32
expect paper128/delta-product d_inner 768
expect paper128/mamba2_h1 heads 16
PATH=/none "$program" "${one_step[@]}" --d-model 8 --d-inner 8 --table catbabi --paper-size --length 60 --test-lengths 60 --out "$folder/paper_babi" \
    >"$folder/log" || fail "--table catbabi --paper-size ended with status $?: $(tail -n 1 "$folder/log")"
expect paper_babi/k_1 schedule '"parallel"'
expect paper_babi/k_1 adjoint '"one-step"'
PATH=/none "$program" "${one_step[@]}" --d-model 8 --d-inner 8 --figure lm-learning-curve --files "$folder/words" --layers 3 --paper-size \
    --length 16 --test-lengths 16 --out "$folder/paper_text" >"$folder/log" || fail "--figure lm-learning-curve --paper-size ended with status $?: $(tail -n 1 "$folder/log")"
expect paper_text/k layers 3
expect paper_text/h2 learning_rate 0.004
expect paper_text/h2 schedule '"parallel"'
expect paper_text/published-mamba schedule '"sequential"'
expect paper_text/published-mamba d_inner 8
# More seeds go on with the first, and files of a single model stay.
"$program" "${small[@]}" --compare --steps 2 --test-lengths 4 --checkpoint-every 2 --out "$folder/more" >"$folder/log" ||
    fail "--compare ended with status $?: $(cat "$folder/log")"
"$program" "${small[@]}" --compare --steps 2 --test-lengths 4 --checkpoint-every 2 --seeds 2 --resume --out "$folder/more" >"$folder/log" ||
    fail "--seeds 2 --resume ended with status $?: $(cat "$folder/log")"
# Two attempts of three models each.
[[ $(grep -c "^goes on from" "$folder/log") == 6 && $(grep -c "^starts anew" "$folder/log") == 6 ]] || fail "--seeds 2 --resume: $(<"$folder/log")"
"$program" "${small[@]}" --steps 2 --test-lengths 4 --out "$folder/mine/lstm" >"$folder/log" || fail "one model: $(<"$folder/log")"
refused "--out: expected a folder without files of another job, got '$folder/mine' with lstm/metrics.csv of a single model" \
    --compare --out "$folder/mine"
"$program" "${small[@]}" --figure interpolation --steps 3 --seeds 2 --seed 5 --test-lengths 2-9 --out "$folder/seeds" >"$folder/log" ||
    fail "--seeds ended with status $?: $(cat "$folder/log")"
[[ $(cut -d, -f3 "$folder/seeds/interpolation.csv" | sort | uniq -c | awk '{ print $1 $2 }' | paste -sd' ') == "485 486 1seed" ]] ||
    fail "--seeds did not train each model twice"
# Every figure and table, of the least work that there is.
least=(--d-model 8 --d-inner 8 --d-state 4 --batch 4 --test-sequences 4 --threads 2 --steps 2)
# What has no numbers is said to have none, and the others are there.
PATH=/none "$program" "${least[@]}" --table catbabi --length 20 --test-lengths 20 --learning-rate 1e38 --out "$folder/not finite" >"$folder/log" 2>&1
[[ $? == 1 ]] || fail "numbers that are not finite ended well: $(<"$folder/log")"
grep -q '^| FP-Mamba-K, 2 layers, seed 0 .* numbers that are not finite |$' "$folder/not finite/catbabi.md" || fail "catbabi.md: $(<"$folder/not finite/catbabi.md")"
grep -q ',nonfinite,20,' "$folder/not finite/catbabi.csv" || fail "catbabi.csv: $(<"$folder/not finite/catbabi.csv")"
exhibit() {
    local kind=$1 name=$2
    shift 2
    PATH=/none "$program" "${least[@]}" --$kind "$name" "$@" --out "$folder/exhibits/$name" >"$folder/log" 2>&1 ||
        fail "--$kind $name ended with status $?: $(<"$folder/log")"
    # A header, and a row of each member at each length.
    local rows
    rows=$(find "$folder/exhibits/$name" -name accuracy.csv -exec tail -q -n +2 {} + | wc -l)
    [[ $rows -gt 0 && $(wc -l <"$folder/exhibits/$name/$name.csv") == $((rows + 1)) ]] ||
        fail "--$kind $name: $name.csv has $(wc -l <"$folder/exhibits/$name/$name.csv") lines, its members $rows"
}
head -c 20000 "$program" >"$folder/bytes"
exhibit figure params
exhibit figure params-copying
exhibit figure fp-mamba-a5-s5 --test-lengths 2-4
exhibit figure generalization-vs-train-time --test-lengths 2-4
PATH=/none "$program" "${least[@]}" --figure generalization-vs-train-time --test-lengths 2-4 --seeds 2 --out "$folder/points" >"$folder/log" 2>&1 ||
    fail "--seeds of train time ended with status $?: $(<"$folder/log")"
# Three depths of three baselines, four bounds and Γ(4, 1) are fourteen points, whatever the seeds.
points=$(sed -n '/<< EOD$/,/^EOD$/{/EOD$/!p}' "$folder/points/generalization-vs-train-time.gp" | wc -l)
[[ $points == 14 ]] || fail "two seeds of train time are $points points"
exhibit figure copying --test-lengths 4,8
exhibit figure seqlen128 --length 8 --test-lengths 4,8
exhibit figure interpolation-lmax-lstar --test-lengths 4,8
exhibit figure seq-vs-parallel --test-lengths 4,8
exhibit figure mod-arith-max-iters
exhibit figure lm-learning-curve --files "$folder/bytes" --length 16
refused "--validate-every: expected at least 1, which is what is drawn, got '0'" --figure fp-iters-lm --files "$folder/bytes" --validate-every 0
exhibit figure fp-iters-lm --files "$folder/bytes" --length 16
exhibit table mod-arithm --test-lengths 40,50
exhibit table h_t-1
exhibit table complexity --length 8
[[ $(grep -c "^| FP-Mamba" "$folder/exhibits/complexity/complexity.md") == 5 ]] || fail "--table complexity has not 5 mixers"
exhibit figure fp-rnn-mixer-variants --test-lengths 4,8
exhibit figure fp-rnn-number-iters --test-lengths 4,8
exhibit table catbabi --length 60 --test-lengths 60
for name in params params-copying fp-mamba-a5-s5 copying seqlen128 interpolation-lmax-lstar seq-vs-parallel mod-arith-max-iters \
    lm-learning-curve fp-iters-lm fp-rnn-mixer-variants fp-rnn-number-iters generalization-vs-train-time; do
    [[ -s $folder/exhibits/$name/$name.txt ]] || fail "--figure $name was not drawn"
done
grep -q "dashed: authors" "$folder/exhibits/fp-rnn-number-iters/fp-rnn-number-iters.gp" || fail "no iterations by the authors' loop"
# What a picture shows stands beside it; a member that sees no y is compared with what never did.
[[ $(grep -c '^Iterations of the slowest token' "$folder/exhibits/copying/copying.points.csv") -gt 0 ]] || fail "copying.points.csv lacks iterations"
PATH=/none "$program" "${least[@]}" --figure copying --sees-y none --out "$folder/sees nothing" >"$folder/log" 2>&1 ||
    fail "--figure copying --sees-y none ended with status $?: $(<"$folder/log")"
# What takes long goes on where it was ended, and what ends it again leaves the results of before.
lm=$folder/lm
two=("$program" "${least[@]}" --figure lm-learning-curve --files "$folder/bytes" --length 16 --seeds 2 --out "$lm")
"${two[@]}" >"$folder/log" 2>&1 || fail "two seeds of lm-learning-curve: $(<"$folder/log")"
cut -d, -f5,6 "$lm/lm-learning-curve.points.csv" | grep -q '[0-9],[0-9]' || fail "two seeds of lm-learning-curve have no interval"
cp "$lm/lm-learning-curve.csv" "$folder/before.csv"
mkdir "$lm/h2/accuracy.csv.part"
"${two[@]}" --resume >"$folder/log" 2>&1
[[ $? == 1 ]] || fail "a member whose results could not be written did not end with status 1"
grep -q "FP-Mamba-H, r = 2: .*accuracy.csv.part" "$folder/log" || fail "the member is not named: $(<"$folder/log")"
grep -q "not all members are done; summary, table and picture stay those of before" "$folder/log" || fail "an exhibit's end: $(<"$folder/log")"
[[ $(grep -c "^goes on from" "$folder/log") == 8 ]] || fail "after a member that failed the others were not tested: $(<"$folder/log")"
cmp -s "$lm/lm-learning-curve.csv" "$folder/before.csv" || fail "an exhibit that was tested again in part has lost its results"
# Of numbers that are not finite nothing is drawn.
PATH=/none "$program" "${least[@]}" --figure seq-vs-parallel --steps 3 --test-lengths 4 --learning-rate 1e38 --out "$folder/no numbers" >"$folder/log" 2>&1
[[ $? == 1 ]] || fail "an exhibit without numbers ended with status $?: $(tail -n 2 "$folder/log")"
[[ $(wc -l <"$folder/exhibits/fp-mamba-a5-s5/fp-mamba-a5-s5.csv") == 61 ]] || fail "fp-mamba-a5-s5 has not 20 times 3 rows"
grep -q ',A5,' "$folder/exhibits/fp-mamba-a5-s5/fp-mamba-a5-s5.csv" || fail "fp-mamba-a5-s5.csv does not name the group"
expect exhibits/complexity/k curriculum 8
"$program" "${least[@]:0:12}" --figure fp-iters-lm --files "$folder/bytes" --length 16 --time-limit 0.001 --out "$folder/iterations" >"$folder/log" ||
    fail "--figure fp-iters-lm ended with status $?: $(<"$folder/log")"
expect iterations/h1 steps 2000
grep -q "^| one answer for all" "$folder/exhibits/mod-arithm/mod-arithm.md" || fail "the table of arithmetic has no constant answer"
[[ $(grep -c "^| .* | [0-9]* | 2 |" "$folder/exhibits/mod-arithm/mod-arithm.md") == 7 ]] || fail "mod-arithm.md has not 7 models: $(<"$folder/exhibits/mod-arithm/mod-arithm.md")"
expect exhibits/mod-arithm/slstm operators '"+-"'
expect exhibits/mod-arithm/slstm curriculum 5
expect exhibits/mod-arith-max-iters/fp_mamba_h4 curriculum 38

# A run is a file: its config.json makes the same run, options of the command line go before it, and what is
# no option is refused.
"$program" "${tiny[@]}" --task copy --shortest 2 --longest 4 --length 12 --steps 3 --test-lengths 3 --seed 4 --out "$folder/copy" \
    >"$folder/log" 2>&1 || fail "copy ended with status $?: $(<"$folder/log")"
grep -q "^ letters  accuracy on letters .* written strings written letters" "$folder/log" || fail "copy has no table of letters: $(<"$folder/log")"
for what in letter string; do
    grep -A1 "\"written_${what}_accuracy\"" "$folder/copy/summary.json" | grep -q '"3": [01]' || fail "no ${what}s that it writes: $(<"$folder/copy/summary.json")"
done
"$program" --config "$folder/copy/config.json" --threads 1 --out "$folder/copy_again" >"$folder/log" 2>&1 ||
    fail "--config ended with status $?: $(<"$folder/log")"
cmp -s "$folder/copy/parameters.safetensors" "$folder/copy_again/parameters.safetensors" ||
    fail "--config trained other parameters"
diff <(grep -v '"out"\|"threads"' "$folder/copy/config.json") <(grep -v '"out"\|"threads"' "$folder/copy_again/config.json") ||
    fail "--config was written down as another configuration"
# What a gradient is clipped to is a run's own, and is written down.
for norm in 1 0.01 none; do
    "$program" "${tiny[@]}" --group Z3 --test-lengths 4 --max-norm $norm --out "$folder/norm $norm" >"$folder/log" 2>&1 || fail "--max-norm: $(<"$folder/log")"
done
grep -q '"max_norm": "none"' "$folder/norm none/config.json" || fail "config.json does not say that gradients are not clipped"
"$program" --config "$folder/norm none/config.json" --threads 1 --out "$folder/norm again" >"$folder/log" 2>&1 || fail "--max-norm none of a file: $(<"$folder/log")"
losses() { cut -d, -f3 "$folder/norm $1/metrics.csv"; }
[[ $(losses 1) != "$(losses 0.01)" && $(losses none) == "$(losses again)" ]] || fail "--max-norm changes nothing, or is not the file's"
refused "--letters: expected an option of --help, got '--letters'" --letters 3
configured() {
    printf '%s' "$2" >"$folder/config"
    refused "--config: $1" --config "$folder/config"
}
# An option that config.json names only where it is not its default is named when it differs.
seen=("${unmixed[@]}" --convolution --steps 2 --test-lengths 4 --checkpoint-every 1 --out "$folder/seen")
PATH=/none "$program" "${seen[@]}" --sees-y lambda >"$folder/log" 2>&1 || fail "--sees-y lambda: $(<"$folder/log")"
held=("${tiny[@]}" --model transformer --group Z3 --checkpoint-every 3 --out "$folder/held")
PATH=/none "$program" "${held[@]}" --test-lengths 8 >"$folder/log" 2>&1 || fail "transformer: $(<"$folder/log")"
PATH=/none "$program" "${held[@]}" --test-lengths 40 --resume >"$folder/log" 2>&1 ||
    fail "a transformer is not tested on longer sequences: $(<"$folder/log")"
made=("${tiny[@]}" --task catbabi --length 20 --test-lengths 20 --checkpoint-every 3 --out "$folder/made")
PATH=/none "$program" "${made[@]}" >"$folder/log" 2>&1 || fail "catbabi: $(<"$folder/log")"
mkdir "$folder/of babi"
printf '1 Mary moved to the bathroom.\n2 Where is Mary?\tbathroom\t1\n' >"$folder/of babi/qa1_train.txt"
cp "$folder/of babi/qa1_train.txt" "$folder/of babi/qa1_test.txt"
cp "$folder/of babi/qa1_train.txt" "$folder/of babi/qa1_valid.txt"
said=$("$program" "${made[@]}" --files "$folder/of babi" --resume 2>&1)
[[ $? == 2 && $said == *"--files: "*" has stories that are made, got $folder/of babi; --resume needs"* ]] ||
    fail "--resume with the files of bAbI said: $said"
said=$("$program" "${seen[@]}" --resume 2>&1)
[[ $? == 2 && $said == *"--sees-y: "*" has lambda, got mixer+bc, the default; "* ]] || fail "--resume without --sees-y said: $said"
# ℓ_max that is drawn is a run's own, also when it is taken up again.
drawn=("${tiny[@]}" --group Z3 --ell-max gamma --schedule parallel --steps 6 --test-lengths 4 --checkpoint-every 3)
"$program" "${drawn[@]}" --out "$folder/drawn" >"$folder/log" 2>&1 || fail "--ell-max gamma: $(<"$folder/log")"
cp -r "$folder/drawn" "$folder/drawn_again" && rm "$folder/drawn_again/checkpoint-00000006.safetensors"
"$program" "${drawn[@]}" --resume --out "$folder/drawn_again" >"$folder/log" 2>&1 || fail "--ell-max gamma: $(<"$folder/log")"
cmp "$folder/drawn/parameters.safetensors" "$folder/drawn_again/parameters.safetensors" || fail "other numbers of iterations were drawn"
(($(tail -n +2 "$folder/drawn/metrics.csv" | cut -d, -f6 | sort -u | wc -l) > 1)) || fail "all batches had the same ell_max"
configured "expected only options of --help in $folder/config, got 'colour'" '{"steps": 3, "colour": "red"}'
configured "expected only options of --help in $folder/config, got 'config'" '{"config": "other"}'
configured "expected only options of --help in $folder/config, got 'resume'" '{"resume": true}'
configured "expected an object of JSON in $folder/config, got 'array'" '[1, 2]'
configured "expected JSON in $folder/config, got 'what is none in line 1, column 11'" '{"steps": '
configured "expected a text, a number, true, false or a list of these for --steps, got 'an object'" '{"steps": {"a": 1}}'
configured "expected a text, a number, true, false or a list of these for --test-lengths, got 'a list in a list, or an object'" \
    '{"test_lengths": [4, [8]]}'
configured "expected beta1 0.9 in $folder/config, which is no option, got '0.5'" '{"beta1": 0.5}'
printf '{"seed": "x"}' >"$folder/config"
refused "--seed: expected a whole number from 0 to 9223372036854775806, got 'x'" --config "$folder/config"
said=$("$program" --config "$folder/none" --out "$folder/refused" 2>&1)
[[ $? == 2 && $said == "experiment: --config: $folder/none: "* ]] || fail "a file that is not there: $said"
grep -q '"figure": "copying"' "$folder/exhibits/copying/job.json" || fail "job.json does not name its figure"
"$program" --config "$folder/exhibits/copying/job.json" --out "$folder/figure_again" >"$folder/log" 2>&1 ||
    fail "--config of an exhibit ended with status $?: $(<"$folder/log")"
cmp "$folder/exhibits/copying/copying.csv" "$folder/figure_again/copying.csv" || fail "--config of an exhibit: other numbers"
# Another exhibit of the command line goes before the file's, and flags are written down as well.
"$program" --config "$folder/exhibits/copying/job.json" --table h_t-1 --test-lengths 4 --out "$folder/other_exhibit" >"$folder/log" 2>&1 ||
    fail "--config with another exhibit ended with status $?: $(<"$folder/log")"
grep -q '"job": "--table h_t-1"' "$folder/other_exhibit/job.json" && ! grep -q '"figure"' "$folder/other_exhibit/job.json" ||
    fail "--config with another exhibit: $(<"$folder/other_exhibit/job.json")"
PATH=/none "$program" "${small[@]}" --compare --steps 2 --test-lengths 4,8 --test-prefixes --out "$folder/beginnings" >"$folder/log" ||
    fail "--test-prefixes ended with status $?: $(<"$folder/log")"
grep -q '"test_prefixes": true' "$folder/beginnings/job.json" || fail "job.json has lost --test-prefixes"

# A run goes on with the text that it began with, and what another run left is not taken for this one's.
text=("${tiny[@]}" --task text --files "$folder/changing" --length 16 --test-lengths 16 --out "$folder/on_text")
head -c 5000 "$folder/bytes" >"$folder/changing"
PATH=/none "$program" "${text[@]}" --checkpoint-every 1 --validate-every 1 >"$folder/log" 2>&1 || fail "text ended with status $?: $(<"$folder/log")"
[[ -s $folder/on_text/validation.csv ]] || fail "--validate-every wrote nothing"
PATH=/none "$program" "${text[@]}" --resume >"$folder/log" 2>&1 || fail "--resume on the same text: $(<"$folder/log")"
head -c 5001 "$folder/bytes" >"$folder/changing"
said=$("$program" "${text[@]}" --resume 2>&1)
[[ $? == 2 && $said == "experiment: --files: their contents are others than those that "*"checkpoint-"*" was trained on; choose another --out" ]] ||
    fail "--resume on another text: $said"
rm "$folder"/on_text/checkpoint-*
PATH=/none "$program" "${text[@]}" >"$folder/log" 2>&1 || fail "text ended with status $?: $(<"$folder/log")"
[[ ! -e $folder/on_text/validation.csv ]] || fail "validation.csv of an earlier run stands beside this one's"
# Links in a folder are not read, so what they lead to may change, or be nothing; the rest may not.
mkdir "$folder/linked" && head -c 5000 "$folder/bytes" >"$folder/linked/text"
ln -s loop "$folder/linked/loop" && ln -s ../changing "$folder/linked/other"
linked=("${tiny[@]}" --task text --files "$folder/linked" --length 16 --test-lengths 16 --out "$folder/on_linked")
PATH=/none "$program" "${linked[@]}" --checkpoint-every 1 >"$folder/log" 2>&1 || fail "links in --files: $(<"$folder/log")"
echo more >>"$folder/changing"
PATH=/none "$program" "${linked[@]}" --resume >"$folder/log" 2>&1 || fail "--resume beside a link that leads to other data: $(<"$folder/log")"
echo more >>"$folder/linked/text"
said=$("$program" "${linked[@]}" --resume 2>&1)
[[ $? == 2 && $said == "experiment: --files: their contents are others than those that "* ]] || fail "--resume on another text beside links: $said"

# A file's flags are true or false, and nothing in it is empty.
for wrong in '"convolution": 5|true or false for --convolution' '"test_prefixes": "x"|true or false for --test-prefixes' \
    '"group": ""|a value for --group' '"test_lengths": []|a value for --test-lengths' '"group": "S3\u0000x"|a value for --group' \
    '"help": true|only options of --help'; do
    echo "{${wrong%|*}}" >"$folder/wrong.json"
    said=$("$program" --config "$folder/wrong.json" --out "$folder/refused" 2>&1)
    [[ $? == 2 && $said == "experiment: --config: expected ${wrong#*|} in $folder/wrong.json, got '"*"'" ]] || fail "--config with ${wrong%|*}: $said"
done

"$program" --list >"$folder/list" || fail "--list ended with status $?"
grep -q "^--figure interpolation" "$folder/list" || fail "--list does not name the figure"
[[ $(tr -s '\n ' ' ' <"$folder/list" | grep -oE "; about (a minute|[0-9]+ minutes)" | wc -l) == $(grep -c "^--" "$folder/list") ]] ||
    fail "--list does not say what each costs"
(($(widest "$folder/list") <= 80)) || fail "--list is wider than 80 columns"

# Without gnuplot the figures are text, no wider than a terminal's 80 columns and without any control
# character.
PATH=/none "$program" "${small[@]}" --compare --steps 30 --test-lengths 4,8 --out "$folder/text" >"$folder/log" ||
    fail "--compare without gnuplot ended with status $?"
for figure in accuracy training; do
    (($(widest "$folder/text/$figure.txt") <= 80)) || fail "$figure.txt is wider than 80 columns"
    for model in FP-Mamba Mamba LSTM; do
        grep -q "^$model$" "$folder/text/$figure.txt" || fail "$figure.txt has no $model"
    done
done
grep -q $'[\r\e]' "$folder/log" && fail "control characters in a file"

# Equal seeds give equal numbers whatever the threads (the tenth column is the time).
for threads in 1 3; do
    "$program" "${small[@]}" --steps 5 --test-lengths 5 --threads $threads --out "$folder/threads$threads" >/dev/null
    cut -d, -f1-9,11- "$folder/threads$threads/metrics.csv" >"$folder/metrics$threads"
done
cmp -s "$folder/metrics1" "$folder/metrics3" || fail "1 and 3 threads gave different numbers"

# On a GPU, where there is one, the losses are those of the CPU, the last of seven digits one off at most, and
# the same in every run.
on_gpu=("${small[@]}" --steps 5 --test-lengths 5 --device cuda)
if [[ $built_with == cuda ]] && nvidia-smi -L >/dev/null 2>&1; then
    for run in 1 2; do
        "$program" "${on_gpu[@]}" --out "$folder/gpu$run" >"$folder/log" 2>&1 || fail "on a GPU it ended with status $?: $(<"$folder/log")"
    done
    cmp <(cut -d, -f1-9 "$folder/gpu1/metrics.csv") <(cut -d, -f1-9 "$folder/gpu2/metrics.csv") ||
        fail "on a GPU a second run gave different numbers"
    paste -d, <(cut -d, -f1,3 "$folder/gpu1/metrics.csv") <(cut -d, -f1,3 "$folder/threads1/metrics.csv") | awk -F, '
        NR == 1 { good = $2 == "loss"; next }
        { difference = $2 - $4; good = good && $1 == $3 && difference * difference <= 1e-12 * $4 * $4 }
        END { exit !(good && NR == 6) }' || fail "on a GPU losses are $(cut -d, -f3 "$folder/gpu1/metrics.csv" | paste -sd' ')"
elif [[ $built_with == cuda ]]; then
    said=$("$program" "${on_gpu[@]}" --out "$folder/gpu" 2>&1)
    [[ $? == 1 && $said =~ ^"experiment: device: ".*\(cudaError(NoDevice|InsufficientDriver)\)$ ]] || fail "without a GPU it said: $said"
    [[ ! -e $folder/gpu/metrics.csv ]] || fail "without a GPU it was trained"
fi

# A rate that breaks the training: the message names step and parameter, and what there is is written.
said=$("$program" "${small[@]}" --steps 50 --learning-rate 1e38 --test-lengths 5 --out "$folder/wild" 2>&1 >/dev/null)
[[ $? == 1 ]] || fail "numbers that are not finite did not end with status 1"
[[ $said =~ train:\ step\ [0-9]+:.*\'[a-z0-9_.A-Z]+\' ]] || fail "no step and parameter in: $said"
[[ -s $folder/wild/summary.json && -s $folder/wild/accuracy.csv ]] || fail "numbers that are not finite left no files"

# Trainings of other seeds, of which the best is kept; a later call goes on with one more.
out=$folder/restarts
again=("${small[@]}" --steps 40 --test-lengths 8 --test-sequences 64 --checkpoint-every 20 --out "$out")
"$program" "${again[@]}" --restarts 1 >"$folder/log" || fail "--restarts 1"
(($(grep -c '^attempt . of at most 2: ' "$folder/log") == 2)) || fail "--restarts 1 made other attempts than two"
(($(grep -c '"score": 0' "$out/summary.json") == 2)) || fail "--restarts: the attempts' scores are not in summary.json"
best=$(awk '/"score":/ { score = $2 + 0 } /"train_length"/ { exit }
    /"loss":/ { ++n; if (!best || score > most || (score == most && $2 + 0 < loss)) { best = n; most = score; loss = $2 + 0 } }
    END { print best }' "$out/summary.json")
[[ -s $out/accuracy.csv && ! -e $out/attempt_1/accuracy.csv ]] || fail "--restarts: not the best alone is tested"
cmp -s "$out/metrics.csv" "$out/attempt_$best/metrics.csv" || fail "--restarts: the best is not attempt $best"
cp "$out/attempt_1/metrics.csv" "$folder/first"
"$program" "${again[@]}" --restarts 2 --resume >"$folder/log" || fail "--restarts 2 --resume"
grep -q '^attempt 3 of at most 3: ' "$folder/log" && cmp -s "$folder/first" "$out/attempt_1/metrics.csv" ||
    fail "--restarts 2 --resume did not go on"
grep -q '"restarts": 2' "$out/config.json" || fail "--restarts is not in config.json"
"$program" "${again[@]}" --restarts 2 2>"$folder/log" && fail "--restarts writes over checkpoints"
grep -q "expected a folder without checkpoints, or --resume, got '$out/attempt_1'" "$folder/log" || fail "--restarts over checkpoints: $(cat "$folder/log")"
said=$("$program" "${again[@]}" 2>&1)
[[ $? == 2 && $said == "experiment: --restarts: expected at least 1, as the run that left $out/attempt_1/checkpoint-00000040.safetensors had, or another --out, got 0" ]] ||
    fail "a training in the folder of attempts: $said"
"$program" "${again[@]}" --out "$folder/no_attempts" >"$folder/log" || fail "a training alone"
for more in "" --resume; do
    said=$("$program" "${again[@]}" --out "$folder/no_attempts" --restarts 1 $more 2>&1)
    [[ $? == 2 && $said == "experiment: --restarts: expected 0, as the run that left $folder/no_attempts/checkpoint-00000040.safetensors had, or another --out, got 1" ]] ||
        fail "attempts in the folder of a training: $said"
done
"$program" "${small[@]}" --steps 100000000 --time-limit 0.2 --test-lengths 8 --restarts 3 --out "$folder/ended" >/dev/null || fail "--restarts --time-limit"
[[ -s $folder/ended/attempt_1/metrics.csv && ! -e $folder/ended/attempt_2 ]] || fail "--restarts: no attempt, or a folder of one that was not begun"

# The first signal ends the training in order.
for signal in INT TERM HUP; do
    out=$folder/signal$signal
    "$program" "${small[@]}" --steps 100000000 --test-lengths 5 --checkpoint-every 100000000 --out "$out" \
        >"$folder/log" 2>&1 &
    child=$!
    for ((i = 0; i < 300; ++i)); do
        [[ -s $out/metrics.csv ]] && (($(wc -l <"$out/metrics.csv") > 3)) && break
        sleep 0.1
    done
    kill -s $signal $child
    # A terminal that closes often sends two.
    [[ $signal != HUP ]] || kill -s $signal $child
    wait $child || fail "SIG$signal ended the program with status $?"
    grep -q '"ended_by": "signal"' "$out/summary.json" || fail "SIG$signal left no summary"
    [[ $(wc -l <"$out/accuracy.csv") == 2 ]] || fail "SIG$signal left no accuracy.csv"
    [[ -s $(printf '%s/checkpoint-%08d.safetensors' "$out" $(($(wc -l <"$out/metrics.csv") - 1))) ]] ||
        fail "SIG$signal left no checkpoint"
done
# Under nohup, SIGHUP does nothing.
out=$folder/nohup
(trap '' HUP && exec "$program" "${small[@]}" --steps 100000000 --test-lengths 5 --out "$out") >"$folder/log" 2>&1 &
child=$!
rows() { wc -l <"$out/metrics.csv"; }
for ((i = 0; i < 300; ++i)); do
    [[ -s $out/metrics.csv ]] && break
    sleep 0.1
done
kill -s HUP $child
before=$(rows)
for ((i = 0; i < 300 && $(rows) < before + 100; ++i)); do sleep 0.1; done
(($(rows) >= before + 100)) || fail "SIGHUP ended the training under nohup"
kill -s TERM $child
wait $child || fail "under nohup, SIGTERM ended the program with status $?"

# A second one ends the program while it evaluates.
out=$folder/twice
"$program" "${small[@]}" --steps 100000000 --test-sequences 16000000 --out "$out" >"$folder/log" 2>&1 &
child=$!
for ((i = 0; i < 300; ++i)); do
    [[ -s $out/metrics.csv ]] && break
    sleep 0.1
done
kill -s TERM $child
for ((i = 0; i < 300; ++i)); do
    [[ -s $out/accuracy.csv.part ]] && break
    sleep 0.1
done
kill -s TERM $child
wait $child
[[ $? == 143 ]] || fail "a second SIGTERM did not end the program"

((failures == 0)) && echo "experiment does what it says"
exit $((failures > 0))
