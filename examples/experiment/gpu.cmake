set(FPRNN_GPU_REFLECTIONS "1;2;4;8" CACHE STRING
    "Numbers of reflections that experiment has on a GPU, minutes of nvcc each: of --reflections, 1, 2, 4 and 8, some")

# A source file for each of them; the others know the list.
foreach(R IN LISTS FPRNN_GPU_REFLECTIONS)
    if(NOT R MATCHES "^[1248]$")
        message(FATAL_ERROR "FPRNN_GPU_REFLECTIONS: expected a list of 1, 2, 4 and 8, got '${FPRNN_GPU_REFLECTIONS}'")
    endif()
    set(source "${PROJECT_BINARY_DIR}/experiment/gpu_reflections_${R}.cu")
    configure_file("${CMAKE_CURRENT_LIST_DIR}/gpu_reflections.cu.in" "${source}" @ONLY)
    target_sources(experiment_gpu PRIVATE "${source}")
endforeach()
target_include_directories(experiment_gpu PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
list(JOIN FPRNN_GPU_REFLECTIONS "," list)
target_compile_definitions(experiment_gpu PRIVATE "EXPERIMENT_REFLECTIONS=${list}")
