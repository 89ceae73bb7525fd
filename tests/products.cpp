#include "products.hpp"

namespace fprnn {

template void eigen::multiply<float>(matrix<float>, matrix<const float>, matrix<const float>, bool, view<float>);
template void eigen::multiply_back<float>(matrix<float>, matrix<const float>, matrix<const float>, bool, view<float>);
template void eigen::multiply_weights<float>(matrix<float>, matrix<const float>, matrix<const float>, view<float>);
template void eigen::multiply<double>(matrix<double>, matrix<const double>, matrix<const double>, bool, view<double>);
template void eigen::multiply_back<double>(matrix<double>, matrix<const double>, matrix<const double>, bool,
                                           view<double>);
template void eigen::multiply_weights<double>(matrix<double>, matrix<const double>, matrix<const double>, view<double>);

}  // namespace fprnn
