// bench/onednn.h — oneDNN's side of a comparison: its recurrent layers, and its products.
#pragma once

#include <functional>
#include <string>

#include "rnn.h"

namespace reel::bench {

/// Returns true if oneDNN has primitives for the problem: one layer of an LSTM or of either GRU, or
/// several LSTM layers with as many inputs as hidden units; all sequences at full length.
bool is_in_onednn(const RnnProblem& problem);

/// Returns a run of the forward and backward primitives on `threads` OpenMP threads. Weights are
/// converted to the primitives' layouts beforehand, uncounted. Requires is_in_onednn(problem).
RnnRun onednn_rnn(const RnnProblem& problem, int threads);

/// Returns oneDNN's names of the kernels that it uses for the problem. Requires
/// is_in_onednn(problem).
std::string onednn_kernels(const RnnProblem& problem, int threads);

/// A product of two square matrices that stay in the cache: the maximum speed of a core.
struct Product {
  std::function<void()> run;
  double flops;
};
Product onednn_product();

}  // namespace reel::bench
