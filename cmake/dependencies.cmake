# What is installed is used. What is not is fetched as a pinned archive, unless FPRNN_FETCH is off; nothing of
# a fetched project is built, its headers become the imported target that its package would have made.
include(FetchContent)

function(fprnn_dependency package)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "VERSION;TARGET;DEBIAN;URL;SHA256;INCLUDE" "")
    if(TARGET ${arg_TARGET})
        return()
    endif()
    find_package(${package} ${arg_VERSION} QUIET)
    if(TARGET ${arg_TARGET})
        # The targets of a package are visible in one directory only; the project's own folders need them too.
        set_target_properties(${arg_TARGET} PROPERTIES IMPORTED_GLOBAL TRUE)
        return()
    endif()
    string(STRIP "${package} ${arg_VERSION}" name_and_version)
    if(NOT FPRNN_FETCH)
        message(FATAL_ERROR "fprnn needs ${name_and_version}. Debian and Ubuntu: apt-get install ${arg_DEBIAN}. "
                            "Elsewhere: put its prefix in CMAKE_PREFIX_PATH, or set FPRNN_FETCH=ON.")
    endif()
    message(STATUS "fprnn: ${name_and_version} is not installed (Debian and Ubuntu: apt-get install "
                   "${arg_DEBIAN}); fetching ${arg_URL}")
    string(TOLOWER "fprnn_${package}" name)
    # The sub-directory does not exist: the archive is unpacked and its own build is left alone.
    FetchContent_Declare(${name} URL ${arg_URL} URL_HASH SHA256=${arg_SHA256} SOURCE_SUBDIR headers-only)
    FetchContent_MakeAvailable(${name})
    add_library(${arg_TARGET} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${arg_TARGET} INTERFACE "${${name}_SOURCE_DIR}${arg_INCLUDE}")
endfunction()

find_package(Threads REQUIRED)
fprnn_dependency(Eigen3 VERSION 3.4 TARGET Eigen3::Eigen DEBIAN libeigen3-dev
    URL https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.gz
    SHA256 8586084f71f9bde545ee7fa6d00288b264a2b7ac3607b974e54d13e7162c1c72)
fprnn_dependency(Random123 TARGET Random123::Random123 DEBIAN librandom123-dev INCLUDE /include
    URL https://github.com/DEShawResearch/random123/archive/refs/tags/v1.14.0.tar.gz
    SHA256 effafd8656b18030b2a5b995cd3650c51a7c45052e6e1c21e48b9fa7a59d926e)

# What the headers of io/ include beyond the library itself.
macro(fprnn_io_dependencies)
    fprnn_dependency(nlohmann_json TARGET nlohmann_json::nlohmann_json DEBIAN nlohmann-json3-dev INCLUDE /include
        URL https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
        SHA256 8c4b26bf4b422252e13f332bc5e388ec0ab5c3443d24399acb675e68278d341f)
endmacro()

macro(fprnn_test_dependencies)
    fprnn_io_dependencies()
    fprnn_dependency(doctest TARGET doctest::doctest DEBIAN doctest-dev
        URL https://github.com/doctest/doctest/archive/refs/tags/v2.4.12.tar.gz
        SHA256 73381c7aa4dee704bd935609668cf41880ea7f19fa0504a200e13b74999c2d70)
endmacro()

macro(fprnn_example_dependencies)
    fprnn_io_dependencies()
    fprnn_dependency(CLI11 TARGET CLI11::CLI11 DEBIAN libcli11-dev INCLUDE /include
        URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.6.1.tar.gz
        SHA256 377691f3fac2b340f12a2f79f523c780564578ba3d6eaf5238e9f35895d5ba95)
endmacro()

# The compiler flags that find fprnn's headers and those of `targets`, for tests that call the compiler
# themselves.
function(fprnn_include_flags out)
    set(flags "-I${PROJECT_SOURCE_DIR}/include")
    foreach(target Eigen3::Eigen Random123::Random123 ${ARGN})
        get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
        foreach(directory IN LISTS directories)
            # Naming a directory that the compiler searches anyway would break its own #include_next.
            if(directory AND NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
                list(APPEND flags "-isystem" "${directory}")
            endif()
        endforeach()
    endforeach()
    set(${out} "${flags}" PARENT_SCOPE)
endfunction()
