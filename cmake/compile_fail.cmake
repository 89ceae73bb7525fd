# cmake -DSOURCE=file.cpp -P compile_fail.cmake -- compiler flags…
# The file must not compile, and what the compiler says must be of use: it holds the text of the file's first
# line, "// expect: some text", and it is at most 25 lines long. A second line "// with: flags" adds to the
# flags.
set(most_lines 25)

set(command "")
set(past_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
    if(past_dashes)
        list(APPEND command "${CMAKE_ARGV${i}}")
    elseif(CMAKE_ARGV${i} STREQUAL "--")
        set(past_dashes TRUE)
    endif()
endforeach()

file(READ "${SOURCE}" text)
if(NOT text MATCHES "^// expect: ([^\n]+)")
    message(FATAL_ERROR "${SOURCE}: the first line must be '// expect: some text of the error'")
endif()
string(STRIP "${CMAKE_MATCH_1}" expected)
if(text MATCHES "^[^\n]*\n// with: ([^\n]+)")
    separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_1}")
    list(APPEND command ${flags})
endif()

set(ENV{LC_ALL} C)
execute_process(COMMAND ${command} -c "${SOURCE}" -o /dev/null
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(result STREQUAL "0")
    message(FATAL_ERROR "it compiles, but it must not: ${SOURCE}")
endif()
string(REGEX REPLACE "\n+$" "" output "${output}")
string(REGEX REPLACE "[^\n]" "" newlines "${output}")
string(LENGTH "${newlines}" lines)
math(EXPR lines "${lines} + 1")
string(FIND "${output}" "${expected}" found)
if(found EQUAL -1)
    message(NOTICE "${output}")
    message(FATAL_ERROR "it fails to compile (${result}), but the compiler's output above lacks: ${expected}")
endif()
if(lines GREATER most_lines)
    message(NOTICE "${output}")
    message(FATAL_ERROR "the compiler's output above has ${lines} lines; an error of this library has at most "
                        "${most_lines}")
endif()
message(STATUS "refused in ${lines} lines, with: ${expected}")
