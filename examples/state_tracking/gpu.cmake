set(FPRNN_GPU_REFLECTIONS "1;2;4;8" CACHE STRING
    "Numbers of reflections that state_tracking has on a GPU, minutes of nvcc each: of --reflections, 1, 2, 4 and 8, some")

# A source file for each of them; the others know the list.
foreach(R IN LISTS FPRNN_GPU_REFLECTIONS)
    if(NOT R MATCHES "^[1248]$")
        message(FATAL_ERROR "FPRNN_GPU_REFLECTIONS: expected a list of 1, 2, 4 and 8, got '${FPRNN_GPU_REFLECTIONS}'")
    endif()
    set(source "${PROJECT_BINARY_DIR}/state_tracking/gpu_reflections_${R}.cu")
    configure_file("${CMAKE_CURRENT_LIST_DIR}/gpu_reflections.cu.in" "${source}" @ONLY)
    target_sources(state_tracking_gpu PRIVATE "${source}")
endforeach()
target_include_directories(state_tracking_gpu PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
list(JOIN FPRNN_GPU_REFLECTIONS "," list)
target_compile_definitions(state_tracking_gpu PRIVATE "STATE_TRACKING_REFLECTIONS=${list}")
