# Defines fprnn::cuda, whose headers nvcc compiles, when there is a CUDA Toolkit. The project and its package
# include this with fprnn_cuda_headers set.
find_package(CUDAToolkit 12 QUIET GLOBAL)

# A body of a device that calls code of the host is an error, where nvcc would warn and leave the call out.
# fprnn/core/host_device.hpp says so, too, to those who come without CMake.
set(FPRNN_CUDA_ERRORS "-diag-error=20011,20012,20013,20014,20015")
if(CUDAToolkit_FOUND AND NOT TARGET fprnn::cuda)
    add_library(fprnn::cuda INTERFACE IMPORTED GLOBAL)
    target_include_directories(fprnn::cuda INTERFACE "${fprnn_cuda_headers}")
    # The runtime that nvcc links the target with: one, or a program has two.
    target_link_libraries(fprnn::cuda INTERFACE fprnn::fprnn
        "$<IF:$<STREQUAL:$<TARGET_PROPERTY:CUDA_RUNTIME_LIBRARY>,Shared>,CUDA::cudart,CUDA::cudart_static>")
    # What layers need of it; the scans do without.
    if(TARGET CUDA::cublas)
        target_link_libraries(fprnn::cuda INTERFACE CUDA::cublas)
    endif()
    # Not CUDA_STANDARD: CMake 3.25.1 passes nothing for 20, and says nothing.
    target_compile_options(fprnn::cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>"
        "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:${FPRNN_CUDA_ERRORS}>")
endif()
