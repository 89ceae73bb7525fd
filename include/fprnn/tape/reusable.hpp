#pragma once

#include <memory>
#include <utility>

namespace fprnn {

/// An object whose type is only known where it is used. It stays, with the memory that it has come to own,
/// for the next use with that type.
class reusable {
public:
    /// The object, when it is a K; otherwise a new K in its place.
    template <class K>
    K& as() {
        if (box_ && box_->kind == &kind_of<K>) return static_cast<box<K>*>(box_.get())->object;
        auto made = std::make_unique<box<K>>();
        K& object = made->object;
        box_ = std::move(made);
        return object;
    }

private:
    /// Its address names the type, so that programs without RTTI may use this.
    template <class K>
    static inline char kind_of = 0;
    struct any_box {
        const void* kind;
        explicit any_box(const void* k) : kind(k) {}
        virtual ~any_box() = default;
    };
    template <class K>
    struct box : any_box {
        K object = K();
        box() : any_box(&kind_of<K>) {}
    };
    std::unique_ptr<any_box> box_;
};

}  // namespace fprnn
