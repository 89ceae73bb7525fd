#include <larger.hpp>

#include <fprnn/backend/eigen.hpp>
#include <fprnn/expression/mixers.hpp>
#include <fprnn/io/parameters.hpp>

#include <doctest/doctest.h>

#include <cstring>

/// Mixers against tests/fixtures/make_mixers.py: their definitions once more, in NumPy, with gradients by
/// complex steps.
namespace {

using fprnn::index;
using fprnn::tensor;

class fixture {
public:
    fixture()
        : content_(fprnn::decode_safetensors(
              fprnn::read_file(std::filesystem::path(FPRNN_FIXTURES) / "mixers.safetensors", 100'000), "mixers")) {}

    tensor<double> array(const std::string& name) const {
        for (const fprnn::named_array& a : content_.arrays)
            if (a.name == name) {
                tensor<double> x({static_cast<index>(a.bytes.size() / sizeof(double))});
                std::memcpy(x.data(), a.bytes.data(), a.bytes.size());
                return x;
            }
        FAIL("the fixture has no array " << name);
        return {};
    }

private:
    fprnn::safetensors_content content_;
};

double distance(const tensor<double>& a, const tensor<double>& b) {
    REQUIRE(a.size() == b.size());
    double largest = 0;
    for (index i = 0; i < a.size(); ++i) largest = fprnn::testing::larger(largest, std::abs(a[i] - b[i]));
    return largest;
}

template <class M>
void check(const std::string& name) {
    CAPTURE(name);
    using team = fprnn::pack_team<double>;
    const fixture expected;
    const tensor<double> v = expected.array(name + ".v"), out_bar = expected.array(name + ".out_bar");
    const index D = v.size();
    const tensor<double> raw0 = expected.array(name + ".raw0"), raw1 = expected.array(name + ".raw1");
    const double* raw[] = {raw0.data(), raw1.data()};
    tensor<double> q({M::size(D)}), q_bar(q.shape()), in_prepare({fprnn::mixing::prepare_scratch<M>(D) + 1}),
        scratch({M::scratch(D) + 1});
    fprnn::mixing::prepare<M, team>(D, raw, q.data(), in_prepare.data());

    tensor<double> Q({D * D});
    for (index j = 0; j < D; ++j) {
        tensor<double> e({D}), column({D});
        e[j] = 1;
        M::template mix<team, double>(D, q.data(), e.data(), nullptr, column.data(), scratch.data());
        for (index i = 0; i < D; ++i) Q[i * D + j] = column[i];
    }
    CHECK(distance(Q, expected.array(name + ".Q")) <= 1e-14);

    tensor<double> bar0(raw0.shape()), bar1(raw1.shape());
    double* bars[] = {bar0.data(), bar1.data()};
    M::template mix_back_q<team, double>(D, q.data(), v.data(), nullptr, out_bar.data(), q_bar.data(), scratch.data());
    fprnn::mixing::prepare_back<M, team, double>(D, raw, q.data(), q_bar.data(), bars, in_prepare.data());
    CHECK(distance(bar0, expected.array(name + ".bar0")) <= 1e-13);
    CHECK(distance(bar1, expected.array(name + ".bar1")) <= 1e-13);
}

TEST_CASE("mixers: matrices and gradients are those of NumPy") {
    check<fprnn::householder_mixer<2>>("householder");
    check<fprnn::dplr_mixer<2>>("dplr");
    check<fprnn::kronecker_mixer>("kronecker");
    check<fprnn::block_diagonal_mixer<3>>("block_diagonal");
}

TEST_CASE(
    "published_kronecker: both of the authors' forms are those of NumPy, with the gradient through the power "
    "iteration") {
    check<fprnn::published_kronecker_mixer<false>>("published_kronecker");
    check<fprnn::published_kronecker_mixer<true>>("published_kronecker_spectral");
}

}  // namespace
