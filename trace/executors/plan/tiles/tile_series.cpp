// Series of runs of a tile program: the iterations of a loop whose body is one fused op.
#include <algorithm>
#include <utility>

#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {
namespace {

/// Elements that one call of a chain's code takes along the rows: their operands stay in the
/// first-level cache from run to run. A share of a thread has whole cache lines.
constexpr std::int64_t kColumns = 1024, kLine = 16;

}  // namespace

bool TileProgram::is_one_chain() const {
  return steps_.size() == 1 && steps_[0].kind == Kind::chain && outer_.empty() &&
         (steps_[0].is_flat || rows_ == 1 || columns_ >= kLine);
}

void TileProgram::run_series(std::int64_t count, std::span<Strided> in, std::span<Strided> out) {
  if (columns_ == 0) return;
  const auto lies_apart = [](const Strided& of) { return of.other != nullptr; };
  if (is_one_chain() && std::none_of(in.begin(), in.end(), lies_apart))
    return run_chain_series(count, in, out);
  for (std::int64_t run = 0; run < count; ++run) {
    const auto next = [](Strided& of, char*& data) {
      data = of.at;
      of.at += of.step;
      if (of.other) std::swap(of.at, of.other);
    };
    for (std::size_t i = 0; i < in.size(); ++i) next(in[i], inputs_[i]);
    for (std::size_t k = 0; k < out.size(); ++k) next(out[k], outputs_[k]);
    run_tiles();
  }
}

/// The runs are the rows of the chain's code, whose operands advance from row to row. Elements do
/// not depend on each other, so that threads may take shares of them.
void TileProgram::run_chain_series(std::int64_t count, std::span<const Strided> in,
                                   std::span<const Strided> out) const {
  const Step& step = steps_[0];
  const std::int64_t rows = step.is_flat ? 1 : rows_, columns = rows_ * columns_ / rows,
                     lines = (columns + kLine - 1) / kLine;
  const auto run = [&](std::int64_t row, std::int64_t first, std::int64_t width) {
    ChainRun chain;
    chain.rows = count;
    chain.columns = width;
    for (std::size_t i = 0; i < step.places.size(); ++i) {
      const Place& place = step.places[i];
      const Strided& of = (place.location == Location::input ? in : out)[place.index];
      const std::int64_t elements = row * place.row + (place.repeats ? 0 : first);
      chain.at[i] = of.at + place.offset + elements * place.item;
      chain.step[i] = of.step;
    }
    step.code->run(chain);
  };
  const auto work = rows * columns * count * static_cast<std::int64_t>(step.places.size());
  const std::int64_t units = rows * lines;
  const int shares = std::min(threads(), shards_for(work, units));
  parallel_for(shares, [&](int share) {
    constexpr std::int64_t kMaxLines = kColumns / kLine;
    for (std::int64_t at = units * share / shares, end = units * (share + 1) / shares; at < end;) {
      const std::int64_t line = at % lines, many = std::min({lines - line, end - at, kMaxLines});
      run(at / lines, line * kLine, std::min(many * kLine, columns - line * kLine));
      at += many;
    }
  });
}

}  // namespace reel
