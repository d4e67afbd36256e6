// Series of runs of a tile program: the iterations of a loop with one fused op as its body.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {
namespace {

/// Elements that one call of a chain's code takes along the rows: their operands stay in the
/// first-level cache from run to run. A share of a thread has whole cache lines.
constexpr std::int64_t kColumns = 1024, kLine = 16;

/// Moves an operand to the next run. Returns where it lies in this one.
template <class Strided>
char* take_run(Strided& of) {
  char* const data = of.at;
  of.at += of.step;
  if (of.other) std::swap(of.at, of.other);
  return data;
}

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
  if (are_apart_ && std::min(threads(), shares_of_series(count)) > 1)
    return run_tiles_apart(count, in, out);
  for (std::int64_t run = 0; run < count; ++run) {
    std::ranges::transform(in, inputs_.begin(), take_run<Strided>);
    std::ranges::transform(out, outputs_.begin(), take_run<Strided>);
    run_tiles();
  }
}

/// Returns true if every tile reads the input only where it wrote the output. A number per row may
/// be read for all columns.
bool TileProgram::is_written_where_read(const Carried& carried) const {
  std::vector<const Place*> read, written;
  const auto add = [&](const Place& place) {
    if (place.location == Location::input && place.index == carried.input) read.push_back(&place);
    if (place.location == Location::output && place.index == carried.output)
      written.push_back(&place);
  };
  for (const Step& step : steps_) {
    std::for_each_n(step.in, step.operands, add);
    if (step.kind != Kind::chain) add(step.out);
    std::ranges::for_each(step.places, add);
  }
  const auto is_same_place = [](const Place& a, const Place& b) {
    return a.offset == b.offset && a.row == b.row && a.item == b.item && a.outer == b.outer &&
           (a.repeats || !b.repeats);
  };
  return std::ranges::all_of(read, [&](const Place* from) {
    return std::ranges::any_of(written, [&](const Place* to) { return is_same_place(*from, *to); });
  });
}

void TileProgram::set_carried(std::span<const Carried> carried) {
  are_apart_ =
      !is_one_tile_ && columns_ > 0 && !is_one_chain() && walk_.axis == Walk::kNone &&
      std::ranges::all_of(carried, [&](const Carried& of) { return is_written_where_read(of); });
  // A series may have more shards than a run.
  if (are_apart_) make_memory(shards_for(std::numeric_limits<std::int64_t>::max(), tiles_in_all()));
}

int TileProgram::shares_of_series(std::int64_t count) const {
  if (is_one_chain()) {
    const Step& step = steps_[0];
    const std::int64_t rows = step.is_flat ? 1 : rows_, columns = rows_ * columns_ / rows;
    return shards_for(rows * columns * count * static_cast<std::int64_t>(step.places.size()),
                      rows * ((columns + kLine - 1) / kLine));
  }
  return are_apart_ ? shards_for(work_ * count, tiles_in_all()) : 1;
}

/// Shares of the tiles for threads. A tile takes part in all runs before the next tile does, so
/// that its states stay in the first-level cache.
void TileProgram::run_tiles_apart(std::int64_t count, std::span<const Strided> in,
                                  std::span<const Strided> out) const {
  const std::int64_t all = tiles_in_all();
  const int shares = std::min(threads(), shares_of_series(count));
  parallel_for(shares, [&](int share) {
    std::vector<Strided> in_now, out_now;
    std::vector<char*> inputs(in.size()), outputs(out.size());
    std::int64_t number = all * share / shares;
    Tile tile = tile_at(number, share);
    tile.inputs = inputs.data();
    tile.outputs = outputs.data();
    for (const std::int64_t end = all * (share + 1) / shares; number < end; ++number) {
      tile.rows = std::min(tile_rows_, rows_ - tile.row);
      tile.columns = std::min(tile_columns_, columns_ - tile.column);
      in_now.assign(in.begin(), in.end());
      out_now.assign(out.begin(), out.end());
      for (std::int64_t run = 0; run < count; ++run) {
        std::ranges::transform(in_now, inputs.begin(), take_run<Strided>);
        std::ranges::transform(out_now, outputs.begin(), take_run<Strided>);
        run_tile(tile);
      }
      advance(tile);
    }
  });
}

/// Each run is a row of the chain's code; operands advance from row to row. Elements do not depend
/// on each other, so that threads may take shares of them.
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
  const std::int64_t units = rows * lines;
  const int shares = std::min(threads(), shares_of_series(count));
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
