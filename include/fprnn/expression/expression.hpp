#pragma once

#include <fprnn/expression/arithmetic.hpp>
#include <fprnn/expression/maps.hpp>
#include <fprnn/expression/norms.hpp>
#include <fprnn/expression/symbols.hpp>

/// How users write expressions: every function returns an empty node, and nothing is computed.
