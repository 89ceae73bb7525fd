#pragma once

#include <fprnn/core/initialiser.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/expression/width.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fprnn {

/// Named parameters in one flat array. A name is a path such as "blocks.0.Q"; a tree's gradient is a tree of
/// the same layout, so optimisers and files walk the flat array and the list of entries.
template <class T>
class parameter_tree {
public:
    using value_type = T;
    struct entry {
        std::string name;
        fprnn::shape shape;
        index offset;
        bool decay;
        bool operator==(const entry&) const = default;
    };

    parameter_tree() = default;
    parameter_tree(const parameter_tree&) = default;
    parameter_tree(parameter_tree&&) noexcept = default;
    /// Where memory does not suffice, the tree is what it was.
    parameter_tree& operator=(const parameter_tree& other) {
        if (entries_ == other.entries_) {
            values_ = other.values_;
            return *this;
        }
        std::vector<entry> entries = other.entries_;
        values_ = other.values_;
        entries_ = std::move(entries);
        return *this;
    }
    parameter_tree& operator=(parameter_tree&&) noexcept = default;
    ~parameter_tree() = default;

    /// Appends a parameter and initialises it; argument_error when the name is taken, 64 bits cannot address
    /// so many, or its initialiser needs what does not stand before it. The tree is then what it was.
    void add(const parameter_spec& spec, seed s = {}) {
        require(!contains(spec.name), "parameter_tree", [&] { return "the name '" + spec.name + "' is used twice"; });
        const index offset = size(), all = checked_sum(offset, spec.extents.count(), "parameter_tree");
        values_.resize(detail::addressable<T>(all, "parameter_tree", [&] {
            return "'" + spec.name + "' " + spec.extents.to_string() + " after " + std::to_string(offset) + " others";
        }));
        view<const T> before;
        if (!entries_.empty()) before = {values_.data() + entries_.back().offset, entries_.back().shape};
        try {
            initialise<T>({values_.data() + offset, spec.extents}, spec.init, spec.name, s, before);
            entries_.push_back({spec.name, spec.extents, offset, spec.decay});
        } catch (...) {
            values_.resize(static_cast<std::size_t>(offset));
            throw;
        }
    }

    /// The same names and shapes, all zero.
    parameter_tree zeros_like() const {
        parameter_tree other = *this;
        std::fill(other.values_.begin(), other.values_.end(), T(0));
        return other;
    }

    const std::vector<entry>& entries() const { return entries_; }
    /// Whether AdamW's weight decay is for this parameter. Errors: there is none of this name.
    void set_decay(std::string_view name, bool decay) {
        entries_[static_cast<std::size_t>(&at(name) - entries_.data())].decay = decay;
    }
    bool contains(std::string_view name) const { return find(name) != nullptr; }

    view<T> operator[](std::string_view name) {
        const entry& e = at(name);
        return {values_.data() + e.offset, e.shape};
    }
    view<const T> operator[](std::string_view name) const {
        const entry& e = at(name);
        return {values_.data() + e.offset, e.shape};
    }

    index size() const { return static_cast<index>(values_.size()); }
    T* data() { return values_.data(); }
    const T* data() const { return values_.data(); }
    T* begin() { return data(); }
    T* end() { return data() + size(); }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size(); }

private:
    const entry* find(std::string_view name) const {
        for (const entry& e : entries_)
            if (e.name == name) return &e;
        return nullptr;
    }
    const entry& at(std::string_view name) const {
        const entry* e = find(name);
        require(e != nullptr, "parameter_tree", [&] {
            std::string known;
            for (const entry& k : entries_) known += (known.empty() ? "" : ", ") + k.name;
            return "no parameter '" + std::string(name) + "'; there are: " + known;
        });
        return *e;
    }

    std::vector<entry> entries_;
    buffer<T> values_;
};

/// The parameters of one layer and the widths they were made for.
template <class T>
struct layer_parameters : parameter_tree<T> {
    dims widths;
};

}  // namespace fprnn
