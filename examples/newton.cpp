// All tokens of a sequence at once: how many iterations Newton's method takes where y ← f(y) takes as many
// as there are tokens.
//
//     newton CHECKPOINT [TOKENS…]      a checkpoint of `experiment` on a group: of FP-Mamba or FP-RNN with
//                                      four reflections, or of LSTM, of one layer
//
// prints, of sequences of so many tokens (128, 512, 2048), the iterations of Newton's method, of y ← f(y) and
// of Anderson's acceleration to a residual of 1e-5, the share of tokens that are what one token after the
// other gives, and the time as a multiple of that.
#include "checkpoint.hpp"

#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fp = fprnn;

constexpr double tolerance = 1e-5;

struct solved {
    fp::solution<float> solution;
    double seconds;
};
solved timed(const std::function<fp::solution<float>()>& solve) {
    const auto begin = std::chrono::steady_clock::now();
    fp::solution<float> s = solve();
    return {std::move(s), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

/// The share of tokens [B,T,width] that are the same but for a thousandth.
double share_of_equal(const fp::tensor<float>& a, const fp::tensor<float>& b) {
    const fp::index width = a.shape()[2], tokens = a.size() / width;
    fp::index equal = 0;
    for (fp::index t = 0; t < tokens; ++t) {
        double off = 0, largest = 0;
        for (fp::index i = t * width; i < (t + 1) * width; ++i) {
            off = std::max(off, std::abs(double(a[i]) - double(b[i])));
            largest = std::max(largest, std::abs(double(b[i])));
        }
        equal += off <= 1e-3 * largest;
    }
    return static_cast<double>(equal) / static_cast<double>(tokens);
}

template <class Block>
void compare(Block block, const checkpoint& file, const std::vector<fp::index>& lengths) {
    const auto& trained = file.configuration();
    const fp::finite_group group(trained["group"].get<std::string>());
    const fp::index d = trained["d_model"];
    fp::models::sequence_model model(block,
                                     {.vocabulary = group.order(),
                                      .classes = group.order(),
                                      .d_model = d,
                                      .d_inner = trained["d_inner"],
                                      .d_state = trained["d_state"]},
                                     fp::sequential({.tolerance = tolerance / 10}));
    auto theta = model.template init<float>(fp::seed{0});
    file.read(theta);
    const fp::dims size{.d_in = d, .d_inner = trained["d_inner"], .d_state = trained["d_state"]};
    auto& layer = model.block();
    const float* parameters = theta.data() + layer.parameter_offset(theta, size, "blocks.0.");
    const auto embedding = theta["embedding"];
    const fp::word_problem data{.group = group, .seed = {1}, .part = fp::word_problem::split::test};

    std::printf("tokens    newton  same    time    y<-f(y)  same    time    anderson  same    time\n");
    for (const fp::index T : lengths) {
        fp::tensor<std::int32_t> tokens({1, T}), product({1, T});
        data(tokens.view(), product.view(), 0);
        fp::tensor<float> x({1, T, d});
        for (fp::index t = 0; t < T; ++t) std::copy_n(embedding.data() + tokens(0, t) * d, d, &x(0, t, 0));

        fp::default_backend backend;
        const auto by = [&](const fp::method& m) {
            auto other = layer;
            static_cast<fp::method&>(other) = m;
            return timed([&] { return other.template run<float>(size, parameters, x.view(), {}, backend, nullptr); });
        };
        const auto in_turn = by({.schedule = layer.schedule});
        const fp::chunked all{.length = fp::whole_sequence, .tolerance = tolerance, .ell_max = static_cast<int>(2 * T)};
        std::printf("%6lld", static_cast<long long>(T));
        for (const auto& one :
             {timed([&] { return fp::newton(layer, size, parameters, std::as_const(x).view(), {}, {}, backend); }),
              by({.schedule = all}), by({.schedule = all, .solver = fp::anderson{}})}) {
            const bool converged = one.solution.all_converged();
            std::printf("  %7d%s  %.4f  %6.4g", one.solution.iterations[0], converged ? " " : "*",
                        share_of_equal(one.solution.value, in_turn.solution.value), one.seconds / in_turn.seconds);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
}

void print(const std::string& path, const std::vector<fp::index>& lengths) {
    const checkpoint file(path);
    file.require({{"task", "word-problem"}, {"layers", 1}});
    const std::string name = file.configuration().value("model", "");
    if (name == "lstm") return compare(fp::models::lstm(), file, lengths);
    file.require({{"mixer", "householder"}, {"reflections", 4}});
    if (name == "fp-rnn") return compare(fp::models::fp_rnn<4>(), file, lengths);
    file.require({{"model", "fp-mamba"}, {"convolution", false}});
    compare(fp::models::fp_mamba<4>(), file, lengths);
}

/// Whole numbers that are positive. std::invalid_argument where one is not.
std::vector<fp::index> lengths_of(const std::vector<std::string>& texts) {
    std::vector<fp::index> lengths;
    for (const std::string& text : texts) {
        const bool is_number = !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == text.npos;
        const fp::index length = is_number ? std::stoll(text) : 0;
        if (length < 1) throw std::invalid_argument("expected tokens, from 1 to 9999999, got '" + text + "'");
        lengths.push_back(length);
    }
    return lengths;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "newton: expected CHECKPOINT [TOKENS...], got nothing\n");
        return 2;
    }
    try {
        const auto lengths = lengths_of({argv + 2, argv + argc});
        print(argv[1], lengths.empty() ? std::vector<fp::index>{128, 512, 2048} : lengths);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "newton: %s\n", e.what());
        return 1;
    }
}
