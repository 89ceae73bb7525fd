#pragma once

#include <fprnn/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fprnn {

/// Calls row(numbers) for every row of a table that csv_file wrote, with the numbers of the named columns in
/// the order of `columns`; NaN for an empty cell. A last row without its end was cut while it was written and
/// is left out. One row is in memory at a time. std::runtime_error, with the file's name, when it cannot be
/// read, lacks a column or holds no number where one is asked for.
template <class Row>
void read_csv(const std::filesystem::path& path, const std::vector<std::string>& columns, Row&& row) {
    const auto refuse = [&](const std::string& why) { throw std::runtime_error(path.string() + ": " + why); };
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse("cannot be read");
    std::vector<std::string> cells;
    // A cell that holds what separates cells or rows stands in quotes, its own quotes twice (RFC 4180).
    const auto next = [&] {
        cells.assign(1, "");
        bool is_quoted = false;
        for (int c; (c = file.get()) != std::ifstream::traits_type::eof();) {
            if (c == '"') {
                if (is_quoted && file.peek() == '"')
                    cells.back() += static_cast<char>(file.get());
                else
                    is_quoted = !is_quoted;
            } else if (is_quoted || (c != ',' && c != '\n')) {
                cells.back() += static_cast<char>(c);
            } else if (c == ',') {
                cells.emplace_back();
            } else {
                return true;
            }
        }
        return false;
    };
    if (!next()) refuse("has no header");
    std::vector<std::size_t> places;
    places.reserve(columns.size());
    for (const std::string& name : columns) {
        const auto at = std::find(cells.begin(), cells.end(), name);
        if (at == cells.end()) refuse("has no column '" + name + "'");
        places.push_back(static_cast<std::size_t>(at - cells.begin()));
    }
    std::vector<double> numbers(columns.size());
    for (std::size_t at = 1; next(); ++at) {
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::string_view cell = places[i] < cells.size() ? std::string_view(cells[places[i]]) : "?";
            numbers[i] = std::numeric_limits<double>::quiet_NaN();
            if (cell.empty()) continue;
            const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), numbers[i]);
            if (error != std::errc{} || end != cell.data() + cell.size())
                refuse("row " + std::to_string(at) + ": expected a number as " + columns[i] + ", got '" +
                       std::string(cell) + "'");
        }
        row(numbers);
    }
}

}  // namespace fprnn
