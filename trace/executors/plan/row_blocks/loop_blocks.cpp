#include "reel/trace/executors/plan/row_blocks/loop_blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/ops/elementwise/add_to.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

void LoopBlocks::make(const PlannedLoop& whole, OpInputs in) {
  whole_ = &whole;
  const std::optional<RowCut> before = std::exchange(
      cut_, whole.shares_of_series() > 1
                ? std::nullopt
                : find_row_cut(whole.loop(), whole.input_types, whole.context.passes));
  if (cut_ && !cut_->keeps_types) cut_.reset();
  if (cut_) bind(before);
  blocks_.resize(cut_ ? cut_->blocks.size() : 0);
  are_all_planned_ = false;
  joined_threads_ = 0;
  is_joined_ = false;
  if (blocks_.empty()) return;
  if (ends()) plan_joined(in);
  if (!is_joined_ && !try_plan_sizes()) blocks_.clear();
}

bool LoopBlocks::try_plan_sizes() {
  for (std::size_t number = 0; number < blocks_.size(); ++number)
    if (is_first_of_its_size(number) && !try_plan(blocks_[number], cut_->blocks[number], number))
      return false;
  return true;
}

bool LoopBlocks::is_first_of_its_size(std::size_t number) const {
  const auto block = cut_->blocks.begin() + static_cast<std::ptrdiff_t>(number);
  return std::find(cut_->blocks.begin(), block, *block) == block;
}

bool LoopBlocks::try_plan_all() {
  if (are_all_planned_) return true;
  if (!try_plan_sizes()) return false;
  for (std::size_t number = 0; number < blocks_.size(); ++number)
    if (!is_first_of_its_size(number) && !try_plan(blocks_[number], cut_->blocks[number], number))
      throw InternalError("only some row blocks of one size can be planned");
  make_partial_sums();
  return are_all_planned_ = true;
}

namespace {

/// Returns which of the dims that blocks replace this is: 0 for the rows, then by ragged dim; -1
/// for other dims.
std::ptrdiff_t replaced_number(const RowCut& cut, const Dim& dim) {
  if (dim == cut.dim) return 0;
  const auto found = std::find(cut.ragged.begin(), cut.ragged.end(), dim);
  return found == cut.ragged.end() ? -1 : 1 + (found - cut.ragged.begin());
}

/// Returns true if `a` and `b` give blocks the same type behind the first axes, given the same
/// dims.
bool are_like_in_blocks(const TensorType& a, const RowCut& cut_of_a, const TensorType& b,
                        const RowCut& cut_of_b, int first_axes) {
  return a.dtype() == b.dtype() && a.is_list() == b.is_list() &&
         a.is_unranked() == b.is_unranked() && std::min(a.rank(), b.rank()) >= first_axes &&
         std::equal(a.dims().begin() + first_axes, a.dims().end(), b.dims().begin() + first_axes,
                    b.dims().end(), [&](const Dim& x, const Dim& y) {
                      const std::ptrdiff_t number = replaced_number(cut_of_a, x);
                      return number == replaced_number(cut_of_b, y) && (number >= 0 || x == y);
                    });
}

/// Returns a type with rows along `axis` as a block has it. Slices keep the loop's dim in front.
TensorType in_block(const TensorType& type, std::size_t axis, const Dim& block_dim,
                    const DimChanges& changes) {
  Dims dims = type.dims();
  for (std::size_t i = axis; i < dims.size(); ++i)
    if (dims[i].is_named()) dims[i] = changes(dims[i]);
  dims[axis] = block_dim;
  return type.with(dims);
}

}  // namespace

/// Binds blocks to the body and dims of the loop. Plans of the call before stay bound if blocks get
/// the same types. before: the row cut of the call before.
void LoopBlocks::bind(const std::optional<RowCut>& before) {
  const std::uint64_t former = binding_++;  // stays another number if memory runs out
  const GraphRef& graph = whole_->loop().body.graph;
  Body old = std::exchange(body_, {});
  const bool is_same_graph = before && old.whole == graph && old.axes == cut_->axes;
  if (!is_same_graph) {
    batches_.clear();
    spare_batches_.clear();
  }
  body_ = compute_body(is_same_graph ? std::move(old.row_body) : body_on_rows(*graph, cut_->axes));
  cut_->has_rows.resize(body_.types.size(), 1);
  const bool are_same_types = is_same_graph && has_types_of(old, *before);

  const bool keeps_block_dims = can_keep_block_dims();
  if (!keeps_block_dims) block_dims_.clear();
  const Dims old_extents = std::exchange(extents_, compute_extents());
  if (are_same_types && keeps_block_dims && extents_ == old_extents)
    binding_ = former;
  else
    runs_ = 0;
}

LoopBlocks::Body LoopBlocks::compute_body(BodyOnRows row_body) const {
  const LoopAttrs& loop = whole_->loop();
  Body body{loop.body.graph, cut_->axes, std::move(row_body), {}, whole_->input_types};
  body.loop = on_body(loop, body.row_body);
  for (const TensorType& type : body.row_body.length_types(body_env(loop, whole_->input_types)))
    body.types.push_back(type);
  return body;
}

/// Returns true if blocks of body_ have the types that blocks of `old` had, given the same dims.
/// Requires bodies on the same graph.
bool LoopBlocks::has_types_of(const Body& old, const RowCut& cut_of_old) const {
  const LoopAttrs& loop = body_.loop;
  if (cut_->has_rows != cut_of_old.has_rows || cut_->sums != cut_of_old.sums ||
      cut_->ragged.size() != cut_of_old.ragged.size() || body_.types.size() != old.types.size())
    return false;
  // The file of a stack takes its type from the attributes.
  if (std::any_of(loop.stacks.begin(), loop.stacks.end(),
                  [](const LoopStack& stack) { return stack.is_in_file(); }))
    return false;
  for (std::size_t i = 0; i < body_.types.size(); ++i)
    // A block knows the loop's dim, in front of slices, from its inputs.
    if (!are_like_in_blocks(body_.types[i], *cut_, old.types[i], cut_of_old,
                            operand_at(loop, i).is(LeafKind::slice) ? 1 : 0))
      return false;
  return true;
}

/// Returns true if dims that stand for the rows in earlier calls may do so again.
bool LoopBlocks::can_keep_block_dims() const {
  constexpr std::size_t kMaxBlockDims = 128;  // batches of other sizes have other blocks
  if (block_dims_.empty()) return true;
  const Dim &rows = cut_->dim, &known = block_dims_[0];
  return block_dims_.size() <= kMaxBlockDims && known.is_named() == rows.is_named() &&
         known.name() == rows.name();
}

/// Returns static dims in place of the ragged dims. Reuses dims of the call before if names and
/// sizes are the same.
Dims LoopBlocks::compute_extents() const {
  Dims extents;
  for (std::size_t i = 0; i < cut_->ragged.size(); ++i) {
    const Dim& dim = cut_->ragged[i];
    const bool is_known = i < extents_.size() && extents_[i].has_size() &&
                          extents_[i].size() == dim.size() && extents_[i].name() == dim.name();
    extents.push_back(is_known ? extents_[i] : Dim(dim.name(), dim.size()));
  }
  return extents;
}

const Dim& LoopBlocks::block_dim_of(std::int64_t rows) {
  for (const Dim& block_dim : block_dims_)
    if (block_dim.size() == rows) return block_dim;
  return block_dims_.emplace_back(cut_->dim.is_named() ? Dim(cut_->dim.name(), rows) : Dim(rows));
}

void LoopBlocks::make_partial_sums() {
  partial_sums_.resize(blocks_.size());
  for (std::size_t number = 1; number < blocks_.size(); ++number) {
    partial_sums_[number].resize(cut_->sums.size());
    for (std::size_t i = 0; i < cut_->sums.size(); ++i)
      if (cut_->sums[i] == RowCut::Sum::over_rows) {
        Tensor& sum = partial_sums_[number][i];
        sum = Tensor(
            allocate_block(cut_->outputs[body_output_number(whole_->loop(), {LeafKind::sum, i})]));
        count_as(sum, MemoryClass::buffers);
      }
  }
}

bool LoopBlocks::try_plan(std::unique_ptr<PlannedLoop>& block, std::int64_t rows,
                          std::size_t profile) {
  const Dim block_dim = block_dim_of(rows);
  const DimChanges changes = cut_->changes_to(block_dim, extents_);
  if (block && is_bound(*block, block_dim, changes)) return true;
  if (!block)  // otherwise rebound to other dims
    block =
        std::make_unique<PlannedLoop>(whole_->context.child(LoopProfile::kFirstBlock + profile));
  block->binding = 0;  // until it is planned
  const LoopAttrs& loop = body_.loop;
  try {
    if (!block->try_plan(make_attrs(restrict_to_rows(loop, changes)),
                         input_types_of_block(block_dim, changes), !loop.has_entries()))
      return false;
  } catch (const MemoryError&) {
    throw;  // with more memory it would be cut: results must not depend on free memory
  } catch (const Error&) {  // an op depends on the number of rows
    return false;
  }
  if (!has_outputs_of_rows(*block, block_dim, changes)) return false;
  block->binding = binding_;
  return true;
}

std::vector<TensorType> LoopBlocks::input_types_of_block(const Dim& block_dim,
                                                         const DimChanges& changes) const {
  std::vector<TensorType> types = body_.types;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (cut_->has_rows[i]) {
      const std::size_t axis = operand_at(body_.loop, i).is(LeafKind::slice) ? 1 : 0;
      types[i] = in_block(types[i], axis, block_dim, changes);
    }
  if (body_.row_body.takes_numbers)
    types.insert(types.end(), {TensorType(i64, {Dim(block_dim.size())}), TensorType(i64)});
  return types;
}

/// Returns true if the stacks and sums of a planned block have the types that its rows have in the
/// whole loop.
bool LoopBlocks::has_outputs_of_rows(const PlannedLoop& block, const Dim& block_dim,
                                     const DimChanges& changes) const {
  for (std::size_t k = 0; k < body_.loop.body.graph->outputs.size(); ++k) {
    const LoopLeaf leaf = body_output_at(body_.loop, k);
    if (leaf.is(LeafKind::carry)) continue;
    const TensorType& whole = cut_->outputs[k];
    const bool has_rows =
        leaf.is(LeafKind::stack) || cut_->sums[leaf.index] == RowCut::Sum::has_rows;
    if (!(block.body->output_type(k) ==
          (has_rows ? in_block(whole, 0, block_dim, changes) : whole)))
      return false;
  }
  return true;
}

/// Returns true if a block is planned already for the types that it would get now.
bool LoopBlocks::is_bound(const PlannedLoop& block, const Dim& block_dim,
                          const DimChanges& changes) const {
  const auto with_rows = std::find(cut_->has_rows.begin(), cut_->has_rows.end(), 1);
  if (block.binding != binding_ || with_rows == cut_->has_rows.end()) return false;
  const auto i = static_cast<std::size_t>(with_rows - cut_->has_rows.begin());
  const std::size_t axis = operand_at(body_.loop, i).is(LeafKind::slice) ? 1 : 0;
  const auto &now = body_.loop.body.bindings, &bound = block.loop().body.bindings;
  return block.input_types[i].dims()[axis] == block_dim &&
         std::equal(now.begin(), now.end(), bound.begin(), bound.end(),
                    [&](const auto& a, const auto& b) {
                      return a.first == b.first && changes(a.second) == b.second;
                    });
}

bool LoopBlocks::can_run(std::span<const Tensor> out) const {
  if (blocks_.empty()) return false;
  const auto results = results_of(whole_->loop(), out);
  const auto are_defined = [](std::span<const Tensor> tensors) {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const Tensor& tensor) { return tensor.is_defined(); });
  };
  return are_defined(results.carries) && are_defined(results.stacks) && are_defined(results.sums);
}

/// Plans one block, or batches, unless they are planned for this number of threads and order of
/// rows.
void LoopBlocks::plan_joined(OpInputs in) {
  const bool in_order =
      threads() > 1 && cut_->can_join && ends() && cut_->is_in_order(whole_->loop(), in);
  if (joined_threads_ == threads() && in_order_ == in_order) return;
  joined_threads_ = 0;  // in case planning runs out of memory
  is_joined_ = false;
  in_order_ = in_order;
  is_joined_ = cut_->can_join &&
               (ends() ? try_plan_batches() : threads() == 1 && joined_.try_plan(*whole_, *cut_));
  joined_threads_ = threads();
}

/// Returns the number of batches: one per thread, or more if captures with rows would not stay in
/// the cache. Many rows in the order of their lengths have two batches per thread, a long one and
/// a short one, since rows of a batch that are neighbours are read in place.
std::int64_t LoopBlocks::batch_count() const {
  constexpr std::int64_t kCached = 256 * 1024;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < whole_->input_types.size(); ++i)
    if (cut_->has_rows[i] && operand_at(whole_->loop(), i).is(LeafKind::capture))
      bytes += whole_->input_types[i].bytes();
  const std::int64_t most = std::min<std::int64_t>(kMaxBatches, std::ssize(blocks_));
  constexpr std::int64_t kNeighbours = 8;  // a product of fewer rows costs as much
  const bool are_apart = in_order_ && cut_->dim.size() >= 2 * threads() * kNeighbours;
  const std::int64_t least = are_apart ? 2 * threads() : threads();
  return std::min(std::max(least, bytes / kCached), most);
}

ShrinkingBlock::PlanRows LoopBlocks::planner(std::size_t batch) {
  // Profiles count the sizes of a batch as one: an iteration covers all rows that run in it.
  return [this, batch](std::unique_ptr<PlannedLoop>& loop, std::int64_t rows) {
    return try_plan(loop, rows, batch);
  };
}

bool LoopBlocks::try_plan_batches() {
  const std::vector<std::int64_t> rows = rows_of_batches(cut_->dim.size(), batch_count());
  // Longer entries make more batches: those that are not needed now keep their plans.
  for (; batches_.size() > rows.size(); batches_.pop_back())
    spare_batches_.push_back(std::move(batches_.back()));
  for (; batches_.size() < rows.size() && !spare_batches_.empty(); spare_batches_.pop_back())
    batches_.push_back(std::move(spare_batches_.back()));
  batches_.resize(rows.size());
  for (std::size_t b = 0; b < batches_.size(); ++b) {
    const std::vector<std::int64_t> sizes = sizes_of_batch(rows[b], std::ssize(rows));
    if (!batches_[b].is_planned(sizes) && !batches_[b].try_plan(sizes, planner(b))) return false;
  }
  return true;
}

namespace {

/// Nanoseconds: for each op of a body to plan it again for other sizes, and to run it on a row; of
/// a multiplication in a small product. Measured on the decoder of `scripts/bench stream`.
constexpr double kPlanOfOp = 1500, kRowOfOp = 15, kMultiplication = 1.0 / 32;
constexpr int kMaxRuns = 60;  ///< a price halved as many times is none

}  // namespace

/// Returns the price of planning a block for the dims at hand, in iterations of one row. Each run
/// with the same dims halves it, since a plan that is used often is worth its price.
double LoopBlocks::price_of_plan(const PlannedLoop* block, std::int64_t rows) {
  const Dim block_dim = block_dim_of(rows);
  if (block && is_bound(*block, block_dim, cut_->changes_to(block_dim, extents_))) return 0;
  const auto ops = static_cast<double>(body_.loop.body.graph->records.size());
  const double row = kRowOfOp * ops + kMultiplication * static_cast<double>(cut_->work_of_row);
  return std::ldexp(kPlanOfOp * ops / row, -runs_);
}

bool LoopBlocks::try_run(OpInputs in, std::span<Tensor> out) {
  plan_joined(in);
  if (runs_joined() && !ends()) {
    joined_.run(in, out);
    return true;
  }
  std::vector<OpInput> given(in.begin(), in.end());
  const Tensors lengths = body_.row_body.lengths(body_env(whole_->loop(), whole_->input_types));
  given.insert(given.end(), lengths.begin(), lengths.end());
  if (runs_joined() && try_run_batches(given, out)) return true;
  is_joined_ = false;
  if (!try_plan_all()) {
    blocks_.clear();
    return false;
  }
  const std::vector<BlockOfRows> blocks = cut_->rows_of_blocks(whole_->loop(), in);
  parallel_for(static_cast<int>(blocks.size()), [&](int i) {
    const auto& [rows, ends] = blocks[static_cast<std::size_t>(i)];
    PlannedLoop& block = *blocks_[static_cast<std::size_t>(i)];
    BlockRows here(block, *cut_, rows, ends, given, out, i == 0,
                   partial_sums_[static_cast<std::size_t>(i)]);
    const std::vector<OpInput> views(here.inputs().begin(), here.inputs().end());
    LoopRun(block, views, here.outputs(), &here).run();
    here.finish();
  });
  const auto sums = results_of(whole_->loop(), out).sums;
  for (const Tensors& of_block : partial_sums_)
    for (std::size_t i = 0; i < of_block.size(); ++i)
      if (of_block[i].is_defined()) add_to(sums[i], of_block[i]);
  return true;
}

bool LoopBlocks::try_run_batches(OpInputs in, std::span<Tensor> out) {
  // With several batches per thread, any of them may take the next one.
  const std::int64_t count = std::ssize(batches_);
  const std::vector<BlockOfRows> rows =
      cut_->batches(whole_->loop(), in, count, count < 2 * threads());
  const auto price = [&](const PlannedLoop* loop, std::int64_t size) {
    return price_of_plan(loop, size);
  };
  for (std::size_t b = 0; b < batches_.size(); ++b)
    if (!batches_[b].choose_sizes(rows[b], planner(b), price)) return false;
  runs_ = std::min(runs_ + 1, kMaxRuns);
  parallel_for(static_cast<int>(batches_.size()), [&](int i) {
    const auto b = static_cast<std::size_t>(i);
    batches_[b].run(whole_->loop(), *cut_, rows[b], in, out, i == 0);
  });
  return true;
}

}  // namespace reel
