#!/usr/bin/env bash
# build_docs.sh DOXYGEN FOLDER KATEX LOADER: builds FOLDER/html from FOLDER/Doxyfile. It fails on any warning
# of doxygen and on any link inside of the site that leads nowhere.
set -u -o pipefail
doxygen=$1 folder=$2 katex=$3 loader=$4
rm -rf "$folder/html"
"$doxygen" "$folder/Doxyfile" || { echo "docs: doxygen's warnings above are errors" >&2; exit 1; }

mkdir -p "$folder/html/katex/contrib" || exit 1
cp -L "$loader" "$katex/katex.min.js" "$katex/katex.min.css" "$folder/html/katex/" &&
    cp -L "$katex/contrib/auto-render.js" "$folder/html/katex/contrib/" &&
    mkdir "$folder/html/katex/fonts" && cp -L "$katex"/fonts/*.woff2 "$folder/html/katex/fonts/" || exit 1

cd "$folder/html" || exit 1
targets=$(mktemp) anchors=$(mktemp)
trap 'rm -f "$targets" "$anchors"' EXIT
# "page.html page.html#anchor" of everything that can be linked to, and "from to" of every link.
for page in *.html; do
    grep -oE '(id|name)="[^"]*"' "$page" | sed -E "s|^[a-z]*=\"(.*)\"|$page#\1|"
done | sort -u >"$anchors"
find . -type f -printf '%P\n' >>"$anchors"
{
    grep -oE '(href|src)="[^"]*"' -- *.html | sed -E 's|^([^:]*):[a-z]*="(.*)"$|\1 \2|'
    grep -oE 'url:"[^"]*"' menudata.js | sed -E 's|^url:"(.*)"$|menudata.js \1|'
} |
    awk '$2 !~ /^(https?:|javascript:|mailto:|data:)/ && $2 != "" && $2 !~ /#(nested-classes)?$/ {
             sub(/^\.\//, "", $2); print $1, ($2 ~ /^#/ ? $1 $2 : $2) }' | sort -u >"$targets"
awk 'FNR == NR { known[$0]; next } !($2 in known) { print "docs: " $1 " links to " $2 ", which is not there"; bad = 1 }
     END { exit bad }' "$anchors" "$targets" >&2 || exit 1
echo "docs: $folder/html/index.html ($(find . -name '*.html' | wc -l) pages, $(wc -l <"$targets") links)"
