#include "solutions.hpp"

#include <algorithm>
#include <cmath>

namespace experiment {

namespace {

using real = network::real;

/// Sets what two logits [B,T,classes] are apart. Of the sequences b that converged(b) both ways, tokens are
/// counted until they part.
template <class Converged>
void compare(two_solutions& both, const fp::tensor<real>& one, const fp::tensor<real>& other, Converged&& converged) {
    constexpr double together = 1e-3, apart = 0.1;
    const fp::index sequences = one.shape()[0], length = one.shape()[1], classes = one.shape()[2];
    fp::index differ = 0, seen = 0, with_several = 0;
    double sum = 0;
    for (fp::index b = 0; b < sequences; ++b) {
        const bool counts = converged(b);
        bool parted = false;
        for (fp::index t = 0; t < length; ++t) {
            const real *x = &one(b, t, 0), *y = &other(b, t, 0);
            double difference = 0, size = 0;
            for (fp::index k = 0; k < classes; ++k) {
                difference = std::max(difference, static_cast<double>(std::abs(x[k] - y[k])));
                size = std::max(size, static_cast<double>(std::abs(x[k])));
            }
            const double relative = difference / (size + 1e-8);
            both.largest_difference = std::max(both.largest_difference, relative);
            sum += relative;
            differ += std::max_element(x, x + classes) - x != std::max_element(y, y + classes) - y;
            if (!counts || parted) continue;
            ++seen;
            with_several += relative > apart;
            parted = relative > together;
        }
    }
    const auto share = [](double n, fp::index of) { return of == 0 ? 0.0 : n / static_cast<double>(of); };
    both.mean_difference = share(sum, sequences * length);
    both.other_answers = share(static_cast<double>(differ), sequences * length);
    both.parting = share(static_cast<double>(with_several), seen);
}

}  // namespace

two_solutions solve_both_ways(const network& model, const network::parameters& theta, const fp::task::test_set& data,
                              fp::index sequences, int ell_max) {
    const fp::index length = data.tokens;
    // A whole sequence needs at least as many iterations as a token, and often as many as it has tokens.
    const int most = std::max<int>(ell_max, 4 * static_cast<int>(length));
    fp::tensor<std::int32_t> tokens({sequences, length}), targets({sequences, length});
    data.data(tokens.view(), targets.view(), 0);
    const auto solve = [&](fp::chunked schedule) { return model.with(schedule)->solve(theta, tokens.view()); };
    const auto one = solve(fp::sequential({two_solutions::tolerance, most}));
    const auto whole = solve(fp::parallel({two_solutions::tolerance, most}));
    const auto accuracy = [&](const fp::tensor<real>& logits) {
        const auto answers = fp::cross_entropy(logits.view(), std::as_const(targets).view(), {}).answers;
        return fp::measure_accuracy(answers, sequences, length).sequence;
    };
    two_solutions both{.sequences = sequences,
                       .converged_sequential = fp::summarise(one.how, length)->share_converged,
                       .converged_parallel = fp::summarise(whole.how, length)->share_converged,
                       .accuracy_sequential = accuracy(one.logits),
                       .accuracy_parallel = accuracy(whole.logits)};
    compare(both, one.logits, whole.logits, [&](fp::index b) {
        const auto reached = [&](const auto& s) {
            return s.status[static_cast<std::size_t>(b)] == fp::status::converged;
        };
        return std::all_of(one.how.begin(), one.how.end(), reached) &&
               std::all_of(whole.how.begin(), whole.how.end(), reached);
    });
    return both;
}

}  // namespace experiment
