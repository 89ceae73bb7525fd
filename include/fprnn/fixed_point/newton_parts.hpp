#pragma once

#include <fprnn/graph/node.hpp>

#include <algorithm>
#include <vector>

namespace fprnn::engine {

/// How Newton's method corrects the numbers of a carry. The others are what F says.
struct newton_parts {
    std::vector<index> dense;   ///< through their Jacobian
    std::vector<index> scaled;  ///< each by the factor that it has in its recurrence

    /// What nodes of a fixed point hand on is dense, the smallest first, as long as it is at most `most`
    /// numbers.
    newton_parts(const graph::view& g, const dims& size, index most) {
        struct part {
            index first, width;
            bool iterated, scaled;
        };
        std::vector<part> parts;
        index at = 0;
        for (graph::slot s = 0; s < g.size(); ++s) {
            const index width = graph::carry_width(g, s, size);
            if (width > 0) parts.push_back({at, width, g.is_iterated(s), g[s].scales_state});
            at += width;
        }
        std::stable_sort(parts.begin(), parts.end(), [](const part& a, const part& b) { return a.width < b.width; });
        for (const part& p : parts) {
            const bool is_dense = p.iterated && p.width <= most - static_cast<index>(dense.size());
            if (!is_dense && !p.scaled) continue;
            for (index i = p.first; i < p.first + p.width; ++i) (is_dense ? dense : scaled).push_back(i);
        }
    }
};

}  // namespace fprnn::engine
