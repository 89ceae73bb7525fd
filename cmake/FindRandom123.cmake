# Random123 has no CMake package of its own. Defines Random123::Random123.
find_path(Random123_INCLUDE_DIR Random123/philox.h)
mark_as_advanced(Random123_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Random123 REQUIRED_VARS Random123_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "Debian and Ubuntu: apt-get install librandom123-dev")

if(Random123_FOUND AND NOT TARGET Random123::Random123)
    add_library(Random123::Random123 INTERFACE IMPORTED)
    target_include_directories(Random123::Random123 INTERFACE "${Random123_INCLUDE_DIR}")
endif()
