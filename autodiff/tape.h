// autodiff/tape.h — RecordingTape, the list of applied ops that backward walks.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <unordered_map>
#include <vector>

#include "reel/core/graph.h"
#include "reel/core/mode.h"
#include "reel/core/tensor.h"

namespace reel {

/// What a tape keeps of an operand: its number, and the tensor where the op's vjp will read it,
/// else its type.
///
/// Plain memory: a list of operands grows and is dropped as a whole, so that a record costs no step
/// for each. Who drops one lets go of it first.
class TapeOperand {
 public:
  ValueId number;

  void hold(const Tensor& tensor, bool as_tensor) {
    is_tensor_ = as_tensor;
    if (as_tensor)
      new (bytes_) Tensor(tensor);
    else
      new (bytes_) TensorType(tensor.type());
  }
  /// Another one of the same, that holds it as well.
  TapeOperand shared() const {
    TapeOperand result;
    result.number = number;
    result.is_tensor_ = is_tensor_;
    if (is_tensor_)
      new (result.bytes_) Tensor(tensor());
    else
      new (result.bytes_) TensorType(held_type());
    return result;
  }
  /// The operand with another tensor, or another type, in place of its own.
  TapeOperand with(const Tensor& tensor) const {
    TapeOperand result;
    result.number = number;
    result.hold(tensor, true);
    return result;
  }
  TapeOperand with(const TensorType& type) const {
    TapeOperand result;
    result.number = number;
    result.is_tensor_ = false;
    new (result.bytes_) TensorType(type);
    return result;
  }
  void let_go() {
    if (!is_tensor_) return held_type().~TensorType();
    // What somebody else goes on with is no longer kept for a gradient.
    const Ref<TensorBlock>& block = tensor().ref();
    if (block->memory_class.load(std::memory_order_relaxed) == MemoryClass::saved &&
        !block.unique())
      count_as_value();
    tensor().~Tensor();
  }
  /// Destroys an operand that with() returned; does not change how its memory is counted.
  void let_go_of_view() { is_tensor_ ? tensor().~Tensor() : held_type().~TensorType(); }
  bool is_tensor() const { return is_tensor_; }
  const Tensor& tensor() const { return *std::launder(reinterpret_cast<const Tensor*>(bytes_)); }
  const TensorType& type() const { return is_tensor_ ? tensor().type() : held_type(); }
  /// What it points to will be asked for soon: a long tape does not fit into the nearer caches.
  void prefetch() const {
    const void* pointer;
    std::memcpy(&pointer, bytes_, sizeof pointer);
    __builtin_prefetch(pointer);
  }

 private:
  void count_as_value() const;
  const TensorType& held_type() const {
    return *std::launder(reinterpret_cast<const TensorType*>(bytes_));
  }

  static_assert(sizeof(Tensor) == sizeof(TensorType));
  bool is_tensor_;
  alignas(Tensor) std::byte bytes_[sizeof(Tensor)];
};

/// Records the ops applied on this thread to watched tensors, and to what came of them, until it is
/// destroyed.
///
/// Works in eager mode and inside a trace alike: it holds tensors, and never looks at their values.
/// Of each op it keeps the inputs and outputs that the op's vjp reads, and of others the type.
/// Tapes may be nested: an inner tape's gradient is recorded on the outer one. (Frontend's Tape
/// wraps this class for trees.)
///
/// A tape belongs to the trace, body or branch that it is opened in, and records no op of a body or
/// branch inside. `gradient` may be called there: the vjps are applied inside, and the values that
/// they read become captures.
class RecordingTape final : public Recorder {
 public:
  explicit RecordingTape(bool is_persistent = false);
  ~RecordingTape() override;
  RecordingTape(const RecordingTape&) = delete;
  RecordingTape& operator=(const RecordingTape&) = delete;

  /// Cotangents are wanted for this tensor: a floating one, or an array of such; others are
  /// ignored. Throws TraceError for a value of a body or branch inside the tape's trace.
  void watch(const Tensor& tensor);
  /// The same for a table: gradient may give its cotangent as rows.
  void watch_rows(const Tensor& table);
  /// The cotangents of `sources`, given those of `targets` (an empty one stands for ones).
  ///
  /// An empty Tensor stands for "no path": the caller decides what zeros look like. A tape that is
  /// not persistent records no more from then on, lets go of what it kept while it walks, and
  /// throws ArgumentError when asked a second time. presences, if given: by source, a boolean where
  /// only a run tells whether there is a path, empty elsewhere. row_numbers, if given: by source,
  /// the numbers of the rows that the cotangent consists of, one behind the other in the order in
  /// which they were read; empty where it is whole, or there is none. Rows are given for what
  /// watch_rows was told of and is read by its rows alone.
  ///
  /// Inside another body, branch or trace a tape that is not persistent may be asked again, since
  /// bodies may be recorded more than once. Throws TraceError if the tape's own trace has ended, or
  /// if a target or a floating source was made inside.
  Tensors gradient(const Tensors& targets, const Tensors& cotangents, const Tensors& sources,
                   Tensors* presences = nullptr, Tensors* row_numbers = nullptr);

  void record(const Op& op, const AttrsRef& attrs, OpInputs inputs,
              std::span<const Tensor> outputs) override;
  bool is_tracked(const Tensor& tensor) const override;
  bool takes_rows(const Tensor& tensor) const override;
  void mark(Mark what, const std::string& loop, std::int64_t iteration) override;
  /// An error of the vjp of a record: of the loops that this stands in, which are still on the tape
  /// in front of it, in which iteration.
  void name_loops_around(std::size_t record, Error& error) const;
  /// Of a mark where a loop begins or ends; empty where it has no name.
  static std::string name_of_loop(const OpRecord& mark);

  /// Ends recording; gradient may still be asked.
  void stop();

  /// How many records it holds, marks of loops included.
  std::size_t size() const { return records_.size(); }

 private:
  friend class Backward;
  static constexpr ValueId kUntracked = 0;

  /// Ids further from the tape's are those of older tensors, or another thread's.
  static constexpr std::uint64_t kFarAway = std::uint64_t{1} << 43;

  /// Where the tape was opened; null for eager mode. Throws TraceError if that has ended.
  GraphBuilder* own_builder() const;
  /// The number of a tensor that is given inside the tape's trace. Throws TraceError, which names
  /// the tensor's role, if the tensor was made there.
  ValueId number_from_inside(const Tensor& tensor, const char* role) const;
  struct OpenLoop;
  void begin_loop(const std::string& name);
  void end_loop() noexcept;
  void record_ends();
  void append_mark(Mark what, const OpenLoop& loop, const AttrsRef& name, std::int64_t iteration);
  void count_as_saved(const Tensor& tensor) const;
  void move_out_of_loops(std::span<const TapeOperand> outputs);
  void note_identity(ValueId table, const Tensor& output);
  ValueId number_of(const Tensor& tensor) const;
  ValueId number_of_older(std::uint64_t id) const;
  void set_number(const Tensor& tensor, ValueId number);
  void set_number_out_of_order(std::uint64_t id, ValueId number);

  /// What grows with every record. Its memory goes from a tape to the next one on the thread:
  /// asking the system for pages took 40 % of the time of recording short chains.
  struct Storage {
    std::vector<OpRecord> records;
    std::vector<TapeOperand> operands;  // of the records, one after the other; then room for more
    std::size_t operand_count = 0;
    std::vector<ValueId> numbers;  // by block id - first_id_
    ~Storage() { clear(); }
    Storage() = default;
    Storage(Storage&&) = default;
    Storage& operator=(Storage&&) = default;
    std::span<const TapeOperand> inputs_of(const OpRecord& record) const {
      return {operands.data() + record.first, record.input_count};
    }
    std::span<const TapeOperand> outputs_of(const OpRecord& record) const {
      return {operands.data() + record.first + record.input_count, record.output_count};
    }
    /// Where the next so many operands will lie.
    TapeOperand* room_for(std::size_t count);
    /// Its operands' values will be asked for soon.
    void prefetch(const OpRecord& record) const {
      if (!record.op) return;
      for (const TapeOperand& input : inputs_of(record)) input.prefetch();
    }
    /// Lets go of the last record.
    void drop_last() {
      if (const OpRecord& record = records.back(); record.op)
        while (operand_count > record.first) operands[--operand_count].let_go();
      records.pop_back();
    }
    void clear();
    std::size_t bytes() const;
  };
  /// Null at the thread's end.
  static Storage* spare();
  static Storage take_spare();
  /// How many records ahead of a walk operands are fetched.
  static constexpr std::size_t kAhead = 8;

  bool is_persistent_, is_spent_ = false, is_recording_ = true;
  std::uint64_t first_id_;
  std::uint64_t builder_;  // the trace that it was opened in; 0 for eager mode
  EntryScope* entries_;    // and the iteration of an eager scan, while some entries have ended
  Storage storage_;
  std::vector<OpRecord>& records_ = storage_.records;
  std::vector<ValueId>& numbers_ = storage_.numbers;
  std::vector<ValueId> watched_;
  struct Table {
    ValueId number, source;
  };
  // Of those: told of by watch_rows, and the same under another identity, as an inner gradient
  // takes it.
  std::vector<Table> tables_;
  struct OpenLoop {
    std::uint64_t begin;              // the newest block id before it
    ValueId values_before;            // how many values there were when it began
    ValueId values_before_iteration;  // and when its last iteration did
    AttrsRef name;                    // for errors of its gradient; null if it has none
    std::int64_t iteration = 0;       // the number of the last iteration
  };
  std::vector<OpenLoop> open_loops_;
  // So many of the innermost ones have ended where there was no memory to record that.
  std::size_t unrecorded_ends_ = 0;
  // Records that belong before loops in which they were made: out of how many, by their index; and
  // as which number their values count where a loop asks what was made before it.
  std::unordered_map<std::size_t, std::size_t> moved_records_;
  std::unordered_map<ValueId, ValueId> moved_values_;
  ValueId count_ = 0;  // values are numbered from 1 in the order of their making
  // Tensors made before the tape, or on another thread; and what was asked for last by the last
  // bits of its id: a model has a handful of weights, made one after the other.
  std::unordered_map<std::uint64_t, ValueId> older_;
  struct Asked {
    std::uint64_t id = 0;
    ValueId number = kUntracked;
  };
  static constexpr std::size_t kAsked = 16;
  mutable std::array<Asked, kAsked> asked_{};
};

/// ȳ, or ones of y's type: what a gradient starts from.
Tensor seed(const Tensor& target, const Tensor& cotangent);

/// A type with its dims as the active body, branch or trace names them.
TensorType type_here(const TensorType& type);

}  // namespace reel
