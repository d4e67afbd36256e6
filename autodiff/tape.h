// autodiff/tape.h — RecordingTape: the list of applied ops that backward walks.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <unordered_map>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// An operand on a tape: its number and, if the op's vjp will read it, the tensor, otherwise its
/// type.
///
/// Plain memory without a destructor: a list of operands grows and is dropped as a whole, without
/// work for each record. Call let_go() before dropping an operand.
class TapeOperand {
 public:
  ValueId number;

  /// Stores the tensor, or its type if !as_tensor.
  void hold(const Tensor& tensor, bool as_tensor) {
    is_tensor_ = as_tensor;
    if (as_tensor)
      new (bytes_) Tensor(tensor);
    else
      new (bytes_) TensorType(tensor.type());
  }
  /// Returns a copy that holds its own reference.
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
  /// Returns a copy with another tensor, or another type.
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
  /// Releases the tensor or type.
  void let_go() {
    if (!is_tensor_) return held_type().~TensorType();
    // A value with other references is no longer kept only for a gradient.
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
  /// Prefetches the block or type. A long tape does not fit into the nearer caches.
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

/// Rows that a table's cotangent has, and their numbers. Both are undefined if there are none.
struct TableRows {
  Tensor values, numbers;
};

/// Records the ops applied on this thread to watched tensors, and to values computed from them,
/// until it is destroyed.
///
/// Works in eager mode and inside a trace alike: it holds tensors and never reads their values. It
/// holds the inputs and outputs of each op that the op's vjp reads, and the types of the others.
/// Tapes may be nested: an inner tape's gradient is recorded on the outer one. (Frontend's Tape
/// wraps this class for trees.)
///
/// Not thread-safe.
///
/// A tape belongs to the trace, body or branch in which it is opened, and records no op of a body
/// or branch inside. `gradient` may be called there: the vjps are applied inside, and the values
/// that they read become captures.
class RecordingTape final : public Recorder {
 public:
  explicit RecordingTape(bool is_persistent = false);
  ~RecordingTape() override;
  RecordingTape(const RecordingTape&) = delete;
  RecordingTape& operator=(const RecordingTape&) = delete;

  /// Requests cotangents for a floating tensor or an array of floating tensors; ignores others.
  /// Throws TraceError for a value of a body or branch inside the tape's trace.
  void watch(const Tensor& tensor);
  /// Does the same as watch() for a table: gradient() may return its cotangent as rows.
  void watch_rows(const Tensor& table);
  /// Returns the cotangents of `sources`, given the cotangents of `targets`; undefined ones stand
  /// for ones.
  ///
  /// A source without a path has an undefined Tensor; the caller decides on zeros. A tape that is
  /// not persistent stops recording and releases its records during the walk.
  ///
  /// presences: if given, by source, a boolean if only a run tells whether there is a path;
  /// otherwise undefined.
  /// rows: if given, by source, the rows of a table given to watch_rows(), concatenated in the
  /// order in which they were read. The cotangent is the sum of the returned tensor, which is
  /// undefined if the table was read by rows alone, and of these.
  ///
  /// Throws ArgumentError if a tape that is not persistent is used a second time. This is allowed
  /// inside another body, branch or trace, since bodies may be recorded more than once. Throws
  /// TraceError if the tape's own trace has ended, or if a target or a floating source was made
  /// inside.
  Tensors gradient(const Tensors& targets, const Tensors& cotangents, const Tensors& sources,
                   Tensors* presences = nullptr, std::vector<TableRows>* rows = nullptr);

  void record(const Op& op, const AttrsRef& attrs, OpInputs inputs,
              std::span<const Tensor> outputs) override;
  bool is_tracked(const Tensor& tensor) const override;
  bool takes_rows(const Tensor& tensor) const override;
  void mark(Mark what, const std::string& loop, std::int64_t iteration) override;
  /// Adds to the error of a record's vjp the loops and iterations that contain the record. Their
  /// marks must still be on the tape.
  void name_loops_around(std::size_t record, Error& error) const;
  /// Returns the name of the loop that a mark begins or ends; empty if it has none.
  static std::string name_of_loop(const OpRecord& mark);

  /// Ends recording. gradient() may still be called.
  void stop();

  /// Returns the number of records, including marks of loops.
  std::size_t size() const { return records_.size(); }

 private:
  friend class Backward;
  static constexpr ValueId kUntracked = 0;

  /// Block ids further from the tape's belong to older tensors, or to another thread.
  static constexpr std::uint64_t kFarAway = std::uint64_t{1} << 43;

  /// Returns the builder of the trace in which the tape was opened; null for eager mode. Throws
  /// TraceError if it has ended.
  GraphBuilder* own_builder() const;
  /// Returns the number of a tensor that is used inside the tape's trace. Throws TraceError, which
  /// names the tensor's role, if the tensor was made inside.
  ValueId number_from_inside(const Tensor& tensor, const char* role) const;
  struct OpenLoop;
  void begin_loop(const std::string& name);
  void end_loop() noexcept;
  void record_ends();
  void append_mark(Mark what, const OpenLoop& loop, const AttrsRef& name, std::int64_t iteration);
  void count_as_residual(const Tensor& tensor) const;
  /// Returns the place of the next record of an eager op, for DetectNan, and notes its entries.
  SourceId place_of_checked();
  void move_out_of_loops(std::span<const TapeOperand> outputs);
  void note_identity(ValueId table, const Tensor& output);
  ValueId number_of(const Tensor& tensor) const;
  ValueId number_of_older(std::uint64_t id) const;
  void set_number(const Tensor& tensor, ValueId number);
  void set_number_out_of_order(std::uint64_t id, ValueId number);

  /// Memory that grows with every record. The next tape on the thread reuses it: getting pages from
  /// the system took 40 % of the time of recording short chains.
  struct Storage {
    std::vector<OpRecord> records;
    std::vector<TapeOperand> operands;  // of the records, consecutive; followed by spare capacity
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
    /// Returns memory for the next `count` operands.
    TapeOperand* room_for(std::size_t count);
    /// Prefetches the values of a record's operands.
    void prefetch(const OpRecord& record) const {
      if (!record.op) return;
      for (const TapeOperand& input : inputs_of(record)) input.prefetch();
    }
    /// Releases the last record.
    void drop_last() {
      if (const OpRecord& record = records.back(); record.op)
        while (operand_count > record.first) operands[--operand_count].let_go();
      records.pop_back();
    }
    void clear();
    std::size_t bytes() const;
  };
  /// Returns this thread's spare storage; null while the thread ends.
  static Storage* spare();
  static Storage take_spare();
  /// Operands are prefetched this many records ahead of the walk.
  static constexpr std::size_t kAhead = 8;

  bool is_persistent_, is_spent_ = false, is_recording_ = true;
  std::uint64_t first_id_;
  std::uint64_t builder_;  // the trace in which it was opened; 0 for eager mode
  EntryScope* entries_;    // the iteration of an eager scan, if entries had finished
  Storage storage_;
  std::vector<OpRecord>& records_ = storage_.records;
  std::vector<ValueId>& numbers_ = storage_.numbers;
  std::vector<ValueId> watched_;
  struct Table {
    ValueId number, source;
  };
  // Tables given to watch_rows(), and their identities, as an inner gradient uses them.
  std::vector<Table> tables_;
  struct OpenLoop {
    std::uint64_t begin;              // the newest block id before it
    ValueId values_before;            // number of values when it began
    ValueId values_before_iteration;  // number of values when its last iteration began
    AttrsRef name;                    // for errors of its gradient; null if it has none
    std::int64_t iteration = 0;       // number of the last iteration
  };
  std::vector<OpenLoop> open_loops_;
  // By record, under DetectNan: masks of the entries that ran, in iterations in which some had
  // finished.
  std::unordered_map<std::size_t, Tensors> running_entries_;
  // Number of innermost open loops that have ended without a record, as memory ran out.
  std::size_t unrecorded_ends_ = 0;
  // Records made in loops that they belong before: by index, the number of these loops; and by
  // value, the number that counts if a loop compares values with its beginning.
  std::unordered_map<std::size_t, std::size_t> moved_records_;
  std::unordered_map<ValueId, ValueId> moved_values_;
  ValueId count_ = 0;  // values are numbered from 1 in the order of creation
  // Tensors made before the tape, or on another thread. asked_ caches look-ups by the last bits of
  // the id: a model has a handful of weights, made one after the other.
  std::unordered_map<std::uint64_t, ValueId> older_;
  struct Asked {
    std::uint64_t id = 0;
    ValueId number = kUntracked;
  };
  static constexpr std::size_t kAsked = 16;
  mutable std::array<Asked, kAsked> asked_{};
};

/// Returns ȳ, the start of a gradient: the cotangent; if it is undefined, a tensor of ones.
Tensor seed(const Tensor& target, const Tensor& cotangent);

/// Returns a type with its dims as the active body, branch or trace names them.
TensorType type_here(const TensorType& type);

}  // namespace reel
REEL_API_END
