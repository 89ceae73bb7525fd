#include <ops/checks.hpp>

#include <array>
#include <initializer_list>
#include <vector>

namespace {

using checks::random;
using fprnn::eigen;
using fprnn::index;
using fprnn::matrix;
using fprnn::reference;
using fprnn::shape;
using fprnn::tensor;
using fprnn::testing::larger;

/// Rows of `columns` numbers inside wider ones, as the parts of a concatenation and of its weights lie.
template <class T>
struct block {
    tensor<T> memory;
    index rows, columns, stride;

    block(index r, index c, std::uint64_t stream, index beside = 3)
        : memory(random<T>({r, c + beside}, stream)), rows(r), columns(c), stride(c + beside) {}
    T& operator()(index r, index c) { return memory[r * stride + 1 + c]; }
    matrix<T> write() { return {memory.data() + first(), rows, columns, stride}; }
    matrix<const T> read() const { return {memory.data() + first(), rows, columns, stride}; }

private:
    index first() const { return rows > 0 ? 1 : 0; }  // without rows there is no memory to be inside of
};

/// to = (overwrite ? 0 : to) + a_(r,i) b_(i,c), in double.
template <class T, class A, class B>
tensor<double> plain(block<T> to, index inner, bool overwrite, A&& a, B&& b) {
    tensor<double> all(to.memory.shape());
    for (index i = 0; i < all.size(); ++i) all[i] = static_cast<double>(to.memory[i]);
    for (index r = 0; r < to.rows; ++r)
        for (index c = 0; c < to.columns; ++c) {
            double sum = overwrite ? 0.0 : static_cast<double>(to(r, c));
            for (index i = 0; i < inner; ++i) sum += static_cast<double>(a(r, i)) * static_cast<double>(b(i, c));
            all[r * to.stride + 1 + c] = sum;
        }
    return all;
}

/// The largest difference, in units of ε times the largest number; numbers beside the block count as well.
template <class T>
double worst(const block<T>& got, const tensor<double>& expected) {
    double difference = 0, largest = 0;
    for (index i = 0; i < expected.size(); ++i) {
        difference = larger(difference, std::abs(static_cast<double>(got.memory[i]) - expected[i]));
        largest = std::max(largest, std::abs(expected[i]));
    }
    if (difference == 0) return 0;  // also of nothing but zeros
    return difference / largest / static_cast<double>(std::numeric_limits<T>::epsilon());
}

/// What `worst` may be for sums of so many terms, by the square root of their number; `plain` rounds as well.
double rounding(index terms) { return 6 * std::sqrt(1.0 + static_cast<double>(terms) / 40); }

/// W̄ += Ȳᵀ X.
template <class Backend, class T>
void weights(block<T>& w_bar, const block<T>& y_bar, const block<T>& x, fprnn::view<T> packing = {}) {
    const fprnn::weights_part<T> all{w_bar.write(), x.read()};
    Backend::multiply_weights(y_bar.read(), fprnn::weights_parts<T>(&all, 1), packing);
}

template <class Backend, class T>
void products(index r, index n, index k) {
    for (bool overwrite : {true, false}) {
        block<T> x(r, k, 1), w(n, k, 2), y(r, n, 3), x_bar(r, k, 4), w_bar(n, k, 5);
        const auto y_expected = plain(y, k, overwrite, x, [&](index i, index c) { return w(c, i); });
        const auto x_expected = plain(x_bar, n, overwrite, y, w);
        const auto w_expected = plain(
            w_bar, r, false, [&](index i, index t) { return y(t, i); }, x);
        Backend::multiply_back(x_bar.write(), y.read(), w.read(), overwrite);
        weights<Backend>(w_bar, y, x);
        Backend::multiply(y.write(), x.read(), w.read(), overwrite);
        CHECK(worst(y, y_expected) <= rounding(k));
        CHECK(worst(x_bar, x_expected) <= rounding(n));
        CHECK(worst(w_bar, w_expected) <= rounding(r));
    }
}

template <class Backend, class T>
void products() {
    for (index r : {1, 5, 16, 48})
        for (index n : {1, 2, 7, 33})
            for (index k : {1, 3, 40}) products<Backend, T>(r, n, k);
    for (auto [r, n, k] : {std::array<index, 3>{5, 7, 0}, {5, 0, 7}, {0, 7, 5}, {1, 1, 0}})
        products<Backend, T>(r, n, k);
    products<Backend, T>(70, 490, 500);  // in several blocks, whichever the dimension
}

TEST_CASE_TEMPLATE("multiply: Y = X Wᵀ, X̄ = Ȳ W and W̄ += Ȳᵀ X inside wider arrays, stored or added", T, float, double) {
    SUBCASE("reference") { products<reference, T>(); }
    SUBCASE("eigen") { products<eigen, T>(); }
}

/// W as pack or pack_back leaves it.
template <class Backend, class T>
tensor<T> packed(const block<T>& w, bool back) {
    tensor<T> memory({Backend::template packed_size<T>(w.rows, w.columns)});
    back ? Backend::pack_back(w.read(), memory.data()) : Backend::pack(w.read(), memory.data());
    return memory;
}

/// X as pack_rows leaves it.
template <class Backend, class T>
tensor<T> packed_rows(matrix<const T> x) {
    tensor<T> memory({Backend::template packed_size<T>(x.rows, x.columns)});
    Backend::pack_rows(x, memory.data());
    return memory;
}

template <class Backend, class T>
void packed_products() {
    for (index r : {1, 5, 16})
        for (index n : {1, 2, 7, 33, 300})
            for (index k : {1, 3, 40, 600})
                for (bool overwrite : {true, false}) {
                    block<T> x(r, k, 1), w(n, k, 2), y(r, n, 3), x_bar(r, k, 4);
                    const auto y_expected = plain(y, k, overwrite, x, [&](index i, index c) { return w(c, i); });
                    const auto x_expected = plain(x_bar, n, overwrite, y, w);
                    const auto there = packed<Backend>(w, false), back = packed<Backend>(w, true);
                    const auto x_rows = packed_rows<Backend, T>(x.read()), y_rows = packed_rows<Backend, T>(y.read());
                    Backend().multiply_back_packed(x_bar.write(), {y.read(), y_rows.data()}, {w.read(), back.data()},
                                                   overwrite);
                    Backend().multiply_packed(y.write(), {x.read(), x_rows.data()}, {w.read(), there.data()},
                                              overwrite);
                    CHECK(worst(y, y_expected) <= rounding(k));
                    CHECK(worst(x_bar, x_expected) <= rounding(n));
                }
}

TEST_CASE_TEMPLATE("multiply: products with packed weights are those products, whatever the number of blocks", T, float,
                   double) {
    SUBCASE("reference") { packed_products<reference, T>(); }
    SUBCASE("eigen") { packed_products<eigen, T>(); }
}

TEST_CASE_TEMPLATE("multiply: overwriting does not read what was there", Backend, reference, eigen) {
    const auto x = random<float>({16, 5}, 1), w = random<float>({7, 5}, 2), y_bar = random<float>({16, 7}, 3);
    tensor<float> y({16, 7}), x_bar({16, 5});
    y.fill(NAN);
    x_bar.fill(NAN);
    Backend::multiply(matrix<float>{y.data(), 16, 7, 7}, matrix<const float>{x.data(), 16, 5, 5},
                      matrix<const float>{w.data(), 7, 5, 5}, true);
    Backend::multiply_back(matrix<float>{x_bar.data(), 16, 5, 5}, matrix<const float>{y_bar.data(), 16, 7, 7},
                           matrix<const float>{w.data(), 7, 5, 5}, true);
    for (float v : y) CHECK(std::isfinite(v));
    for (float v : x_bar) CHECK(std::isfinite(v));
}

TEST_CASE_TEMPLATE("multiply: in tiles of 16 rows a row's bits do not depend on its place or the number of tiles", T,
                   float, double) {
    for (index k : {1, 3, 17, 64, 130})
        for (index n : {1, 2, 5, 64}) {
            const auto x = random<T>({48, k}, 1), w = random<T>({n, k}, 2);
            tensor<T> all({48, n}), one({16, n}), repeated({16, k});
            eigen::multiply(matrix<T>{all.data(), 48, n, n}, matrix<const T>{x.data(), 48, k, k},
                            matrix<const T>{w.data(), n, k, k}, true);
            for (index r = 0; r < 48; r += 5) {
                for (index i = 0; i < 16; ++i) std::copy_n(x.data() + r * k, k, repeated.data() + i * k);
                eigen::multiply(matrix<T>{one.data(), 16, n, n}, matrix<const T>{repeated.data(), 16, k, k},
                                matrix<const T>{w.data(), n, k, k}, true);
                bool same = true;
                for (index i = 0; i < 16; ++i) same = same && checks::same_bits(&one(i, 0), &all(r, 0), n);
                CHECK_MESSAGE(same, "k = " << k << ", n = " << n << ", row " << r);
            }
        }
}

TEST_CASE_TEMPLATE("multiply: a row has the bits that it has in a tile, however few rows there are", T, float, double) {
    for (index k : {1, 3, 17, 64, 300})
        for (index n : {1, 2, 5, 64}) {
            const auto x = random<T>({16, k}, 1), w = random<T>({n, k}, 2), y_bar = random<T>({16, n}, 3);
            const block<T> packed_w(n, k, 2);
            const auto there = packed<eigen>(packed_w, false);
            const auto products = [&](index rows) {
                std::array<tensor<T>, 3> all{tensor<T>({rows, n}), tensor<T>({rows, k}), tensor<T>({rows, n})};
                const matrix<const T> some{x.data(), rows, k, k};
                eigen::multiply(matrix<T>{all[0].data(), rows, n, n}, some, matrix<const T>{w.data(), n, k, k}, true);
                eigen::multiply_back(matrix<T>{all[1].data(), rows, k, k}, matrix<const T>{y_bar.data(), rows, n, n},
                                     matrix<const T>{w.data(), n, k, k}, true);
                const auto columns = packed_rows<eigen>(some);
                eigen::multiply_packed(matrix<T>{all[2].data(), rows, n, n}, {some, columns.data()},
                                       {packed_w.read(), there.data()}, true);
                return all;
            };
            const auto tile = products(16);
            for (index rows = 1; rows < 16; ++rows) {
                const auto few = products(rows);
                CAPTURE(k);
                CAPTURE(n);
                CAPTURE(rows);
                for (std::size_t i = 0; i < few.size(); ++i)
                    CHECK(checks::same_bits(few[i].data(), tile[i].data(), few[i].size()));
            }
        }
}

TEST_CASE_TEMPLATE("multiply: without rows nothing is read or written, however wide the maps are", T, float, double) {
    const auto w = random<T>({100, 64}, 1);
    tensor<T> beside({64});
    beside.fill(T(3));
    for (bool overwrite : {true, false})
        eigen::multiply(matrix<T>{beside.data(), 0, 100, 100}, matrix<const T>{nullptr, 0, 64, 64},
                        matrix<const T>{w.data(), 100, 64, 64}, overwrite);
    for (const T x : beside) CHECK(x == T(3));
}

TEST_CASE_TEMPLATE("multiply: with packed weights a row's bits do not depend on its place or its neighbours", T, float,
                   double) {
    for (index k : {1, 3, 17, 64, 300})
        for (index n : {1, 2, 5, 64}) {
            const block<T> w(n, k, 2);
            const auto there = packed<eigen>(w, false);
            const auto x = random<T>({16, k}, 1);
            tensor<T> all({16, n}), one({16, n}), repeated({16, k});
            const auto multiply = [&](const tensor<T>& from, tensor<T>& to) {
                const matrix<const T> rows{from.data(), 16, k, k};
                const auto packed = packed_rows<eigen>(rows);
                eigen::multiply_packed(matrix<T>{to.data(), 16, n, n}, {rows, packed.data()}, {w.read(), there.data()},
                                       true);
            };
            multiply(x, all);
            for (index r = 0; r < 16; ++r) {
                for (index i = 0; i < 16; ++i) std::copy_n(x.data() + r * k, k, repeated.data() + i * k);
                multiply(repeated, one);
                bool same = true;
                for (index i = 0; i < 16; ++i) same = same && checks::same_bits(&one(i, 0), &all(r, 0), n);
                CHECK_MESSAGE(same, "k = " << k << ", n = " << n << ", row " << r);
            }
        }
}

TEST_CASE_TEMPLATE("multiply: products in packing memory of their own have the bits of those without", T, float,
                   double) {
    for (const auto [r, n, k] : {std::array<index, 3>{800, 150, 170}, {16, 700, 300}, {32, 2, 40'000}, {48, 5, 7}}) {
        tensor<T> packing({eigen::packing_size<T>(r, n, k)});
        const block<T> x(r, k, 1), w(n, k, 2);
        for (const bool overwrite : {true, false}) {
            block<T> y(r, n, 3), x_bar(r, k, 4), w_bar(n, k, 5);
            auto y_packed = y, x_packed = x_bar, w_packed = w_bar;
            eigen::multiply(y.write(), x.read(), w.read(), overwrite);
            eigen::multiply(y_packed.write(), x.read(), w.read(), overwrite, packing.view());
            eigen::multiply_back(x_bar.write(), y.read(), w.read(), overwrite);
            eigen::multiply_back(x_packed.write(), y.read(), w.read(), overwrite, packing.view());
            weights<eigen>(w_bar, y, x);
            weights<eigen>(w_packed, y, x, packing.view());
            CHECK(checks::same_bits(y.memory.data(), y_packed.memory.data(), y.memory.size()));
            CHECK(checks::same_bits(x_bar.memory.data(), x_packed.memory.data(), x_bar.memory.size()));
            CHECK(checks::same_bits(w_bar.memory.data(), w_packed.memory.data(), w_bar.memory.size()));
        }
    }
    CHECK(eigen::packing_size<T>(800, 150, 170) > 0);
    CHECK(eigen::packing_size<T>(48, 5, 7) == 0);  // on the stack
}

TEST_CASE_TEMPLATE("multiply: parts of weights together are the parts one by one, to the bit", T, float, double) {
    const auto check = []<class Backend>(Backend, index r, index n, std::initializer_list<index> widths) {
        const block<T> y_bar(r, n, 1);
        std::vector<block<T>> x, together, alone;
        for (index k : widths) {
            x.emplace_back(r, k, 2 + x.size());
            together.emplace_back(n, k, 50 + x.size());
        }
        alone = together;
        std::vector<fprnn::weights_part<T>> parts;
        for (std::size_t i = 0; i < x.size(); ++i) parts.push_back({together[i].write(), x[i].read()});
        Backend::multiply_weights(y_bar.read(), fprnn::weights_parts<T>(parts));
        for (std::size_t i = 0; i < x.size(); ++i) {
            weights<Backend>(alone[i], y_bar, x[i]);
            CHECK(checks::same_bits(together[i].memory.data(), alone[i].memory.data(), alone[i].memory.size()));
        }
    };
    const auto check_all = [&](auto backend) {
        for (index r : {1, 16, 70, 192})
            for (index n : {1, 5, 16, 33}) {
                check(backend, r, n, {});
                check(backend, r, n, {64, 64});
                check(backend, r, n, {7, 1, 3, 16, 2});
                check(backend, r, n, {1});
                check(backend, r, n, {300, 200, 100});
                check(backend, r, n, {500, 3, 4});
            }
    };
    check_all(reference{});
    check_all(eigen{});
}

TEST_CASE("eigen: denormal numbers count as zero in its loops, on every thread, and not in those of the reference") {
    if constexpr (!fprnn::flush_denormals::supported) return;
    volatile float tiny = std::numeric_limits<float>::min(), tenth = 0.1f;
    tensor<float> products({1000});
    const auto body = [&](index i) { products[i] = tiny * tenth; };
    eigen(3).for_each(1000, body);
    CHECK(std::all_of(products.begin(), products.end(), [](float x) { return x == 0; }));
    reference().for_each(1000, body);
    CHECK(std::all_of(products.begin(), products.end(), [](float x) { return x > 0; }));
}

TEST_CASE("eigen: copies share their threads, and every index is visited once") {
    const eigen backend(3);
    eigen copy = backend;
    CHECK(copy.threads() == 3);
    std::vector<int> visits(1000);
    copy.for_each(1000, [&](index i) { ++visits[static_cast<std::size_t>(i)]; });
    CHECK(visits == std::vector<int>(1000, 1));
    CHECK(eigen::default_threads() >= 1);
    reference{}.for_each(1000, [&](index i) { ++visits[static_cast<std::size_t>(i)]; });
    CHECK(visits == std::vector<int>(1000, 2));
}

}  // namespace
