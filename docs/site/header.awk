# awk -v root=DIR -f header.awk FILE: a header as doxygen reads it, with every line where it was.
#
#   Every header is a page, a group below that of its folder: what its namespace holds belongs to it, and so does the
#   docblock above `namespace`, which doxygen would give to the namespace.
#   The stop of "eq.", "sec.", "app." and "tab." does not end a brief description.

FNR == 1 {
    title = substr(FILENAME, length(root "/include/fprnn/") + 1)
    folder = title
    if (!sub(/\/.*/, "", folder)) folder = "fprnn"
    group = title
    sub(/\.hpp$/, "", group)
    gsub(/\//, "-", group)
    if (group == folder) group = group "-hpp"
    print "/** \\defgroup " group " " title
    next
}
FNR == 2 { print " *  \\ingroup " folder " */"; next }

function give_block_to_group(    i) {
    for (i = held; i > 1; i--)
        if (block[i] == "///") {
            block[i] = "/// \\addtogroup " group
            return
        }
    block[held] = block[held] " \\addtogroup " group
}
function flush(    i) {
    for (i = 1; i <= held; i++) print block[i]
    held = 0
}

/\/\/\// { gsub(/(eq|sec|app|tab)\. /, "&\\ "); gsub(/\. \\ /, ".\\ ") }
/^\/\/\// { block[++held] = $0; next }
held && /^namespace fprnn/ { give_block_to_group() }
{ flush() }

namespace != "" {
    inside = $0 == ""
    print namespace (inside ? " /** \\addtogroup " group : "")
    namespace = ""
    if (inside) $0 = "@{ */"
}
/^namespace fprnn(::models)? \{$/ { namespace = $0; next }
inside && /^\}  \/\/ namespace fprnn/ { inside = 0; print "/** @} */ " $0; next }
{ print }
END { flush() }
