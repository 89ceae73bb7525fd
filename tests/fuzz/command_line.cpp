#include "fuzz/fuzz.hpp"

// The program's own sources, so that they are compiled as the fuzz target is.
#include "examples/experiment/check_options.cpp"
#include "examples/experiment/command_line.cpp"
#include "examples/experiment/configuration.cpp"
#include "examples/experiment/data.cpp"
#include "examples/experiment/exhibits.cpp"
#include "examples/experiment/exhibits_complexity.cpp"
#include "examples/experiment/exhibits_state_tracking.cpp"
#include "examples/experiment/exhibits_tasks.cpp"
#include "examples/experiment/figures.cpp"
#include "examples/experiment/figures_of_training.cpp"
#include "examples/experiment/options.cpp"
#include "examples/experiment/solutions.cpp"

#include <fprnn/io/configuration.hpp>

#include <sstream>

std::vector<std::string> fuzz::seeds() {
    return {"--group\nA4xZ5\n--model\nfp-rnn\n--steps\n100",
            "--compare\n--time-limit\n1e3\n--test-lengths\n2-50,64",
            "--figure=interpolation\n--out\nfolder\n--resume\n--checkpoint-every=10\n--seeds\n3",
            "--list",
            "--table\nmod-arithm\n--paper-size",
            "--figure\ncopying\n--longest\n9\n--heads\n2",
            "--task\ncopy\n--sees-y\nall\n--convolution",
            "--ell-max\ngamma\n--task\ncatbabi\n--config\n/dev/null",
            "--d-model 8\n--reflections\n8\n--d-inner\n8\n--reflection-scale\n2",
            "--schedule\nparallel\n--schedule\n16\n--adjoint\none-step\n--tolerance\n1e-6",
            "--model\nlstm\n--reflections\n8\n--d-inner\n1",
            "--help",
            "--version",
            "--length\n1048576\n--batch\n1\n--curriculum\n7",
            "--test-lengths\n1-1048576,1-1048576",
            "--seed\n-1"};
}

/// An argument a line.
void fuzz::read(std::string_view bytes) {
    std::vector<std::string> lines{"experiment"};
    std::istringstream text{std::string(bytes)};
    for (std::string line; std::getline(text, line);) lines.push_back(line.c_str());
    std::vector<const char*> arguments;
    for (const std::string& line : lines) arguments.push_back(line.c_str());

    std::ostringstream printed;
    try {
        const auto o = experiment::read_options(static_cast<int>(arguments.size()), arguments.data(), printed);
        claim(o.has_value() == printed.str().empty());
        if (!o) return;
        for (const auto& one : experiment::models_of(*o)) {
            one.training.validate();
            claim(!one.test_lengths.empty());
            claim(!fprnn::first_difference(experiment::training_configuration(one),
                                           experiment::training_configuration(one).dump())
                       .has_value());
        }
    } catch (const fprnn::argument_error& e) {
        claim(std::string_view(e.what()).find('\n') == std::string_view::npos);
    }
}
