#pragma once

/// What options of models are made with.
namespace fprnn::detail {

/// Of two expressions the first, or the second.
template <bool First, class A, class B>
auto either(A a, B b) {
    if constexpr (First)
        return a;
    else
        return b;
}

}  // namespace fprnn::detail
