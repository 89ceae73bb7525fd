# has_gpu: there is a GPU. Then what is compiled for one is compiled for this one, and tests run it.
set(has_gpu FALSE)
execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result STREQUAL "0")
    set(has_gpu TRUE)
endif()

find_program(FPRNN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
find_program(FPRNN_PYTHON python3)  # of bench/report_gpu.py
mark_as_advanced(FPRNN_NVCC FPRNN_PYTHON)

# with_gpu: examples are built with what they do on one. That takes nvcc minutes, so that nobody waits for it
# who has none.
set(with_gpu FALSE)
if(FPRNN_EXAMPLES AND TARGET fprnn::cuda AND (FPRNN_GPU STREQUAL "ON" OR (has_gpu AND NOT FPRNN_GPU STREQUAL "OFF")))
    include(CheckLanguage)
    if(FPRNN_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
        set(CMAKE_CUDA_COMPILER "${FPRNN_NVCC}")  # it need not be on PATH
    endif()
    check_language(CUDA)
    set(with_gpu ${CMAKE_CUDA_COMPILER})
endif()
if(with_gpu)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        # The GPU's, or where there is none those of 2020 and 2022, and what later ones compile for
        # themselves.
        set(CMAKE_CUDA_ARCHITECTURES native)
        if(NOT has_gpu)
            set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
        endif()
    endif()
    enable_language(CUDA)
endif()
