// tests/fuzz/program.h — Program, a well-typed program as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/dtype.h"

namespace reel::fuzz {

class Rule;  // rule.h: what an instruction does

// Values and dims are numbers: positions in the tables of their program.

/// What kind of elements; `real` is f32 or f64, after the program.
enum class Element { real, i32, i64, boolean };

/// What an axis is made of.
struct DimInfo {
  enum class Kind {
    plain,    ///< a size without a name; one for each size
    fixed,    ///< a name and a size
    dynamic,  ///< a name, and a size that is a tensor
    ragged,   ///< a name, and lengths
    found,    ///< made while the program runs, with sizes that only runs know; ragged if `over`
              ///< is not empty
  };
  Kind kind = Kind::plain;
  std::string name = {};            ///< empty for plain axes, found ones as well
  int size = -1;                    ///< of plain and fixed dims
  std::vector<int> over = {};       ///< the dims that lengths run over
  std::vector<int> lengths = {};    ///< of a ragged dim, one per entry; of a dynamic one, its size
  std::vector<int> elsewhere = {};  ///< the same, in calls with other sizes
  bool is_captured = false;         ///< made before all calls, which have it in common
  int whole = -1;                   ///< of a found dim: the dim that it is a slice of

  bool is_named() const { return !name.empty(); }
  bool has_size() const { return size >= 0; }
  bool is_ragged() const { return !over.empty(); }
  /// Its size, or lengths, are another matter in every call.
  bool comes_with_arguments() const {
    return (kind == Kind::dynamic || kind == Kind::ragged) && !is_captured;
  }
};

struct ValueType {
  Element element = Element::real;
  std::vector<int> dims = {};
  bool is_array = false;  ///< a TensorArray of such elements
  int least = 0;          ///< the number of elements that an array has at least

  bool operator==(const ValueType&) const = default;
};

struct Instruction;

/// Instructions that see the values around them, those of outer blocks too.
struct Block {
  std::vector<int> params = {};
  std::vector<Instruction> body = {};
  std::vector<int> results = {};
};

/// What instructions with blocks are.
enum class Control { none, while_loop, scan, cond, call, derivative };

/// What a loop keeps for its gradient, and where, of an expression those that it has; or
/// checkpoint(f) of a call.
struct PolicyForm {
  bool is_checkpointed = false;  ///< of a call: checkpoint(f), else f with the same draws
  int steps = 0, bytes = 0;      ///< checkpoints every so many steps, or what fits; 0: none
  int letters = -1;              ///< says what is kept of a step, op by op; -1: no rule
  bool swaps = false;            ///< in a file

  bool keeps_checkpoints() const { return steps || bytes; }
  bool operator==(const PolicyForm&) const = default;
};

/// A truncate that cuts nothing.
inline constexpr int kAllSteps = 1000;

/// The options of a loop. Inputs of its instruction: xs, initial state, and the bound if there is
/// one; outputs: ys, and the state.
struct LoopForm {
  int xs = 0, states = 0;
  bool has_bound = false;
  bool has_cond = false;  ///< then the last block is cond
  bool cond_before_body = true;
  bool reverse = false;
  int truncate = 0;             ///< of a scan; 0: none
  bool is_cut_by_hand = false;  ///< by what the body does, rather than by the option
  int spatial = -1;             ///< the dim of a scan; -1 for plain axes, and where there is none
  std::vector<int> cond_dims = {};
};

/// A dim whose lengths run over the dim along which a tensor is sliced, and that of the slice.
struct SlicedDim {
  int whole = -1, slice = -1;
};

struct Instruction {
  const Rule* rule = nullptr;
  std::vector<int> inputs = {}, outputs = {};
  std::vector<int> axes = {};   ///< dims of the first input; positions where it has plain axes
  std::vector<int> dims = {};   ///< dims that the result is made with
  std::vector<int> found = {};  ///< dims that come into being: of an expression the first of its
                                ///< result, of a scan that of ys
  std::vector<SlicedDim> sliced = {};  ///< dims of results with lengths of their own
  std::vector<SlicedDim> slices = {};  ///< those that the body of a scan sees
  std::vector<std::int64_t> numbers = {};
  double constant = 0;
  Control control = Control::none;
  LoopForm loop = {};
  PolicyForm policy = {};
  std::vector<Block> blocks = {};
};

/// Where the numbers of an argument come from.
struct InputInfo {
  std::uint64_t salt = 0;
  int low = -16, high = 16;  ///< of integers; reals are these over 8
  bool is_captured = false;  ///< a tensor from outside rather than an argument
};

struct Program {
  std::uint64_t seed = 0;
  DType real = f64;
  bool is_named = true;            ///< all axes are named, or none
  bool checks_differences = true;  ///< gradients are derivatives
  std::vector<DimInfo> dims = {};
  std::vector<ValueType> values = {};
  std::vector<InputInfo> inputs = {};  ///< one for each parameter of main
  Block main = {};                     ///< the first result is a real scalar
};

DType dtype_of(const Program& program, Element element);

/// Calls fn(block) for a block and all blocks in it, outer ones first.
template <class B, class Fn>
void for_each_block(B& block, Fn&& fn) {
  fn(block);
  for (auto& instruction : block.body)
    for (auto& inner : instruction.blocks) for_each_block(inner, fn);
}

/// How many instructions there are, in inner blocks as well.
int count_instructions(const Program& program);

/// The dims of what two operands give: by identity where they are named, else by NumPy's rules. A
/// ragged dim without those that its lengths run over meets a slice of it.
std::optional<std::vector<int>> joined_dims(const Program& program, const std::vector<int>& a,
                                            const std::vector<int>& b);
/// The same dims; named ones in any order.
bool same_dims(const Program& program, const std::vector<int>& a, const std::vector<int>& b);
bool same_type(const Program& program, const ValueType& a, const ValueType& b);
bool contains(const std::vector<int>& list, int item);
bool is_subset(const std::vector<int>& part, const std::vector<int>& whole);

}  // namespace reel::fuzz
