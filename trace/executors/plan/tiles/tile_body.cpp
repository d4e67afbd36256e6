#include "reel/trace/executors/plan/tiles/tile_body.h"

#include <algorithm>

#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/fusion/tile_ops.h"

namespace reel {

TileBody::TileBody(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env)
    : body_(body), types_(plan_types(body, inputs, env)), cells_of_(body.types.size()) {
  cells_of_input_.resize(body.inputs.size());
  input_of_.assign(body.types.size(), -1);
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    input_of_[body.inputs[i]] = static_cast<int>(i);
  find_space();
  if (space_->numel == 0) return;
  cells_.reserve(body.types.size() + body.outputs.size());
  steps_.reserve(body.records.size() + body.outputs.size());
  for (std::size_t r = 0; r < body.records.size(); ++r) add(r);
  for (std::size_t k = 0; k < body.outputs.size(); ++k) write_output(static_cast<int>(k));
  drop_unread();
}

void TileBody::find_space() {
  space_ = &type(body_.outputs[0]);
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const TileOp op = tile_op(*record.op);
    if (op == TileOp::split) {
      const auto& attrs = get<SplitAttrs>(types_.attrs[r].get());
      joined(body_.inputs_of(record)[0], body_.outputs_of(record)[0], attrs.axis, attrs.parts);
    } else if (op == TileOp::concat) {
      const auto in = body_.inputs_of(record);
      joined(body_.outputs_of(record)[0], in[0], get<ConcatAttrs>(types_.attrs[r].get()).axis,
             static_cast<int>(in.size()));
    } else if (op == TileOp::sum) {
      space_ = &type(body_.inputs_of(record)[0]);
      has_sums_ = true;
    } else if (is_scan(op)) {
      const auto& attrs = get<LinearScanAttrs>(types_.attrs[r].get());
      space_ = &type(body_.outputs_of(record)[0]);
      walk_axis_ = attrs.axis;
      walks_back_ = *walks_back(record);
    }
  }
}

void TileBody::joined(ValueId whole, ValueId part, int axis, int parts) {
  wholes_.emplace_back(&type(whole), parts);
  space_ = &type(part);
  axis_ = axis;
}

int TileBody::parts_of(const TypeNode& value) const {
  for (const auto& [whole, parts] : wholes_)
    if (value.sizes == whole->sizes) return parts;
  return 1;
}

bool TileBody::is_of_rows(const TypeNode& value) const {
  return has_sums_ && (value.sizes.size() < space_->sizes.size() ||
                       (!is_whole(value) && value.sizes.back() != space_->sizes.back()));
}

int TileBody::add_cell(TileCell cell) {
  cells_.push_back(std::move(cell));
  const int c = static_cast<int>(cells_.size()) - 1;
  if (cells_.back().input >= 0) cells_of_input_[at(cells_.back().input)].push_back(c);
  return c;
}

std::int64_t TileBody::item_of(const TypeNode& type) {
  return static_cast<std::int64_t>(size_of(type.dtype));
}

Lie TileBody::lie(const TypeNode& type, const Steps& steps, int part) const {
  Lie result{0, steps};
  if (is_of_rows(type)) {  // one number per row, for all columns
    result.steps.resize(space_->sizes.size());
    result.steps.back() = 0;
  }
  if (is_whole(type))
    result.offset = part * space_->sizes[static_cast<std::size_t>(axis_)] *
                    steps[static_cast<std::size_t>(axis_)];
  return result;
}

Steps TileBody::own_steps(const TypeNode& type) {
  Steps steps(type.sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = type.sizes.size(); i-- > 0; step *= type.sizes[i]) steps[i] = step;
  return steps;
}

int TileBody::operand(ValueId v, const TypeNode& result, int part) {
  const std::vector<int>& cells = cells_of_[v];
  if (!cells.empty()) return cells[cells.size() == 1 ? 0 : static_cast<std::size_t>(part)];
  Steps steps;
  for (int axis = 0; axis < static_cast<int>(result.dims.size()); ++axis)
    steps.push_back(broadcast_stride(type(v), result, axis));
  return input_cell(v, lie(result, steps, part));
}

int TileBody::input_cell(ValueId v, const Lie& lies) {
  for (const int c : cells_of_input_[at(input_of_[v])])
    if (cell(c).lie == lies) return c;
  return add_cell({.input = input_of_[v], .lie = lies, .item = item_of(type(v))});
}

Steps TileBody::repeated_steps(std::size_t r) const {
  const OpRecord& record = body_.records[r];
  Steps steps = own_steps(type(body_.inputs_of(record)[0]));
  if (tile_op(*record.op) == TileOp::spread) {
    for (const int axis : get<SpreadAttrs>(types_.attrs[r].get()).axes)
      steps.insert(steps.begin() + axis, 0);
    return steps;
  }
  Steps result;
  for (const int axis : get<ExpandAttrs>(types_.attrs[r].get()).from)
    result.push_back(axis < 0 ? 0 : steps[at(axis)]);
  return result;
}

void TileBody::add(std::size_t r) {
  const OpRecord& record = body_.records[r];
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  const TypeNode& result = type(out[0]);
  const TileOp op = tile_op(*record.op);
  if (op == TileOp::split) {
    for (std::size_t i = 0; i < out.size(); ++i)
      cells_of_[out[i]] = {operand(in[0], type(in[0]), static_cast<int>(i))};
    return;
  }
  std::vector<int>& cells = cells_of_[out[0]];
  if (op == TileOp::concat) {
    for (const ValueId v : in) cells.push_back(operand(v, type(v), 0));
    return;
  }
  if (is_scan(op)) return add_recurrence(r);
  for (int part = 0; part < parts_of(result); ++part) {
    if (repeats_elements(op)) {
      // A number per row is the same cell.
      cells.push_back(cells_of_[in[0]].empty()
                          ? input_cell(in[0], lie(result, repeated_steps(r), part))
                          : operand(in[0], type(in[0]), 0));
      continue;
    }
    TileStep step{.op = record.op, .from = type(in[0]).dtype, .to = result.dtype};
    step.is_sum = op == TileOp::sum;
    for (const ValueId v : in) step.in.push_back(operand(v, step.is_sum ? type(v) : result, part));
    repeat_one_less(step, is_of_rows(result) && !step.is_sum);
    cells.push_back(add_cell({.is_of_rows = is_of_rows(result), .item = item_of(result)}));
    step.out = {cells.back()};
    steps_.push_back(std::move(step));
  }
}

// ---- Recurrences --------------------------------------------------------------------------

void TileBody::add_recurrence(std::size_t r) {
  const OpRecord& record = body_.records[r];
  const auto& attrs = get<LinearScanAttrs>(types_.attrs[r].get());
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  const int x_at = attrs.operands & kScanX ? 2 : -1;
  if (tile_op(*record.op) == TileOp::scan) {
    const int b = walked(in[1], attrs.over_time & kScanB);
    TileStep step =
        walk_step(TileWalk::states,
                  {contiguous(walked(in[0], attrs.over_time & kScanA)),
                   x_at < 0 ? contiguous(b) : product(b, walked(in[2], attrs.over_time & kScanX))});
    if (attrs.operands & kScanInitial)
      step.in.push_back(walked(in[static_cast<std::size_t>(x_at < 0 ? 2 : 3)], false));
    cells_of_[out[0]] = {append(std::move(step))};
    return;
  }
  const ScanGradOperands order(attrs);
  const auto factor = [&](int at, ScanOperand which) {
    return walked(in[static_cast<std::size_t>(at)], attrs.over_time & which);
  };
  const int g =
      append(walk_step(TileWalk::cotangents, {contiguous(walked(in[0], attrs.over_time & kScanA)),
                                              contiguous(walked(in[1], true))}));
  std::size_t k = 0;
  if (attrs.wanted & kScanA) {
    TileStep lag = walk_step(TileWalk::lag, {walked(in[static_cast<std::size_t>(order.h)], true)});
    if (order.initial >= 0)
      lag.in.push_back(walked(in[static_cast<std::size_t>(order.initial)], false));
    cells_of_[out[k++]] = {product(g, append(std::move(lag)))};
  }
  if (attrs.wanted & kScanB)
    cells_of_[out[k++]] = {order.x < 0 ? g : product(g, factor(order.x, kScanX))};
  if (attrs.wanted & kScanX) cells_of_[out[k++]] = {product(g, factor(order.b, kScanB))};
}

TileStep TileBody::walk_step(TileWalk walk, std::vector<int> in) {
  walks_ += walk != TileWalk::lag;
  return {.walk = walk, .from = space_->dtype, .to = space_->dtype, .in = std::move(in)};
}

int TileBody::walked(ValueId v, bool over_time) {
  if (over_time) return operand(v, *space_, 0);
  Steps steps = own_steps(type(v));
  steps.insert(steps.begin() + walk_axis_, 0);
  return input_cell(v, lie(*space_, steps, 0));
}

int TileBody::contiguous(int c) {
  if (!cell(c).is_of_rows &&
      (cell(c).input < 0 || !repeats_along_last(cell(c), space_->sizes.size())))
    return c;
  const int copy = add_cell({.item = cell(c).item});
  steps_.push_back({.in = {c}, .out = {copy}});
  return copy;
}

int TileBody::product(int a, int b) {
  TileStep step{.op = &mul_op, .from = space_->dtype, .to = space_->dtype, .in = {a, b}};
  repeat_one_less(step, false);
  return append(std::move(step));
}

int TileBody::append(TileStep step) {
  const int made = add_cell({.item = item_of(*space_)});
  step.out = {made};
  steps_.push_back(std::move(step));
  return made;
}

bool TileBody::repeats_along_last(const TileCell& cell, std::size_t axes) const {
  while (axes-- > 0)
    if (space_->sizes[axes] != 1) return cell.lie.steps[axes] == 0;
  return true;
}

void TileBody::repeat_one_less(TileStep& step, bool on_rows) {
  const auto inner = space_->sizes.size() - on_rows;
  for (const int c : step.in) {
    const TileCell& cell = cells_[static_cast<std::size_t>(c)];
    if (cell.is_of_rows && !on_rows) continue;
    if (cell.input < 0 || inner == 0 || space_->numel == 1 || !repeats_along_last(cell, inner))
      return;
  }
  const int copy = add_cell(
      {.is_of_rows = on_rows, .item = cells_[static_cast<std::size_t>(step.in.back())].item});
  steps_.push_back({.in = {step.in.back()}, .out = {copy}});
  step.in.back() = copy;
}

void TileBody::write_output(int k) {
  const ValueId v = body_.outputs[static_cast<std::size_t>(k)];
  const std::vector<int> cells = cells_of_[v];
  for (std::size_t part = 0; part < cells.size(); ++part) {
    const Lie to = lie(type(v), own_steps(type(v)), static_cast<int>(part));
    TileCell& cell = cells_[static_cast<std::size_t>(cells[part])];
    const bool on_rows = is_of_rows(type(v));
    if (cell.input < 0 && cell.output < 0 && cell.is_of_rows == on_rows) {
      cell.output = k;
      cell.lie = to;
      continue;
    }
    const int copy =
        add_cell({.is_of_rows = on_rows, .lie = to, .output = k, .item = item_of(type(v))});
    steps_.push_back({.in = {cells[part]}, .out = {copy}});
  }
}

void TileBody::drop_unread() {
  std::vector<bool> is_read(cells_.size());
  std::vector<TileStep> read;
  for (std::size_t s = steps_.size(); s-- > 0;) {
    const int out = steps_[s].out[0];
    if (cell(out).output < 0 && !is_read[static_cast<std::size_t>(out)]) continue;
    for (const int c : steps_[s].in) is_read[static_cast<std::size_t>(c)] = true;
    read.push_back(std::move(steps_[s]));
  }
  std::reverse(read.begin(), read.end());
  steps_ = std::move(read);
}

}  // namespace reel
