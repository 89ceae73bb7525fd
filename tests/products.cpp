#include "products.hpp"

namespace fprnn {

template void eigen::multiply<float>(matrix<float>, matrix<const float>, matrix<const float>, bool, view<float>);
template void eigen::multiply_back<float>(matrix<float>, matrix<const float>, matrix<const float>, bool, view<float>);
template void eigen::multiply_weights<float>(matrix<const float>, weights_parts<float>, view<float>);
template void eigen::multiply<double>(matrix<double>, matrix<const double>, matrix<const double>, bool, view<double>);
template void eigen::multiply_back<double>(matrix<double>, matrix<const double>, matrix<const double>, bool,
                                           view<double>);
template void eigen::multiply_weights<double>(matrix<const double>, weights_parts<double>, view<double>);
template void eigen::pack<float>(matrix<const float>, float*);
template void eigen::pack_back<float>(matrix<const float>, float*);
template void eigen::pack_rows<float>(matrix<const float>, float*);
template void eigen::multiply_packed<float>(matrix<float>, packed_matrix<float>, packed_matrix<float>, bool);
template void eigen::multiply_back_packed<float>(matrix<float>, packed_matrix<float>, packed_matrix<float>, bool);
template void eigen::pack<double>(matrix<const double>, double*);
template void eigen::pack_back<double>(matrix<const double>, double*);
template void eigen::pack_rows<double>(matrix<const double>, double*);
template void eigen::multiply_packed<double>(matrix<double>, packed_matrix<double>, packed_matrix<double>, bool);
template void eigen::multiply_back_packed<double>(matrix<double>, packed_matrix<double>, packed_matrix<double>, bool);

}  // namespace fprnn
