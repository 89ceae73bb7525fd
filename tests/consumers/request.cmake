# cmake -DPREFIX=… "-DREQUEST=0.2" "-DEXPECT=some words" -P request.cmake: find_package(fprnn ${REQUEST}) is
# refused, in these words.
if(NOT INSIDE)
    execute_process(COMMAND "${CMAKE_COMMAND}" -DINSIDE=ON "-DPREFIX=${PREFIX}" "-DREQUEST=${REQUEST}"
                            -P "${CMAKE_CURRENT_LIST_FILE}"
                    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    string(FIND "${output}" "${EXPECT}" found)
    if(result STREQUAL "0" OR found EQUAL -1)
        message(FATAL_ERROR "find_package(fprnn ${REQUEST}) ended with ${result}; expected a refusal with the words\n"
                            "  ${EXPECT}\nbut it said:${output}")
    endif()
    return()
endif()
set(CMAKE_PREFIX_PATH "${PREFIX}")
separate_arguments(REQUEST)
find_package(fprnn ${REQUEST} REQUIRED)
