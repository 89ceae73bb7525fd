# Sourced by the tests of examples that read a checkpoint: PROGRAM is $1.
name=${1##*/} program=$1 experiment=${1%/*}/experiment
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

# refused STATUS MESSAGE ARGUMENTS…
refused() {
    local status=$1 message=$2 got
    shift 2
    got=$("$program" "$@" 2>&1 >"$folder/said")
    [[ $? == "$status" ]] || fail "$* did not end with status $status"
    [[ $got == "$name: $message"* ]] || fail "$* said: $got
        instead of: $name: $message"
    [[ ! -s $folder/said ]] || fail "$* printed: $(<"$folder/said")"
}
