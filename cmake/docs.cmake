# cmake --build BUILD --target docs: the site, in BUILD/docs/html/index.html; and the tests of what pages say.
find_program(FPRNN_BASH bash)
find_program(FPRNN_AWK awk)
find_program(FPRNN_DOXYGEN doxygen)
find_path(FPRNN_KATEX katex.min.js HINTS /usr/share/javascript/katex NO_DEFAULT_PATH)
mark_as_advanced(FPRNN_BASH FPRNN_AWK FPRNN_DOXYGEN FPRNN_KATEX)

set(why_not "")
if(NOT FPRNN_DOXYGEN OR NOT FPRNN_KATEX)
    set(why_not "doxygen or KaTeX is not found (Debian and Ubuntu: apt-get install doxygen libjs-katex)")
    add_custom_target(docs COMMAND "${CMAKE_COMMAND}" -E echo "docs: ${why_not}" COMMAND "${CMAKE_COMMAND}" -E false VERBATIM)
else()
    file(GLOB root_pages CONFIGURE_DEPENDS *.md)
    list(JOIN root_pages " " root_pages)
    configure_file(docs/site/Doxyfile.in "${PROJECT_BINARY_DIR}/docs/Doxyfile" @ONLY)
    add_custom_target(docs COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/build_docs.sh" "${FPRNN_DOXYGEN}"
                                   "${PROJECT_BINARY_DIR}/docs" "${FPRNN_KATEX}" "${PROJECT_SOURCE_DIR}/docs/site/MathJax.js"
                      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" USES_TERMINAL VERBATIM)
endif()

if(NOT FPRNN_TESTS OR FPRNN_SANITIZE)
    return()
endif()

file(GLOB pages CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" *.md docs/*.md docs/*/*.md)
add_test(NAME links COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_links.sh" "${PROJECT_SOURCE_DIR}" ${pages})
list(FILTER pages INCLUDE REGEX "^docs/(tutorial/|gpu.md|scale.md|choosing.md)")
add_test(NAME snippets COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_snippets.sh" "${PROJECT_SOURCE_DIR}" ${pages})
set_tests_properties(links snippets PROPERTIES LABELS docs)

if(why_not)
    fprnn_skipped_test(docs docs "${why_not}")
else()
    add_test(NAME docs COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target docs)
    set_tests_properties(docs PROPERTIES LABELS docs TIMEOUT 300)
endif()
