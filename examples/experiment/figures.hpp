#pragma once

#include "exhibits.hpp"

#include <fprnn/io/picture.hpp>

#include <functional>
#include <string>
#include <vector>

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
/// The members that were trained, those of a label together; all, or those that `of` wants.
std::vector<drawn> by_member(const trained& t, const std::function<bool(const member&)>& of = {});

/// The task's score against the length; of whole sequences, dashed, of tokens beside it.
fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models);
/// The task's score against the length.
fp::figure score_figure(const options& o, const std::vector<drawn>& models, const std::string& title);
/// Median iterations against the length, of models that have a fixed point.
fp::figure iterations_figure(const options& o, const std::vector<drawn>& models);
/// The same, and, dashed, the iterations of the same models by the authors' loop: damped, until the smallest
/// residual that each sequence of a batch has had is below 0.1. On the CPU.
fp::figure both_iterations_figure(const options& o, const std::vector<drawn>& models);
/// The score at the last of the test lengths against the number of parameters.
fp::figure parameters_figure(const trained& t, const std::string& title);
/// The longest test length of which, as of all shorter ones, 90 % are right, against the seconds of training.
fp::figure train_time_figure(const trained& t, const std::string& title);
/// How far solutions C = 1 and C = T are apart against the length, and in what share of the tokens they are
/// others.
std::vector<fp::figure> two_solutions_figures(const options& o, const std::vector<drawn>& models);
/// The score at the last test length against the most iterations of a test, all tokens at once.
fp::figure capped_figure(const trained& t, const std::vector<fp::index>& caps);
/// The score of validation against the step, and against the time.
std::vector<fp::figure> validation_figures(const trained& t);
/// The iterations of each block against the step, of the first that was trained.
fp::figure layers_figure(const trained& t);

/// Scores against lengths, a line for each member, as a table of Markdown.
std::string score_table(const trained& t);

/// How models were trained and solved: loss, curriculum and iterations against the step, from all rows of
/// their metrics.csv, and residual against length. A figure that none of them has anything to say in is left
/// out.
fp::picture training_picture(const options& o, const std::vector<drawn>& models);

/// Writes name.png and name.svg into o.out, or name.txt without gnuplot, and says so.
void draw(const fp::picture& p, const options& o, const std::string& name);

}  // namespace experiment
