#pragma once

/// The library but for what few programs need, and all would wait for: io/, which writes files and draws, the
/// law suites check_mixer.hpp and check_recurrence.hpp, and of tasks/ what reads files or chooses a task when
/// a program runs.
#include <fprnn/compiled.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/fixed_point/newton.hpp>
#include <fprnn/models/delta_product.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_mamba2.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/models/swiglu.hpp>
#include <fprnn/models/transformer.hpp>
#include <fprnn/models/xlstm.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/linear.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/ops/shift.hpp>
#include <fprnn/recurrences/diagonal.hpp>
#include <fprnn/recurrences/recur.hpp>
#include <fprnn/tape/gradcheck.hpp>
#include <fprnn/tasks/copying.hpp>
#include <fprnn/tasks/modular_arithmetic.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/interrupt.hpp>
#include <fprnn/train/progress.hpp>
#include <fprnn/train/trainer.hpp>
#include <fprnn/version.hpp>
