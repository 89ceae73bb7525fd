# Sourced by ./check and ./run: finds what this machine lacks and installs it from Debian's packages.
#
#   fprnn_setup YES NO_INSTALL [CLANG]   each 0 or 1, CLANG for what fuzz targets and the sources' checks
#                                        need; returns 0 when nothing is missing any more, 3 when it stops
#                                        with the list

fprnn_cmake_version=3.25

# Where CMake and the compiler look for headers, one directory a line.
fprnn_header_directories() {
    local prefix
    printf '%s\n' "${CPATH:-}" "${CPLUS_INCLUDE_PATH:-}" | tr ':' '\n'
    while IFS= read -r prefix; do
        [[ -n $prefix ]] && printf '%s\n' "$prefix/include"
    done < <(printf '%s\n' "${CMAKE_PREFIX_PATH:-}" | tr ':;' '\n\n')
    printf '%s\n' /usr/local/include /usr/include
}

fprnn_has_header() {
    local directory
    while IFS= read -r directory; do
        [[ -n $directory ]] || continue
        [[ -e $directory/$1 || -e $directory/eigen3/$1 ]] && return 0
    done < <(fprnn_header_directories)
    return 1
}

fprnn_has_cmake() {
    local found
    found=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p') && [[ -n $found ]] || return 1
    [[ $(printf '%s\n' "$fprnn_cmake_version" "$found" | sort -V | head -n 1) == "$fprnn_cmake_version" ]]
}

fprnn_has_compiler() {
    printf '#include <concepts>\n#include <stop_token>\n' |
        ${CXX:-c++} -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1
}

# libFuzzer comes with the runtime libraries, which clang does not depend on.
fprnn_has_fuzzer() {
    printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' |
        clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null >/dev/null 2>&1
}

fprnn_text=/usr/share/doc/python3.11/html/_sources  # of python3.11-doc: what language models are trained on

# fprnn_missing CLANG: the Debian packages of everything that is missing, one a line; of fprnn_text where
# fprnn_wants_text is set.
fprnn_missing() {
    fprnn_has_compiler || echo g++
    fprnn_has_cmake || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    fprnn_has_header Eigen/Core || echo libeigen3-dev
    fprnn_has_header Random123/philox.h || echo librandom123-dev
    fprnn_has_header doctest/doctest.h || echo doctest-dev
    fprnn_has_header CLI/CLI.hpp || echo libcli11-dev
    fprnn_has_header nlohmann/json.hpp || echo nlohmann-json3-dev
    fprnn_has_header benchmark/benchmark.h || echo libbenchmark-dev
    command -v gnuplot >/dev/null || echo gnuplot-nox
    command -v mpirun >/dev/null && command -v mpicxx >/dev/null || printf '%s\n' libopenmpi-dev openmpi-bin
    [[ -z ${fprnn_wants_text-} || -d $fprnn_text ]] || echo python3.11-doc
    if (($1)); then
        fprnn_has_fuzzer || printf '%s\n' clang libclang-rt-dev
        command -v clang-format >/dev/null || echo clang-format
        command -v clang-tidy >/dev/null || echo clang-tidy
    fi
    command -v doxygen >/dev/null || echo doxygen
    [[ -e /usr/share/javascript/katex/katex.min.js ]] || echo libjs-katex
}

fprnn_setup() {
    local yes=$1 no_install=$2 clang=${3-0} answer log
    local -a packages as_root=()
    mapfile -t packages < <(fprnn_missing "$clang")
    ((${#packages[@]})) || return 0

    ((EUID == 0)) || as_root=(sudo)
    local -a install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
        install -y --no-install-recommends "${packages[@]}")
    {
        echo "fprnn: this machine lacks ${packages[*]}"
        echo "fprnn: what installs them on Debian: ${as_root[*]:+${as_root[*]} }apt-get update;" "${install[*]}"
    } >&2

    if ((no_install)); then
        echo "fprnn: nothing is installed, because of --no-install" >&2
        return 3
    fi
    if ! command -v apt-get >/dev/null; then
        echo "fprnn: there is no apt-get here; install them by other means and start again" >&2
        return 3
    fi
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "fprnn: there is no sudo here; run the command as root and start again" >&2
            return 3
        fi
        if ((!yes)); then
            if [[ ! -t 0 || ! -t 2 ]]; then
                echo "fprnn: nobody is there to ask; run the command, or start again with --yes" >&2
                return 3
            fi
            read -r -p "fprnn: install them now? [y/N] " answer
            if [[ $answer != [yY]* ]]; then
                echo "fprnn: nothing is installed" >&2
                return 3
            fi
        fi
    fi

    log=$(mktemp)
    # A failed update is not the end: the lists that are there may do.
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update </dev/null >"$log" 2>&1
    if ! "${install[@]}" </dev/null >>"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fprnn: the installation failed; its output is above" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    hash -r

    mapfile -t packages < <(fprnn_missing "$clang")
    if ((${#packages[@]})); then
        echo "fprnn: installed, but still missing or too old: ${packages[*]}" \
            "(needed are a C++20 compiler such as g++ 12 and CMake $fprnn_cmake_version)" >&2
        return 1
    fi
    echo "fprnn: installed" >&2
}

# fprnn_configure PRESET [OPTIONS]: ccache is used when it is there, and then sees each source whole.
fprnn_configure() {
    local launcher
    launcher=$(command -v ccache) || launcher=
    cmake --preset "$1" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher" \
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=$([[ $launcher ]] && echo ON || echo OFF)" "${@:2}"
}

# fprnn_show_log LOG: what went wrong, without the steps that went well.
fprnn_show_log() {
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Re-checking|Re-running)' "$1" | head -n 200
    echo "fprnn: all of it is in $1"
}
