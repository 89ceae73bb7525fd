# Small programs of users, tests/consumers: by every way to come by the library, with both compilers, as C++20
# and C++23, with warnings as errors, without optimisation and without the flags of this project.

set(consumers "${PROJECT_SOURCE_DIR}/tests/consumers")
set(staged "${PROJECT_BINARY_DIR}/consumers")
find_program(FPRNN_CLANGXX NAMES clang++ clang++-14)
mark_as_advanced(FPRNN_CLANGXX)
list(JOIN FPRNN_WARNINGS " " warnings)

function(fprnn_consumer_test name compiler)
    if(NOT compiler)
        fprnn_skipped_test(consumers.${name} consumers "clang++ is not found (Debian and Ubuntu: apt-get install clang)")
        return()
    endif()
    add_test(NAME consumers.${name} COMMAND ${ARGN})
    set_tests_properties(consumers.${name} PROPERTIES LABELS consumers TIMEOUT 600)
endfunction()

# Installed into one folder and moved to another: nothing in a package may name the place it was made in.
add_test(NAME consumers.install COMMAND "${FPRNN_BASH}" -c
         "rm -rf '${staged}/made' '${staged}/prefix' &&
          '${CMAKE_COMMAND}' --install '${PROJECT_BINARY_DIR}' --prefix '${staged}/made' >/dev/null &&
          mv '${staged}/made' '${staged}/prefix' && ! grep -rF -e '${staged}' -e '${PROJECT_SOURCE_DIR}' '${staged}/prefix'")
set_tests_properties(consumers.install PROPERTIES LABELS consumers FIXTURES_SETUP fprnn_prefix)

function(fprnn_project_test form compiler)
    fprnn_consumer_test(${form} "${compiler}" "${FPRNN_BASH}" "${consumers}/project.sh" "${staged}/${form}" "${CMAKE_COMMAND}"
        -DFORM=${form} "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_FLAGS=-O0 ${warnings}"
        -DPACKAGE_VERSION=${PROJECT_VERSION} ${ARGN})
endfunction()
fprnn_project_test(find_package "${CMAKE_CXX_COMPILER}" "-DCMAKE_PREFIX_PATH=${staged}/prefix")
fprnn_project_test(add_subdirectory "${FPRNN_CLANGXX}" -DCMAKE_CXX_STANDARD=20
                   "-DFPRNN_SOURCE=${PROJECT_SOURCE_DIR}")
fprnn_project_test(FetchContent "${CMAKE_CXX_COMPILER}" -DCMAKE_CXX_STANDARD=23
                   "-DFETCHCONTENT_SOURCE_DIR_FPRNN=${PROJECT_SOURCE_DIR}")
set_tests_properties(consumers.find_package PROPERTIES FIXTURES_REQUIRED fprnn_prefix)
set_tests_properties(consumers.FetchContent PROPERTIES LABELS "consumers;long")  # as add_subdirectory

fprnn_consumer_test(readme "${CMAKE_CXX_COMPILER}" "${FPRNN_BASH}" "${consumers}/readme.sh" "${staged}/readme"
                    "${PROJECT_SOURCE_DIR}/README.md" "${CMAKE_COMMAND}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}")

function(fprnn_refusal_test name request expect)
    add_test(NAME consumers.refuses_${name} COMMAND "${CMAKE_COMMAND}" "-DPREFIX=${staged}/prefix" "-DREQUEST=${request}"
                                                    "-DEXPECT=${expect}" -P "${consumers}/request.cmake")
    set_tests_properties(consumers.refuses_${name} PROPERTIES LABELS consumers FIXTURES_REQUIRED fprnn_prefix)
endfunction()
fprnn_refusal_test(next_minor "0.2" "compatible with requested version \"0.2\"")
fprnn_refusal_test(next_major "1" "compatible with requested version \"1\"")
fprnn_refusal_test(component "0.1 COMPONENTS gpu" "fprnn has no component 'gpu'")

# The single header. It is generated when the build runs and never installed: a program takes the one or the
# other.
set(single "${PROJECT_BINARY_DIR}/single/fprnn.hpp")
file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp)
add_custom_command(OUTPUT "${single}"
    COMMAND "${FPRNN_BASH}" "${PROJECT_SOURCE_DIR}/cmake/single_header.sh" "${PROJECT_SOURCE_DIR}" > "${single}"
    DEPENDS ${headers} LICENSE cmake/single_header.sh VERBATIM)
add_custom_target(single_header ALL DEPENDS "${single}")

# No build system: a directory of headers, or one header, and Eigen's and Random123's.
fprnn_include_flags(bare_flags)
list(FILTER bare_flags EXCLUDE REGEX "^-I")
function(fprnn_bare_test name header directory compiler)
    fprnn_consumer_test(${name} "${compiler}" "${FPRNN_BASH}" "${consumers}/bare.sh" "${staged}/${name}" ${header}
        "${compiler}" ${ARGN} ${FPRNN_WARNINGS} "-DPACKAGE_VERSION=\"${PROJECT_VERSION}\"" "-I${directory}" ${bare_flags})
endfunction()
fprnn_bare_test(bare fprnn/fprnn.hpp "${PROJECT_SOURCE_DIR}/include" "${CMAKE_CXX_COMPILER}" -std=c++20 -O1)
fprnn_bare_test(bare_clang fprnn/fprnn.hpp "${PROJECT_SOURCE_DIR}/include" "${FPRNN_CLANGXX}" -std=c++2b -O0 -fno-rtti)
fprnn_bare_test(single_header fprnn.hpp "${PROJECT_BINARY_DIR}/single" "${CMAKE_CXX_COMPILER}" -std=c++2b -O0)
fprnn_bare_test(single_header_clang fprnn.hpp "${PROJECT_BINARY_DIR}/single" "${FPRNN_CLANGXX}" -std=c++20 -O1)
# The same by clang, which compiles the library in add_subdirectory, too.
set_tests_properties(consumers.bare_clang consumers.single_header_clang PROPERTIES LABELS "consumers;long")

# With the flag that lets compilers calculate as with real numbers.
fprnn_consumer_test(fast_math "${CMAKE_CXX_COMPILER}" "${FPRNN_BASH}" -c "mkdir -p '${staged}' && \"$@\" && '${staged}/fast'" fast_math
    "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 -ffast-math "-I${PROJECT_SOURCE_DIR}/include" ${bare_flags}
    "${consumers}/fast_math.cpp" -o "${staged}/fast")

# Behind C headers, in GNU's dialect.
foreach(compiler "${CMAKE_CXX_COMPILER}" "${FPRNN_CLANGXX}")
    cmake_path(GET compiler FILENAME name)
    fprnn_consumer_test(c_headers_${name} "${compiler}" "${compiler}" -std=gnu++20 -fsyntax-only ${FPRNN_WARNINGS}
                        "-I${PROJECT_SOURCE_DIR}/include" ${bare_flags} "${consumers}/c_headers.cpp")
endforeach()

# With what a program may set for its own use of Eigen.
function(fprnn_eigen_test name)
    fprnn_consumer_test(eigen_${name} "${CMAKE_CXX_COMPILER}" "${FPRNN_BASH}" -c
        "mkdir -p '${staged}' && \"$@\" && '${staged}/eigen_${name}'" eigen "${CMAKE_CXX_COMPILER}" -std=c++20 -O1
        ${ARGN} "-I${PROJECT_SOURCE_DIR}/include" ${bare_flags} "${consumers}/eigen_macros.cpp" -o "${staged}/eigen_${name}")
endfunction()
fprnn_eigen_test(row_major -DEIGEN_DEFAULT_TO_ROW_MAJOR -DEIGEN_NO_MALLOC -DEIGEN_INITIALIZE_MATRICES_BY_NAN
                 -DEIGEN_NO_AUTOMATIC_RESIZING)
fprnn_eigen_test(scalar -DEIGEN_DONT_VECTORIZE -DEIGEN_MAX_ALIGN_BYTES=0)
fprnn_eigen_test(short_index -DEIGEN_DEFAULT_DENSE_INDEX_TYPE=int)
set_tests_properties(consumers.eigen_short_index PROPERTIES
    PASS_REGULAR_EXPRESSION "Eigen's sizes must have 64 bits, do not set EIGEN_DEFAULT_DENSE_INDEX_TYPE")

# The folder cuda/ may be deleted.
if(EXISTS "${PROJECT_SOURCE_DIR}/cuda")
    fprnn_consumer_test(without_cuda "${CMAKE_CXX_COMPILER}" "${FPRNN_BASH}" "${consumers}/without_cuda.sh"
        "${PROJECT_SOURCE_DIR}" "${CMAKE_COMMAND}" "${CMAKE_CTEST_COMMAND}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}")
    set_tests_properties(consumers.without_cuda PROPERTIES LABELS "consumers;long")  # builds and tests what is built here
endif()

# A project in CUDA. Without a GPU its program says so.
if(FPRNN_CUDA AND FPRNN_NVCC AND CUDAToolkit_FOUND)
    set(architecture "")
    if(NOT has_gpu)
        set(architecture -DCMAKE_CUDA_ARCHITECTURES=90)  # the project's own is native
    endif()
    add_test(NAME consumers.cuda COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${consumers}/cuda" "${staged}/cuda"
        --build-generator Ninja --build-makeprogram "${CMAKE_MAKE_PROGRAM}"
        --build-options "-DCMAKE_PREFIX_PATH=${staged}/prefix" "-DCMAKE_CUDA_COMPILER=${FPRNN_NVCC}" ${architecture}
        --test-command "${staged}/cuda/consumer")
    set_tests_properties(consumers.cuda PROPERTIES LABELS "consumers;cuda;long" TIMEOUT 600 FIXTURES_REQUIRED fprnn_prefix
        RESOURCE_LOCK gpu)
elseif(FPRNN_CUDA)
    fprnn_skipped_test(consumers.cuda "consumers;cuda" "nvcc of version 12 or later is not found")
endif()
