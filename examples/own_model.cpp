// A model of one's own: FP-RNN, then Mamba, in one stack, which train and evaluate take as they take the
// library's.
#include <fprnn/fprnn.hpp>

#include <cstdio>
#include <string>
#include <utility>

namespace fp = fprnn;

//! [model]
/// Embedding, a block with a fixed point, a diagonal block, and a head: [B,T] tokens → [B,T,classes] logits.
class mixed_model {
public:
    mixed_model(fp::index tokens, fp::index answers) : vocabulary(tokens), classes(answers) {}

    const fp::index vocabulary, classes;

    /// The parameters of everything, under names that no two parts share.
    template <class T>
    fp::parameter_tree<T> init(fp::seed s) const {
        fp::parameter_tree<T> theta;
        theta.add({"embedding", {vocabulary, d_model}, {fp::initialiser::rule::normal, 1.0}, false}, s);
        const auto add = [&](const auto& layer, const fp::dims& size, const std::string& prefix) {
            for (fp::parameter_spec p : layer.declare(size)) {
                p.name = prefix + p.name;
                theta.add(p, s);
            }
        };
        add(dense_, block_size, "dense.");
        add(diagonal_, block_size, "diagonal.");
        add(head_, head_size, "head.");
        return theta;
    }

    /// For train: logits on the tape. `how` has a place for each fixed point.
    template <class T, class Backend>
    fp::variable operator()(fp::tape<T, Backend>& tape, fp::view<const std::int32_t> tokens,
                            fp::solutions<T>* how = nullptr) const {
        if (how) how->resize(1);
        auto x = embedding(tape, "embedding", tokens);
        x = dense_(tape, block_size, "dense.", x, how ? &how->front() : nullptr);
        x = diagonal_(tape, block_size, "diagonal.", x);
        return head_(tape, head_size, "head.", x);
    }

    /// For evaluate: the logits alone. The tape keeps what a gradient would need, which costs memory.
    template <class T, class Backend>
    fp::tensor<T> evaluate(const fp::parameter_tree<T>& theta, fp::view<const std::int32_t> tokens,
                           fp::solutions<T>* how, Backend backend) const {
        fp::tape<T, Backend> tape(theta, backend);
        return tape.value((*this)(tape, tokens, how));
    }

private:
    static constexpr fp::index d_model = 16;
    static constexpr fp::dims block_size{.d_in = d_model, .d_inner = 16, .d_state = 4, .d_out = 1};
    const fp::dims head_size{.d_in = d_model, .d_inner = 1, .d_state = 1, .d_out = classes};
    fp::layer<decltype(fp::models::fp_rnn<1>())> dense_{fp::models::fp_rnn<1>(), fp::chunked{.length = 1},
                                                        fp::implicit{}};
    fp::layer<decltype(fp::models::mamba())> diagonal_{fp::models::mamba()};
    fp::models::head_layer head_{fp::models::head_expression()};
};
//! [model]

//! [loss]
/// loss + weight · the mean of logits², which keeps logits small: a record of its own on the tape.
template <class T, class Backend>
fp::variable with_small_logits(fp::tape<T, Backend>& tape, fp::variable loss, fp::variable logits, T weight) {
    const auto& l = tape.value(logits);
    const T share = weight / static_cast<T>(l.size());
    T squares = 0;
    for (const T x : l) squares += x * x;
    auto y = tape.make({1});  // in the memory of the step before
    y[0] = tape.value(loss)[0] + share * squares;
    return tape.record(std::move(y), [loss, logits, share](fp::tape<T, Backend>& t, fp::variable self) {
        const T bar = t.bar(self)[0];
        t.bar(loss)[0] += bar;
        const auto& value = t.value(logits);
        auto& logits_bar = t.bar(logits);
        for (fp::index i = 0; i < value.size(); ++i) logits_bar[i] += bar * 2 * share * value[i];
    });
}
//! [loss]

int main() {
    //! [use]
    const fp::finite_group group("Z2");
    const fp::word_problem data{.group = group, .seed = {1}};
    const mixed_model model(group.order(), group.order());
    auto theta = model.init<float>(fp::seed{0});
    const fp::training_options options{
        .batch = 32, .length = 8, .first_length = 2, .steps = 600, .optimiser = {.learning_rate = 0.005}};
    double first = 0, last = 0, converged = 0;
    fp::train(model, theta, options, data, [&](const fp::training_step& step) {
        (step.step == 1 ? first : last) = step.loss;
        converged = *step.share_converged;
        return true;
    });
    const auto e = fp::evaluate(model, theta, 8, 64, data);
    std::printf("loss %.2f, then %.2f, %.3f of the tokens converged; T = 8: %.3f are right\n", first, last, converged,
                e.accuracy.token);
    //! [use]

    //! [loop]
    auto own = model.init<float>(fp::seed{2});
    fp::adamw<float> optimiser(own, {.learning_rate = 0.005});
    fp::tape<float> tape(own);
    fp::tensor<std::int32_t> tokens({32, 4}), targets({32, 4});
    float at_first = 0, at_last = 0;
    for (std::uint64_t step = 0; step < 200; ++step) {
        data(tokens, targets, 32 * step);  // sequences 32·step and the 31 behind it
        tape.clear();
        const auto logits = model(tape, tokens.view());
        const auto loss = with_small_logits(tape, cross_entropy(tape, logits, targets.view()), logits, 1e-3F);
        const float value = tape.value(loss)[0];
        (void)tape.gradient(loss);
        fp::clip_by_global_norm(tape.parameter_bars(), 1.0);
        optimiser.step(own, tape.parameter_bars());
        (step == 0 ? at_first : at_last) = value;
    }
    std::printf("own loss %.2f, then %.2f\n", at_first, at_last);
    //! [loop]
    if (at_last > at_first / 2) return 1;
    return last < first / 2 && converged > 0.99 && e.accuracy.token > 0.95 ? 0 : 1;
}
