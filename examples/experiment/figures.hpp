#pragma once

#include "experiment.hpp"

#include <fprnn/io/picture.hpp>

namespace experiment {

/// A model in a picture.
struct drawn {
    const outcome* result = nullptr;
    std::string label;
    const char* colour = "";
    double width = 3.5;
};

/// Each under its model's name, in its model's colour, the last one first: what is drawn later lies above.
std::vector<drawn> by_model(const std::vector<outcome>& results);

/// Accuracy against the length of the test sequence, of whole sequences and of tokens.
fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models);

/// How models were trained and solved: loss, curriculum and iterations against the step, from all rows of their metrics.csv,
/// and residual against length. A figure that none of them has anything to say in is left out.
fp::picture training_picture(const options& o, const std::vector<drawn>& models);

/// Writes name.png and name.svg into o.out, or name.txt without gnuplot, and says so.
void draw(const fp::picture& p, const options& o, const std::string& name);

}  // namespace experiment
