// trace/executors/plan/plan.h — Plan: a graph prepared to run with inputs of certain sizes.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "reel/core/ops/indexing/saved_rows.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/trace/executors/plan/base/held_memory.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/base/plan_context.h"
#include "reel/trace/executors/plan/tiles/contiguous_elementwise.h"
#include "reel/trace/executors/plan/tiles/placed_chain.h"

namespace reel {

class LoopPlan;
class CondPlan;
class TileProgram;

/// Where the value of a slot lies while the plan runs.
enum class Place : std::uint8_t {
  given,     ///< in a tensor that the caller sets before the run: inputs
  constant,  ///< computed when the plan was made
  buffer,    ///< at an offset in the plan's memory
  outside,   ///< where the caller says before every run: outputs
  block,     ///< in memory that the op allocates, as it may outlive the run or its size is unknown
};

/// A graph as a list of instructions over slots. Types, attributes and memory offsets are
/// determined once, so that a run only calls kernels.
///
/// Ops with types that depend on values run as in the interpreter. Not thread-safe: one run at a
/// time.
class Plan {
 public:
  /// How the caller takes the outputs of the graph.
  enum class Outputs : std::uint8_t {
    blocks,  ///< as tensors that may outlive the run
    placed,  ///< where set_output() says, if types are known and are no lists
  };

  /// Who owns the inputs.
  enum class Inputs : std::uint8_t {
    lent,   ///< the caller: it needs them after the run, or for the next one
    given,  ///< the plan: an input without other references may be overwritten, and input(i) is
            ///< then empty. Only done if neither the instruction nor a later one can fail, or
            ///< if the overwritten elements are few and are saved before
  };

  /// graph: must outlive the plan. env: the dims that its free symbols stand for.
  /// before: null, or a plan of the graph for other sizes, which gives its memory, its programs of
  /// fused ops of the same sizes, and its plans of loops and branches. The latter are resized when
  /// they run, if their own sizes differ. `before` must not run any more, even if the constructor
  /// throws.
  Plan(const Graph& graph, std::span<const TensorType> inputs, const DimEnv& env,
       const std::vector<Outputs>& outputs, Inputs owner, const PlanContext& context,
       Plan* before = nullptr);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Binds the plan to other dims. Returns false and leaves the plan unchanged if sizes differ.
  bool rebind(std::span<const TensorType> inputs, const DimEnv& env);

  /// Sets input i: to a tensor, or (move_input) to data in the caller's memory. The latter requires
  /// that the plan does not keep the input (keeps_input).
  void set_input(std::size_t i, Tensor tensor) { slots_[i] = std::move(tensor); }
  void move_input(std::size_t i, void* data) {
    TensorBlock* header = headers_[i].block();
    if (slots_[i].block() != header) slots_[i] = headers_[i];
    header->data = data;
  }
  Tensor& input(std::size_t i) { return slots_[i]; }
  /// Returns the value of input i before a run that failed.
  Tensor input_before(std::size_t i);
  const TensorType& input_type(std::size_t i) const { return slot_types_[i]; }
  bool keeps_input(std::size_t i) const { return keeps_input_[i]; }
  /// Returns true if an instruction reads input i; otherwise it need not be set.
  bool reads_input(std::size_t i) const { return reads_input_[i]; }

  const TensorType& type_of(ValueId v) const { return types_.types[v]; }
  /// Returns the data of a value that was computed when the plan was made; null for other values.
  void* constant(ValueId v) const {
    const std::uint32_t slot = slot_of_[v];
    return places_[slot] == Place::constant ? slots_[slot].data<void>() : nullptr;
  }
  bool output_is_known(std::size_t k) const { return types_.is_known[graph_->outputs[k]]; }
  const TensorType& output_type(std::size_t k) const { return types_.types[graph_->outputs[k]]; }
  /// Returns true if output k is written where set_output() says. Otherwise read output(k) after
  /// the run.
  bool output_is_placed(std::size_t k) const { return outputs_[k].is_placed; }
  void set_output(std::size_t k, void* data) { output(k).block()->data = data; }
  /// Returns true if output k is input i with a few elements changed, and nothing reads the input
  /// afterwards, so that both may share memory.
  bool output_updates_input(std::size_t k, std::size_t i) const;
  /// Returns true if output k can be added to the contents of its place; set_adds() requests that.
  bool output_can_add(std::size_t k) const { return adder_of_output_[k] >= 0; }
  void set_adds(std::size_t k, bool adds) {
    instructions_[static_cast<std::size_t>(adder_of_output_[k])].adds = adds;
  }
  /// Valid until the next run. If it is a list or a block, the caller may keep it.
  Tensor& output(std::size_t k) { return slots_[outputs_[k].slot]; }
  /// Returns output k after a run; it stays valid. Requires that each output is taken at most once,
  /// in order.
  Tensor take_output(std::size_t k);

  void run() {
    if (context_.is_checked)
      run_all<false, true>();
    else if (context_.profile)
      run_all<true, false>();
    else
      has_only_short_ops_ ? run_short_ops() : run_all<false, false>();
  }
  /// Releases all tensors that the plan does not own.
  void release();
  /// Returns the largest number of row blocks among the plan's own loops.
  std::size_t blocks_of_loops() const;

  const Graph& graph() const { return *graph_; }
  /// Returns the bytes of the memory that take_memory() acquires.
  std::int64_t memory_bytes() const { return memory_bytes_; }
  /// Returns about how many bytes the plan, with those inside, holds now.
  std::int64_t held_bytes() const;
  /// Acquires the memory for the values of a run, without the memory of inner loops and branches.
  /// The constructor does so, too. Must be called before run() after give_back_memory().
  void take_memory() {
    if (!memory_.data) place_values(take_plan_memory(memory_bytes_));
  }
  void give_back_memory() {
    residual_share_.give_back();
    reel::give_back(std::move(memory_));
  }

 private:
  friend class PlanView;

  enum class Kind : std::uint8_t {
    kernel,   ///< writes outputs to their places
    flat,     ///< the same, of an element-wise op with a known inner loop
    product,  ///< the same, of a product of small matrices with a known loop
    blocks,   ///< allocates its outputs, of known types
    untyped,  ///< runs as in the interpreter
    tiles,    ///< a fused op
    loop,
    cond,
    nothing,  ///< computed when the plan was made
  };
  struct Instruction {
    Kind kind;
    OpStorage storage;         ///< of the outputs, for these sizes
    bool adds = false;         ///< adds its result to the contents of the output
    bool has_prelude = false;  ///< prepare_updates() comes before it
    bool updates = false;      ///< in this run, TileProgram::run() updates inputs
    bool saves_rows = false;   ///< may change rows of an input, and saves them before
    const Op* op;
    const Attrs* attrs;
    std::uint32_t record;
    std::uint32_t first_in, in_count;    ///< in operands_
    std::uint32_t first_out, out_count;  ///< slots
    std::uint32_t first_free,
        free_count;           ///< in freed_: slots that are not read again
    std::int32_t child = -1;  ///< in loops_, conds_, tiles_, flats_ or products_
    std::int32_t chain = -1;  ///< in chains_: runs in place of the fused op's program
    std::uint32_t beside =
        0;  ///< number of following instructions that are loops and run beside this one
  };

  /// What a plan takes over from one for other sizes.
  struct Before {
    Plan* plan;                       ///< or null
    std::vector<std::int32_t> moved;  ///< by tile program of that plan: its number here, or -1
  };
  void make_instructions(const std::vector<Outputs>& outputs, Plan* before);
  void add_slot(ValueId v);
  Instruction make_instruction(std::size_t record, Before& before);
  Kind kind_of(std::size_t record);
  template <class Child>
  std::int32_t add_child(std::size_t record, Kind kind,
                         std::vector<std::unique_ptr<Child>> Plan::*children, Plan* before);
  std::int32_t add_program(std::size_t record, Before& before);
  bool reads_shown_lengths(std::size_t record);
  OpStorage storage_of(std::size_t record) const;
  bool has_sizes_of(const Plan& other, std::size_t record) const;
  std::int32_t move_tiles(Plan& from, std::int32_t place, std::vector<std::int32_t>& moved);
  std::int32_t add_tiles(std::size_t record, const std::vector<std::int32_t>& moved);
  void find_loops_beside();
  void find_adders();
  void choose_places(const std::vector<Outputs>& outputs);
  void find_shared_stacks();
  struct LastUses {
    std::vector<int> of_value;  ///< by slot: itself or a view of it
    std::vector<int> of_views;  ///< by slot: views of it only; -1 if there are none
  };
  LastUses last_uses() const;
  std::size_t first_that_cannot_fail() const;
  bool is_product_in_place(const Instruction& at) const;
  std::size_t first_that_values_do_not_fail() const;
  template <class Is>
  std::size_t first_with_only(Is is) const;
  void find_donors();
  bool replaces_few_rows(std::size_t instruction) const;
  void save_rows(const Instruction& at);
  void prepare_updates(std::size_t instruction);
  void copy_small_inputs();
  void make_blocks_before_writing_over();
  /// Returns the block that was allocated in advance for the output in this slot; undefined if
  /// there is none.
  Tensor taken_block(const Tensor& slot) {
    return made_before_.empty()
               ? Tensor()
               : std::move(made_before_[static_cast<std::size_t>(&slot - slots_.data())]);
  }
  bool gives_memory(const OpInput& operand, const TensorType& type) const;
  class Placement;
  void place_in_memory(Plan* before);
  void place_values(PlanMemory memory);
  bool is_residual(const Instruction& at, std::size_t output) const;
  void make_headers();
  void find_short_ops();
  bool find_flat_op(Instruction& at);
  bool find_small_product(Instruction& at);
  void find_chain(Instruction& at);
  bool is_short(const Instruction& at) const;
  void make_placed_tensors();
  class Releases;
  void make_operands(Releases& releases);
  void compute_constants();
  template <bool is_counted, bool is_checked>
  void run_all();
  void run_short_ops();
  void run_flat(const Instruction& at);
  void run_product(const Instruction& at);
  void run_tiles(Instruction& at, std::span<Tensor> out);
  void run_untyped(Instruction& at, DimEnv& env);
  void run_with_blocks(const Instruction& at, bool may_reuse);
  void run_nested(const Instruction& at, std::optional<DimEnv>& env);
  std::int64_t count(const Instruction& at, std::int64_t before);
  void make_blocks(const Instruction& at);
  void make_shared_blocks(const Instruction& at);
  void run_beside(std::size_t first);
  std::span<const OpInput> inputs_of(const Instruction& at) const {
    return {operands_.data() + at.first_in, at.in_count};
  }
  std::vector<TensorType> input_types_of(const Instruction& at) const;
  std::span<const TensorType> output_types_of(const Instruction& at) const {
    return {slot_types_.data() + at.first_out, at.out_count};
  }
  template <class Fn>
  void run_op(const Instruction& at, const Fn& fn);
  std::span<Tensor> outputs_of(const Instruction& at) {
    return {slots_.data() + at.first_out, at.out_count};
  }

  /// One of two stacks of a loop in one memory, one iteration apart (state_stacks.h).
  struct SharedStack {
    std::uint32_t slot;
    std::int64_t offset;  ///< in bytes from the beginning of the memory
  };
  using SharedStacks = std::array<SharedStack, 2>;
  /// Returns two stacks that share memory if a slot holds either; otherwise null.
  const SharedStacks* shared_stacks_of(std::uint32_t slot) const;

  const Graph* graph_;
  Inputs owner_;  ///< of the inputs
  PlanContext context_;
  PlannedTypes types_;
  std::vector<Instruction> instructions_;
  static constexpr std::uint32_t kNoSlot = ~0u;  ///< of values that no record makes any more
  std::vector<std::uint32_t> slot_of_;           ///< by value: inputs first, then outputs by record
  std::vector<TensorType> slot_types_;           ///< by slot
  std::vector<Place> places_;                    ///< by slot
  std::vector<int> outputs_of_slot_;       ///< the first output that is the slot's value, or -1
  std::vector<std::uint8_t> keeps_input_;  ///< by input
  std::vector<std::uint8_t> reads_input_;  ///< by input
  struct Output {
    std::uint32_t slot;
    bool is_placed;
    bool may_be_moved;  ///< a block that no later output is as well
  };
  std::vector<Output> outputs_;       ///< of the graph
  std::vector<int> adder_of_output_;  ///< by output: the instruction that can add it, or -1
  std::vector<Tensor> slots_;         ///< values that instructions read and write
  std::vector<Tensor> headers_;       ///< by slot: for placed values and inputs
  std::vector<void*> own_data_;       ///< by slot: its address in the plan's memory
  std::vector<OpInput> operands_;
  std::vector<std::uint32_t> freed_;
  std::size_t first_safe_ = 0;    ///< from this instruction on none can fail
  std::size_t first_copied_ = 0;  ///< from this instruction on copied_ may be overwritten
  std::vector<std::pair<std::uint32_t, Tensor>> copied_;  ///< small inputs by slot, with copies
  /// Operands from first_safe_ on that are inputs and may be overwritten; empty if there are none.
  std::vector<std::uint32_t> donors_;
  /// An input with rows that this run has changed. Its reference keeps later instructions from
  /// overwriting the table: they may fail too.
  struct ChangedInput {
    std::uint32_t slot, output;
    std::uint64_t id;  ///< of the block, before
    SavedRows rows;
    Tensor table = {};
  };
  std::vector<ChangedInput> changed_;    ///< until no instruction can fail any more
  std::vector<std::uint32_t> reusable_;  ///< by instruction: leading operands for reuse()
  std::vector<Tensor> made_before_;      ///< by slot: blocks for outputs from first_safe_ on
  std::vector<std::unique_ptr<LoopPlan>> loops_;
  std::vector<std::unique_ptr<CondPlan>> conds_;
  std::vector<std::unique_ptr<TileProgram>> tiles_;
  std::vector<ContiguousElementwise> flats_;
  std::vector<SmallProduct> products_;
  std::vector<PlacedChain> chains_;
  std::vector<SharedStacks> shared_stacks_;
  struct OffsetOfSlot {
    std::uint32_t slot;
    std::size_t buffer;   ///< index of the buffer that holds the value
    std::int64_t offset;  ///< in memory_
  };
  std::vector<OffsetOfSlot> offsets_;
  PlanMemory memory_;
  std::int64_t memory_bytes_ = 0, residual_bytes_ = 0;  ///< residual_bytes_: peak of residuals
  ResidualShare residual_share_;
  bool has_untyped_ = false;
  bool has_only_short_ops_ = false;  ///< run_short_ops() can run the plan
};

}  // namespace reel
