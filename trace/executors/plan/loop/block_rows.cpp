#include "reel/trace/executors/plan/loop/block_rows.h"

#include <algorithm>
#include <cstring>

#include "reel/core/ops.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

void copy_row(char* to, const char* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

BlockRows::BlockRows(const PlannedLoop& block, const RowCut& cut, std::vector<std::int64_t> rows,
                     std::vector<std::int64_t> lengths, OpInputs in, std::span<Tensor> out,
                     bool is_first, const Tensors& partial_sums, std::span<const Tensor> gathered)
    : attrs_(block.loop()),
      rows_(std::move(rows)),
      lengths_(std::move(lengths)),
      all_(cut.dim.size()),
      are_neighbours_(are_adjacent(rows_)),
      outputs_(out.size()),
      out_(out),
      is_first_(is_first) {
  add_inputs(block, cut, in, gathered);
  if (ends()) last_ = *std::max_element(lengths_.begin(), lengths_.end());
  add_carries(block, cut, in);
  add_stacks(block);
  add_sums(block, cut, partial_sums);
  if (is_first) results_of(attrs_, outputs_).trips = results_of(attrs_, out_).trips;
}

void BlockRows::add_inputs(const PlannedLoop& block, const RowCut& cut, OpInputs in,
                           std::span<const Tensor> gathered) {
  inputs_.reserve(block.input_types.size());
  slices_.reserve(attrs_.slices.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor& input = *in[i].tensor;
    const bool is_slices = operand_at(attrs_, i).is(LeafKind::slice);
    if (!gathered.empty() && gathered[i].is_defined())
      inputs_.push_back(placed(block.input_types[i], gathered[i].data<void>()));
    else if (cut.has_rows[i] && !is_slices)
      inputs_.push_back(rows_of(input, block.input_types[i]));
    else
      inputs_.push_back(input);
    if (is_slices) add_slices(input, block.input_types[i], cut.has_rows[i]);
  }
  if (block.input_types.size() > in.size()) {  // the body takes row numbers and their count
    inputs_.push_back(tensor(rows_));
    inputs_.push_back(scalar(all_, i64));
  }
}

void BlockRows::add_slices(const Tensor& slices, const TensorType& of_block, bool has_rows) {
  const std::int64_t steps = slices.type().sizes()[0];
  Part part{slices.data<char>(), 0, steps ? slices.type().bytes() / steps : 0, {}};
  if (has_rows) part.bytes = row_bytes(part.pitch);
  if (part.bytes && !are_neighbours_) part.gathered = Tensor(allocate_block(slice_type(of_block)));
  slices_.push_back(std::move(part));
}

void BlockRows::add_carries(const PlannedLoop& block, const RowCut& cut, OpInputs in) {
  const auto operands = operands_of(attrs_, in);
  const auto types = operands_of(attrs_, block.input_types);
  const auto whole = results_of(attrs_, out_), own = results_of(attrs_, outputs_);
  initial_.reserve(attrs_.carries.size());
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
    const Tensor& initial = *operands.carries[i].tensor;
    const bool has_rows = cut.carry_has_rows[i];
    initial_.push_back(
        {initial.data<char>(), has_rows ? row_bytes(initial.type().bytes()) : 0, 0, {}});
    if (has_rows && !ends())
      own.carries[i] = rows_of(whole.carries[i], types.carries[i]);
    else if (!has_rows && is_first_)
      own.carries[i] = whole.carries[i];
  }
}

void BlockRows::add_stacks(const PlannedLoop& block) {
  const auto whole = results_of(attrs_, out_), own = results_of(attrs_, outputs_);
  stacks_.reserve(attrs_.stacks.size());
  for (std::size_t j = 0; j < attrs_.stacks.size(); ++j) {
    const TensorType& term =
        block.body->output_type(body_output_number(attrs_, {LeafKind::stack, j}));
    own.stacks[j] = whole.stacks[j];
    const std::int64_t bytes = term.bytes() / std::ssize(rows_);
    Part part{whole.stacks[j].data<char>(), bytes, bytes * all_, {}};
    if (!are_neighbours_) part.gathered = Tensor(allocate_block(term));
    stacks_.push_back(std::move(part));
  }
}

void BlockRows::add_sums(const PlannedLoop& block, const RowCut& cut, const Tensors& partial_sums) {
  const auto whole = results_of(attrs_, out_), own = results_of(attrs_, outputs_);
  for (std::size_t i = 0; i < cut.sums.size(); ++i) {
    const std::size_t k = body_output_number(attrs_, {LeafKind::sum, i});
    if (cut.sums[i] == RowCut::Sum::has_rows)
      own.sums[i] = rows_of(whole.sums[i], block.body->output_type(k));
    else if (is_first_)
      own.sums[i] = whole.sums[i];
    else if (cut.sums[i] == RowCut::Sum::over_rows)
      own.sums[i] = partial_sums[i];
  }
}

/// Returns a view if the rows are adjacent, otherwise a copy.
Tensor BlockRows::rows_of(const Tensor& whole, const TensorType& type) const {
  const std::int64_t bytes = whole.type().bytes() / all_;
  if (are_neighbours_) return placed(type, whole.data<char>() + rows_.front() * bytes);
  Tensor copy(allocate_block(type));
  for (std::size_t r = 0; r < rows_.size(); ++r)
    copy_row(copy.data<char>() + static_cast<std::int64_t>(r) * bytes,
             whole.data<char>() + rows_[r] * bytes, bytes);
  return copy;
}

char* BlockRows::slice(std::size_t i, std::int64_t position) {
  Part& slice = slices_[i];
  if (!slice.bytes) return slice.all + position * slice.pitch;
  if (are_neighbours_) return row(slice, 0, position);
  char* to = slice.gathered.data<char>();
  for (std::size_t r = 0; r < rows_.size(); ++r, to += slice.bytes)
    copy_row(to, row(slice, r, position), slice.bytes);
  return slice.gathered.data<char>();
}

char* BlockRows::stack(std::size_t j, std::int64_t position) {
  Part& stack = stacks_[j];
  return are_neighbours_ ? row(stack, 0, position) : stack.gathered.data<char>();
}

void BlockRows::before(std::int64_t position, std::span<char* const> carries) {
  if (!attrs_.trips.is_reverse || position + 1 == last_) return;
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    if (lengths_[r] != position + 1) continue;
    for (std::size_t i = 0; i < carries.size(); ++i)
      if (const Part& initial = initial_[i]; initial.bytes)
        copy_row(carries[i] + static_cast<std::int64_t>(r) * initial.bytes, row(initial, r),
                 initial.bytes);
  }
}

void BlockRows::after(std::int64_t position, std::span<char* const> carries) {
  const auto has_finished = [&](std::size_t r) { return ends() && lengths_[r] <= position; };
  for (std::size_t j = 0; j < stacks_.size(); ++j) {
    const Part& stack = stacks_[j];
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (has_finished(r)) {
        if (!attrs_.stacks[j].is_raw()) clear(stack, r, position);
      } else if (!are_neighbours_) {
        copy_row(row(stack, r, position),
                 stack.gathered.data<char>() + static_cast<std::int64_t>(r) * stack.bytes,
                 stack.bytes);
      } else if (!ends()) {
        break;
      }
  }
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    if (attrs_.trips.is_reverse ? position != 0 || lengths_[r] == 0 : lengths_[r] != position + 1)
      continue;
    const auto carries_out = results_of(attrs_, out_).carries;
    for (std::size_t i = 0; i < carries.size(); ++i)
      if (const Part& initial = initial_[i]; initial.bytes)
        copy_row(carries_out[i].data<char>() + rows_[r] * initial.bytes,
                 carries[i] + static_cast<std::int64_t>(r) * initial.bytes, initial.bytes);
  }
}

void BlockRows::clear(const Part& stack, std::size_t r, std::int64_t position) const {
  std::memset(row(stack, r, position), 0, static_cast<std::size_t>(stack.bytes));
}

void BlockRows::finish() {
  finish_rows(std::vector<std::int64_t>(lengths_.size(), last_));
  if (is_first_) results_of(attrs_, out_).trips = results_of(attrs_, outputs_).trips;
}

void BlockRows::finish_rows(std::span<const std::int64_t> ends) {
  const auto whole = results_of(attrs_, out_);
  for (std::size_t j = 0; j < stacks_.size(); ++j)
    if (!attrs_.stacks[j].is_raw()) clear_behind(j, ends);
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    if (lengths_[r] != 0) continue;
    for (std::size_t i = 0; i < initial_.size(); ++i)
      if (const Part& initial = initial_[i]; initial.bytes)
        copy_row(whole.carries[i].data<char>() + rows_[r] * initial.bytes, row(initial, r),
                 initial.bytes);
  }
}

/// Clears the rows of stack j from their ends on, neighbours together.
void BlockRows::clear_behind(std::size_t j, std::span<const std::int64_t> ends) const {
  const Part& stack = stacks_[j];
  const std::int64_t steps = results_of(attrs_, out_).stacks[j].type().sizes()[0];
  const std::int64_t first = ends.empty() ? steps : *std::ranges::min_element(ends);
  for (std::int64_t position = first; position < steps; ++position)
    for (std::size_t r = 0; r < ends.size();) {
      const std::size_t begin = r;
      while (r < ends.size() && ends[r] <= position && (r == begin || rows_[r] == rows_[r - 1] + 1))
        ++r;
      if (r > begin)
        std::memset(row(stack, begin, position), 0,
                    static_cast<std::size_t>(stack.bytes) * (r - begin));
      else
        ++r;
    }
}

}  // namespace reel
