# Defines fprnn::mpi, what trains and evaluates on many processes (<fprnn/mpi/…>), where MPI is found; its
# headers also need nlohmann_json, which a program links. The project and its package include this.
if(NOT TARGET fprnn_mpi AND CMAKE_CXX_COMPILER_LOADED)
    set(MPI_CXX_SKIP_MPICXX ON)  # the bindings for C are what is used
    find_package(MPI 3.0 QUIET COMPONENTS CXX)
    if(TARGET MPI::MPI_CXX)
        set_target_properties(MPI::MPI_CXX PROPERTIES IMPORTED_GLOBAL TRUE)
        add_library(fprnn_mpi INTERFACE)
        add_library(fprnn::mpi ALIAS fprnn_mpi)
        target_link_libraries(fprnn_mpi INTERFACE fprnn::fprnn MPI::MPI_CXX)
    endif()
endif()
