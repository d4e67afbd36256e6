#include "reel/autodiff/backward.h"

#include <algorithm>

#include "reel/core/base/forward_op.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/zero_unless.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/types/partial_shape.h"

namespace reel {
namespace {

[[gnu::noinline]] Tensor sum_of(Tensor&& a, Tensor&& b) {
  return a.type().is_list() ? list_add(std::move(a), std::move(b))
                            : add(std::move(a), std::move(b));
}

}  // namespace

inline void Backward::add_into(ValueId number, Tensor&& term) {
  Tensor& sum = cotangents_[number];
  if (!sum.is_defined())
    sum = std::move(term);
  else if (sum.dtype() != f32 || ++added_[number] < kPlainTerms)
    sum = sum_of(std::move(sum), std::move(term));
  else
    begin_block(number, std::move(term));
}

[[gnu::noinline]] void Backward::begin_block(ValueId number, Tensor&& term) {
  TermSum& blocks = blocks_[number];
  blocks.add(std::exchange(cotangents_[number], std::move(term)));
  blocks.end_block();
  added_[number] = 0;
}

void Backward::add_blocks(ValueId number) {
  const auto found = blocks_.find(number);
  if (found == blocks_.end()) return;
  found->second.add(std::move(cotangents_[number]));
  cotangents_[number] = found->second.take();
  blocks_.erase(found);
  added_[number] = 0;
}

void Backward::accumulate(ValueId number, Tensor cotangent) {
  if (!is_needed_[number]) return;
  if (!presences_.empty()) {
    settle(number);
    presences_.erase(number);
  }
  if (!loops_.empty()) return accumulate_in_loop(number, std::move(cotangent));
  add_into(number, std::move(cotangent));
}

/// Returns the number that tells before which loops and iterations a value was made.
inline ValueId Backward::place_of(ValueId number) const {
  if (tape_.moved_values_.empty()) return number;
  const auto moved = tape_.moved_values_.find(number);
  return moved == tape_.moved_values_.end() ? number : moved->second;
}

void Backward::accumulate_in_loop(ValueId number, Tensor cotangent) {
  Loop& loop = loops_.back();
  const ValueId place = place_of(number);
  if (place <= loop.values_before)
    loop.iteration[number].add(std::move(cotangent));
  else if (place <= loop.values_before_iteration)
    loop.carried[number].add(std::move(cotangent));
  else
    add_into(number, std::move(cotangent));
}

/// Sets a cotangent that a run may not have to zeros for that case.
void Backward::settle(ValueId number) {
  const auto found = presences_.find(number);
  if (found == presences_.end() || found->second.is_exact) return;
  finish_sum(number);
  cotangents_[number] = zero_unless(found->second.present, std::move(cotangents_[number]));
  found->second.is_exact = true;
}

void Backward::accumulate_if(ValueId number, Tensor cotangent, Presence presence) {
  if (!is_needed_[number]) return;
  const bool is_first = !cotangents_[number].is_defined();
  const bool joins = !is_first || !loops_.empty();
  if (joins && !presence.is_exact) cotangent = zero_unless(presence.present, std::move(cotangent));
  if (is_first && !joins) {
    cotangents_[number] = std::move(cotangent);
    presences_.insert_or_assign(number, std::move(presence));
    return;
  }
  const auto known = presences_.find(number);
  if (known == presences_.end()) return accumulate(number, std::move(cotangent));
  const Tensor either = logical_or(known->second.present, presence.present);
  accumulate(number, std::move(cotangent));
  presences_.insert_or_assign(number, Presence{either, true});
}

/// Determines whether a run has any of the cotangents of a record.
void Backward::find_arriving(std::span<const TapeOperand> outputs) {
  bool is_certain = false;
  std::vector<ValueId> numbers;
  for (const TapeOperand& output : outputs) {
    if (!cotangents_[output.number].is_defined()) continue;
    numbers.push_back(output.number);
    is_certain = is_certain || !presences_.count(output.number);
  }
  if (numbers.size() > 1 || is_certain)
    for (const ValueId number : numbers) settle(number);
  if (is_certain) return;
  arriving_ = presences_.at(numbers[0]);
  for (std::size_t i = 1; i < numbers.size(); ++i)
    arriving_->present = logical_or(arriving_->present, presences_.at(numbers[i]).present);
}

/// A record on the tape for its vjp. The value numbered kUntracked needs no cotangent and has none.
class TapeVjp final : public Vjp {
 public:
  TapeVjp(Backward& backward, const OpRecord& record, const TapeOperand* operands)
      : backward_(backward), record_(record), in_(operands), out_(operands + record.input_count) {
    op_ = record.op;
    attrs_ = &record.attrs;
  }
  std::size_t input_count() const override { return record_.input_count; }
  std::size_t output_count() const override { return record_.output_count; }
  const Tensor& input(std::size_t i) const override {
    if (!in_[i].is_tensor()) refuse(i, "input");
    return in_[i].tensor();
  }
  const Tensor& output(std::size_t i) const override {
    if (!out_[i].is_tensor()) refuse(i, "output");
    return out_[i].tensor();
  }
  const TensorType& input_type(std::size_t i) const override { return in_[i].type(); }
  const TensorType& output_type(std::size_t i) const override { return out_[i].type(); }
  bool has_cotangent(std::size_t i) const override { return known(i).is_defined(); }
  Tensor cotangent(std::size_t i) override {
    if (has_cotangent(i)) return known(i);
    const TensorType& type = out_[i].type();
    return type.is_list() ? empty_list(type) : zeros(type);
  }
  Tensor last_cotangent(std::size_t i) override {
    if (!has_cotangent(i) || backward_.is_source_[out_[i].number]) return cotangent(i);
    return std::move(known(i));
  }
  bool needs(std::size_t i) const override { return backward_.is_needed_[in_[i].number]; }
  void add(std::size_t i, Tensor cotangent) override {
    if (!needs(i)) return;
    cotangent = checked(i, std::move(cotangent));
    if (!backward_.arriving_) return backward_.accumulate(in_[i].number, std::move(cotangent));
    backward_.accumulate_if(in_[i].number, std::move(cotangent),
                            {backward_.arriving_->present, keeps_zeros()});
  }
  Backward& backward() const { return backward_; }
  bool takes_rows(std::size_t i) const override {
    return !backward_.tables_.empty() && backward_.tables_.count(in_[i].number);
  }
  void add_rows(std::size_t i, Tensor values, Tensor numbers) override {
    if (!takes_rows(i)) return add(i, reel::add_rows(zeros(input_type(i)), numbers, values));
    // If a run has no cotangent, no row was read, as in eager mode.
    if (const auto& arriving = backward_.arriving_)
      numbers = where(arriving->present, numbers, kNoRow);
    const ValueId source = backward_.tables_.at(in_[i].number);
    backward_.rows_[source].push_back({std::move(values), std::move(numbers)});
  }
  void add(std::size_t i, Tensor cotangent, const Tensor& present) override {
    if (!needs(i)) return;
    if (!present.is_traced()) {
      if (present.item<bool>()) add(i, std::move(cotangent));
      return;
    }
    const auto& arriving = backward_.arriving_;
    backward_.accumulate_if(
        in_[i].number, checked(i, std::move(cotangent)),
        {arriving ? logical_and(arriving->present, present) : present, !arriving || keeps_zeros()});
  }

 private:
  /// Returns true if zeros that stand for no cotangent remain zeros behind the op: it is linear
  /// with constant coefficients.
  bool keeps_zeros() const {
    const OpReads reads = reads_of(*op_, attrs_->get(), ~0u);
    return backward_.arriving_->is_exact && !reads.inputs && !reads.outputs;
  }
  Tensor checked(std::size_t i, Tensor cotangent) const {
    const TensorType& type = in_[i].type();
    if (!fits(cotangent.type(), type) && type.is_known() && cotangent.type().is_known())
      throw InternalError(str(op_->name, ": its vjp gives a cotangent of type ", cotangent.type(),
                              " for input ", i, " of type ", type));
    if (cotangent.type() != type) cotangent = knowing(type, std::move(cotangent));
    return cotangent;
  }
  Tensor& known(std::size_t i) const { return backward_.cotangents_[out_[i].number]; }
  /// Elements of a list may have dims that were made with each element, so that types of lists
  /// without names may differ. In a trace, a value from outside may have dims that are symbols of
  /// the trace elsewhere.
  static bool fits(const TensorType& cotangent, const TensorType& type) {
    if (cotangent == type) return true;
    if (cotangent.is_list() != type.is_list() || cotangent.dtype() != type.dtype()) return false;
    return type.is_list() ? cotangent.rank() == type.rank() : cotangent.dims() == type.dims();
  }
  /// Returns the cotangent with all that is known about the value's sizes. In a trace, a loop with
  /// a state that changes its size states fewer of them.
  [[gnu::noinline]] static Tensor knowing(const TensorType& type, Tensor cotangent) {
    const TensorType& given = cotangent.type();
    if (given.is_known() || given.is_list() || given.rank() != type.rank()) return cotangent;
    bool says_more = false;
    for (std::size_t i = 0; i < given.dims().size(); ++i)
      says_more = says_more || (!given.dims()[i].is_named() && !given.dims()[i].has_size() &&
                                type.dims()[i].has_size());
    return says_more ? ensure_shape(cotangent, type.dims()) : cotangent;
  }
  [[noreturn]] void refuse(std::size_t i, const char* what) const {
    throw InternalError(
        str(op_->name, ": its vjp reads ", what, " ", i, ", which its `reads` does not name"));
  }

  Backward& backward_;
  const OpRecord& record_;
  const TapeOperand *in_, *out_;
};

Backward::Backward(RecordingTape& tape, bool let_go, bool is_elsewhere)
    : tape_(tape),
      let_go_(let_go),
      is_elsewhere_(is_elsewhere),
      cotangents_(tape.count_ + 1),
      added_(tape.count_ + 1, 0),
      is_needed_(tape.count_ + 1, 0),
      is_source_(tape.count_ + 1, 0) {}

void Backward::want(const std::vector<ValueId>& sources) {
  for (const ValueId number : sources) is_needed_[number] = is_source_[number] = 1;
  is_needed_[RecordingTape::kUntracked] = is_source_[RecordingTape::kUntracked] = 0;
  const auto is_wanted = [&](ValueId number) { return is_source_[number] != 0; };
  if (std::all_of(tape_.watched_.begin(), tape_.watched_.end(), is_wanted)) {
    // Everything on the tape was computed from these values.
    std::fill(is_needed_.begin() + 1, is_needed_.end(), 1);
    return;
  }
  for (const OpRecord& record : tape_.records_) {
    if (!record.op || !is_needed(tape_.storage_.inputs_of(record))) continue;
    for (const TapeOperand& output : tape_.storage_.outputs_of(record))
      is_needed_[output.number] = output.number != RecordingTape::kUntracked;
  }
}

void Backward::take_rows(ValueId number, ValueId source) {
  if (is_source_[source]) tables_.emplace(number, source);
}

TableRows Backward::rows(ValueId number) const {
  const auto found = rows_.find(number);
  if (found == rows_.end()) return {};
  Tensors values, numbers;
  for (auto rows = found->second.rbegin(); rows != found->second.rend(); ++rows) {
    values.push_back(rows->values);
    numbers.push_back(rows->numbers);
  }
  if (values.size() == 1) return {values[0], numbers[0]};
  return {concat(values, 0), concat(numbers, 0)};
}

void Backward::leave_iteration(Loop& loop, std::int64_t next) {
  if (begins_block(loop.iterations++))
    for (auto& [number, total] : loop.total) total.end_block();
  for (auto& [number, sum] : loop.iteration) loop.total[number].add(sum.take());
  loop.iteration.clear();
  mark_tapes(Recorder::Mark::iteration_begins, {}, next);
  for (auto& [number, sum] : loop.carried) add_into(number, sum.take());
  loop.carried.clear();
}

namespace {

std::string name_of_gradient(const OpRecord& mark) {
  const std::string loop = RecordingTape::name_of_loop(mark);
  return loop.empty() ? loop : "the gradient of " + loop;
}

}  // namespace

void Backward::visit_mark(const OpRecord& mark) {
  switch (static_cast<Recorder::Mark>(mark.input_count)) {
    case Recorder::Mark::loop_ends: {
      loops_.push_back({mark.output_count, mark.first, {}, {}, {}, {}, 0});
      // To an outer tape, walking back over a loop is a loop.
      mark_tapes(Recorder::Mark::loop_begins, name_of_gradient(mark));
      mark_tapes(Recorder::Mark::iteration_begins, {}, mark.source);
      break;
    }
    case Recorder::Mark::iteration_begins: {
      if (loops_.empty()) break;
      check_cancellation();
      leave_iteration(loops_.back(), std::max<std::int64_t>(mark.source, 1) - 1);
      loops_.back().values_before_iteration = mark.first;
      break;
    }
    case Recorder::Mark::loop_begins: {
      if (loops_.empty()) break;
      if (Loop& loop = loops_.back(); !loop.iteration.empty() || !loop.carried.empty())
        leave_iteration(loop, 0);  // values that the first condition made, and others read
      Loop loop = std::move(loops_.back());
      loops_.pop_back();
      mark_tapes(Recorder::Mark::loop_ends, name_of_gradient(mark));
      for (auto& [number, total] : loop.total) accumulate(number, total.take());
      for (const MovedRecord& moved : loop.moved) visit(moved.record, moved.operands.data());
      break;
    }
  }
}

inline bool Backward::is_needed(std::span<const TapeOperand> inputs) const {
  bool result = false;
  for (const TapeOperand& input : inputs) result |= is_needed_[input.number];
  return result;
}

void Backward::apply_vjp(const OpRecord& record, const TapeOperand* operands) {
  TapeVjp at(*this, record, operands);
  const SourceScope from_there(in_gradient_of(record.source, record.op->name));
  record.op->vjp(at);
}

inline void Backward::visit(const OpRecord& record, const TapeOperand* operands) {
  const std::span inputs(operands, record.input_count);
  const std::span outputs(operands + record.input_count, record.output_count);
  bool has_cotangent = false;
  for (const TapeOperand& output : outputs)
    has_cotangent |= cotangents_[output.number].is_defined();
  if (!has_cotangent) return;
  for (const TapeOperand& output : outputs) finish_sum(output.number);
  if (is_needed(inputs)) {
    if (!presences_.empty()) find_arriving(outputs);
    if (is_elsewhere_)
      apply_vjp_elsewhere(record, operands);
    else
      apply_vjp(record, operands);
    arriving_.reset();
  }
  for (const TapeOperand& output : outputs)
    if (!is_source_[output.number]) {
      cotangents_[output.number] = Tensor();
      if (!presences_.empty()) presences_.erase(output.number);
    }
}

Backward::MovedRecord::MovedRecord(const RecordingTape::Storage& storage, const OpRecord& record)
    : record(record) {
  const TapeOperand* const first = storage.operands.data() + record.first;
  operands.reserve(record.input_count + record.output_count);  // shared() may throw below
  for (std::size_t i = 0; i < record.input_count + record.output_count; ++i)
    operands.push_back(first[i].shared());
}

Backward::MovedRecord::~MovedRecord() {
  for (TapeOperand& operand : operands) operand.let_go();
}

/// Defers a record to the beginning of the loop that it belongs before. If that loop began before
/// the tape, defers it to the outermost loop of the walk.
[[gnu::noinline]] void Backward::visit_moved(const OpRecord& record, std::size_t loops_to_leave) {
  if (loops_.empty()) return visit(record, tape_.storage_.inputs_of(record).data());
  Loop& loop = loops_[loops_.size() - std::min(loops_to_leave, loops_.size())];
  loop.moved.emplace_back(tape_.storage_, record);
}

void Backward::visit_in_place(std::size_t r) {
  const OpRecord& record = tape_.storage_.records[r];
  std::optional<detail::RunningEntries> entries;
  if (!tape_.running_entries_.empty())
    if (const auto found = tape_.running_entries_.find(r); found != tape_.running_entries_.end())
      entries.emplace(found->second);
  try {
    visit(record, tape_.storage_.inputs_of(record).data());
  } catch (Error& error) {
    tape_.name_loops_around(r, error);
    throw;
  }
}

void Backward::run() {
  RecordingTape::Storage& storage = tape_.storage_;
  for (std::size_t r = storage.records.size(); r-- > 0;) {
    if (r >= RecordingTape::kAhead) storage.prefetch(storage.records[r - RecordingTape::kAhead]);
    const OpRecord& record = storage.records[r];
    const auto moved =
        tape_.moved_records_.empty() ? tape_.moved_records_.end() : tape_.moved_records_.find(r);
    if (!record.op)
      visit_mark(record);
    else if (moved != tape_.moved_records_.end())
      visit_moved(record, moved->second);
    else
      visit_in_place(r);
    if (let_go_) storage.drop_last();
  }
}

Tensors apply_again(Vjp& at, const Op& op, const Tensors& inputs, const AttrsRef& attrs) {
  Backward& walk = static_cast<TapeVjp&>(at).backward();
  if (!walk.is_elsewhere_) return bind_all(op, inputs, attrs);
  if (std::optional<Tensors> around = walk.apply_around(op, inputs, attrs))
    return *std::move(around);
  return bind_all(op, inputs, Backward::without_effects(op, attrs));
}

}  // namespace reel
