#pragma once

#include "options.hpp"

#include <fprnn/train/evaluate.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <memory>
#include <optional>

namespace experiment {

/// How well a model does a task whose data have one length.
struct test_result {
    fp::index length = 0;  ///< as the task counts it
    double score = 0;
    fp::evaluation evaluation;
};

/// One model, trained and evaluated.
struct outcome {
    architecture::block kind{};
    std::filesystem::path folder;  ///< of its files
    fp::index parameters = 0;
    fp::training_result training;
    fp::task task;
    std::vector<test_result> table;  ///< one of each test length
    /// Of task copy, for each test length: strings that the model writes by itself, reading its own letters.
    std::map<fp::index, fp::accuracies> written;
    nlohmann::ordered_json summary;  ///< as in the model's summary.json
    std::shared_ptr<const network> model;
    network::parameters theta;
};

/// Trains and evaluates one model and writes config.json, metrics.csv, parameters.safetensors, accuracy.csv
/// and summary.json into o.out; with o.resume it goes on from the newest checkpoint there. A signal ends the
/// training early; numbers that are not finite do, too, and outcome.training says so. Both ways the model is
/// evaluated as it then is. Errors: std::runtime_error when a file cannot be written, when there are
/// checkpoints and none can be taken, or when memory does not suffice; the message then has the sizes.
outcome run(const options& o);

/// As in summary.json.
const char* text_of(fp::training_end end);

/// What there is of a number; NaN: nothing.
inline std::optional<double> known(double x) { return std::isnan(x) ? std::nullopt : std::optional(x); }

/// Prints a table of accuracy against length, with a title.
void print_table(const outcome& r);

}  // namespace experiment
