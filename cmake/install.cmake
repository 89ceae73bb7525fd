include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/fprnn")
set(fprnn_installed_sources "${CMAKE_INSTALL_DATADIR}/fprnn/src")
configure_package_config_file(cmake/fprnnConfig.cmake.in "${PROJECT_BINARY_DIR}/fprnnConfig.cmake"
    INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR fprnn_installed_sources)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fprnnConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(TARGETS fprnn EXPORT fprnnTargets)
install(EXPORT fprnnTargets NAMESPACE fprnn:: DESTINATION "${package_dir}")
install(FILES src/float.cpp src/double.cpp DESTINATION "${CMAKE_INSTALL_DATADIR}/fprnn/src")
install(DIRECTORY include/fprnn DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES "${PROJECT_BINARY_DIR}/fprnnConfig.cmake" "${PROJECT_BINARY_DIR}/fprnnConfigVersion.cmake"
              cmake/FindRandom123.cmake cmake/fprnnCompiled.cmake cmake/fprnnMPI.cmake DESTINATION "${package_dir}")
if(FPRNN_CUDA)
    install(DIRECTORY cuda/fprnn DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
            FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
    install(FILES cmake/fprnnCUDA.cmake DESTINATION "${package_dir}")
endif()
