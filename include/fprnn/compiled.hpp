#pragma once

/// What programs have in common, compiled once: engine, operations, reflections, tape and optimiser, of float
/// and double on the CPU's backend. Where FPRNN_COMPILED is defined, as by CMake's target fprnn::compiled,
/// these instances are in that library, and a program compiles what its own expressions add. src/float.cpp
/// and src/double.cpp make the library, which has to be compiled for the same processor as the program.
/// Without FPRNN_COMPILED all is in the headers, and this one declares nothing.
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/train/trainer.hpp>

#include <cstddef>
#include <span>

#if defined(FPRNN_COMPILED) || defined(FPRNN_COMPILES)

/// The instances of number type T: `instance` is `template`, which makes them, or `extern template`.
#define FPRNN_INSTANCES(instance, T)                                                                                \
    instance void eigen::multiply<T>(matrix<T>, matrix<const T>, matrix<const T>, bool, view<T>);                   \
    instance void eigen::multiply_back<T>(matrix<T>, matrix<const T>, matrix<const T>, bool, view<T>);              \
    instance void eigen::multiply_weights<T>(matrix<const T>, weights_parts<T>, view<T>);                           \
    instance void eigen::pack<T>(matrix<const T>, T*);                                                              \
    instance void eigen::pack_back<T>(matrix<const T>, T*);                                                         \
    instance void eigen::pack_rows<T>(matrix<const T>, T*);                                                         \
    instance void eigen::multiply_packed<T>(matrix<T>, packed_matrix<T>, packed_matrix<T>, bool);                   \
    instance void eigen::multiply_back_packed<T>(matrix<T>, packed_matrix<T>, packed_matrix<T>, bool);              \
    instance class parameter_tree<T>;                                                                               \
    instance class tape<T, eigen, T>;                                                                               \
    instance class adamw<T>;                                                                                        \
    instance variable embedding<T, eigen, T>(tape<T, eigen, T>&, const std::string&, view<const std::int32_t>);     \
    instance variable cross_entropy<T, eigen, T>(tape<T, eigen, T>&, variable, view<const std::int32_t>,            \
                                                 cross_entropy_result<T>*);                                         \
    instance struct engine::layer_on<T, eigen, T>;                                                                  \
    instance void graph::add_parameters<T>(const graph::view&, parameter_tree<T>&, const dims&, const std::string&, \
                                           seed);                                                                   \
    instance parameter_tree<T> models::init<T>(const models::model_dims&, std::span<const graph::view>,             \
                                               const graph::view&, seed);                                           \
    instance struct engine::chunk_of_a_token<T, eigen>;                                                             \
    instance struct models::model_on<T, eigen, T>;                                                                  \
    instance index graph::parameter_offset<T>(const graph::view&, const parameter_tree<T>&, const dims&,            \
                                              const std::string&);                                                  \
    FPRNN_OPERATIONS_OF(instance, T)

#define FPRNN_OPERATIONS_OF(instance, T)                                        \
    FPRNN_OPERATION_OF(instance, T, input<T, eigen>)                            \
    FPRNN_OPERATION_OF(instance, T, previous<T, eigen>)                         \
    FPRNN_OPERATION_OF(instance, T, parameter<T, eigen>)                        \
    FPRNN_OPERATION_OF(instance, T, shift<T, eigen>)                            \
    FPRNN_OPERATION_OF(instance, T, shift_of_iterate<T, eigen>)                 \
    FPRNN_OPERATION_OF(instance, T, fixed_point<T, eigen>)                      \
    FPRNN_OPERATION_OF(instance, T, linear<T, eigen>)                           \
    FPRNN_OPERATION_OF(instance, T, scan<T, eigen>)                             \
    FPRNN_OPERATION_OF(instance, T, recur<selective_scan_recurrence, T, eigen>) \
    FPRNN_OPERATION_OF(instance, T, l2_normalise<T, eigen>)                     \
    FPRNN_OPERATION_OF(instance, T, norm<rms_norm_function, T, eigen>)          \
    FPRNN_OPERATION_OF(instance, T, norm<layer_norm_function, T, eigen>)        \
    FPRNN_MIXER_OF(instance, T, householder_mixer<1>)                           \
    FPRNN_MIXER_OF(instance, T, householder_mixer<2>)                           \
    FPRNN_MIXER_OF(instance, T, householder_mixer<4>)                           \
    FPRNN_FUNCTION_OF(instance, T, silu_function)                               \
    FPRNN_FUNCTION_OF(instance, T, sigmoid_function)                            \
    FPRNN_FUNCTION_OF(instance, T, softplus_function)                           \
    FPRNN_FUNCTION_OF(instance, T, tanh_function)

#define FPRNN_OPERATION_OF(instance, T, ...)                              \
    instance struct forward_operation<operations::__VA_ARGS__, T, eigen>; \
    instance struct differentiated_operation<operations::__VA_ARGS__, T, eigen>;

#define FPRNN_MIXER_OF(instance, T, ...)                                      \
    FPRNN_OPERATION_OF(instance, T, prepared_mixer<__VA_ARGS__, 2, T, eigen>) \
    FPRNN_OPERATION_OF(instance, T, mix<__VA_ARGS__, T, eigen>)               \
    FPRNN_REDUCTION_OF(instance, T, __VA_ARGS__, kernel::no_norm)             \
    FPRNN_REDUCTION_OF(instance, T, __VA_ARGS__, layer_norm_function)

#define FPRNN_REDUCTION_OF(instance, T, Mixer, Norm)               \
    instance struct engine::reduced_tokens<Mixer, Norm, T, eigen>; \
    instance struct engine::differentiated_tokens<Mixer, Norm, T, eigen>;

#define FPRNN_FUNCTION_OF(instance, T, ...)                                                                \
    FPRNN_OPERATION_OF(instance, T,                                                                        \
                       elementwise<chain::apply<chain::__VA_ARGS__, chain::argument<0>>, T, eigen, false>) \
    FPRNN_OPERATION_OF(instance, T, elementwise<chain::apply<chain::__VA_ARGS__, chain::argument<0>>, T, eigen, true>)

namespace fprnn::detail {

/// What a program and the library have to have in common, the bytes of a register and whether it multiplies
/// and adds at once: a program compiled for another processor is not linked.
#ifdef __FMA__
inline constexpr bool multiplies_and_adds = true;
#else
inline constexpr bool multiplies_and_adds = false;
#endif
template <std::size_t Bytes, bool MultipliesAndAdds>
struct compiled_for {
    static const char here;
};
#ifdef FPRNN_COMPILES
template <std::size_t Bytes, bool MultipliesAndAdds>
const char compiled_for<Bytes, MultipliesAndAdds>::here = 0;
#endif

}  // namespace fprnn::detail

#ifdef FPRNN_COMPILED
namespace fprnn {

FPRNN_INSTANCES(extern template, float)
FPRNN_INSTANCES(extern template, double)

[[gnu::used]] static const char* const same_processor =
    &detail::compiled_for<sizeof(pack<float>), detail::multiplies_and_adds>::here;

}  // namespace fprnn
#endif

#endif
