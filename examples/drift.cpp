// What a state remembers beside the element that it stands for. Pairs of sequences that have come to the
// same element of a group read the same elements from there on: if all that counts is the element, their
// states meet.
//
//     drift CHECKPOINT      a checkpoint of `experiment` on a group, of its default model, of either
//                           --reflection-scale, or with --gate inside-sees-y
//
// prints the distance of their states after 0, 1, 2, 4, … common elements, as a share of the distance of
// states that stand for different ones; medians over pairs. What is left when it no longer falls adds up
// over a sequence.
#include "checkpoint.hpp"

#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fp = fprnn;

using carry = fp::models::model_carry<float>;
using rows = std::vector<fp::index>;

/// Tokens t0 … t0 + n − 1 of some sequences.
fp::tensor<std::int32_t> tokens_of(const fp::tensor<std::int32_t>& x, const rows& some, fp::index t0, fp::index n) {
    fp::tensor<std::int32_t> part({static_cast<fp::index>(some.size()), n});
    for (std::size_t r = 0; r < some.size(); ++r)
        std::copy_n(&x(some[r], t0), n, part.data() + static_cast<fp::index>(r) * n);
    return part;
}
carry carry_of(const carry& c, const rows& some) {
    carry part;
    for (const auto& block : c.blocks) {
        const fp::index width = block.shape()[1];
        auto& to = part.blocks.emplace_back(fp::shape{static_cast<fp::index>(some.size()), width});
        for (std::size_t r = 0; r < some.size(); ++r)
            std::copy_n(block.data() + some[r] * width, width, to.data() + static_cast<fp::index>(r) * width);
    }
    return part;
}
/// The median distance of row r of `a` from row r + `shift` of `b`, over all r.
double distance(const carry& a, const carry& b, fp::index shift) {
    const auto &left = a.blocks.front(), &right = b.blocks.front();
    const fp::index n = left.shape()[0], width = left.shape()[1];
    std::vector<double> all;
    for (fp::index r = 0; r < n; ++r) {
        double square = 0;
        for (fp::index i = 0; i < width; ++i) square += std::pow(left(r, i) - right((r + shift) % n, i), 2);
        all.push_back(std::sqrt(square));
    }
    return fp::median(all);
}

template <class Block>
void print_drift_of(const checkpoint& file, Block block) {
    const auto& trained = file.configuration();
    const fp::finite_group group(trained["group"].get<std::string>());
    const fp::word_problem data{.group = group, .seed = {1}, .part = fp::word_problem::split::test};
    const fp::models::sequence_model model(block,
                                           {.vocabulary = group.order(),
                                            .classes = group.order(),
                                            .d_model = trained["d_model"],
                                            .d_inner = trained["d_inner"],
                                            .d_state = trained["d_state"]},
                                           fp::chunked{.length = 1, .tolerance = 1e-5});
    auto theta = model.template init<float>(fp::seed{0});
    file.read(theta);

    constexpr fp::index B = 512, longest = 256, steps = 64;
    fp::tensor<std::int32_t> x({B, longest + steps}), product({B, longest + steps});
    data(x.view(), product.view(), 0);
    rows all(B);
    for (fp::index b = 0; b < B; ++b) all[static_cast<std::size_t>(b)] = b;
    std::printf("common elements      0       1       2       4       8      16      32      64\n");
    for (const fp::index t0 : {8, 16, 64, 256}) {
        carry reached;
        const auto first = tokens_of(x, all, 0, t0);
        (void)model.evaluate(theta, first.view(), reached);
        std::map<std::int32_t, rows> of_element;
        for (const fp::index b : all) of_element[product(b, t0 - 1)].push_back(b);
        rows left, right;
        for (const auto& [element, its] : of_element)
            for (std::size_t i = 0; i + 1 < its.size(); i += 2) left.push_back(its[i]), right.push_back(its[i + 1]);

        auto a = carry_of(reached, left), b = carry_of(reached, right);
        const auto other = static_cast<fp::index>(left.size()) / 2;
        std::printf("after %3lld tokens", static_cast<long long>(t0));
        fp::index read = 0;
        for (const fp::index t : {0, 1, 2, 4, 8, 16, 32, 64}) {
            if (t > read) {
                const auto common = tokens_of(x, left, t0 + read, t - read);
                (void)model.evaluate(theta, common.view(), a);
                (void)model.evaluate(theta, common.view(), b);
                read = t;
            }
            std::printf("  %.4f", distance(a, b, 0) / distance(a, b, other));
        }
        std::printf("\n");
    }
}

void print_drift(const std::string& path) {
    const checkpoint file(path);
    file.require({{"task", "word-problem"},
                  {"model", "fp-mamba"},
                  {"mixer", "householder"},
                  {"reflections", 4},
                  {"layers", 1},
                  {"convolution", false}});
    const auto& trained = file.configuration();
    if (trained.contains("gate")) {
        file.require({{"gate", "inside-sees-y"}});
        using options = fp::models::fp_mamba_options;
        print_drift_of(file,
                       fp::models::fp_mamba<options{.gate = options::gating::inside_seeing_y}>(fp::householder<4>));
    } else if (trained["reflection_scale"] == 1) {
        print_drift_of(file, fp::models::fp_mamba<4>());
    } else {
        print_drift_of(file, fp::models::fp_mamba<4, 2>());
    }
}

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "drift: expected CHECKPOINT, got %d arguments\n", argc - 1);
        return 2;
    }
    try {
        print_drift(argv[1]);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "drift: %s\n", e.what());
        return 1;
    }
}
