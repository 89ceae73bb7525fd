# Defines fprnn::compiled: fprnn::fprnn with a library of what programs have in common (<fprnn/compiled.hpp>),
# from the sources in the folder fprnn_sources. The project and its package include this; the library is
# compiled where somebody links it, as the program that does is.
if(NOT TARGET fprnn_compiled AND CMAKE_CXX_COMPILER_LOADED)
    add_library(fprnn_compiled STATIC EXCLUDE_FROM_ALL "${fprnn_sources}/float.cpp" "${fprnn_sources}/double.cpp")
    add_library(fprnn::compiled ALIAS fprnn_compiled)
    target_link_libraries(fprnn_compiled PUBLIC fprnn::fprnn)
    set_target_properties(fprnn_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)  # also of shared libraries
    target_compile_definitions(fprnn_compiled INTERFACE FPRNN_COMPILED)
endif()
