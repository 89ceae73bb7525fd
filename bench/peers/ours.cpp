// The library's side of cpu.py, which loads it through ctypes. A problem has arrays, of float or
// std::int32_t, that Python fills and reads where they stand, and actions that it times. What is wrong there
// is a bug of cpu.py's: an exception ends the program.
#include "../measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/tape/tape.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/adamw.hpp>
#include <fprnn/train/clip.hpp>
#include <fprnn/train/evaluate.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace fp = fprnn;

/// What Python holds by its address.
struct peer_problem {
    struct array {
        void* data;
        fp::shape extents;
        char type;  ///< 'f', 'i', or 'F': a parameter that AdamW's decay shrinks
    };
    std::map<std::string, array> arrays;
    std::map<std::string, std::function<double()>> actions;
    std::shared_ptr<void> owner;

    template <class T>
    void show(const std::string& name, fp::tensor<T>& x) {
        arrays[name] = {x.data(), x.shape(), std::is_same_v<T, float> ? 'f' : 'i'};
    }
    void show(fp::parameter_tree<float>& theta) {
        for (const auto& e : theta.entries()) arrays[e.name] = {theta.data() + e.offset, e.shape, e.decay ? 'F' : 'f'};
    }
    void does(const std::string& name, std::function<void()> run) {
        actions[name] = [run = std::move(run)] {
            run();
            return 0.0;
        };
    }
};

namespace {

using fp::eigen;
using fp::index;
using fp::shape;
using fp::tensor;
using sizes = std::vector<index>;
using problem = std::unique_ptr<peer_problem>;

constexpr int R = 4;
constexpr index N = 16;
using fp_mamba_block = decltype(fp::models::fp_mamba<R>());

/// B, T, D.
problem scan(const sizes& of, const eigen& backend) {
    struct data {
        tensor<float> lambda, u, h, h_bar;
        fp::scan_cotangents<float> bars;
    };
    const shape s{of[0], of[1], of[2]};
    auto d = std::make_shared<data>(
        data{tensor<float>(s), tensor<float>(s), tensor<float>(s), tensor<float>(s), fp::scan_cotangents<float>(s)});
    auto p = std::make_unique<peer_problem>();
    p->show("lambda", d->lambda);
    p->show("u", d->u);
    p->show("h", d->h);
    p->show("h_bar", d->h_bar);
    p->show("lambda_bar", d->bars.lambda);
    p->show("u_bar", d->bars.u);
    p->does("forward", [=] { fp::scan_into(d->h, d->lambda, d->u, {}, fp::direction::forward, backend); });
    p->does("backward", [=] {
        fp::scan_back<fp::update::overwrite>(d->lambda, d->h, {}, d->h_bar, {}, d->bars, fp::direction::forward,
                                             backend);
    });
    const auto best = bench::triad(backend, s.count());
    p->does(best.name, best.run);
    p->owner = d;
    return p;
}

/// B, T, D, N.
problem selective_scan(const sizes& of, const eigen& backend) {
    struct data {
        tensor<float> delta, omega, b, c, u, y_bar;
        fp::selective_scan_value<float> out;
        fp::selective_scan_cotangents<float> bars;
    };
    const shape s{of[0], of[1], of[2]}, of_states{of[0], of[1], of[3]};
    auto d = std::make_shared<data>(data{tensor<float>(s),
                                         tensor<float>({of[3], of[2]}),
                                         tensor<float>(of_states),
                                         tensor<float>(of_states),
                                         tensor<float>(s),
                                         tensor<float>(s),
                                         {tensor<float>(s), {}},
                                         fp::selective_scan_cotangents<float>(s, of[3])});
    auto p = std::make_unique<peer_problem>();
    p->show("delta", d->delta);
    p->show("omega", d->omega);
    p->show("b", d->b);
    p->show("c", d->c);
    p->show("u", d->u);
    p->show("y_bar", d->y_bar);
    p->show("y", d->out.y);
    p->show("delta_bar", d->bars.delta);
    p->show("omega_bar", d->bars.omega);
    p->show("b_bar", d->bars.b);
    p->show("c_bar", d->bars.c);
    p->show("u_bar", d->bars.u);
    p->does("forward", [=] { fp::selective_scan_into(d->out, d->delta, d->omega, d->b, d->c, d->u, {}, backend); });
    p->does("clear", [=] {
        auto& bars = d->bars;
        for (tensor<float>* x : {&bars.delta, &bars.omega, &bars.b, &bars.c, &bars.u}) x->fill(0);
    });
    p->does("backward",
            [=] { fp::selective_scan_back(d->delta, d->omega, d->b, d->c, d->u, {}, d->y_bar, {}, d->bars, backend); });
    const auto best = bench::exponentials(backend, s.count() * of[3]);
    p->does(best.name, best.run);
    p->owner = d;
    return p;
}

/// B, T, D, C, ℓ_max: a block of R = 4, N = 16, d_in = D, solved to 1e-4. C = 0: all tokens at once.
problem solve(const sizes& of, const eigen& backend) {
    struct data {
        fp::layer<fp_mamba_block> block{fp_mamba_block{}};
        fp::dims size;
        fp::parameter_tree<float> theta;
        tensor<float> x, value;
        fp::solution<float> how;
    };
    auto d = std::make_shared<data>();
    d->block.schedule = {of[3] > 0 ? of[3] : fp::whole_sequence, 1e-4, static_cast<int>(of[4])};
    d->size = {.d_in = of[2], .d_inner = of[2], .d_state = N};
    d->theta = fp::init<float>(d->block, d->size, fp::seed{0});
    d->x = tensor<float>({of[0], of[1], of[2]});
    d->value = tensor<float>(d->x.shape());
    auto p = std::make_unique<peer_problem>();
    p->show(d->theta);
    p->show("x_in", d->x);
    p->show("value", d->value);
    p->does("solve", [=, on = backend]() mutable {
        d->block.run<float, eigen>(d->size, d->theta.data(), d->x.view(), {}, on, nullptr, d->how);
    });
    p->does("fetch", [=] { std::copy_n(d->how.value.data(), d->value.size(), d->value.data()); });
    p->actions["evaluations"] = [=] { return static_cast<double>(d->how.work.evaluations); };
    p->actions["converged"] = [=] {
        return fp::summarise(std::vector<fp::solution<float>>{d->how}, d->x.shape()[1])->share_converged;
    };
    p->owner = d;
    return p;
}

/// B, T, C, whether one step of the adjoint: a step of a model of one block on A5, D = 64, with AdamW and a
/// gradient whose norm is at most 1.
template <class Block>
problem training(const sizes& of, const eigen& backend) {
    struct data {
        fp::models::sequence_model<Block> model;
        fp::parameter_tree<float> theta;
        tensor<std::int32_t> tokens, targets;
        fp::adamw<float> optimiser;
        std::vector<fp::solution<float>> how{};
        fp::cross_entropy_result<float> result{};
        std::unique_ptr<fp::tape<float, eigen>> tape{};

        data(const fp::models::sequence_model<Block>& m, const shape& s)
            : model(m),
              theta(m.template init<float>(fp::seed{0})),
              tokens(s),
              targets(s),
              optimiser(theta, {.learning_rate = 3e-3, .weight_decay = 0.1}) {}
    };
    const fp::chunked schedule{of[2] > 0 ? of[2] : fp::whole_sequence, 1e-4, 100};
    fp::models::sequence_model<Block> model(Block{}, {.vocabulary = 60, .classes = 60}, schedule);
    if (of[3]) model.block().adjoint = fp::one_step{};
    auto d = std::make_shared<data>(model, shape{of[0], of[1]});
    d->tape = std::make_unique<fp::tape<float, eigen>>(d->theta, backend);
    auto p = std::make_unique<peer_problem>();
    p->show(d->theta);
    p->show("tokens", d->tokens);
    p->show("targets", d->targets);
    const fp::word_problem data_of_a5{.group = fp::finite_group("A5"), .seed = {1}};
    p->does("batch", [=, first = std::uint64_t{0}]() mutable {
        data_of_a5(d->tokens.view(), d->targets.view(), first);
        first += static_cast<std::uint64_t>(d->tokens.shape()[0]);
    });
    p->actions["step"] = [=] {
        d->tape->clear();
        const auto logits = d->model(*d->tape, std::as_const(d->tokens).view(), &d->how);
        const auto loss = fp::cross_entropy(*d->tape, logits, std::as_const(d->targets).view(), &d->result);
        d->tape->gradient(loss);
        fp::clip_by_global_norm(d->tape->parameter_bars(), 1.0);
        d->optimiser.step(d->theta, d->tape->parameter_bars());
        return static_cast<double>(d->result.loss);
    };
    p->owner = d;
    return p;
}

/// D: one token of one sequence, from the carry of the token before, and how fast its weights can be read.
problem stream(const sizes& of, const eigen& backend) {
    struct data {
        fp::layer<fp_mamba_block> block{fp_mamba_block{}, fp::chunked{.length = 1, .tolerance = 1e-4}};
        fp::dims size;
        fp::parameter_tree<float> theta;
        tensor<float> x, carry;
        fp::solution<float> how;
        index token = 0;
    };
    constexpr index tokens = 256;
    auto d = std::make_shared<data>();
    d->size = {.d_in = of[0], .d_inner = of[0], .d_state = N};
    d->theta = fp::init<float>(d->block, d->size, fp::seed{0});
    d->x = tensor<float>({tokens, 1, of[0]});
    const fp::random_stream random(fp::seed{4}, 0);
    for (index i = 0; i < d->x.size(); ++i) d->x[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
    auto p = std::make_unique<peer_problem>();
    p->show(d->theta);
    p->does("tokens", [=, on = backend]() mutable {
        for (index t = 0; t < tokens; ++t) {
            const fp::view<const float> one(&d->x(t, 0, 0), {1, 1, of[0]});
            const fp::view<const float> carry(d->how.carry.data(), d->how.carry.shape());
            d->block.run<float, eigen>(d->size, d->theta.data(), one, carry, on, nullptr, d->how);
        }
    });
    p->actions["evaluations"] = [=] { return static_cast<double>(d->how.work.evaluations); };
    p->does("weights", [=] {
        using vector = Eigen::Map<const Eigen::ArrayXf>;
        for (index t = 0; t < tokens; ++t) {
            benchmark::DoNotOptimize(vector(d->theta.data(), d->theta.size()).sum());
            benchmark::ClobberMemory();
        }
    });
    p->owner = d;
    return p;
}

problem make(const std::string& kind, const sizes& of, const eigen& backend) {
    if (kind == "scan") return scan(of, backend);
    if (kind == "selective_scan") return selective_scan(of, backend);
    if (kind == "solve") return solve(of, backend);
    if (kind == "train_fp_mamba") return training<fp_mamba_block>(of, backend);
    if (kind == "train_lstm") return training<decltype(fp::models::lstm())>(of, backend);
    if (kind == "stream") return stream(of, backend);
    throw std::invalid_argument("ours: no problem " + kind);
}

}  // namespace

extern "C" {

peer_problem* peer_make(const char* kind, const fp::index* of, int n, int threads) {
    return make(kind, sizes(of, of + n), eigen(threads)).release();
}
void peer_free(peer_problem* p) { delete p; }

/// The names of all arrays, a line each.
const char* peer_names(peer_problem* p) {
    static std::string names;
    names.clear();
    for (const auto& [name, array] : p->arrays) names += name + "\n";
    return names.c_str();
}
void* peer_array(peer_problem* p, const char* name, fp::index* extents, int* rank, char* type) {
    const auto& a = p->arrays.at(name);
    *rank = static_cast<int>(a.extents.rank());
    for (int i = 0; i < *rank; ++i) extents[i] = a.extents[i];
    *type = a.type;
    return a.data;
}
double peer_run(peer_problem* p, const char* action) { return p->actions.at(action)(); }

}  // extern "C"
