// mpirun -n 2 bench/ranks: what a step of training costs on many processes. Prints the constants that this
// machine has, what they give for up to 1,000 ranks of one thread with a micro-batch each (weak scaling),
// and what the ranks that there are take.
#include <fprnn/fprnn.hpp>
#include <fprnn/mpi/train.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace fp = fprnn;

namespace {

using fp::index;

constexpr index sequences = 16, length = 16, steps = 60;

/// The least of several times: what else the machine does only makes them longer.
double least_seconds(int times, const std::function<void()>& run) {
    double least = 1e9;
    for (int i = 0; i < times; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run();
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
}

const fp::finite_group group("A5");
const fp::word_problem data{.group = group, .seed = {1}};
const auto model = fp::models::sequence_model(fp::models::fp_mamba<4>(), {.vocabulary = 60, .classes = 60},
                                              fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
const fp::eigen one_thread(1);

/// Of a step with so many micro-batches of 16 × 16 tokens: the least, and the median.
template <class Train>
std::pair<double, double> seconds_of_a_step(index micro_batches, Train train) {
    const fp::training_options options{
        .batch = sequences * micro_batches, .micro_batches = micro_batches, .length = length, .steps = steps};
    fp::training_state<float> state(model.init<float>(fp::seed{0}), options);
    std::vector<double> ends, each;
    train(state, options, [&](const fp::training_step& s) {
        ends.push_back(s.seconds);
        return true;
    });
    for (std::size_t i = 10; i < ends.size(); ++i) each.push_back(ends[i] - ends[i - 1]);
    if (each.empty()) return {0, 0};
    std::sort(each.begin(), each.end());
    return {each.front(), each[each.size() / 2]};
}

/// Seconds for one message of so many bytes from rank 0 to rank 1, half of there and back.
double seconds_of_a_message(fp::mpi::world& all, std::size_t size) {
    std::vector<std::byte> bytes(size);
    return least_seconds(200,
                         [&] {
                             if (all.rank() == 0) all.send(bytes, 1), all.receive(bytes, 1);
                             if (all.rank() == 1) all.receive(bytes, 0), all.send(bytes, 0);
                         }) /
           2;
}

}  // namespace

int main() {
    return fp::mpi::run([](fp::mpi::world& all) {
        const auto alone = seconds_of_a_step(1, [](auto& state, const auto& options, auto observe) {
            fp::train(model, state, options, data, observe, one_thread);
        });
        const auto together = seconds_of_a_step(all.size(), [&](auto& state, const auto& options, auto observe) {
            fp::mpi::train(all, model, state, options, data, observe, one_thread);
        });
        if (all.size() < 2) {
            std::printf("start it on 2 processes: mpirun -n 2 …/bench/ranks\n");
            return 1;
        }
        const auto parameters = static_cast<std::size_t>(model.init<float>(fp::seed{0}).size());
        const std::size_t gradient = parameters * sizeof(float);
        const double latency = seconds_of_a_message(all, 8), of_gradient = seconds_of_a_message(all, gradient);
        std::vector<float> a(parameters), b(parameters, 1.0f);
        const double addition = least_seconds(200, [&] {
            std::transform(a.begin(), a.end(), b.begin(), a.begin(), [](float x, float y) { return x + y; });
        });
        std::uint64_t sums = 0;
        const double checksum = least_seconds(200, [&] { sums += fp::detail::checksum(a); });
        if (all.rank() > 0 || sums == 1) return 0;

        const double rate = static_cast<double>(gradient) / std::max(of_gradient - latency, 1e-9);
        // Losses, answers, and iterations and residuals of value and adjoint.
        const double of_rank = 8 * sequences + length * sequences + 12 * 2 * sequences;
        std::printf("%zu parameters; a step of %lld x %lld tokens on one process %.2f ms (median %.2f)\n", parameters,
                    static_cast<long long>(sequences), static_cast<long long>(length), 1e3 * alone.first,
                    1e3 * alone.second);
        std::printf(
            "a message: %.1f us, and %.2f GB/s; a gradient is added in %.0f us, and parameters have their checksum in "
            "%.0f\n\n",
            1e6 * latency, rate / 1e9, 1e6 * addition, 1e6 * checksum);
        std::printf(
            "| ranks | sum, us | broadcast, us | gather, us | step, ms | efficiency "
            "|\n|---:|---:|---:|---:|---:|---:|\n");
        for (const double ranks : {1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1000.0}) {
            const double levels = std::ceil(std::log2(ranks));
            const double sum = levels * (of_gradient + addition), broadcast = levels * of_gradient;
            const double gather = levels * latency + (ranks - 1) * of_rank / rate;
            const double step = alone.first + sum + broadcast + gather + (ranks > 1 ? checksum : 0);
            std::printf("| %.0f | %.0f | %.0f | %.0f | %.2f | %.3f |\n", ranks, 1e6 * sum, 1e6 * broadcast,
                        1e6 * gather, 1e3 * step, alone.first / step);
        }
        std::printf("\nmeasured on %lld ranks: %.2f ms (median %.2f), efficiency %.3f (of medians %.3f)\n",
                    static_cast<long long>(all.size()), 1e3 * together.first, 1e3 * together.second,
                    alone.first / together.first, alone.second / together.second);
        return 0;
    });
}
