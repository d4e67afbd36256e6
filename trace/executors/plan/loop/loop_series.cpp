// Iterations of a LoopRun that need no work between them (iteration_series.h).
#include <algorithm>

#include "reel/core/ops/kernels/long_sums.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

/// The bytes of carries that a series writes, roughly: a few milliseconds' work. A call can be
/// cancelled only between two series.
constexpr std::int64_t kSeriesBytes = 16 << 20;

}  // namespace

bool LoopRun::can_run_series() const {
  const auto are_dense = [](const auto& leaves, auto is_dense) {
    return std::all_of(leaves.begin(), leaves.end(), is_dense);
  };
  return loop_.series && !rows_ && !attrs_.takes_checkpoints() &&
         are_dense(slices_,
                   [](const auto& of) { return std::holds_alternative<DenseSlices>(of); }) &&
         are_dense(stacks_, [](const auto& of) { return std::holds_alternative<DenseStack>(of); });
}

/// Returns how many of the next iterations need no work between them. Sums of f32 begin a block
/// every kPlainTerms iterations. The last state is no state before an iteration, so that it goes
/// elsewhere than into a stack of these.
std::int64_t LoopRun::iterations_of_series() const {
  const std::int64_t done = iterations_.count();
  std::int64_t count = iterations_.limit - done, bytes = 1;
  for (const PlannedLoop::Carry& carry : loop_.carries) {
    if (carry.stack_of_next) count = std::min(count, iterations_.limit - done - 1);
    bytes = std::max(bytes, carry.bytes);
  }
  for (std::size_t i = 0; i < attrs_.sums.size(); ++i)
    if (is_in_blocks(i)) count = std::min(count, (kPlainTerms - done % kPlainTerms) % kPlainTerms);
  return std::min(count, std::max(kSeriesBytes / bytes, std::int64_t{1}));
}

/// Runs iterations as a series. Requires that an iteration has run, so that carries lie in memory
/// of the loop and sums have a term.
void LoopRun::run_series() {
  const IterationSeries& series = *loop_.series;
  const std::int64_t count = iterations_of_series(), done = iterations_.count();
  if (count <= 0) return;
  const std::int64_t direction = attrs_.trips.is_reverse ? -1 : 1;
  position_ = attrs_.trips.is_reverse ? iterations_.limit - 1 - done : done;
  for (const auto& [stack, carry] : series.repeated_stacks())
    if (stack_at(stack, position_) != carries_[carry]) return;
  const std::int64_t begin = profile() ? nanoseconds_now() : 0;
  const bool is_in_place = series.program().is_one_chain();
  const auto lies_in_stack = [&](std::size_t carry) {
    return loop_.carries[carry].stack || loop_.carries[carry].stack_of_next;
  };
  const auto step_of = [&](std::size_t carry) { return direction * loop_.carries[carry].bytes; };
  using Strided = TileProgram::Strided;
  std::vector<Strided> in, out;
  for (const auto& [leaf, constant] : series.operands()) {
    const std::size_t i = leaf.index;
    if (constant)
      in.push_back({static_cast<char*>(constant), 0});
    else if (leaf.is(LeafKind::carry) && lies_in_stack(i))
      in.push_back({carries_[i], step_of(i)});
    else if (leaf.is(LeafKind::carry))
      in.push_back({carries_[i], 0, is_in_place ? nullptr : next_place(i)});
    else if (leaf.is(LeafKind::slice))
      in.push_back(std::get<DenseSlices>(slices_[i]).series_from(position_, direction));
    else if (leaf.is(LeafKind::capture))
      in.push_back({capture(attrs_.body_captures[i]).data<char>(), 0});
    else
      in.push_back({out_.sums[i].data<char>(), 0});
  }
  for (const LoopLeaf& leaf : series.results()) {
    const std::size_t i = leaf.index;
    if (leaf.is(LeafKind::carry) && lies_in_stack(i))
      out.push_back({next_place(i), step_of(i)});
    else if (leaf.is(LeafKind::carry))
      out.push_back(is_in_place ? Strided{carries_[i], 0} : Strided{next_place(i), 0, carries_[i]});
    else if (leaf.is(LeafKind::stack))
      out.push_back(std::get<DenseStack>(stacks_[i]).series_from(position_, direction));
    else
      out.push_back({out_.sums[i].data<char>(), 0});
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    const LoopLeaf& leaf = series.results()[k];
    if (!leaf.is(LeafKind::carry)) continue;
    const bool is_in_other = out[k].other && count % 2 == 0;
    carries_[leaf.index] = is_in_other ? out[k].other : out[k].at + (count - 1) * out[k].step;
  }
  series.program().run_series(count, in, out);
  iterations_.skip(done + count);
  if (!profile()) return;
  const std::int64_t end = nanoseconds_now();
  const std::size_t record = series.record();
  Profile& body = profile()->child(LoopProfile::kBody);
  body.runs += count;
  body.records[record].calls += count;
  body.records[record].nanoseconds += end - begin;
  body.note({static_cast<std::uint32_t>(record), thread_number(), begin, end});
}

}  // namespace reel
