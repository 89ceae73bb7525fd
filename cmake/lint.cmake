# The sources are as .clang-format and .clang-tidy say. Other versions of these programs say other things:
# Debian 12's count.
find_program(FPRNN_CLANG_FORMAT NAMES clang-format-14 clang-format)
find_program(FPRNN_CLANG_TIDY NAMES clang-tidy-14 clang-tidy)
mark_as_advanced(FPRNN_CLANG_FORMAT FPRNN_CLANG_TIDY)

function(fprnn_lint_test name program)
    set(found "")
    if(program)
        execute_process(COMMAND "${program}" --version OUTPUT_VARIABLE found ERROR_QUIET)
    endif()
    if(NOT found MATCHES "version 14\\.")
        fprnn_skipped_test(${name} sources "clang-${name} 14 is not found (Debian 12: apt-get install clang-${name})")
        return()
    endif()
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS sources TIMEOUT 1200)
endfunction()

fprnn_lint_test(format "${FPRNN_CLANG_FORMAT}"
    "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_format.sh" "${PROJECT_SOURCE_DIR}" "${FPRNN_CLANG_FORMAT}")

# One source of all headers, and one that instantiates most of them.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" include/*.hpp)
list(FILTER headers EXCLUDE REGEX "${headers_without}")
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
string(JOIN "" all_headers ${headers})
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/all_headers.cpp" CONTENT "${all_headers}" @ONLY)
if(NOT FPRNN_QUICK)
    fprnn_lint_test(tidy "${FPRNN_CLANG_TIDY}" "${FPRNN_CLANG_TIDY}" --quiet "--config-file=${PROJECT_SOURCE_DIR}/.clang-tidy"
        "${PROJECT_BINARY_DIR}/all_headers.cpp" "${PROJECT_SOURCE_DIR}/examples/train.cpp" -- -std=c++20 ${io_flags})
endif()
