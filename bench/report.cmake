# cmake -DPROGRAMS=FOLDER -DSOURCE=FOLDER -DCOMPILE=COMMAND -P report.cmake: runs every benchmark in a folder,
# keeps its JSON there, and writes SOURCE/bench/results/cpu.md. COMPILE, a list, compiles the file that is
# appended to it.
cmake_minimum_required(VERSION 3.25)

file(GLOB programs LIST_DIRECTORIES false "${PROGRAMS}/*")
list(FILTER programs EXCLUDE REGEX "\\.json$")
if(NOT programs)
    message(FATAL_ERROR "report: there are no benchmarks in ${PROGRAMS}")
endif()

# 0.12345 as 0.12
function(two_digits number out)
    if(number MATCHES "^([0-9]+)\\.([0-9][0-9]?)")
        set(${out} "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}" PARENT_SCOPE)
    else()
        set(${out} "${number}" PARENT_SCOPE)
    endif()
endfunction()

set(rows "")
set(budget "")
foreach(program IN LISTS programs)
    cmake_path(GET program STEM name)
    message(STATUS "${name}")
    execute_process(COMMAND "${program}" --benchmark_out_format=json "--benchmark_out=${program}.json" RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "report: ${program} ended with ${failed}")
    endif()
    file(READ "${program}.json" json)
    string(JSON context GET "${json}" context)
    string(JSON count LENGTH "${json}" benchmarks)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
        string(JSON one GET "${json}" benchmarks ${i})
        string(JSON benchmark GET "${one}" name)
        string(REGEX REPLACE "/(manual|real)_time" "" benchmark "${benchmark}")
        string(JSON wrong ERROR_VARIABLE none GET "${one}" error_message)
        if(none STREQUAL "NOTFOUND")
            message(FATAL_ERROR "report: ${benchmark}: ${wrong}")
        endif()
        string(JSON label ERROR_VARIABLE none GET "${one}" label)
        if(NOT none STREQUAL "NOTFOUND")
            set(label "")
        endif()
        string(JSON time GET "${one}" real_time)
        string(JSON unit GET "${one}" time_unit)
        two_digits("${time}" time)
        string(JSON members LENGTH "${one}")
        math(EXPR members "${members} - 1")
        set(fraction "")
        set(counters "")
        foreach(m RANGE ${members})
            string(JSON key MEMBER "${one}" ${m})
            string(JSON value GET "${one}" ${key})
            if(key MATCHES "^of_(.*)$")
                two_digits("${value}" value)
                set(fraction "${value} × ${CMAKE_MATCH_1}")
            elseif(key MATCHES "^[0-9]_(.*)$")
                two_digits("${value}" value)
                string(APPEND budget "| ${CMAKE_MATCH_1} | ${value} |\n")
            elseif(key MATCHES "^(agree|converged.*|evaluations.*)$")
                two_digits("${value}" value)
                string(APPEND counters "${key} ${value}; ")
            endif()
        endforeach()
        string(APPEND rows "| `${benchmark}` | ${label} | ${time} ${unit} | ${fraction} | ${counters} |\n")
    endforeach()
endforeach()

set(compiled "")
set(include_only "${PROGRAMS}/include_only.json.cpp")
file(WRITE "${include_only}" "#include <fprnn/fprnn.hpp>\n")
foreach(source "${include_only}" "${SOURCE}/examples/quick_start.cpp")
    string(TIMESTAMP begin "%s%f")
    execute_process(COMMAND ${COMPILE} "${source}" COMMAND_ERROR_IS_FATAL ANY)
    string(TIMESTAMP end "%s%f")
    math(EXPR milliseconds "(${end} - ${begin}) / 1000")
    cmake_path(GET source FILENAME name)
    string(REPLACE "include_only.json.cpp" "the umbrella header alone" name "${name}")
    string(APPEND compiled "| ${name} | ${milliseconds} ms |\n")
endforeach()
file(REMOVE "${include_only}")

execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET)
cmake_host_system_information(RESULT processor QUERY PROCESSOR_DESCRIPTION)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
file(WRITE "${SOURCE}/bench/results/cpu.md" "# CPU

Written by `cmake --workflow --preset bench` at commit `${commit}` on ${cores} cores of ${processor}. A fraction is the median over
pairs of runs, each of the benchmark and of its yardstick with the same threads right after it: triad for bytes, Eigen's sgemm
for arithmetic, Eigen's vectorised exp for exponentials, the schedule C = T for schedules. The first number of a name is the
number of threads. Every benchmark has checked its result first. The trained FP-Mamba has several fixed points: there `agree` is
the share of tokens with the answer of C = T, and the rest is another solution; `converged` and
`converged_T` are the shares of sequences for which the schedule and C = T found one within 2,000 evaluations, to which the others
went in vain. A store fetches what it overwrites, which is not counted: a triad, with one store for two loads, is no bound for what
stores less.

| benchmark | what is counted | time | fraction | |
|---|---|---|---|---|
${rows}
## A token of the training step, one thread, in µs

Products are timed inside the step, the others by themselves with the same shapes; the rest is what remains.

| | |
|---|---|
${budget}
## Compile time, -O2

| | |
|---|---|
${compiled}")
message(STATUS "report: wrote ${SOURCE}/bench/results/cpu.md")
