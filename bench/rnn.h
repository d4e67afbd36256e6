// bench/rnn.h — the work that recurrent layers are timed at, in numbers that any library can take.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reel/frontend/jit.h"

namespace reel::bench {

using Floats = std::vector<float>;

/// Arrays by name, row-major.
using Numbers = std::map<std::string, Floats>;

enum class Cell {
  lstm,              ///< LstmCell
  gru_reset_after,   ///< GruCell, as cuDNN has it
  gru_reset_before,  ///< GruCell, as in the paper
  layernorm_lstm,    ///< LayerNormLstmCell of cells.h
  custom,            ///< CustomCell of cells.h
  weight_norm_lstm,  ///< WeightNormLstmCell of cells.h
};

/// Recurrent layers one above another over `batch` sequences, from a state of zeros. What is asked
/// for are the outputs hs of the last layer, and the gradients of sum(hs · cotangent) with respect
/// to x and all parameters: what a training step asks of them, whatever the loss.
struct RnnProblem {
  Cell cell = Cell::lstm;
  int steps, batch, in, hidden;
  int layers = 1;
  bool is_ragged = false;  ///< sequences of 10 to 100 % of the steps, evenly spread

  /// As cases are called: "lstm T=1000 B=16 I=64 H=128".
  std::string name() const;
  /// As sizes stand in names of cases: "T=1000 B=16 I=64 H=128".
  std::string sizes() const;
  int gates() const;
  /// Of the matrix products at full length, forward and backward.
  double flops() const;

  /// Random numbers that are the same whoever asks: elements of the normal distribution, of
  /// variance 1 for x and cotangent, 1 / hidden for parameters. Names and shapes:
  ///   x                      {steps, batch, in}
  ///   cotangent              {steps, batch, hidden}, as hs
  ///   cell.input_weight      {in, gates hidden}, gates in the order of LstmCell or GruCell
  ///   cell.recurrent_weight  {hidden, gates hidden}
  ///   cell.bias              {gates hidden}
  ///   cell.candidate_bias    {hidden}, where the reset comes after the product
  /// In layer i of several they begin with cell.cells.i. instead.
  Floats draw(const std::string& name, std::size_t count) const;
  /// Of the sequences: their lengths.
  std::vector<int> lengths() const;
};

/// One library's way to it.
struct RnnRun {
  /// Leaves the results in the library's tensors, as a user's training step would.
  std::function<void()> run;
  /// hs, and the gradients by the names above, of the last run.
  std::function<Numbers()> numbers;
};

/// `recur` over a cell that is written in ops, differentiated on the tape, or in a trace.
RnnRun eager_rnn(const RnnProblem& problem);
RnnRun traced_rnn(const RnnProblem& problem, const JitOptions& options = {});

/// Throws Error, which names the first array that only one of them has, or that is off by more than
/// 1e-3 of its largest element.
void check_same(const Numbers& expected, const Numbers& actual);

}  // namespace reel::bench
