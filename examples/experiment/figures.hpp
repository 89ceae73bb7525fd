#pragma once

#include "exhibits.hpp"

#include <fprnn/io/picture.hpp>

namespace experiment {

/// A model in a picture, with the results of all its seeds.
struct drawn {
    std::vector<const outcome*> results{};
    std::string label;
    std::string colour;
    double width = 3.5;
};

/// One model, under its name and in its colour.
std::vector<drawn> alone(const outcome& result);
/// The members that were trained, those of a label together.
std::vector<drawn> by_member(const std::vector<member>& trained, const std::vector<outcome>& results);

/// Accuracy against the length of the test sequence, of whole sequences and of tokens.
fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models);
/// The task's score against the length.
fp::picture score_picture(const options& o, const std::vector<drawn>& models, const std::string& title);

/// How models were trained and solved: loss, curriculum and iterations against the step, from all rows of their metrics.csv,
/// and residual against length. A figure that none of them has anything to say in is left out.
fp::picture training_picture(const options& o, const std::vector<drawn>& models);

/// Writes name.png and name.svg into o.out, or name.txt without gnuplot, and says so.
void draw(const fp::picture& p, const options& o, const std::string& name);

}  // namespace experiment
