#pragma once

#include <memory>
#include <utility>

namespace fprnn {

/// An object whose type is only known where it is used. It stays, with the memory that it has come to own, for the next use
/// with that type.
class reusable {
public:
    /// The object, when it is a K; otherwise a new K in its place.
    template <class K>
    K& as() {
        if (auto* same = dynamic_cast<box<K>*>(box_.get())) return same->object;
        auto made = std::make_unique<box<K>>();
        K& object = made->object;
        box_ = std::move(made);
        return object;
    }

private:
    struct any_box {
        virtual ~any_box() = default;
    };
    template <class K>
    struct box : any_box {
        K object = K();
    };
    std::unique_ptr<any_box> box_;
};

}  // namespace fprnn
