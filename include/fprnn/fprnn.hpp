#pragma once

#include <fprnn/fixed_point/layer.hpp>
