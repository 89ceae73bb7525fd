#!/usr/bin/env bash
# check_links.sh FOLDER PAGE…: what a page links to inside of FOLDER is there, the heading after # too, and so
# is every source that it names in code, `ops/scan.hpp` from include/fprnn/. Pages are named from FOLDER.
# Where there is no folder cuda/, what leads there is right.
set -u
cd "$1" || exit 1
shift

# GitHub's anchors of a page, one a line.
anchors() {
    awk '/^ *```/ { fenced = !fenced } !fenced && sub(/^#+ /, "") {
             $0 = tolower($0); gsub(/[^a-z0-9 _-]/, ""); gsub(/ /, "-"); print }' "$1"
}

# deleted PATH: whether it is of the folder cuda/, which may be left out.
deleted() { [[ ! -e cuda && $(realpath -m --relative-to=. "$1") == cuda/* ]]; }

count=0 failed=0
wrong() {
    echo "$1"
    failed=1
}
for page in "$@"; do
    while IFS=' ' read -r line kind target; do
        count=$((count + 1))
        path=${target%%#*} part=
        [[ $target == *'#'* ]] && part=${target#*#}
        if [[ $kind == source ]]; then
            [[ -e $path || -e include/fprnn/$path || -e include/$path ]] || deleted "$path" || wrong "$page:$line: there is no $path"
            continue
        fi
        [[ -z $path ]] && path=$page || path=$(dirname "$page")/$path
        if [[ ! -e $path ]]; then
            deleted "$path" || wrong "$page:$line: there is no $target"
        elif [[ -n $part ]] && ! anchors "$path" | grep -qxF -- "$part"; then
            wrong "$page:$line: $path has no heading #$part"
        fi
    done < <(awk '/^ *```/ { fenced = !fenced } fenced { next }
                  { for (code = $0; match(code, /`[a-z_\/0-9.]+\/[a-z_0-9.]+\.(hpp|cpp|cu|sh|awk|md)`/);
                         code = substr(code, RSTART + RLENGTH))
                        print FNR, "source", substr(code, RSTART + 1, RLENGTH - 2)
                    gsub(/`[^`]*`/, "x")
                    while (match($0, /\]\([^) ]+\)/)) {
                        target = substr($0, RSTART + 2, RLENGTH - 3)
                        if (target !~ /^[a-z]+:/) print FNR, "link", target
                        $0 = substr($0, RSTART + RLENGTH) } }' "$page")
done
((failed)) || echo "$count links and names lead somewhere"
exit "$failed"
