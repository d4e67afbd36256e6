// Loops, applied to all rows: one loop with the rows as entries.
#include <algorithm>
#include <limits>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/transforms/row_batch.h"
#include "reel/trace/passes/analysis/finished_values.h"

namespace reel {
namespace {

/// Records one loop again, for all rows.
///
/// Before: (carries of a row, slices of a row) -> ...   After: the same with the rows behind the
/// loop's own dim in slices and stacks, and in front of carries and sums.
///
/// If rows differ in their numbers of iterations, the rows are entries: every carry has them, and
/// so that each entry is kept on its own, all axes have names (in_named_form).
class LoopOverRows {
 public:
  LoopOverRows(const LoopAttrs& attrs, const RowValues& in, RowBatch& outside, const Rows& rows)
      : attrs_(attrs),
        body_(*attrs.body.graph),
        in_(in),
        given_(operands_of(attrs, in_)),
        outside_(outside),
        rows_(rows),
        carries_many_(attrs.carries.size()) {}

  RowValues run() {
    refuse_what_has_no_form();
    find_if_rows_end_alone();
    for (std::size_t i = 0; i < carries_many_.size(); ++i)
      carries_many_[i] = ends_alone_ || given_.carries[i].is_many ||
                         runs_over(given_.carries[i].value.type(), rows_.named);
    find_carries();
    refuse_coupled_entries();
    refuse_effects_of_finished_rows();
    return results(bind_loop());
  }

 private:
  void refuse_what_has_no_form() const {
    const bool is_part = attrs_.chunking.over_chunks || attrs_.chunking.within_chunk;
    if (is_part || attrs_.has_windows() || attrs_.keeps_few_steps() ||
        !changing_dims(attrs_).empty() ||
        std::any_of(attrs_.carries.begin(), attrs_.carries.end(),
                    [](const LoopCarry& carry) { return !carry.final_dims.empty(); }))
      throw RowsRefused("a loop whose state changes its dims, or whose residuals are not kept");
  }

  /// Finished entries read the first running entry of all rows. If a body couples entries, they
  /// must read an entry of their own row.
  void refuse_coupled_entries() const {
    if (!ends_alone_ || !attrs_.has_entries() || attrs_.entries.are_independent) return;
    std::vector<TensorType> row_types;
    DimChanges one_row;
    for (const RowValue& value : in_) {
      const TensorType type = type_of_row(value);
      for (const Dim& dim : type.dims()) add_dim_of_one_row(dim, one_row);
      row_types.push_back(one_row(type));
    }
    if (may_couple_entries(attrs_, row_types))
      throw RowsRefused(
          "a loop whose body couples entries, which end at other iterations in each row");
  }

  /// Finished rows compute on the values of a running one. A print would show these as theirs, and
  /// a collective would send them.
  void refuse_effects_of_finished_rows() const {
    if (ends_alone_ &&
        (has_lasting_effects(body_) || (attrs_.cond && has_lasting_effects(*attrs_.cond.graph))))
      throw RowsRefused("a loop with effects whose rows end at different iterations");
  }

  /// Adds a dim with the lengths of one row, for a dim with lengths of all rows.
  void add_dim_of_one_row(const Dim& dim, DimChanges& one_row) const {
    if (!runs_over(dim, rows_.named) || one_row.affects(dim)) return;
    if (const DimExpression* expression = expression_of(dim)) {
      for (const Dim& of : expression->operands) add_dim_of_one_row(of, one_row);
      return;
    }
    Dims lengths = dim.length_dims();
    std::erase(lengths, rows_.named);
    for (const Dim& of : lengths) add_dim_of_one_row(of, one_row);
    one_row.add(dim, dim_symbol(dim.name(), one_row(lengths)));
  }

  void find_if_rows_end_alone() {
    ends_alone_ =
        (given_.bound && given_.bound->is_many) || (given_.lengths && given_.lengths->is_many);
  }

  /// Finds the carries that differ between rows: records the body until no further one does.
  /// Each round but the last adds a carry, or finds that rows end on their own.
  void find_carries() {
    for (bool changes = true; changes;) {
      changes = false;
      make_operands();
      record_body();
      for (std::size_t i = 0; i < carries_many_.size(); ++i)
        if (!carries_many_[i] && outputs_many_[i]) {
          carries_many_[i] = 1;
          changes = true;
        }
      if (changes || !attrs_.cond) continue;
      record_cond();
      if (!cond_many_ || ends_alone_) continue;
      ends_alone_ = changes = true;
      std::fill(carries_many_.begin(), carries_many_.end(), 1);
    }
  }

  // ---- The form of values inside and outside of the loop ----------------------------------------

  /// Returns a value in the form that the loop carries and captures. row: its type in one row.
  Tensor form(const Tensor& many, const TensorType& row) {
    if (ends_alone_) return named_form(many);
    return many.type().is_list() ? many : from_named_form(many, row, rows_);
  }
  Tensor form(const RowValue& value) { return form(as_many(value, rows_), type_of_row(value)); }
  /// Returns in_named_form(many), with the same names for the same axes of all values.
  Tensor named_form(const Tensor& many) {
    if (many.type().is_list() || many.type().is_named() || many.rank() == 1)
      return in_named_form(many, rows_);
    Dims dims{rows_.named};
    for (int i = 1; i < many.rank(); ++i) dims.push_back(name_of(i, dim_at(many.type(), i)));
    return reshape(many, dims);
  }
  /// Returns a name for a plain axis: position 0 stands for the loop's dim.
  Dim name_of(int position, const Dim& plain) {
    for (const AxisName& known : names_)
      if (known.position == position && known.name.raw_size() == plain.raw_size())
        return known.name;
    names_.push_back({position, names_for({plain})[0]});
    return names_.back().name;
  }
  /// Returns a value that has the form of the loop as the body takes it.
  Tensor row_form(const Tensor& x, const TensorType& row) const {
    return x.type().is_list() ? x : from_named_form(x, row, rows_);
  }

  /// Returns slices as an operand: with the loop's dim in front of the rows.
  Tensor slices_of(const RowValue& value) {
    const Tensor& x = value.value;
    if (!value.is_many || x.type().is_list()) return x;
    Tensor many = x;
    if (ends_alone_ && !x.type().is_named()) {
      Dims dims{rows_.named, name_of(0, dim_at(x.type(), 1))};
      for (int i = 2; i < x.rank(); ++i) dims.push_back(name_of(i - 1, dim_at(x.type(), i)));
      many = reshape(x, dims);
    }
    return with_axis_first(many, 1);
  }
  bool has_plain_dim(const LoopStack& stack) const {
    return attrs_.trips.makes_dim ? attrs_.trips.new_dim.empty() : !stack.dim.is_named();
  }
  /// Makes the loop's operands outside of its graphs, so that entries have their dims there: only
  /// then do finished rows read the captures of a running one (FinishedFill::running).
  void make_operands() {
    operands_ = {};
    for (std::size_t i = 0; i < carries_many_.size(); ++i)
      operands_.carries.push_back(carries_many_[i] ? form(given_.carries[i])
                                                   : given_.carries[i].value);
    for (const RowValue& slices : given_.slices) operands_.slices.push_back(slices_of(slices));
    for (const RowValue& capture : given_.captures)
      operands_.captures.push_back(capture.is_many && ends_alone_ ? form(capture) : capture.value);
  }

  /// Returns the term of a stack. Rows in front of a scalar are plain if the stack is. Elements of
  /// a list have the dims of one row behind the rows, since each loop gives axes its own names.
  Tensor term_of(const RowValue& value, const LoopStack& stack) {
    if (stack.is_list) return as_many(value, rows_);
    const Tensor many = form(value);
    const bool is_scalar = !many.type().is_list() && many.rank() == 1;
    return is_scalar && !ends_alone_ && has_plain_dim(stack) ? renamed(many, 0, plain_rows(rows_))
                                                             : many;
  }

  // ---- The graphs -------------------------------------------------------------------------------

  /// Returns the type of one row of a carry outside.
  TensorType carry_row(std::size_t i) const { return type_of_row(given_.carries[i]); }
  RowValue add_carry(GraphBuilder& builder, std::size_t i) const {
    const Tensor formal = builder.add_input(operands_.carries[i].type());
    if (!carries_many_[i]) return {formal};
    return {row_form(formal, carry_row(i)), true};
  }

  /// Returns the type of one slice. Elements of a list may be lists: the type does not tell.
  TensorType slice_of(std::size_t i, const TensorType& slices) const {
    return body_.types[body_inputs(attrs_).slices[i]].is_list() ? slices : slice_type(slices);
  }

  /// Binds the dims of the body to the dims of the loop's operands, except elements of lists.
  void bind_operands(RowBatch& batch) const {
    const auto formal = body_inputs(attrs_);
    const auto bind = [&](ValueId v, const TensorType& row) {
      if (body_.types[v].rank() == row.rank()) batch.bind_row(body_.types[v], row);
    };
    for (std::size_t i = 0; i < formal.carries.size(); ++i) bind(formal.carries[i], carry_row(i));
    for (std::size_t i = 0; i < formal.slices.size(); ++i)
      if (!given_.slices[i].value.type().is_list())
        bind(formal.slices[i], slice_type(type_of_row(given_.slices[i])));
    for (std::size_t i = 0; i < formal.captures.size(); ++i)
      bind(formal.captures[i],
           type_of_row(given_.captures[static_cast<std::size_t>(attrs_.body_captures[i])]));
  }
  /// Returns the dim of a list's element as the body takes it. row: in the body of one row. given:
  /// in the list. The list may have a dim of the loop that made it, or several dims where the body
  /// has one. Therefore a dim that the graph outside does not name becomes a symbol of this body.
  Dim element_dim(const Dim& row, const Dim& given, RowBatch& batch) const {
    if (batch.knows(row)) return batch.resolve(row);
    if (const std::optional<Dim> outside = outside_.of_tensors(row)) {
      batch.bind_dim(row, *outside);
      return *outside;
    }
    if (!row.is_symbol() || !row.is_named() || row.has_size() || expression_of(row)) return given;
    Dims lengths, behind = given.length_dims();
    if (std::erase(behind, rows_.named)) lengths.push_back(rows_.named);
    for (std::size_t i = 0; i < row.length_dims().size(); ++i) {
      const Dim& of = row.length_dims()[i];
      lengths.push_back(element_dim(of, i < behind.size() ? behind[i] : of, batch));
    }
    const Dim made = dim_symbol(row.name(), std::move(lengths));
    batch.bind_dim(row, made);
    return made;
  }
  /// Returns the type of a slice as the body takes it.
  TensorType formal_slice(std::size_t i, RowBatch& batch) const {
    const TensorType result = slice_of(i, operands_.slices[i].type());
    const TensorType& row = body_.types[body_inputs(attrs_).slices[i]];
    const std::size_t front = given_.slices[i].is_many;
    if (!operands_.slices[i].type().is_list() || result.dims().size() != row.dims().size() + front)
      return result;
    Dims dims = result.dims();
    for (std::size_t axis = 0; axis < row.dims().size(); ++axis)
      dims[front + axis] = element_dim(row.dims()[axis], dims[front + axis], batch);
    return result.with(dims);
  }

  RowValues captures_of(const std::vector<int>& indices) {
    RowValues result;
    for (const int i : indices) {
      const auto k = static_cast<std::size_t>(i);
      const RowValue& value = given_.captures[k];
      const Tensor& operand = operands_.captures[k];
      fills_.push_back({operand, attrs_.captures[k].fill});
      result.push_back(value.is_many && ends_alone_
                           ? RowValue{row_form(operand, type_of_row(value)), true}
                           : value);
    }
    return result;
  }

  void record_body() {
    GraphBuilder builder("body", body_of(attrs_.name));
    builder.set_entry_dims(entry_dims());
    ModeScope scope(builder.scope());
    RowBatch batch(attrs_.body, rows_);
    bind_operands(batch);
    RowValues inputs{{builder.add_input(TensorType(i64))}};
    for (std::size_t i = 0; i < carries_many_.size(); ++i) inputs.push_back(add_carry(builder, i));
    for (std::size_t i = 0; i < given_.slices.size(); ++i) {
      const RowValue& slices = given_.slices[i];
      const Tensor formal = builder.add_input(formal_slice(i, batch));
      inputs.push_back(slices.is_many && !slices.value.type().is_list()
                           ? RowValue{row_form(formal, slice_type(type_of_row(slices))), true}
                           : RowValue{formal, slices.is_many});
    }
    for (const RowValue& capture : captures_of(attrs_.body_captures)) inputs.push_back(capture);
    const RowValues made = batch.run(std::move(inputs));
    outputs_many_.clear();
    rows_of_outputs_.clear();
    Tensors outputs;
    for (std::size_t k = 0; k < made.size(); ++k) {
      const bool is_many = made[k].is_many || (ends_alone_ && !made[k].value.type().is_list()) ||
                           (k < carries_many_.size() && carries_many_[k]);
      outputs_many_.push_back(is_many);
      rows_of_outputs_.push_back(type_of_row(made[k]));
      const std::size_t stack = k - attrs_.carries.size();
      const bool is_stack = k >= attrs_.carries.size() && stack < attrs_.stacks.size();
      outputs.push_back(!is_many   ? made[k].value
                        : is_stack ? term_of(made[k], attrs_.stacks[stack])
                                   : form(made[k]));
    }
    recorded_body_ = finish_part(builder, outputs);
    body_captured_ = builder.captured();
    body_dims_ = builder.dims_outside();
  }

  void record_cond() {
    GraphBuilder builder("cond", condition_of(attrs_.name));
    ModeScope scope(builder.scope());
    RowValues inputs{{builder.add_input(TensorType(i64))}};
    for (std::size_t i = 0; i < carries_many_.size(); ++i) inputs.push_back(add_carry(builder, i));
    for (const RowValue& capture : captures_of(attrs_.cond_captures)) inputs.push_back(capture);
    RowBatch batch(attrs_.cond, rows_);
    RowValue made = batch.run(std::move(inputs))[0];
    cond_many_ = made.is_many;
    Tensor holds = made.value;
    if (ends_alone_) {
      const Tensor many = form(made);
      holds = expand(reshape_to_entries(many), entry_dims());
    }
    recorded_cond_ = finish_part(builder, {holds});
    cond_captured_ = builder.captured();
  }
  /// A condition of one element may have plain axes.
  Tensor reshape_to_entries(const Tensor& many) const {
    return attrs_.has_entries() || many.rank() == 1 ? many : reshape(many, Dims{rows_.named});
  }

  Dims entry_dims() const {
    if (!ends_alone_) return attrs_.entries.dims;
    Dims dims{rows_.named};
    dims.insert(dims.end(), attrs_.entries.dims.begin(), attrs_.entries.dims.end());
    return dims;
  }

  // ---- The loop ---------------------------------------------------------------------------------

  Tensors bind_loop() {
    if (ends_alone_ && attrs_.trips.makes_dim && attrs_.trips.new_dim.empty())
      throw RowsRefused("rows stack plain axes of different sizes");
    LoopAttrs next = attrs_;
    next.debug.origin = {};
    next.debug.remarks = {};
    if (ends_alone_) {
      next.entries.dims = entry_dims();
      next.entries.are_independent = true;
      drop_cotangents_of_finished(next);
      if (!next.trips.is_scan) next.trips.cond_before_body = true;
      next.trips.is_scan = true;
    }
    CaptureList captures;
    if (attrs_.cond) {
      next.cond_captures = captures.add(cond_captured_);
      next.cond = make_sub_graph(recorded_cond_);
    }
    const auto kept =
        capture_lengths(*recorded_body_, body_captured_, body_dims_, next.entries.dims);
    next.body_captures = captures.add(body_captured_);
    next.body = make_sub_graph(recorded_body_, body_dims_);
    next.captures.assign(captures.tensors().size(), LoopCapture{});
    for (std::size_t i = 0; i < captures.tensors().size(); ++i)
      for (const auto& [tensor, fill] : fills_)
        if (tensor.block() == captures.tensors()[i].block()) next.captures[i].fill = fill;
    for (const std::size_t i : kept)
      next.captures[static_cast<std::size_t>(next.body_captures[i])].fill = FinishedFill::as_is;
    Tensors operands = trip_operands(next);
    for (const Tensors* some : {&operands_.carries, &operands_.slices})
      operands.insert(operands.end(), some->begin(), some->end());
    for (std::size_t j = 0; j < next.stacks.size(); ++j) {
      LoopStack& stack = next.stacks[j];
      if (stack.is_list && stack.role == StackRole::output && ends_alone_)
        throw RowsRefused("rows push different numbers of elements");
      if (ends_alone_ && !stack.is_list && !attrs_.trips.makes_dim && !stack.dim.is_named())
        stack.dim = name_of(0, stack.dim);
    }
    operands.insert(operands.end(), captures.tensors().begin(), captures.tensors().end());
    next_ = make_attrs(std::move(next));
    return bind_all(loop_op, operands, next_);
  }

  /// Finished rows get no cotangents that are another row's. A loop of one row does not tell:
  /// values that are zero in finished entries were chosen for it without any.
  static void drop_cotangents_of_finished(LoopAttrs& attrs) {
    for (LoopCarry& carry : attrs.carries) carry.adds_finished = false;
    for (LoopStack& stack : attrs.stacks) stack.adds_finished = false;
    for (LoopSum& sum : attrs.sums) sum.adds_finished = false;
  }

  Tensors trip_operands(LoopAttrs& next) {
    Tensors operands;
    const auto most = [&](const RowValue& value) {
      return value.is_many ? maximum(max(value.value), scalar(0, value.value.dtype()))
                           : value.value;
    };
    if (!ends_alone_) {
      if (given_.bound) operands.push_back(given_.bound->value);
      if (given_.lengths) operands.push_back(given_.lengths->value);
      return operands;
    }
    Tensor lengths;
    const auto limit = [&](const RowValue& value) {
      Tensor x = cast(minimum(cast(as_many(value, rows_), i64), kMaxIterations), i32);
      x = expand(maximum(x, 0), entry_dims());
      lengths = lengths.is_defined() ? minimum(lengths, x) : x;
    };
    if (given_.bound) {
      operands.push_back(cast(most(*given_.bound), i64));
      if (given_.bound->is_many) limit(*given_.bound);
    }
    if (given_.lengths) limit(*given_.lengths);
    next.trips.has_lengths = lengths.is_defined();
    if (lengths.is_defined()) operands.push_back(lengths);
    lengths_ = lengths;
    return operands;
  }

  RowValues results(const Tensors& made) {
    const auto from = results_of(get<LoopAttrs>(next_.get()), made);
    RowValues out(result_count(attrs_));
    const auto to = results_of(attrs_, out);
    const auto row_of = [&](std::size_t k, const Tensor& x) -> RowValue {
      if (!outputs_many_[k]) return {x};
      return {row_form(x, rows_of_outputs_[k]), true};
    };
    std::size_t k = 0;
    for (std::size_t i = 0; i < to.carries.size(); ++i, ++k)
      to.carries[i] = row_of(k, from.carries[i]);
    for (std::size_t i = 0; i < to.stacks.size(); ++i, ++k)
      to.stacks[i] = stacked(k, from.stacks[i]);
    for (std::size_t i = 0; i < to.sums.size(); ++i, ++k) to.sums[i] = row_of(k, from.sums[i]);
    to.trips = trips_of_rows(from);
    if (to.lengths) *to.lengths = {*from.lengths, ends_alone_};
    if (to.token) *to.token = {*from.token};
    return out;
  }
  RowValue stacked(std::size_t k, const Tensor& stack) const {
    if (!outputs_many_[k]) return {stack};
    if (stack.type().is_list()) return {stack, true};
    const Tensor many = with_axis_first(stack, 1);
    const TensorType& term = rows_of_outputs_[k];
    Dims row{attrs_.trips.makes_dim ? many.dims()[1]
                                    : attrs_.stacks[k - attrs_.carries.size()].dim};
    row.insert(row.end(), term.dims().begin(), term.dims().end());
    return {from_named_form(many, term.with(row), rows_), true};
  }
  template <class Results>
  RowValue trips_of_rows(const Results& from) const {
    if (!ends_alone_) return {from.trips};
    Tensor trips = from.lengths ? *from.lengths : lengths_;
    if (!trips.is_defined()) return {from.trips};
    for (const Dim& dim : attrs_.entries.dims) trips = max(trips, dim);
    return {trips, true};
  }

  static constexpr std::int64_t kMaxIterations = std::numeric_limits<std::int32_t>::max();

  const LoopAttrs& attrs_;
  const Graph& body_;
  RowValues in_;
  LoopOperands<RowValue> given_;
  RowBatch& outside_;  ///< of the graph with the loop
  struct {
    Tensors carries, slices, captures;
  } operands_;  ///< in the form of the loop
  Rows rows_;
  bool ends_alone_ = false;  ///< true: rows differ in their numbers of iterations
  std::vector<std::uint8_t> carries_many_;
  std::vector<std::pair<Tensor, FinishedFill>> fills_;  ///< of captured tensors
  struct AxisName {
    int position;
    Dim name;
  };
  std::vector<AxisName> names_;

  Ref<Graph> recorded_body_, recorded_cond_;
  Tensors body_captured_, cond_captured_;
  DimEnv body_dims_;
  std::vector<std::uint8_t> outputs_many_;   ///< by output of the body
  std::vector<TensorType> rows_of_outputs_;  ///< the type of one row
  bool cond_many_ = false;
  Tensor lengths_;
  AttrsRef next_;
};

}  // namespace

RowValues loop_over_rows(const AttrsRef& attrs, const RowValues& in, RowBatch& outside,
                         const Rows& rows) {
  return LoopOverRows(get<LoopAttrs>(attrs.get()), in, outside, rows).run();
}

}  // namespace reel
