# Flags for this project's own targets. They are separate interface targets, so that nothing reaches a
# consumer.
set(CMAKE_CXX_EXTENSIONS OFF)

set(FPRNN_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Werror)
add_library(fprnn_warnings INTERFACE)
target_compile_options(fprnn_warnings INTERFACE ${FPRNN_WARNINGS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    # Three false alarms of GCC's optimiser. Bugs 105329 and 105651: "literal" + std::string is reported as
    # overlapping memory, or as a pointer past the end, when it is inlined. And at -O3 -march=native a
    # vectorised loop over a small array counts as writing whole vectors, whatever its trip count.
    # AddressSanitizer watches for the real thing. Bug 105593: the AVX-512 intrinsics of GCC 12 begin with an
    # undefined register, which counts as a variable that is read before it is set.
    target_compile_options(fprnn_warnings INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                                                    -Wno-uninitialized -Wno-maybe-uninitialized)
endif()

add_library(fprnn_options INTERFACE)
if(FPRNN_NATIVE)
    target_compile_options(fprnn_options INTERFACE -march=native)
endif()
if(FPRNN_SANITIZE)
    set(sanitizer -fsanitize=${FPRNN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(FPRNN_SANITIZE MATCHES "undefined")
        # A check at every access doubles the time to compile, and AddressSanitizer sees what lies behind it.
        # Alignment matters where bytes are read, and the fuzz targets check all of it there.
        list(APPEND sanitizer -fno-sanitize=null,object-size,alignment,vptr)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            # GCC's bug 71962: with these a comparison of the addresses of two objects is no constant
            # expression.
            list(APPEND sanitizer -fno-sanitize=returns-nonnull-attribute,nonnull-attribute)
        endif()
    endif()
    target_compile_options(fprnn_options INTERFACE ${sanitizer})
    target_link_options(fprnn_options INTERFACE ${sanitizer})
    if(FPRNN_SANITIZE MATCHES "address")
        # A call at every access instead of the check itself, which compiles in two thirds of the time.
        if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
            target_compile_options(fprnn_options INTERFACE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
        else()
            target_compile_options(fprnn_options INTERFACE "SHELL:--param asan-instrumentation-with-call-threshold=0")
        endif()
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # The instrumentation hides initialisations from GCC's flow analysis.
        target_compile_options(fprnn_warnings INTERFACE -Wno-maybe-uninitialized)
    endif()
endif()

add_library(fprnn_own INTERFACE)
target_link_libraries(fprnn_own INTERFACE fprnn::fprnn fprnn_warnings fprnn_options)

# The library of what programs have in common has the options of this project's own targets, as they have each
# other's.
target_link_libraries(fprnn_compiled PRIVATE fprnn_own)
# As the tests, which compare its bits with those of what they instantiate.
target_compile_options(fprnn_compiled PRIVATE $<$<CONFIG:Release>:-O2>)
