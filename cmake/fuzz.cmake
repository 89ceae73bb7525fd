# Every tests/fuzz/NAME.cpp is a target of libFuzzer and a ctest test that runs it. libFuzzer belongs to
# Clang, so clang++ compiles them, whatever compiles the rest; NAME.dict, where there is one, holds words to
# try.
set(FPRNN_FUZZ_SECONDS 60 CACHE STRING "How long a test runs each fuzz target; 0 leaves them out")
if(NOT FPRNN_FUZZ_SECONDS MATCHES "^[0-9]+$")
    message(FATAL_ERROR "FPRNN_FUZZ_SECONDS must be a number of seconds, got '${FPRNN_FUZZ_SECONDS}'")
endif()

find_program(FPRNN_FUZZ_COMPILER NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
mark_as_advanced(FPRNN_FUZZ_COMPILER)
set(fuzz_options -std=c++20 -O1 -g -pthread -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
set(missing "")
if(FPRNN_FUZZ_SECONDS EQUAL 0)
    set(missing "FPRNN_FUZZ_SECONDS is 0")
elseif(NOT FPRNN_FUZZ_COMPILER)
    set(missing "clang++ is not found")
else()
    set(probe "${PROJECT_BINARY_DIR}/fuzz/probe")
    file(WRITE "${probe}.cpp" "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n")
    execute_process(COMMAND "${FPRNN_FUZZ_COMPILER}" ${fuzz_options} "${probe}.cpp" -o "${probe}"
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
        set(missing "${FPRNN_FUZZ_COMPILER} has no libFuzzer, see libclang-rt-dev")
    endif()
endif()

fprnn_example_dependencies()
fprnn_include_flags(fuzz_flags CLI11::CLI11 nlohmann_json::nlohmann_json)
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*.cpp)
file(GLOB dictionaries CONFIGURE_DEPENDS tests/fuzz/*.dict)
foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM name)
    if(missing)
        fprnn_skipped_test(fuzz.${name} fuzz "${missing}")
        continue()
    endif()
    set(program "${PROJECT_BINARY_DIR}/fuzz/${name}")
    add_custom_command(OUTPUT "${program}.o" DEPENDS "${source}" DEPFILE "${program}.d" VERBATIM
        COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${FPRNN_FUZZ_COMPILER}" ${fuzz_options} ${FPRNN_WARNINGS}
                "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/tests" ${fuzz_flags}
                -MD -MF "${program}.d" -MT "${program}.o" -c "${source}" -o "${program}.o"
        COMMENT "Building fuzz target ${name}")
    add_custom_command(OUTPUT "${program}" DEPENDS "${program}.o" VERBATIM
        COMMAND "${FPRNN_FUZZ_COMPILER}" ${fuzz_options} "${program}.o" -o "${program}"
        COMMENT "Linking fuzz target ${name}")
    add_custom_target(fuzz_${name} ALL DEPENDS "${program}")

    set(dictionary "${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.dict")
    if(NOT dictionary IN_LIST dictionaries)
        set(dictionary "")
    endif()
    add_test(NAME fuzz.${name} COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/fuzz.sh" "${program}"
             ${FPRNN_FUZZ_SECONDS} ${dictionary})
    math(EXPR limit "${FPRNN_FUZZ_SECONDS} + 240")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endforeach()
