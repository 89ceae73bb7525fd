fprnn_test_dependencies()

# Open MPI as root and with more processes than cores, which it otherwise refuses, and without what containers
# refuse it: one process that reads another's memory.
set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1"
    "OMPI_MCA_btl_vader_single_copy_mechanism=none")

# A test that cannot run here ends with this code: ctest shows it as skipped and says why with -V.
set(skipped 77)
function(fprnn_skipped_test name label reason)
    add_test(NAME ${name} COMMAND sh -c "echo 'skipped: ${reason}'; exit ${skipped}")
    set_tests_properties(${name} PROPERTIES LABELS "${label}" SKIP_RETURN_CODE ${skipped})
    message(STATUS "fprnn: ${name} is skipped: ${reason}")
endfunction()

# Unit tests: every tests/FOLDER/*.test.cpp goes into the executable test_FOLDER, one ctest test with FOLDER
# as its label.

# Tests compile in half of the time with -O0 and in three quarters with -O1 instead of -O2. What computes for
# long keeps -O1, what holds the loops that the compiler is to vectorise -O2 or -O3, as examples are compiled;
# the library is fprnn::compiled's, with -O3.
set(level_0 expression graph io mixers models paper tape tasks train)
set(level_2 backend)
set(level_3 ops)
if(FPRNN_QUICK)
    set(level_2 "")
    set(level_3 "")
endif()
if(FPRNN_SANITIZE)
    # What runs for seconds even without optimisation, which takes half of the time to compile what is instrumented.
    set(level_0 core expression io mixers tape)
    if(FPRNN_SANITIZE MATCHES "thread")  # it has one of these
        set(level_0 "")
    endif()
    set(level_2 "")
    set(level_3 "")
endif()
function(fprnn_test_level target folder)
    set(level 1)
    foreach(i 0 2 3)
        if(folder AND folder IN_LIST level_${i})
            set(level ${i})
        endif()
    endforeach()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}> $<$<CONFIG:RelWithDebInfo>:-O${level}>)
endfunction()

add_library(fprnn_test INTERFACE)
target_link_libraries(fprnn_test INTERFACE fprnn_own fprnn::compiled doctest::doctest)

add_library(fprnn_test_main OBJECT tests/main.cpp tests/products.cpp)
target_link_libraries(fprnn_test_main PRIVATE fprnn_test)

# What the tests of layers have in common.
add_library(fprnn_test_layers OBJECT tests/reference.cpp tests/models/block_gradients.cpp)
target_link_libraries(fprnn_test_layers PRIVATE fprnn_test)
target_include_directories(fprnn_test_layers PRIVATE tests)
fprnn_test_level(fprnn_test_layers "")

# Read once instead of by each test, which still names what it uses: CMAKE_DISABLE_PRECOMPILE_HEADERS shows
# it. What GCC has read without optimisation it does not take with it.
set(precompiled <fprnn/fprnn.hpp> "${PROJECT_SOURCE_DIR}/tests/products.hpp" "${PROJECT_SOURCE_DIR}/tests/reference.hpp"
    <doctest/doctest.h>)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_headers.cpp" CONTENT "")
set(header_targets fprnn_test_headers)
if(level_0)
    list(APPEND header_targets fprnn_test_headers_0)
endif()
foreach(name IN LISTS header_targets)
    add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(${name} PRIVATE fprnn_test)
    target_precompile_headers(${name} PRIVATE ${precompiled})
endforeach()
if(level_0)
    target_compile_options(fprnn_test_headers_0 PRIVATE $<$<CONFIG:Release>:-O0> $<$<CONFIG:RelWithDebInfo>:-O0>)
endif()

set(launcher "")
if(FPRNN_SANITIZE MATCHES "thread")
    # ThreadSanitizer of GCC 12 cannot place its shadow memory under 32 bits of address randomisation.
    execute_process(COMMAND setarch ${CMAKE_HOST_SYSTEM_PROCESSOR} -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed STREQUAL "0")
        set(launcher setarch ${CMAKE_HOST_SYSTEM_PROCESSOR} -R)
    endif()
endif()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests" tests/*.test.cpp)
set(folders "")
foreach(source IN LISTS test_sources)
    cmake_path(GET source PARENT_PATH folder)
    if(folder STREQUAL "")
        message(FATAL_ERROR "tests/${source}: a test belongs in a folder of tests/, as its header does in include/fprnn/")
    endif()
    string(REPLACE "/" "_" folder "${folder}")
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} "tests/${source}")
endforeach()
list(REMOVE_DUPLICATES folders)
if(FPRNN_SANITIZE)
    # What is decided when a program is compiled; flags of compilers; the laws of mixers, which guard what is
    # beside their arrays themselves; whether the suites notice mixers and recurrences that break laws; and
    # the same operations in other expressions.
    list(REMOVE_ITEM folders graph paper)
    list(FILTER sources_laws EXCLUDE REGEX "/mixer\\.test\\.cpp$")
    list(FILTER sources_mixers EXCLUDE REGEX "/(check_mixer|flags)\\.test\\.cpp$")
    list(FILTER sources_models INCLUDE REGEX "/(lstm|sequence_model)\\.test\\.cpp$")
    list(FILTER sources_operations EXCLUDE REGEX "/combinations_.*\\.test\\.cpp$")
    list(FILTER sources_ops EXCLUDE REGEX "/flags\\.test\\.cpp$")
    list(FILTER sources_recurrences EXCLUDE REGEX "/check_recurrence\\.test\\.cpp$")
endif()
if(FPRNN_SANITIZE MATCHES "thread")
    # What has several threads on purpose, with values and gradients of scans and of a matrix state. The rest
    # goes through the same engine, or has one thread, or several that take turns.
    list(REMOVE_ITEM folders cuda_ptx expression io mixers models tape tasks)
    list(FILTER sources_core INCLUDE REGEX "/parallel\\.test\\.cpp$")
    list(FILTER sources_fixed_point INCLUDE REGEX "/(lengths|method)\\.test\\.cpp$")
    list(FILTER sources_laws INCLUDE REGEX "_bits\\.test\\.cpp$")
    list(FILTER sources_operations INCLUDE REGEX "/attention\\.test\\.cpp$")
    list(FILTER sources_recurrences INCLUDE REGEX "/recur\\.test\\.cpp$")
    list(FILTER sources_train INCLUDE REGEX "/(ranks|train(er|ing_state))\\.test\\.cpp$")
    set(options_backend "--test-case=*thread*")
    if(NOT FPRNN_LONG)
        list(REMOVE_ITEM folders allocation)  # a failure at each allocation in turn
    endif()
endif()
if(NOT FPRNN_LONG AND NOT has_gpu)
    # A device of the tests takes long to compile: whole layers are left out, and under sanitizers all of it.
    # The tests themselves guard the memory of a device.
    list(FILTER sources_cuda EXCLUDE REGEX "/(bf16|laws|layer_float|scan_chains|token)\\.test\\.cpp$")
    if(FPRNN_SANITIZE)
        list(REMOVE_ITEM folders cuda)
    endif()
endif()

# MPI's own libraries leave memory and threads behind. Ranks that are threads (tests/train) stand for it under
# sanitizers.
if(FPRNN_SANITIZE OR NOT TARGET fprnn::mpi)
    list(REMOVE_ITEM folders mpi)
endif()

if(NOT FPRNN_CUDA)
    list(REMOVE_ITEM folders cuda cuda_ptx)
else()
    # An interpreter of PTX. Its host is to round as a GPU does.
    add_library(fprnn_ptx OBJECT EXCLUDE_FROM_ALL tests/cuda/ptx/instruction.cpp tests/cuda/ptx/machine.cpp tests/cuda/ptx/parse.cpp
                tests/cuda/ptx/traffic.cpp)
    target_link_libraries(fprnn_ptx PRIVATE fprnn_test)
    target_compile_options(fprnn_ptx PRIVATE $<$<CONFIG:Release>:-O2> -ffp-contract=off)
    set_target_properties(fprnn_ptx PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

foreach(folder IN LISTS folders)
    add_executable(test_${folder} ${sources_${folder}})
    set(flags fprnn_test)
    if(folder STREQUAL "cuda")
        set(flags fprnn_own doctest::doctest)
    endif()
    target_link_libraries(test_${folder} PRIVATE ${flags} fprnn_test_main nlohmann_json::nlohmann_json)
    target_include_directories(test_${folder} PRIVATE tests)
    if(folder STREQUAL "cuda")
        target_include_directories(test_${folder} PRIVATE cuda)  # kernel bodies, run on the host
        target_include_directories(test_${folder} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
        # It has much to compile and little to compute. Laws ask for the same bits of the same operations,
        # wherever the compiler has put them; GCC takes that option from precompiled headers.
        target_compile_options(test_${folder} PRIVATE $<$<CONFIG:Release>:-O0> -ffp-contract=off)
        target_precompile_headers(test_${folder} PRIVATE ${precompiled})
        # Whole layers on a device, which these have in common, take nearly half of their time.
        set_target_properties(test_${folder} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
        set_source_files_properties(tests/cuda/failures.test.cpp tests/cuda/graph.test.cpp tests/cuda/recorder.test.cpp
                                    tests/cuda/update.test.cpp PROPERTIES UNITY_GROUP runtime)
        set_source_files_properties(tests/cuda/layer.test.cpp tests/cuda/layer_expressions.test.cpp
                                    tests/cuda/model.test.cpp PROPERTIES UNITY_GROUP layers)
    else()
        target_link_libraries(test_${folder} PRIVATE fprnn_test_layers)
        fprnn_test_level(test_${folder} ${folder})
        set(headers fprnn_test_headers)
        if(folder IN_LIST level_0)
            set(headers fprnn_test_headers_0)
        endif()
        target_precompile_headers(test_${folder} REUSE_FROM ${headers})
        if(folder STREQUAL "models")  # together four sources take 0.6 of their time
            set_target_properties(test_${folder} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
        endif()
    endif()
    target_compile_definitions(test_${folder} PRIVATE "FPRNN_FIXTURES=\"${PROJECT_SOURCE_DIR}/tests/fixtures\"")
    set_target_properties(test_${folder} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    add_test(NAME test_${folder} COMMAND ${launcher} $<TARGET_FILE:test_${folder}> ${options_${folder}})
    set_tests_properties(test_${folder} PROPERTIES LABELS ${folder} TIMEOUT 1200
        ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=halt_on_error=1 second_deadlock_stack=1")
endforeach()
if(TARGET test_mpi)
    target_link_libraries(test_mpi PRIVATE fprnn::mpi)
    # The same program on 1 to 4 processes; test_mpi itself is on one, without a launcher.
    foreach(n RANGE 1 4)
        add_test(NAME test_mpi.${n} COMMAND "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${n} $<TARGET_FILE:test_mpi>)
        set_tests_properties(test_mpi.${n} PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS 2 ENVIRONMENT "${mpi_environment}")
    endforeach()
endif()
if(TARGET test_cuda_ptx)
    target_link_libraries(test_cuda_ptx PRIVATE fprnn_ptx)
endif()
if(TARGET test_cuda)
    # Its threads wait for each other all the time: alone it takes a sixth of the time that it takes beside
    # another test.
    set_tests_properties(test_cuda PROPERTIES RUN_SERIAL ON)
endif()

if(FPRNN_CUDA AND NOT CUDAToolkit_FOUND)
    fprnn_skipped_test(test_cuda.runtime cuda "most tests of test_cuda need the headers of a CUDA Toolkit of version 12 or later")
endif()

# The rest looks at the sources alone, so the sanitizer builds would only repeat it.

if(FPRNN_SANITIZE)
    fprnn_skipped_test(compile_time compile_time "the budget holds without sanitizers")
    return()
endif()

find_program(FPRNN_BASH bash REQUIRED)
mark_as_advanced(FPRNN_BASH)
fprnn_include_flags(include_flags)
# Of all headers, which are without those of mpi/ where MPI is not.
if(TARGET fprnn::mpi)
    fprnn_include_flags(io_flags nlohmann_json::nlohmann_json MPI::MPI_CXX)
    list(APPEND io_flags -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
    set(headers_without "^$")
    set(header_files_without "none")
else()
    fprnn_include_flags(io_flags nlohmann_json::nlohmann_json)
    set(headers_without "^fprnn/mpi/")
    set(header_files_without "fprnn/mpi/*")
endif()

# GCC reads the library once for all of them but those that define something before it.
set(compile_fail_flags -std=c++20 -fdiagnostics-color=never "-I${PROJECT_SOURCE_DIR}/tests" ${include_flags})
set(compile_fail_needs "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(header "${PROJECT_BINARY_DIR}/compile_fail/fprnn.hpp")
    file(CONFIGURE OUTPUT "${header}" CONTENT "#include <fprnn/fprnn.hpp>\n")
    add_test(NAME compile_fail COMMAND "${CMAKE_CXX_COMPILER}" ${compile_fail_flags} -x c++-header "${header}" -o "${header}.gch")
    set_tests_properties(compile_fail PROPERTIES LABELS compile_fail FIXTURES_SETUP compile_fail)
    set(compile_fail_needs compile_fail)
endif()
file(GLOB compile_fail_sources CONFIGURE_DEPENDS tests/compile_fail/*.cpp)
foreach(source IN LISTS compile_fail_sources)
    cmake_path(GET source STEM name)
    set(flags ${compile_fail_flags})
    file(STRINGS "${source}" defines REGEX "^#define")
    if(compile_fail_needs AND NOT defines)
        list(APPEND flags -include "${header}")
    endif()
    # A list does not survive as one argument, so the flags travel after "--".
    add_test(NAME compile_fail.${name}
             COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${source}" -P "${PROJECT_SOURCE_DIR}/cmake/compile_fail.cmake"
                     -- "${CMAKE_CXX_COMPILER}" ${flags})
    set_tests_properties(compile_fail.${name} PROPERTIES LABELS compile_fail FIXTURES_REQUIRED "${compile_fail_needs}")
endforeach()

add_test(NAME layers COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}"
         -P "${PROJECT_SOURCE_DIR}/cmake/check_layers.cmake")
set_tests_properties(layers PROPERTIES LABELS sources)

add_test(NAME locales COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_locales.sh" "${PROJECT_SOURCE_DIR}")
set_tests_properties(locales PROPERTIES LABELS sources)

add_test(NAME readme COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_readme.sh"
         "${PROJECT_SOURCE_DIR}/README.md" "${CMAKE_CXX_COMPILER}" -std=c++20 ${FPRNN_WARNINGS} ${include_flags})
set_tests_properties(readme PROPERTIES LABELS sources)

foreach(script report_gpu peers/cpu)
    string(REPLACE "/" "_" name "bench_${script}")
    if(FPRNN_PYTHON)
        add_test(NAME ${name} COMMAND "${FPRNN_PYTHON}" "${PROJECT_SOURCE_DIR}/bench/${script}.test.py")
        set_tests_properties(${name} PROPERTIES LABELS sources)
    else()
        fprnn_skipped_test(${name} sources "python3 is not found")
    endif()
endforeach()

include(cmake/lint.cmake)
if(FPRNN_QUICK)
    return()
endif()

add_test(NAME headers COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_headers.sh"
         "${PROJECT_SOURCE_DIR}/include" "${header_files_without}" "${CMAKE_CXX_COMPILER}" -std=c++20 ${FPRNN_WARNINGS} ${io_flags})
set_tests_properties(headers PROPERTIES LABELS "sources;long" PROCESSORS 2 TIMEOUT 1200)

include(cmake/fuzz.cmake)

# Compile time: what a user waits for, in multiples of a yardstick that takes 6.5 s where these budgets were
# set: there 4.7 s for the headers, 8.4 s for the README's program with the library, 16.8 s from headers
# alone. The globs notice when the files appear.
file(GLOB umbrella CONFIGURE_DEPENDS include/fprnn/fprnn.hpp)
file(GLOB quick_start CONFIGURE_DEPENDS examples/quick_start.cpp)
function(fprnn_compile_time_test name ratio source)
    add_test(NAME compile_time.${name}
             COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/compile_time.sh" ${ratio} "${source}"
                     "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 ${ARGN})
    set_tests_properties(compile_time.${name} PROPERTIES LABELS compile_time RUN_SERIAL TRUE TIMEOUT 300)
endfunction()
if(umbrella)
    file(WRITE "${PROJECT_BINARY_DIR}/include_only.cpp" "#include <fprnn/fprnn.hpp>\n")
    fprnn_compile_time_test(include_only 0.85 "${PROJECT_BINARY_DIR}/include_only.cpp" ${include_flags})
endif()
if(quick_start)
    fprnn_example_dependencies()
    fprnn_include_flags(example_flags CLI11::CLI11 nlohmann_json::nlohmann_json)
    fprnn_compile_time_test(quick_start 1.5 "${quick_start}" -DFPRNN_COMPILED ${example_flags})
    fprnn_compile_time_test(quick_start_headers 2.9 "${quick_start}" ${example_flags})
    # A model with its training: 1.1 times of the program without any.
    fprnn_compile_time_test(train 1.65 "${PROJECT_SOURCE_DIR}/examples/train.cpp" -DFPRNN_COMPILED ${example_flags})
endif()

include(cmake/consumers.cmake)

# CUDA: everything is compiled where nvcc is; tests/cuda/*.test.cu and examples/*.cu run, too, where there is
# a GPU. Where there is none, an interpreter executes the PTX of some. No Eigen directory is named, because
# CUDA sources include no Eigen.
if(FPRNN_CUDA AND FPRNN_CUDA_PROBE)
    if(FPRNN_CUDA_PROBE STREQUAL "ON" AND NOT (FPRNN_NVCC AND CUDAToolkit_FOUND))
        message(FATAL_ERROR "FPRNN_CUDA_PROBE is ON but nvcc of version 12 or later is not found; put it on PATH")
    endif()
    get_target_property(random123 Random123::Random123 INTERFACE_INCLUDE_DIRECTORIES)
    get_target_property(doctest doctest::doctest INTERFACE_INCLUDE_DIRECTORIES)
    set(architecture sm_90)
    set(of_host -O0)  # of the host's code, which nobody times where there is no GPU
    if(has_gpu)
        set(architecture native)
        set(of_host -O1)
    elseif(FPRNN_NVCC AND CUDAToolkit_FOUND)
        # What is preloaded takes the place of CUDA's runtime and cuBLAS, which are shared libraries for that.
        # The fake ones are inline.
        add_library(fprnn_ptx_runtime SHARED tests/cuda/ptx/runtime.cpp)
        target_link_libraries(fprnn_ptx_runtime PRIVATE fprnn_test fprnn_ptx)
        target_include_directories(fprnn_ptx_runtime SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
        target_compile_options(fprnn_ptx_runtime PRIVATE $<$<CONFIG:Release>:-O2> -fkeep-inline-functions)
        set_target_properties(fprnn_ptx_runtime PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/cuda" OUTPUT_NAME ptx_runtime)
    endif()
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_CUDA_FLAGS}")
    set(cuda_flags -std=c++20 -arch=${architecture} ${of_host} -cudart shared --no-compress ${FPRNN_CUDA_ERRORS} ${flags}
        "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/cuda")
    foreach(directory IN LISTS random123 doctest)
        if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
            list(APPEND cuda_flags -isystem "${directory}")
        endif()
    endforeach()

    find_program(FPRNN_COMPUTE_SANITIZER compute-sanitizer HINTS "${CUDAToolkit_BIN_DIR}" PATHS /usr/local/cuda/bin)
    mark_as_advanced(FPRNN_COMPUTE_SANITIZER)

    # Without a GPU a program of all layers is compiled, and scans are compiled and interpreted; the others
    # are `long`, of ./check --all.
    set(not_long "^(block|layer_expressions|scan)")
    # cuda.NAME compiles a program, cuda/NAME in the build folder; cuda.NAME.run runs it, cuda.NAME.ptx has
    # the interpreter execute it, but for bf16, laws and these cases, which take minutes there.
    set(ptx_minutes "*on what is long*,*every run*,*FP-Mamba of float*,*FP-Mamba on a GPU*,*many sequences*,*kernels of their own*,*graphs of iterations*,*programs of rows*")
    file(GLOB cuda_tests CONFIGURE_DEPENDS tests/cuda/*.test.cu)
    file(GLOB cuda_benchmarks CONFIGURE_DEPENDS bench/*.cu)
    file(GLOB cuda_examples CONFIGURE_DEPENDS examples/*.cu)
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/cuda")
    foreach(source IN LISTS cuda_tests cuda_benchmarks cuda_examples)
        cmake_path(GET source STEM LAST_ONLY name)
        set(program "${PROJECT_BINARY_DIR}/cuda/${name}")
        set(long "")
        if(NOT has_gpu AND NOT name MATCHES "${not_long}")
            set(long ";long")
        endif()
        if(with_gpu AND source IN_LIST cuda_examples)
            set(program "${PROJECT_BINARY_DIR}/examples/${name}")  # of cmake/programs.cmake
        elseif(FPRNN_NVCC AND CUDAToolkit_FOUND)
            add_test(NAME cuda.${name} COMMAND "${FPRNN_NVCC}" ${cuda_flags} "${source}" -o "${program}" -lcublas
                     -Xlinker -rpath -Xlinker "${CUDAToolkit_LIBRARY_DIR}")
            set_tests_properties(cuda.${name} PROPERTIES LABELS "cuda${long}" TIMEOUT 600 FIXTURES_SETUP cuda.${name})
        else()
            fprnn_skipped_test(cuda.${name} cuda "nvcc of version 12 or later is not found")
            continue()
        endif()
        if(source IN_LIST cuda_benchmarks)
            if(TARGET fprnn_ptx_runtime AND NOT name STREQUAL "cuda_scan")  # CUB's scan stores as the interpreter does not know
                add_test(NAME cuda.${name}.ptx COMMAND "${program}" --small)
                set_tests_properties(cuda.${name}.ptx PROPERTIES LABELS "cuda;ptx${long}" TIMEOUT 600 FIXTURES_REQUIRED cuda.${name}
                    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:fprnn_ptx_runtime>")
            endif()
            continue()
        endif()
        if(TARGET fprnn_ptx_runtime AND source IN_LIST cuda_tests AND NOT name MATCHES "^(bf16|laws)\\.test$")
            set(long_ptx "${long}")
            if(name MATCHES "^layer_expressions")  # compiled, but interpreted for minutes
                set(long_ptx ";long")
            endif()
            add_test(NAME cuda.${name}.ptx COMMAND "${program}" "--test-case-exclude=${ptx_minutes}")
            set_tests_properties(cuda.${name}.ptx PROPERTIES LABELS "cuda;ptx${long_ptx}" TIMEOUT 600 FIXTURES_REQUIRED cuda.${name}
                ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:fprnn_ptx_runtime>")
        endif()
        set(runs cuda.${name}.run)
        add_test(NAME ${runs} COMMAND "${program}")
        if(has_gpu AND FPRNN_COMPUTE_SANITIZER AND source IN_LIST cuda_tests)
            foreach(tool memcheck racecheck initcheck)
                set(options "")
                if(tool STREQUAL "memcheck")
                    set(options --report-api-errors no)  # tests have calls fail, and graphs may refuse to be updated
                endif()
                add_test(NAME cuda.${name}.${tool}
                         COMMAND "${FPRNN_COMPUTE_SANITIZER}" --tool ${tool} ${options} --error-exitcode 1 "${program}")
                list(APPEND runs cuda.${name}.${tool})
            endforeach()
        endif()
        set_tests_properties(${runs} PROPERTIES LABELS "sanitize_gpu${long}" TIMEOUT 1200
            FIXTURES_REQUIRED cuda.${name} RESOURCE_LOCK gpu)
        set_tests_properties(cuda.${name}.run PROPERTIES LABELS "cuda${long}" TIMEOUT 600)
        if(NOT has_gpu)  # or else nothing is skipped: a driver that is too old, too, is a failure
            set_tests_properties(cuda.${name}.run PROPERTIES SKIP_RETURN_CODE ${skipped}
                SKIP_REGULAR_EXPRESSION "^no GPU.*(cudaErrorNoDevice|cudaErrorInsufficientDriver)")
        endif()
    endforeach()

    if(CUDAToolkit_FOUND)
        add_test(NAME cuda.headers COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/check_headers.sh"
                 "${PROJECT_SOURCE_DIR}/cuda" none "${CMAKE_CXX_COMPILER}" -std=c++20 ${FPRNN_WARNINGS}
                 "-I${PROJECT_SOURCE_DIR}/cuda" -isystem "${CUDAToolkit_INCLUDE_DIRS}" ${include_flags})
        set_tests_properties(cuda.headers PROPERTIES LABELS cuda TIMEOUT 600)
    endif()
    if(FPRNN_NVCC AND CUDAToolkit_FOUND)
        # By the headers alone, as without CMake.
        list(REMOVE_ITEM cuda_flags ${FPRNN_CUDA_ERRORS})
        add_test(NAME compile_fail.mixer_of_the_host
                 COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}/tests/compile_fail/mixer_of_the_host.cu"
                         -P "${PROJECT_SOURCE_DIR}/cmake/compile_fail.cmake" -- "${FPRNN_NVCC}" ${cuda_flags})
        set_tests_properties(compile_fail.mixer_of_the_host PROPERTIES LABELS "compile_fail;cuda" TIMEOUT 600)
    endif()
endif()
