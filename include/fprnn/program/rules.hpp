#pragma once

/// How every kind of node is evaluated and differentiated.
#include <fprnn/program/rules/elementwise.hpp>
#include <fprnn/program/rules/leaves.hpp>
#include <fprnn/program/rules/linear.hpp>
#include <fprnn/program/rules/mixers.hpp>
#include <fprnn/program/rules/norms.hpp>
#include <fprnn/program/rules/scan.hpp>
#include <fprnn/program/rules/selective_scan.hpp>
#include <fprnn/program/rules/shift.hpp>
