#include <fprnn/tasks/task.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::index;
using fprnn::tensor;

TEST_CASE("task: a word problem as a value has its sequences, of both parts, and its sizes") {
    for (const bool begin_token : {false, true}) {
        const fprnn::word_problem data{.group = fprnn::finite_group("S3"),
                                       .seed = {4},
                                       .part = fprnn::split::validation,
                                       .begin_token = begin_token};
        const fprnn::task task = as_task(data);
        CHECK(task.name == "S3");
        CHECK(task.vocabulary == 6 + begin_token);
        CHECK(task.classes == 6 + begin_token);
        const auto set = task.test(5);
        CHECK(set.tokens == 5 + begin_token);
        CHECK(set.sequences == 0);
        for (const auto part : {fprnn::split::train, fprnn::split::test}) {
            auto own = data;
            own.part = part;
            tensor<std::int32_t> x({3, 6}), y({3, 6}), tokens({3, 6}), targets({3, 6});
            own(x.view(), y.view(), 9);
            (part == fprnn::split::train ? task.train : set.data)(tokens.view(), targets.view(), 9);
            for (index i = 0; i < x.size(); ++i) {
                CHECK(tokens[i] == x[i]);
                CHECK(targets[i] == y[i]);
            }
        }
        fprnn::evaluation e;
        e.accuracy = {.token = 0.75, .sequence = 0.5};
        CHECK(task.score(e) == 0.5);
        CHECK_FALSE(task.less_is_better);
    }
}

}  // namespace
