#include "reel/autodiff/tape.h"

#include <algorithm>

#include "reel/autodiff/backward.h"
#include "reel/core/base/str.h"
#include "reel/core/base/thread_store.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/memory.h"

namespace reel {
namespace {

bool is_differentiable(const Tensor& tensor) { return is_float(tensor.dtype()); }

Tensor in_context(const Tensor& tensor) {
  return thread_mode.builder ? thread_mode.builder->lift(tensor) : tensor;
}

/// The name of the loop that a mark begins or ends.
struct MarkAttrs {
  std::string loop;
  template <class F>
  static void fields(F&& f) {
    f("loop", &MarkAttrs::loop);
  }
};

}  // namespace

TensorType type_here(const TensorType& type) {
  const bool has_other_dims = thread_mode.builder || thread_mode.entries;
  return has_other_dims && !type.node()->is_permanent ? type.with(type.dims()) : type;
}

[[gnu::noinline]] void TapeOperand::count_as_value() const {
  count_as(tensor(), MemoryClass::values);
}

inline TapeOperand* RecordingTape::Storage::room_for(std::size_t count) {
  if (operands.size() - operand_count < count)
    operands.resize(std::max<std::size_t>({64, 2 * operands.size(), operand_count + count}));
  return operands.data() + operand_count;
}

void RecordingTape::Storage::clear() {
  while (!records.empty()) {
    if (records.size() > kAhead) prefetch(records[records.size() - 1 - kAhead]);
    drop_last();
  }
  numbers.clear();
}

std::size_t RecordingTape::Storage::bytes() const {
  return records.capacity() * sizeof(OpRecord) + operands.capacity() * sizeof(TapeOperand) +
         numbers.capacity() * sizeof(ValueId);
}

RecordingTape::Storage* RecordingTape::spare() {
  return ThreadStore<Storage, RecordingTape>::get();
}

RecordingTape::Storage RecordingTape::take_spare() {
  Storage* const kept = spare();
  return kept ? std::exchange(*kept, {}) : Storage();
}

RecordingTape::RecordingTape(bool is_persistent)
    : is_persistent_(is_persistent),
      first_id_(next_block_id()),
      builder_(thread_mode.builder ? thread_mode.builder->serial() : 0),
      entries_(thread_mode.entries),
      storage_(take_spare()) {
  outer = thread_mode.tape;
  thread_mode.tape = this;
}

RecordingTape::~RecordingTape() {
  constexpr std::size_t kMaxSpareBytes = std::size_t{64} << 20;
  stop();
  storage_.clear();
  Storage* const kept = spare();
  if (kept && storage_.bytes() <= kMaxSpareBytes && storage_.bytes() > kept->bytes())
    *kept = std::move(storage_);
}

void RecordingTape::stop() {
  for (Recorder** link = &thread_mode.tape; *link; link = &(*link)->outer)
    if (*link == this) {
      *link = outer;
      break;
    }
  is_recording_ = false;
}

inline ValueId RecordingTape::number_of(const Tensor& tensor) const {
  const std::uint64_t id = tensor.block()->id, offset = id - first_id_;
  if (offset < numbers_.size() && numbers_[offset]) return numbers_[offset];
  const Asked& asked = asked_[id % kAsked];
  return asked.id == id ? asked.number : number_of_older(id);
}

[[gnu::noinline]] ValueId RecordingTape::number_of_older(std::uint64_t id) const {
  if (older_.empty()) return kUntracked;
  const auto found = older_.find(id);
  asked_[id % kAsked] = {id, found == older_.end() ? kUntracked : found->second};
  return asked_[id % kAsked].number;
}

inline void RecordingTape::set_number(const Tensor& tensor, ValueId number) {
  const std::uint64_t id = tensor.block()->id;
  if (id - first_id_ == numbers_.size())
    numbers_.push_back(number);
  else
    set_number_out_of_order(id, number);
}

[[gnu::noinline]] void RecordingTape::set_number_out_of_order(std::uint64_t id, ValueId number) {
  const std::uint64_t offset = id - first_id_;
  constexpr std::uint64_t kFew = 16;
  if (offset < numbers_.size()) {
    numbers_[offset] = number;
  } else if (offset >= kFarAway) {
    older_[id] = number;
    asked_[id % kAsked] = {};
  } else {
    if (offset - numbers_.size() < kFew)  // blocks in between are not tracked
      while (numbers_.size() < offset) numbers_.push_back(kUntracked);
    else
      numbers_.resize(offset, kUntracked);
    numbers_.push_back(number);
  }
}

GraphBuilder* RecordingTape::own_builder() const {
  GraphBuilder* builder = thread_mode.builder;
  while (builder && builder->serial() != builder_) builder = builder->outer();
  if (!builder && builder_)
    throw TraceError(
        "Tape: a tape, or the pullback of a vjp, is used outside the trace, or the body or branch, "
        "in which it was made; values leave a body only through its state or outputs");
  return builder;
}

ValueId RecordingTape::number_from_inside(const Tensor& tensor, const char* role) const {
  const GraphBuilder* const own = own_builder();
  if (own ? !own->sees(tensor) : tensor.is_traced())
    throw TraceError(str("Tape: gradient is asked ", role,
                         " a value of a body or branch that is being recorded, but the tape was "
                         "opened outside it; open the tape inside, or use grad"));
  const Tensor known = own ? own->known(tensor) : tensor;
  return known.is_defined() ? number_of(known) : kUntracked;
}

void RecordingTape::watch(const Tensor& given) {
  GraphBuilder* const own = own_builder();
  if (own != thread_mode.builder && (own ? !own->sees(given) : given.is_traced()))
    throw TraceError(
        "Tape: watch is given a value of a body or branch that is being recorded, but the tape was "
        "opened outside it; open the tape inside, or use grad");
  const ModeScope scope({own, nullptr, thread_mode.entries});
  const Tensor tensor = in_context(given);
  if (!is_differentiable(tensor) || number_of(tensor) != kUntracked) return;
  set_number(tensor, ++count_);
  watched_.push_back(count_);
}

/// Values from before the tape do not count: they are not kept for it. Elements of an array count
/// where they were made.
inline void RecordingTape::count_as_residual(const Tensor& tensor) const {
  const BlockKind kind = tensor.block()->kind;
  if (kind == BlockKind::dense || kind == BlockKind::view)
    count_as_made_since(first_id_, tensor, MemoryClass::saved);
}

void RecordingTape::record(const Op& op, const AttrsRef& attrs, OpInputs inputs,
                           std::span<const Tensor> outputs) {
  if (!op.vjp) return;
  if (unrecorded_ends_) record_ends();
  const std::size_t count = inputs.size() + outputs.size();
  TapeOperand* const first = storage_.room_for(count);
  TapeOperand* operand = first;
  std::uint32_t tracked = 0, bit = 1;
  for (const OpInput& input : inputs) {
    operand->number = number_of(*input.tensor);
    if ((operand++)->number != kUntracked) tracked |= bit;
    if (bit << 1) bit <<= 1;  // the last bit stands for all others
  }
  if (!tracked) return;
  for (const Tensor& output : outputs) {
    operand->number = is_differentiable(output) ? ++count_ : kUntracked;
    if (operand->number != kUntracked) set_number(output, operand->number);
    ++operand;
  }
  if (op.is_identity && !tables_.empty()) note_identity(first->number, outputs[0]);
  records_.push_back({&op, attrs, static_cast<std::uint32_t>(storage_.operand_count),
                      static_cast<std::uint32_t>(inputs.size()),
                      static_cast<std::uint32_t>(outputs.size()),
                      thread_mode.builder      ? detail::last_source
                      : thread_mode.nan_checks ? place_of_checked()
                                               : kNoSource});
  if (thread_mode.belongs_at) move_out_of_loops({first + inputs.size(), outputs.size()});
  // Nothing below may fail. A right shift copies the last bit, which stands for all others.
  const OpReads reads = reads_of(op, attrs.get(), tracked);
  operand = first;
  auto read = static_cast<std::int32_t>(reads.inputs);
  for (const OpInput& input : inputs) {
    (operand++)->hold(*input.tensor, read & 1);
    if (read & 1) count_as_residual(*input.tensor);
    read >>= 1;
  }
  read = static_cast<std::int32_t>(reads.outputs);
  for (const Tensor& output : outputs) {
    (operand++)->hold(output, read & 1);
    if (read & 1) count_as_residual(output);
    read >>= 1;
  }
  storage_.operand_count += count;
}

[[gnu::noinline]] SourceId RecordingTape::place_of_checked() {
  if (Tensors running = detail::RunningEntries::masks(); !running.empty())
    running_entries_[records_.size()] = std::move(running);
  return source_here();
}

[[gnu::noinline]] void RecordingTape::move_out_of_loops(std::span<const TapeOperand> outputs) {
  const auto loop = std::find_if(open_loops_.begin(), open_loops_.end(), [](const OpenLoop& open) {
    return open.begin >= thread_mode.belongs_at;
  });
  if (loop == open_loops_.end()) return;
  const std::size_t record = records_.size() - 1;
  try {
    moved_records_[record] = static_cast<std::size_t>(open_loops_.end() - loop);
    for (const TapeOperand& output : outputs) moved_values_[output.number] = loop->values_before;
  } catch (...) {
    moved_records_.erase(record);
    records_.pop_back();
    throw;
  }
}

void RecordingTape::watch_rows(const Tensor& table) {
  watch(table);
  if (const ValueId number = number_of(in_context(table)); number != kUntracked)
    tables_.push_back({number, number});
}

[[gnu::noinline]] void RecordingTape::note_identity(ValueId table, const Tensor& output) {
  for (std::size_t i = 0; i < tables_.size(); ++i)
    if (tables_[i].number == table) {
      const ValueId source = tables_[i].source;
      tables_.push_back({number_of(output), source});
      return;
    }
}

bool RecordingTape::is_tracked(const Tensor& tensor) const {
  return number_of(tensor) != kUntracked;
}

bool RecordingTape::takes_rows(const Tensor& tensor) const {
  if (tables_.empty()) return false;
  const ValueId number = number_of(tensor);
  return std::any_of(tables_.begin(), tables_.end(),
                     [&](const Table& table) { return table.number == number; });
}

std::string RecordingTape::name_of_loop(const OpRecord& mark) {
  return mark.attrs ? get<MarkAttrs>(mark.attrs.get()).loop : std::string();
}

void RecordingTape::name_loops_around(std::size_t record, Error& error) const {
  int inner = 0;  // loops that ended before the record
  std::int64_t iteration = -1;
  for (std::size_t r = record; r-- > 0;) {
    const OpRecord& mark = records_[r];
    if (mark.op) continue;
    switch (static_cast<Mark>(mark.input_count)) {
      case Mark::loop_ends:
        ++inner;
        break;
      case Mark::iteration_begins:
        if (inner == 0 && iteration < 0) iteration = mark.source;
        break;
      case Mark::loop_begins:
        if (inner > 0) {
          --inner;
          break;
        }
        if (const std::string loop = name_of_loop(mark); !loop.empty())
          error.add_line(str("in iteration ", std::max<std::int64_t>(iteration, 0),
                             " of the gradient of ", loop));
        iteration = -1;
        break;
    }
  }
}

void RecordingTape::mark(Mark what, const std::string& loop, std::int64_t iteration) {
  if (what == Mark::loop_ends) return end_loop();
  record_ends();
  if (what == Mark::loop_begins) return begin_loop(loop);
  if (open_loops_.empty()) return;  // the loop began before the tape
  append_mark(what, open_loops_.back(), {}, iteration);
  open_loops_.back().values_before_iteration = count_;
  open_loops_.back().iteration = iteration;
}

/// A mark is a record without an op; input_count holds its kind. Seen from the end, it opens the
/// previous iteration. `first` is the number of values when that iteration began. `output_count` is
/// the number when the loop began. `source` is the number of the iteration that begins or, at the
/// end of a loop, of the last one.
void RecordingTape::append_mark(Mark what, const OpenLoop& loop, const AttrsRef& name,
                                std::int64_t iteration) {
  records_.push_back({nullptr, name, loop.values_before_iteration, static_cast<std::uint32_t>(what),
                      loop.values_before, static_cast<SourceId>(iteration)});
}

void RecordingTape::begin_loop(const std::string& name) {
  // The skipped number stands for values moved out of the loop: it is greater than all numbers from
  // before the loop, and less than all of the loop.
  ++count_;
  OpenLoop loop{next_block_id(), count_, count_,
                name.empty() ? AttrsRef() : make_attrs(MarkAttrs{name})};
  open_loops_.push_back(loop);
  try {
    append_mark(Mark::loop_begins, loop, loop.name, 0);
  } catch (...) {
    open_loops_.pop_back();
    throw;
  }
}

/// Never throws, as a loop may end because memory ran out. If the end cannot be recorded now, the
/// next record or gradient does it.
void RecordingTape::end_loop() noexcept {
  if (open_loops_.size() == unrecorded_ends_) return;  // the loop began before the tape
  ++unrecorded_ends_;
  try {
    record_ends();
  } catch (const std::bad_alloc&) {
  }
}

void RecordingTape::record_ends() {
  for (; unrecorded_ends_; --unrecorded_ends_) {
    const OpenLoop& loop = open_loops_.back();
    append_mark(Mark::loop_ends, loop, loop.name, loop.iteration);
    open_loops_.pop_back();
  }
}

Tensor seed(const Tensor& target, const Tensor& cotangent) {
  if (!cotangent.is_defined()) return ones_like(target);
  if (cotangent.type() == target.type()) return cotangent;
  if (is_unranked(target)) return as_unranked(cotangent);
  check_ranked(cotangent);
  const TensorType type = type_here(target.type());
  if (cotangent.type() != type && type.is_known() && cotangent.type().is_known())
    throw ShapeError(str("gradient: a cotangent of type ", cotangent.type(),
                         " was given for a value of type ", type,
                         one_dim_hint(cotangent.type().dims(), type.dims())));
  return cotangent;
}

Tensors RecordingTape::gradient(const Tensors& targets, const Tensors& cotangents,
                                const Tensors& sources, Tensors* presences,
                                std::vector<TableRows>* rows) {
  if (is_spent_)
    throw ArgumentError(
        "Tape: gradient was asked twice of a tape that is not persistent; make it with "
        "Tape({.persistent = true})");
  record_ends();
  const bool is_inside = own_builder() != thread_mode.builder;
  const bool is_elsewhere = is_inside || (thread_mode.entries && thread_mode.entries != entries_);
  // Only the outer tapes record the ops of backward; inside another trace, the tapes that were
  // opened there.
  Recorder* const around = is_recording_ && !is_inside ? outer : thread_mode.tape;
  const bool is_last = !is_persistent_ && !is_inside;
  if (is_last) {
    is_spent_ = true;
    stop();
  }
  ModeScope scope({thread_mode.builder, around, thread_mode.entries});
  const auto number = [&](const Tensor& tensor, const char* role) {
    const bool is_here = thread_mode.builder && !is_inside;
    return is_here ? number_of(in_context(tensor)) : number_from_inside(tensor, role);
  };
  Backward backward(*this, is_last, is_elsewhere);
  std::vector<ValueId> wanted, given;
  for (const Tensor& source : sources)
    wanted.push_back(source.is_defined() && is_differentiable(source)
                         ? number(source, "with respect to")
                         : kUntracked);
  for (const Tensor& target : targets) given.push_back(number(target, "for"));
  backward.want(wanted);
  if (rows)
    for (const Table& table : tables_) backward.take_rows(table.number, table.source);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (given[i] != kUntracked)
      backward.accumulate(
          given[i], seed(targets[i], cotangents[i].is_defined()
                                         ? in_context(backward.constant_to_tape(cotangents[i]))
                                         : Tensor()));
  backward.run();
  Tensors result;
  for (const ValueId number : wanted)
    result.push_back(number == kUntracked ? Tensor() : backward.cotangent(number));
  if (rows)
    for (const ValueId number : wanted) rows->push_back(backward.rows(number));
  if (presences)
    for (const ValueId number : wanted) presences->push_back(backward.presence(number));
  return result;
}

}  // namespace reel
