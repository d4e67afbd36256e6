// examples/long_text/model.h — a character model that reads one unbroken sequence per batch row, of
// any length.
#pragma once

#include <reel/reel.h>

#include <utility>

struct LongTextModel {
  reel::Embedding embedding;
  reel::LstmCell cell;
  reel::Linear readout;

  static LongTextModel random(int symbols, int hidden) {
    const reel::Dim symbol("symbol", symbols), in("in", hidden / 2);
    auto embedding = reel::Embedding::init(symbol, in);
    auto cell = reel::LstmCell::init(in, reel::Dim("hidden", hidden));
    auto readout = reel::Linear::init(cell.out_dim(), symbol);
    return {std::move(embedding), std::move(cell), std::move(readout)};
  }
};

/// The length of gradients, and the checkpoints taken for them.
struct Reach {
  std::int64_t truncate = 0;  ///< steps; 0: over all of a piece
  reel::Checkpoint checkpoint;
};

/// Returns the mean of -log p(target) in nats, and the state behind the last symbol. text, target:
/// i32 {time, batch}. The loss is computed per step, so that no value except a number per step
/// spans all steps.
inline std::pair<reel::Tensor, reel::LstmCell::State> long_text_loss(
    const LongTextModel& model, const reel::LstmCell::State& state, const reel::Tensor& text,
    const reel::Tensor& target, const Reach& reach) {
  using namespace reel;
  const auto body = [&](const std::pair<Tensor, Tensor>& at, const LstmCell::State& state) {
    const auto [h, next] = model.cell(model.embedding(at.first), state);
    return std::pair{cross_entropy(model.readout(h), at.second, model.readout.out), next};
  };
  const auto made = scan(Scan{.spatial_dim = text.dim("time"),
                              .initial = state,
                              .xs = std::pair{text, target},
                              .body = body,
                              .checkpoint = reach.checkpoint,
                              .truncate = reach.truncate});
  return {mean(made.ys), made.state};
}
