#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/tasks/text_part.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fprnn {

/// What of a text is held back, and how much of it may be read.
struct text_options {
    double validation_share = 0.1;  ///< of the files, or of the bytes of a single file; 0 for no such part
    double test_share = 0;          ///< of the same; both together are below 1
    std::uint64_t most_bytes = std::uint64_t{1} << 32;
};

/// The bytes of a file, or of all regular files below a folder, as tokens 0 … 255; a byte's target is the
/// next byte.
///
/// Files are sorted by their path relative to the folder, byte by byte, and a part is the concatenation of
/// its files in this order, with nothing between them. Files without bytes count as none. Symbolic links
/// below the folder are not followed, and what is no regular file is left out. All is read once, and samplers
/// and copies share it.
///
/// Several files: no file is in two parts. A hash of its relative path gives each file a number u in [0,1).
/// In the order of u the first files are validation's, those with u < validation_share; then come test's,
/// those with u < validation_share + test_share, and then training's. Training and every part with a share
/// above 0 have one file at least, taken from their neighbours in this order where need be. Otherwise a file
/// stays in its part when others come and go, and a test part takes files from training alone.
///
/// One file is cut: its last ⌊validation_share · bytes⌋ bytes are validation, the ⌊test_share · bytes⌋ before
/// them test.
///
/// Data are a function of the files' names and bytes and of text_options; random windows also of seed, part
/// and number.
class text_files {
public:
    class random_window_sampler;
    class consecutive_window_sampler;

    /// Reads what `path` leads to. argument_error when that is neither a file nor a folder, has no bytes or
    /// more than most_bytes, shares are out of their range, or there are several files but fewer than parts;
    /// std::runtime_error "PATH: reason" when a file or folder below it cannot be read.
    explicit text_files(const std::string& path, const text_options& options = {}) {
        const double v = options.validation_share, t = options.test_share;
        require(v >= 0 && t >= 0 && v + t < 1, "text_files", [&] {
            return "validation_share and test_share must be at least 0 and together below 1, got " +
                   detail::number_text(v) + " and " + detail::number_text(t);
        });
        struct stat found {};
        const int error = ::stat(path.c_str(), &found) == 0 ? 0 : errno;
        const bool is_file = error == 0 && S_ISREG(found.st_mode);
        require(is_file || (error == 0 && S_ISDIR(found.st_mode)), "text_files", [&] {
            return "path must lead to a file or a folder, got '" + path + "' (" +
                   (error != 0 ? std::generic_category().message(error) : "neither") + ")";
        });
        const std::string name = detail::last_component(path);
        auto files = is_file ? std::vector<detail::text_file>{{name, static_cast<std::uint64_t>(found.st_size)}}
                             : detail::files_below(path);
        const std::size_t all = files.size();
        std::erase_if(files, [](const detail::text_file& f) { return f.bytes == 0; });
        require(!files.empty(), "text_files", [&] {
            return "path must lead to a file with at least one byte, got '" + path + "' with " + std::to_string(all) +
                   " files without any";
        });
        std::uint64_t bytes = 0;
        for (const auto& f : files) bytes += f.bytes;
        require(bytes <= options.most_bytes, "text_files", [&] {
            return "path must lead to at most most_bytes = " + std::to_string(options.most_bytes) + " bytes, got '" +
                   path + "' with " + std::to_string(bytes);
        });
        std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });

        std::array<detail::text_part, 3> parts;
        for (std::size_t i = 0; i < 3; ++i) parts[i] = {name, static_cast<split>(i)};
        if (files.size() == 1)
            cut(files.front(), is_file ? path : path + "/" + files.front().name, options, parts);
        else
            deal(files, path, options, parts);
        for (std::size_t i = 0; i < 3; ++i) parts_[i] = std::make_shared<const detail::text_part>(std::move(parts[i]));
    }

    /// The last component of the path.
    const std::string& name() const { return of(split::train).text; }
    static constexpr index vocabulary() { return 256; }
    static constexpr index classes() { return 256; }

    /// The bytes of a part; there are none when none were asked for.
    std::string_view bytes(split part) const { return of(part).bytes; }

    /// The paths of a part's files, relative to the folder, in their order.
    const std::vector<std::string>& files(split part) const { return of(part).files; }

    /// What train() is given: row b is the T bytes from a position that is uniform on those which T + 1 bytes
    /// follow, a function of (seed, part, T, first + b), and its targets the bytes after each.
    random_window_sampler random_windows(fprnn::seed seed, split part = split::train) const;

    /// What evaluate() is given, with windows(T) for the number of sequences: row b is window number first +
    /// b.
    consecutive_window_sampler consecutive_windows(split part) const;

private:
    using parts_type = std::array<detail::text_part, 3>;

    static std::size_t number(split part) { return static_cast<std::size_t>(part); }
    const detail::text_part& of(split part) const { return *parts_[number(part)]; }

    static void cut(const detail::text_file& file, const std::string& path, const text_options& options,
                    parts_type& parts) {
        std::string bytes;
        detail::append_file(path, file.bytes, bytes);
        const auto take = [&](split part, double share) {
            const auto n = static_cast<std::size_t>(share * static_cast<double>(file.bytes));
            detail::text_part& p = parts[number(part)];
            p.bytes = bytes.substr(bytes.size() - n);
            bytes.resize(bytes.size() - n);
            if (n > 0) p.files = {file.name};
        };
        take(split::validation, options.validation_share);
        take(split::test, options.test_share);
        parts[number(split::train)].bytes = std::move(bytes);
        parts[number(split::train)].files = {file.name};
    }

    static void deal(const std::vector<detail::text_file>& files, const std::string& folder,
                     const text_options& options, parts_type& parts) {
        const double v = options.validation_share, t = options.test_share;
        const std::size_t least_validation = v > 0, least_test = t > 0, n = files.size();
        require(n > least_validation + least_test, "text_files", [&] {
            return "training, validation and test need a file each, or one for all, which is cut, got '" + folder +
                   "' with " + std::to_string(n) + " files";
        });
        std::vector<std::pair<double, std::size_t>> by_position;  // and by path where equal
        for (std::size_t i = 0; i < n; ++i) by_position.emplace_back(detail::position_of(files[i].name), i);
        std::sort(by_position.begin(), by_position.end());
        const auto below = [&](double share) {
            const auto end = std::lower_bound(by_position.begin(), by_position.end(), std::pair{share, std::size_t{0}});
            return static_cast<std::size_t>(end - by_position.begin());
        };
        const std::size_t validation = std::clamp(below(v), least_validation, n - 1 - least_test);
        const std::size_t test_end = std::clamp(below(v + t), validation + least_test, n - 1);
        std::vector<split> part(n, split::train);
        std::vector<std::uint64_t> bytes(3);
        for (std::size_t i = 0; i < n; ++i) {
            split& p = part[by_position[i].second];
            if (i < test_end) p = i < validation ? split::validation : split::test;
            bytes[number(p)] += files[by_position[i].second].bytes;
        }
        for (std::size_t i = 0; i < 3; ++i) parts[i].bytes.reserve(static_cast<std::size_t>(bytes[i]));
        for (std::size_t i = 0; i < n; ++i) {
            detail::text_part& p = parts[number(part[i])];
            p.files.push_back(files[i].name);
            detail::append_file(folder + "/" + files[i].name, files[i].bytes, p.bytes);
        }
    }

    std::array<std::shared_ptr<const detail::text_part>, 3> parts_;
};

/// See text_files::random_windows.
class text_files::random_window_sampler {
public:
    /// Overwrites row b of tokens [B,T] with window first + b, and of targets [B,T] with the byte after each.
    /// Windows are numbered from 0 to 2^62 − 1. argument_error when the shapes are not both [B,T] or the part
    /// has fewer than T + 1 bytes.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("text_files", tokens, targets, first);
        const index T = tokens.shape()[1];
        part_->require_window(T);
        const auto positions = static_cast<std::uint64_t>(part_->size() - T);
        for (index b = 0; b < tokens.shape()[0]; ++b) {
            const random_stream random = detail::stream_of(seed_, part_->part, first + static_cast<std::uint64_t>(b));
            const auto begin = static_cast<index>(random.below(0, positions));
            for (index i = 0; i < T; ++i) {
                tokens(b, i) = part_->byte(begin + i);
                targets(b, i) = part_->byte(begin + i + 1);
            }
        }
    }

private:
    friend text_files;
    random_window_sampler(std::shared_ptr<const detail::text_part> part, fprnn::seed s)
        : part_(std::move(part)), seed_(s) {}

    std::shared_ptr<const detail::text_part> part_;
    fprnn::seed seed_;
};

/// See text_files::consecutive_windows. Window w of n bytes has the tokens from w·T on, and every byte but
/// the first is a target once; what of the last window is behind the end is token 0 and ignored_target.
class text_files::consecutive_window_sampler {
public:
    /// ⌈(n − 1)/T⌉, so that each byte but the first is a target once. argument_error unless T is at least 1
    /// and n at least T + 1.
    index windows(index T) const {
        require(T >= 1, "text_files", [&] { return "T must be at least 1, got " + std::to_string(T); });
        part_->require_window(T);
        return (part_->size() - 2) / T + 1;
    }

    /// Overwrites row b of tokens [B,T] with window first + b, and of targets [B,T] with the byte after each.
    /// argument_error when the shapes are not both [B,T], as windows(T), or beyond the last window.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("text_files", tokens, targets, first);
        const index B = tokens.shape()[0], T = tokens.shape()[1], count = windows(T), n = part_->size();
        require(first + static_cast<std::uint64_t>(B) <= static_cast<std::uint64_t>(count), "text_files", [&] {
            return "'" + part_->text + "' has " + std::to_string(count) + " windows of T = " + std::to_string(T) +
                   ", got first = " + std::to_string(first) + " and B = " + std::to_string(B);
        });
        for (index b = 0; b < B; ++b) {
            const index begin = (static_cast<index>(first) + b) * T;
            for (index i = 0; i < T; ++i) {
                tokens(b, i) = begin + i < n ? part_->byte(begin + i) : 0;
                targets(b, i) = begin + i + 1 < n ? part_->byte(begin + i + 1) : ignored_target;
            }
        }
    }

private:
    friend text_files;
    explicit consecutive_window_sampler(std::shared_ptr<const detail::text_part> part) : part_(std::move(part)) {}

    std::shared_ptr<const detail::text_part> part_;
};

inline text_files::random_window_sampler text_files::random_windows(fprnn::seed seed, split part) const {
    return {parts_[number(part)], seed};
}

inline text_files::consecutive_window_sampler text_files::consecutive_windows(split part) const {
    return consecutive_window_sampler(parts_[number(part)]);
}

/// A mean cross-entropy a byte, from nats to bits: nats / log 2.
inline double bits_per_byte(double nats) { return nats / std::numbers::ln2; }

}  // namespace fprnn
