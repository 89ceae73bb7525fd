#include <fprnn/fixed_point/layer.hpp>

#include <fprnn/expression/mixers.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;

TEST_CASE("explain: nodes by how often they are evaluated, what is hoisted, and how tokens are solved") {
    const auto Q = householder<2>(cat(in, shift(prev)));
    const auto lambda = sigmoid(affine<"lambda">(in));
    const auto h = fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"v">(in) + (I - Q) * prev)));
    CHECK(explain(layer(linear<"out", d_out>(h))) ==
          R"(once, for all tokens:
   #0  in                                                       d_in
   #1  lambda = W (in) + bias                                   d_inner
   #2  sigmoid(lambda)                                          d_inner
   #3  1 - sigmoid(lambda)                                      d_inner
   #9  v = W (in)                                               d_inner
sees the token before: once per token with C = 1, else once per iteration:
   #5  shift(prev)                                              d_inner
   #6  Q.u = W (in, shift(prev))                                2 d_inner  [in: for all tokens at once]
   #7  Q.alpha = W (in, shift(prev)) + bias                     2  [in: for all tokens at once]
   #8  householder, R = 2, of (Q.u, Q.alpha)
iterated:
   #4  prev                                                     d_inner
  #10  #8 * v + (I - #8) * prev                                 d_inner
  #11  #3 * #10                                                 d_inner
  #12  scan(#2, #11)                                            d_inner
once, at the fixed point:
  #13  fixed point of #12                                       d_inner
  #14  out = W (#13)                                            d_out
Tokens of one-token chunks are solved in 2 numbers, by picard and a stop of residual and iterations.
)");
}

TEST_CASE("explain: each fixed point has its part, with what is evaluated for all tokens between them") {
    const auto y1 = fixed_point(tanh(linear<"a">(cat(in, shift(prev)))));
    const auto Q = householder<1>(y1);
    const auto y2 = fixed_point(Q * linear<"v">(cat(in, y1)) + (I - Q) * prev);
    CHECK(explain(layer(y2 + y1)) == R"(once, for all tokens:
   #0  in                                                       d_in
fixed point #5
sees the token before: once per token with C = 1, else once per iteration:
   #2  shift(prev)                                              d_inner
   #3  a = W (in, shift(prev))                                  d_inner  [in: for all tokens at once]
   #4  tanh(a)                                                  d_inner
iterated:
   #1  prev                                                     d_inner
One-token chunks take one evaluation: f sees shift(prev), not prev.
once, at fixed point #5:
   #5  fixed point of #4                                        d_inner
   #6  Q.u = W (#5)                                             d_inner
   #7  Q.alpha = W (#5) + bias                                  1
   #8  householder, R = 1, of (Q.u, Q.alpha)
   #9  v = W (in, #5)                                           d_inner
fixed point #12
iterated:
  #10  prev                                                     d_inner
  #11  #8 * v + (I - #8) * prev                                 d_inner
Tokens of one-token chunks are solved in 1 number, by picard and a stop of residual and iterations.
once, at fixed point #12:
  #12  fixed point of #11                                       d_inner
  #13  #12 + #5                                                 d_inner
)");
}

TEST_CASE("explain: why tokens are not solved in R numbers") {
    const auto Q = householder<2>(in);
    const auto v = linear<"v">(in);
    const auto last_line = [](const std::string& text) { return text.substr(text.rfind('\n', text.size() - 2) + 1); };
    CHECK(last_line(explain(layer(tanh(v)))) == "Nothing is iterated.\n");
    CHECK(last_line(explain(layer(fixed_point(tanh(Q * v + (I - Q) * prev))))) ==
          "Tokens are iterated in all channels: between the mix and the end stands #7, tanh(#6), which is no scan, no "
          "sum "
          "and no product with what prev does not change.\n");
    CHECK(last_line(explain(layer(fixed_point(prev + (Q * v + (I - Q) * prev))))) ==
          "Tokens are iterated in all channels: prev is seen beside the mix by #7, prev + #6.\n");
    CHECK(last_line(explain(layer(fixed_point(kronecker(in) * v + (I - kronecker(in)) * prev)))) ==
          "Tokens are iterated in all channels: there is no Q * v + (I - Q) * prev whose Q is compact and whose Q and "
          "v do "
          "not contain prev.\n");
}

}  // namespace
