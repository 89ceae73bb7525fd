// One training on many processes: mpirun -n 2 train_on_ranks --out FOLDER [--resume]. The parameters have
// the same bits for any number of them, and a checkpoint is one of any number.
#include <fprnn/fprnn.hpp>
#include <fprnn/io/checkpoint.hpp>
#include <fprnn/mpi/train.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace fp = fprnn;

int main(int count, char** arguments) {
    return fp::mpi::run([&](fp::mpi::world& all) {
        CLI::App app("FP-Mamba learns to multiply permutations, on all ranks together");
        std::string folder, group = "S3";
        fp::training_options options{.micro_batches = 8, .length = 16, .first_length = 2, .steps = 400};
        fp::index checkpoint_every = 100;
        bool resumes = false;
        app.add_option("--out", folder, "folder of the checkpoints")->required();
        app.add_option("--group", group)->capture_default_str();
        app.add_option("--steps", options.steps)->capture_default_str();
        app.add_option("--batch", options.batch)->capture_default_str();
        app.add_option("--micro-batches", options.micro_batches, "parts of a batch, which ranks share out")
            ->capture_default_str();
        app.add_option("--checkpoint-every", checkpoint_every, "steps")
            ->capture_default_str()
            ->check(CLI::PositiveNumber);
        app.add_flag("--resume", resumes, "go on from the newest checkpoint");
        try {
            app.parse(count, arguments);
        } catch (const CLI::ParseError& e) {
            if (e.get_exit_code() != 0) throw std::runtime_error(e.what());
            return all.rank() == 0 ? app.exit(e) : 0;  // --help
        }

        //! [ranks]
        const fp::finite_group elements(group);
        const fp::word_problem data{.group = elements, .seed = {1}};
        const fp::models::sequence_model model(fp::models::fp_mamba<4>(),
                                               {.vocabulary = elements.order(), .classes = elements.order()},
                                               fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
        fp::training_state<float> state(model.init<float>(fp::seed{0}), options);
        const nlohmann::ordered_json configuration{
            {"group", group}, {"batch", options.batch}, {"micro_batches", options.micro_batches}};
        // Rank 0 alone reads and writes files; its state is the one from which all go on.
        if (resumes && all.rank() == 0) fp::load_latest_checkpoint(folder, state, configuration);

        const fp::eigen one_thread(1);
        const auto result = fp::mpi::train(
            all, model, state, options, data,
            [&](const fp::training_step& step) {
                if (step.step % checkpoint_every != 0 && step.step != options.steps) return true;
                fp::save_checkpoint(folder, state, configuration);
                std::printf("step %4lld  T = %2lld  loss %.4f\n", static_cast<long long>(step.step),
                            static_cast<long long>(step.length), step.loss);
                return true;
            },
            one_thread);
        const auto e = fp::mpi::evaluate(all, model, state.theta, 16, 1024, data, one_thread);
        //! [ranks]
        if (all.rank() == 0)
            std::printf("%lld ranks, %lld steps: %.3f of the sequences without a mistake\n",
                        static_cast<long long>(all.size()), static_cast<long long>(result.steps), e.accuracy.sequence);
        return result.end == fp::training_end::steps ? 0 : 1;
    });
}
