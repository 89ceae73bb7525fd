// expect: sequence_model: a block has as many channels as its input, d_in
#include <fprnn/models/sequence_model.hpp>

using namespace fprnn::symbols;
fprnn::models::sequence_model model(fprnn::linear<"a">(in), {.vocabulary = 2, .classes = 2});
