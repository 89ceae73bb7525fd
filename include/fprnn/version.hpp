#pragma once

/// The library's version, in this one place: CMake reads it from here.
#define FPRNN_VERSION_MAJOR 0
#define FPRNN_VERSION_MINOR 1
#define FPRNN_VERSION_PATCH 0
