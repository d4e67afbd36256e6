// bench/onednn.h — oneDNN's part in a comparison: its own recurrent layers, and its products.
#pragma once

#include <functional>
#include <string>

#include "rnn.h"

namespace reel::bench {

/// Whether it has layers of this kind: LSTM, and both forms of the GRU, at full length.
bool is_in_onednn(const RnnProblem& problem);

/// Its forward and its backward primitive, on so many threads of OpenMP. Weights were brought into
/// the layouts that the primitives ask for before, which does not count.
RnnRun onednn_rnn(const RnnProblem& problem, int threads);

/// Which kernels it takes for that, in its words.
std::string onednn_kernels(const RnnProblem& problem, int threads);

/// A product of two square matrices that stay in the cache: the most that a core can do.
struct Product {
  std::function<void()> run;
  double flops;
};
Product onednn_product();

}  // namespace reel::bench
