if(FPRNN_EXAMPLES)
    file(GLOB examples CONFIGURE_DEPENDS examples/*.cpp)
    file(GLOB pages CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" *.md docs/*.md docs/tutorial/*.md)
    if(FPRNN_TESTS)
        find_program(FPRNN_BASH bash REQUIRED)
    endif()
    if(examples)
        fprnn_example_dependencies()
    endif()
    foreach(source IN LISTS examples)
        cmake_path(GET source STEM name)
        if(name STREQUAL "train_on_ranks" AND (NOT TARGET fprnn::mpi OR FPRNN_SANITIZE))
            continue()
        endif()
        # examples/NAME/ holds further sources of examples/NAME.cpp, and what it does on a GPU.
        file(GLOB parts CONFIGURE_DEPENDS examples/${name}/*.cpp)
        add_executable(${name} "${source}" ${parts})
        set(built_with "")
        file(GLOB gpu_parts CONFIGURE_DEPENDS examples/${name}/*.cu)
        if(gpu_parts AND with_gpu)
            # Apart, because nvcc knows nothing of the C++ compiler's options.
            add_library(${name}_gpu OBJECT ${gpu_parts})
            target_link_libraries(${name}_gpu PUBLIC fprnn::cuda)
            target_link_libraries(${name} PRIVATE ${name}_gpu)
            string(TOUPPER "${name}_CUDA" definition)
            target_compile_definitions(${name}_gpu PUBLIC ${definition})
            # examples/NAME/gpu.cmake adds sources to NAME_gpu that are made.
            include("${PROJECT_SOURCE_DIR}/examples/${name}/gpu.cmake" OPTIONAL)
            set(built_with cuda)
        endif()
        # quick_start is the one that shows that the headers are enough.
        if(NOT name STREQUAL "quick_start")
            target_link_libraries(${name} PRIVATE fprnn::compiled)
        endif()
        target_link_libraries(${name} PRIVATE fprnn_own CLI11::CLI11 nlohmann_json::nlohmann_json)
        if(name STREQUAL "train_on_ranks")
            target_link_libraries(${name} PRIVATE fprnn::mpi)
        endif()
        if(parts)
            target_precompile_headers(${name} PRIVATE <fprnn/fprnn.hpp> <nlohmann/json.hpp>)
        endif()
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")

        # tests/examples/NAME.sh, given the program and `cuda` where it was built with that, says whether it
        # does what it should; without one it need only run, and print what pages say that it prints.
        if(FPRNN_TESTS)
            set(script "${PROJECT_SOURCE_DIR}/tests/examples/${name}.sh")
            if(EXISTS "${script}")
                add_test(NAME examples.${name} COMMAND "${FPRNN_BASH}" "${script}" $<TARGET_FILE:${name}> ${built_with})
                if(name STREQUAL "train_on_ranks")
                    set_tests_properties(examples.${name} PROPERTIES ENVIRONMENT "MPIEXEC=${MPIEXEC_EXECUTABLE}")
                endif()
            else()
                add_test(NAME examples.${name}
                         COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_output.sh" $<TARGET_FILE:${name}>
                                 "examples/${name}.cpp" ${pages}
                         WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
            endif()
            set_tests_properties(examples.${name} PROPERTIES LABELS examples TIMEOUT 600)
            if(built_with)
                set_tests_properties(examples.${name} PROPERTIES RESOURCE_LOCK gpu)
            endif()
        endif()
    endforeach()
    if(FPRNN_TESTS AND TARGET experiment)
        add_test(NAME examples.resume COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/tests/examples/resume.sh"
                 $<TARGET_FILE:experiment>)
        set_tests_properties(examples.resume PROPERTIES LABELS examples TIMEOUT 600)
    endif()

    # The test cuda.NAME.run, in cmake/tests.cmake, runs them.
    file(GLOB gpu_examples CONFIGURE_DEPENDS examples/*.cu)
    if(NOT with_gpu)
        set(gpu_examples "")
    endif()
    foreach(source IN LISTS gpu_examples)
        cmake_path(GET source STEM name)
        add_executable(${name} "${source}")
        target_link_libraries(${name} PRIVATE fprnn::cuda)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    endforeach()
endif()

if(FPRNN_BENCH)
    file(GLOB benchmarks CONFIGURE_DEPENDS bench/*.cpp)
    list(REMOVE_ITEM benchmarks "${PROJECT_SOURCE_DIR}/bench/ranks.cpp")  # of processes, which Google Benchmark knows nothing of
    if(TARGET fprnn::mpi AND NOT FPRNN_SANITIZE)
        fprnn_io_dependencies()
        add_executable(bench_ranks bench/ranks.cpp)
        target_link_libraries(bench_ranks PRIVATE fprnn_own fprnn::mpi fprnn::compiled nlohmann_json::nlohmann_json)
        if(FPRNN_BENCH STREQUAL "UNOPTIMISED")
            target_compile_options(bench_ranks PRIVATE -O0)
        endif()
        set_target_properties(bench_ranks PROPERTIES OUTPUT_NAME ranks RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    endif()
    if(benchmarks)
        find_package(benchmark QUIET)
        if(NOT benchmark_FOUND)
            message(STATUS "fprnn: bench/ is not built, Google Benchmark is not installed (apt-get install libbenchmark-dev)")
            set(benchmarks "")
        endif()
    endif()
    foreach(source IN LISTS benchmarks)
        # The prefix keeps bench/scan.cpp and examples/scan.cpp apart; the program itself is bench/scan.
        cmake_path(GET source STEM name)
        add_executable(bench_${name} "${source}")
        target_link_libraries(bench_${name} PRIVATE fprnn_own benchmark::benchmark benchmark::benchmark_main)
        if(FPRNN_BENCH STREQUAL "UNOPTIMISED")  # whether they compile, in half of the time
            target_compile_options(bench_${name} PRIVATE -O0)
        endif()
        set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                              RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
        list(APPEND benchmark_targets bench_${name})
    endforeach()
    if(benchmarks)
        # Of bench/peers/cpu, which loads it.
        add_library(bench_peers MODULE bench/peers/ours.cpp)
        target_link_libraries(bench_peers PRIVATE fprnn_own benchmark::benchmark)
        if(FPRNN_BENCH STREQUAL "UNOPTIMISED")
            target_compile_options(bench_peers PRIVATE -O0)
        endif()
        set_target_properties(bench_peers PROPERTIES PREFIX "" OUTPUT_NAME ours
                              LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/peers")
    endif()
    if(benchmarks)
        fprnn_include_flags(include_flags)
        set(compile "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 ${include_flags} -c -o /dev/null)
        add_custom_target(bench_report DEPENDS ${benchmark_targets} USES_TERMINAL VERBATIM
            COMMAND "${CMAKE_COMMAND}" "-DPROGRAMS=${PROJECT_BINARY_DIR}/bench" "-DSOURCE=${PROJECT_SOURCE_DIR}"
                    "-DCOMPILE=${compile}" -P "${PROJECT_SOURCE_DIR}/bench/report.cmake"
            COMMENT "Running the benchmarks for bench/results/cpu.md")
    endif()

    # The tests cuda.cuda_* compile what it runs.
    set(why_not "")
    if(NOT has_gpu)
        set(why_not "there is no GPU, or was none when this folder was configured")
    elseif(NOT FPRNN_NVCC OR NOT CUDAToolkit_FOUND OR NOT TEST cuda.cuda_scan)
        set(why_not "nvcc of version 12 or later is not found, or tests that take minutes are left out here: cmake --preset release")
    elseif(NOT FPRNN_PYTHON)
        set(why_not "python3 is not found")
    endif()
    if(why_not)
        add_custom_target(bench_report_gpu COMMAND "${CMAKE_COMMAND}" -E echo "bench_report_gpu: ${why_not}"
                          COMMAND "${CMAKE_COMMAND}" -E false VERBATIM)
    else()
        add_custom_target(bench_report_gpu USES_TERMINAL VERBATIM
            COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${PROJECT_BINARY_DIR}" --output-on-failure --no-tests=error
                    -R "^cuda\\.cuda_"
            COMMAND "${FPRNN_PYTHON}" "${PROJECT_SOURCE_DIR}/bench/report_gpu.py" --programs "${PROJECT_BINARY_DIR}/cuda"
            COMMENT "Running the benchmarks for a page of bench/results that is named after the GPU")
    endif()
endif()
