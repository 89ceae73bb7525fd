#pragma once

/// What programs have in common, compiled once: engine, operations, recurrences, reflections, tape, training,
/// evaluation and optimiser, of float and double on the CPU's backend. Where FPRNN_COMPILED is defined, as by
/// CMake's target fprnn::compiled, these instances are in that library, and a program compiles what its own
/// expressions add. src/float.cpp and src/double.cpp make the library, which has to be compiled for the same
/// processor as the program. Without FPRNN_COMPILED all is in the headers, and this one declares nothing.
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/delta_product.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_mamba2.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/train/trainer.hpp>

#include <cstddef>
#include <span>

#if defined(FPRNN_COMPILED) || defined(FPRNN_COMPILES)

/// The instances of number type T: `instance` is `template`, which makes them, or `extern template`.
#define FPRNN_INSTANCES(instance, T)                                                                                   \
    instance void eigen::multiply<T>(matrix<T>, matrix<const T>, matrix<const T>, bool, view<T>);                      \
    instance void eigen::multiply_back<T>(matrix<T>, matrix<const T>, matrix<const T>, bool, view<T>);                 \
    instance void eigen::multiply_weights<T>(matrix<const T>, weights_parts<T>, view<T>);                              \
    instance void eigen::pack<T>(matrix<const T>, T*);                                                                 \
    instance void eigen::pack_back<T>(matrix<const T>, T*);                                                            \
    instance void eigen::pack_rows<T>(matrix<const T>, T*);                                                            \
    instance void eigen::multiply_packed<T>(matrix<T>, packed_matrix<T>, packed_matrix<T>, bool);                      \
    instance void eigen::multiply_back_packed<T>(matrix<T>, packed_matrix<T>, packed_matrix<T>, bool);                 \
    instance class parameter_tree<T>;                                                                                  \
    instance class adamw<T>;                                                                                           \
    instance struct training_memory<T>;                                                                                \
    instance struct ongoing_sequences<T>;                                                                              \
    instance void graph::add_parameters<T>(const graph::view&, parameter_tree<T>&, const dims&, const std::string&,    \
                                           seed);                                                                      \
    instance parameter_tree<T> models::init<T>(const models::model_dims&, std::span<const graph::view>,                \
                                               const graph::view&, seed);                                              \
    instance graph::parameter_range graph::parameters_in<T>(const graph::view&, const parameter_tree<T>&, const dims&, \
                                                            const std::string&);                                       \
    FPRNN_INSTANCES_ON(instance, T, eigen)

/// Those of them that are another for each backend.
#define FPRNN_INSTANCES_ON(instance, T, Backend)                                                                    \
    instance class tape<T, Backend, T>;                                                                             \
    instance variable embedding<T, Backend, T>(tape<T, Backend, T>&, const std::string&, view<const std::int32_t>); \
    instance variable cross_entropy<T, Backend, T>(tape<T, Backend, T>&, variable, view<const std::int32_t>,        \
                                                   cross_entropy_result<T>*, double);                               \
    instance struct engine::layer_on<T, Backend, T>;                                                                \
    instance struct engine::chunk_of_a_token<T, Backend>;                                                           \
    instance struct models::model_on<T, Backend, T>;                                                                \
    FPRNN_TRAINING_ON(instance, T, Backend)                                                                         \
    FPRNN_OPERATIONS_ON(instance, T, Backend)

/// Of training on tokens and classes.
#define FPRNN_TRAINING_ON(instance, T, Backend)                                                                    \
    instance void detail::cross_entropy<T, T, Backend>(view<const T>, view<const std::int32_t>, view<T>, Backend&, \
                                                       cross_entropy_result<T>&, double);                          \
    instance class detail::batch_gradient<T, Backend, T, detail::batch<T, std::int32_t, std::int32_t>>;            \
    instance class detail::training_run<T, Backend, T, detail::batch<T, std::int32_t, std::int32_t>>;              \
    instance evaluation detail::evaluate_parts<T, Backend, T, detail::batch<T, std::int32_t, std::int32_t>>(       \
        index, index, const detail::measure_part<T, Backend, T, detail::batch<T, std::int32_t, std::int32_t>>&,    \
        ranks*);

#define FPRNN_OPERATIONS_ON(instance, T, Backend)                                          \
    FPRNN_OPERATION_ON(instance, T, Backend, input<T, Backend>)                            \
    FPRNN_OPERATION_ON(instance, T, Backend, previous<T, Backend>)                         \
    FPRNN_OPERATION_ON(instance, T, Backend, parameter<T, Backend>)                        \
    FPRNN_OPERATION_ON(instance, T, Backend, shift<T, Backend>)                            \
    FPRNN_OPERATION_ON(instance, T, Backend, shift_of_iterate<T, Backend>)                 \
    FPRNN_OPERATION_ON(instance, T, Backend, fixed_point<T, Backend>)                      \
    FPRNN_OPERATION_ON(instance, T, Backend, linear<T, Backend>)                           \
    FPRNN_OPERATION_ON(instance, T, Backend, scan<T, Backend>)                             \
    FPRNN_OPERATION_ON(instance, T, Backend, recur<selective_scan_recurrence, T, Backend>) \
    FPRNN_OPERATION_ON(instance, T, Backend, l2_normalise<T, Backend>)                     \
    FPRNN_OPERATION_ON(instance, T, Backend, norm<rms_norm_function, T, Backend>)          \
    FPRNN_OPERATION_ON(instance, T, Backend, norm<layer_norm_function, T, Backend>)        \
    FPRNN_OPERATION_ON(instance, T, Backend, norm_of_parts<rms_norm_function, T, Backend>) \
    FPRNN_OPERATION_ON(instance, T, Backend, l2_normalise_parts<T, Backend>)               \
    FPRNN_OPERATION_ON(instance, T, Backend, recur<head_scan_recurrence<1>, T, Backend>)   \
    FPRNN_OPERATION_ON(instance, T, Backend, recur<gated_delta_recurrence, T, Backend>)    \
    FPRNN_OPERATION_ON(instance, T, Backend, recur<convolution_recurrence<4>, T, Backend>) \
    FPRNN_MIXER_ON(instance, T, Backend, householder_mixer<1>)                             \
    FPRNN_MIXER_ON(instance, T, Backend, householder_mixer<2>)                             \
    FPRNN_MIXER_ON(instance, T, Backend, householder_mixer<4>)                             \
    FPRNN_FUNCTION_ON(instance, T, Backend, silu_function)                                 \
    FPRNN_FUNCTION_ON(instance, T, Backend, sigmoid_function)                              \
    FPRNN_FUNCTION_ON(instance, T, Backend, softplus_function)                             \
    FPRNN_FUNCTION_ON(instance, T, Backend, tanh_function)

#define FPRNN_OPERATION_ON(instance, T, Backend, ...)                       \
    instance struct forward_operation<operations::__VA_ARGS__, T, Backend>; \
    instance struct differentiated_operation<operations::__VA_ARGS__, T, Backend>;

#define FPRNN_MIXER_ON(instance, T, Backend, ...)                                        \
    FPRNN_OPERATION_ON(instance, T, Backend, prepared_mixer<__VA_ARGS__, 2, T, Backend>) \
    FPRNN_OPERATION_ON(instance, T, Backend, mix<__VA_ARGS__, T, Backend>)               \
    FPRNN_REDUCTION_ON(instance, T, Backend, __VA_ARGS__, kernel::no_norm)               \
    FPRNN_REDUCTION_ON(instance, T, Backend, __VA_ARGS__, layer_norm_function)           \
    FPRNN_REDUCTION_ON(instance, T, Backend, __VA_ARGS__, rms_norm_function)

#define FPRNN_REDUCTION_ON(instance, T, Backend, Mixer, Norm)        \
    instance struct engine::reduced_tokens<Mixer, Norm, T, Backend>; \
    instance struct engine::differentiated_tokens<Mixer, Norm, T, Backend>;

#define FPRNN_FUNCTION_ON(instance, T, Backend, ...)                                                         \
    FPRNN_OPERATION_ON(instance, T, Backend,                                                                 \
                       elementwise<chain::apply<chain::__VA_ARGS__, chain::argument<0>>, T, Backend, false>) \
    FPRNN_OPERATION_ON(instance, T, Backend,                                                                 \
                       elementwise<chain::apply<chain::__VA_ARGS__, chain::argument<0>>, T, Backend, true>)

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
