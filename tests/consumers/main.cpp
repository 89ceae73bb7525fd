// A user's first program: a scan, a layer and a gradient. Exit status 0 when all are right and the version is
// the package's.
#include FPRNN_HEADER

#include <cmath>
#include <cstdio>
#include <string>

namespace fp = fprnn;

#ifdef WITH_SECOND_UNIT
double last_of_scan_in_second_unit();
#endif

namespace {

double last_of_scan() {
    fp::tensor<float> lambda({1, 3, 1}), u({1, 3, 1}, {1, 0, 0});
    lambda.fill(0.5f);
    return static_cast<double>(fp::scan(lambda, u)[2]);
}

auto equation() {
    using namespace fp::symbols;
    auto Q = fp::householder<1, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fp::affine<"lambda">(in));
    return scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (I - Q) * prev));
}

/// The cross-entropy of a layer's output, and its derivative with respect to one entry of B.
double loss(const fp::layer_parameters<double>& theta, double* derivative) {
    const auto layer = fp::fixed_point(equation(), fp::chunked{.length = 1, .tolerance = 1e-13, .ell_max = 1000},
                                       fp::implicit{.tolerance = 1e-13, .ell_max = 1000});
    fp::tensor<double> x({2, 5, 3});
    for (fp::index i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
    const fp::tensor<std::int32_t> targets({2, 5});
    fp::tape<double> tape(theta);
    const auto y = layer(tape, theta.widths, "", tape.leaf(x));
    const auto l = cross_entropy(tape, y, targets.view());
    const double value = tape.value(l)[0];
    if (derivative) *derivative = tape.gradient(l)["B"][1];
    return value;
}

bool is(const char* what, double got, double expected, double tolerance) {
    const bool right = std::abs(got - expected) <= tolerance;
    if (!right) std::printf("%s is %.17g, expected %.17g\n", what, got, expected);
    return right;
}

}  // namespace

int main() {
    bool right = is("the scan's last token", last_of_scan(), 0.25, 0);
#ifdef WITH_SECOND_UNIT
    right = is("the other unit's", last_of_scan_in_second_unit(), 0.25, 0) && right;
#endif

    auto theta = fp::init<double>(fp::fixed_point(equation(), fp::chunked{}), {.d_in = 3, .d_inner = 4}, fp::seed{0});
    double derivative = 0;
    loss(theta, &derivative);
    const double h = 1e-4;
    double& entry = theta["B"][1];
    entry += h;
    double difference = loss(theta, nullptr);
    entry -= 2 * h;
    difference -= loss(theta, nullptr);
    right = is("the derivative", derivative, difference / (2 * h), 1e-7) && right;

    static_assert(fp::version == fp::version_number{FPRNN_VERSION_MAJOR, FPRNN_VERSION_MINOR, FPRNN_VERSION_PATCH});
    static_assert(fp::version < fp::version_number{FPRNN_VERSION_MAJOR, FPRNN_VERSION_MINOR + 1, 0});
    const std::string numbers = std::to_string(fp::version.major) + "." + std::to_string(fp::version.minor) + "." +
                                std::to_string(fp::version.patch);
    if (numbers != fp::version_text || numbers != PACKAGE_VERSION) {
        std::printf("the package is %s, the headers %s (%s)\n", PACKAGE_VERSION, numbers.c_str(), fp::version_text);
        right = false;
    }
    std::printf("fprnn %s: %s\n", fp::version_text, right ? "right" : "wrong");
    return right ? 0 : 1;
}
