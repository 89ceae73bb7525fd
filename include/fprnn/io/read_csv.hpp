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
/// the order of `columns`; NaN for an empty cell. A last line without its end was cut while it was written
/// and is left out. One line is in memory at a time. std::runtime_error, with the file's name, when it cannot
/// be read, lacks a column or holds no number where one is asked for.
template <class Row>
void read_csv(const std::filesystem::path& path, const std::vector<std::string>& columns, Row&& row) {
    const auto refuse = [&](const std::string& why) { throw std::runtime_error(path.string() + ": " + why); };
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse("cannot be read");
    std::string line;
    std::vector<std::string_view> cells;
    const auto next = [&] {
        if (!std::getline(file, line) || file.eof()) return false;
        cells.clear();
        for (std::size_t at = 0, end; at <= line.size(); at = end + 1) {
            end = std::min(line.find(',', at), line.size());
            cells.push_back(std::string_view(line).substr(at, end - at));
        }
        return true;
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
            const std::string_view cell = places[i] < cells.size() ? cells[places[i]] : "?";
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
