// A second translation unit of the same program: everything that the headers define is inline.
#include FPRNN_HEADER

double last_of_scan_in_second_unit();

double last_of_scan_in_second_unit() {
    fprnn::tensor<float> lambda({1, 3, 1}), u({1, 3, 1}, {1, 0, 0});
    lambda.fill(0.5f);
    return static_cast<double>(fprnn::scan(lambda, u)[2]);
}
