#pragma once

#include <fprnn/backend/eigen.hpp>

/// Eigen's matrix products, which take seconds to compile, are compiled in products.cpp alone.
namespace fprnn {

extern template void eigen::multiply<float>(matrix<float>, matrix<const float>, matrix<const float>, bool, view<float>);
extern template void eigen::multiply_back<float>(matrix<float>, matrix<const float>, matrix<const float>, bool,
                                                 view<float>);
extern template void eigen::multiply_weights<float>(matrix<const float>, weights_parts<float>, view<float>);
extern template void eigen::multiply<double>(matrix<double>, matrix<const double>, matrix<const double>, bool,
                                             view<double>);
extern template void eigen::multiply_back<double>(matrix<double>, matrix<const double>, matrix<const double>, bool,
                                                  view<double>);
extern template void eigen::multiply_weights<double>(matrix<const double>, weights_parts<double>, view<double>);
extern template void eigen::pack<float>(matrix<const float>, float*);
extern template void eigen::pack_back<float>(matrix<const float>, float*);
extern template void eigen::pack_rows<float>(matrix<const float>, float*);
extern template void eigen::multiply_packed<float>(matrix<float>, packed_matrix<float>, packed_matrix<float>, bool);
extern template void eigen::multiply_back_packed<float>(matrix<float>, packed_matrix<float>, packed_matrix<float>,
                                                        bool);
extern template void eigen::pack<double>(matrix<const double>, double*);
extern template void eigen::pack_back<double>(matrix<const double>, double*);
extern template void eigen::pack_rows<double>(matrix<const double>, double*);
extern template void eigen::multiply_packed<double>(matrix<double>, packed_matrix<double>, packed_matrix<double>, bool);
extern template void eigen::multiply_back_packed<double>(matrix<double>, packed_matrix<double>, packed_matrix<double>,
                                                         bool);

}  // namespace fprnn
