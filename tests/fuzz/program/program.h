// tests/fuzz/program/program.h — Program, a well-typed program as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/types/dtype.h"

namespace reel::fuzz {

class Rule;  // rule.h: the meaning of an instruction

// Values and dims are numbers: positions in the tables of their program.

/// The kind of elements; `real` is f32 or f64, as Program::real says.
enum class Element { real, i32, i64, boolean };

/// A dim of a program.
struct DimInfo {
  enum class Kind {
    plain,    ///< a size without a name; one for each size
    fixed,    ///< a name and a size
    dynamic,  ///< a name, and a size that is a tensor
    ragged,   ///< a name, and lengths
    found,    ///< made while the program runs, with a size that only a run knows; ragged if
              ///< `over` is not empty
  };
  Kind kind = Kind::plain;
  std::string name = {};            ///< empty for plain axes, found ones as well
  int size = -1;                    ///< of plain and fixed dims
  std::vector<int> over = {};       ///< the dims that lengths run over
  std::vector<int> lengths = {};    ///< a ragged dim's length per entry; a dynamic dim's size
  std::vector<int> elsewhere = {};  ///< the lengths in calls with other sizes
  bool is_captured = false;         ///< made before all calls, which share it
  int whole = -1;                   ///< for a slice, a found dim: the dim that was sliced
  bool is_read = false;  ///< true: of a fixed dim: functions take it from an argument that has it

  bool is_named() const { return !name.empty(); }
  bool has_size() const { return size >= 0; }
  bool is_ragged() const { return !over.empty(); }
  /// True if its size or lengths may differ from call to call.
  bool comes_with_arguments() const {
    return (kind == Kind::dynamic || kind == Kind::ragged) && !is_captured;
  }
};

struct ValueType {
  Element element = Element::real;
  std::vector<int> dims = {};
  bool is_array = false;  ///< a TensorArray of these elements
  int least = 0;          ///< the least number of elements of an array

  bool operator==(const ValueType&) const = default;
};

struct Instruction;

/// Instructions that see the values before them, also of outer blocks.
struct Block {
  std::vector<int> params = {};
  std::vector<Instruction> body = {};
  std::vector<int> results = {};
  std::vector<int> makes = {};  ///< fixed dims that every run of the block makes anew
};

/// The kind of an instruction with blocks.
enum class Control { none, while_loop, scan, cond, call, derivative, vmap };

/// The policy of a loop, of the loops in an expression, or of a call (checkpoint(f)).
struct PolicyForm {
  bool is_checkpointed = false;  ///< of a call: checkpoint(f); false: f with the same draws
  int steps = 0, bytes = 0;      ///< of Checkpoint::every and Checkpoint::budget; 0: none
  int letters = -1;              ///< the parameter of a rule per op; -1: no rule
  bool swaps = false;            ///< true: residuals go to a file

  bool keeps_checkpoints() const { return steps || bytes; }
  bool operator==(const PolicyForm&) const = default;
};

/// A value of truncate above all trip counts, which cuts nothing.
inline constexpr int kAllSteps = 1000;

/// The options of a loop. Its instruction has the inputs xs, initial state, and the bound if there
/// is one. Its outputs are ys and the state.
struct LoopForm {
  int xs = 0, states = 0;
  bool has_bound = false;
  bool has_cond = false;  ///< true: the last block is cond
  bool cond_before_body = true;
  bool reverse = false;
  int truncate = 0;             ///< of a scan; 0: none
  bool is_cut_by_hand = false;  ///< true: the body truncates instead of the option
  int parts_at = -1;  ///< from 0: two loops, the second one from this iteration on; -1: one loop
  int spatial = -1;   ///< the dim of a scan; -1 for plain axes, and if there is none
  std::vector<int> cond_dims = {};
};

/// A dim with lengths over the dim along which a tensor is sliced, and the dim of the slice.
struct SlicedDim {
  int whole = -1, slice = -1;
};

struct Instruction {
  const Rule* rule = nullptr;
  std::vector<int> inputs = {}, outputs = {};
  std::vector<int> axes = {};   ///< dims of the first input; positions if it has plain axes
  std::vector<int> dims = {};   ///< dims given for the result
  std::vector<int> found = {};  ///< new dims: the first of an expression's result, or the dim of
                                ///< a scan's ys
  std::vector<SlicedDim> sliced = {};  ///< slices among the dims of results
  std::vector<SlicedDim> slices = {};  ///< slices that the body of a scan, or one row, sees
  std::vector<std::int64_t> numbers = {};
  double constant = 0;
  Control control = Control::none;
  LoopForm loop = {};
  PolicyForm policy = {};
  std::vector<Block> blocks = {};
};

/// The source of the elements of an argument.
struct InputInfo {
  std::uint64_t salt = 0;
  int low = -16, high = 16;  ///< the range of integers; reals are these divided by 8
  bool is_captured = false;  ///< true: a captured tensor instead of an argument
};

struct Program {
  std::uint64_t seed = 0;
  DType real = f64;
  bool is_named = true;            ///< true: all axes are named; false: all are plain
  bool checks_differences = true;  ///< gradients are derivatives; false if truncate cuts them
  std::vector<DimInfo> dims = {};
  std::vector<ValueType> values = {};
  std::vector<InputInfo> inputs = {};  ///< one for each parameter of main
  Block main = {};                     ///< the first result is a real scalar

  /// True if vmap packs the rows that take a branch, however few they are.
  bool packs_taken_rows() const { return seed % 2 == 0; }
};

DType dtype_of(const Program& program, Element element);

/// Calls fn(block) for a block and all blocks in it, outer ones first.
template <class B, class Fn>
void for_each_block(B& block, Fn&& fn) {
  fn(block);
  for (auto& instruction : block.body)
    for (auto& inner : instruction.blocks) for_each_block(inner, fn);
}

/// Returns the number of instructions, also in inner blocks.
int count_instructions(const Program& program);

/// Returns the dims of an op's result: by identity for named dims, otherwise by NumPy's rules. A
/// ragged dim may meet its slice if its operand lacks the dims that its lengths run over.
std::optional<std::vector<int>> joined_dims(const Program& program, const std::vector<int>& a,
                                            const std::vector<int>& b);
/// True if the dims are equal; named ones in any order.
bool same_dims(const Program& program, const std::vector<int>& a, const std::vector<int>& b);
bool same_type(const Program& program, const ValueType& a, const ValueType& b);
bool contains(const std::vector<int>& list, int item);
bool is_subset(const std::vector<int>& part, const std::vector<int>& whole);

}  // namespace reel::fuzz
