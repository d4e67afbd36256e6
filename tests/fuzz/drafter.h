// tests/fuzz/drafter.h — Drafter, which writes a program instruction by instruction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/tests/fuzz/program.h"
#include "reel/tests/fuzz/random.h"
#include "reel/tests/fuzz/rule.h"

namespace reel::fuzz {

/// What rules see while a program is drawn: the values and dims that an instruction may use.
class Drafter {
 public:
  Drafter(Program& program, Random& random, const Rules& rules)
      : program_(program), random_(random), rules_(rules) {}

  Program& program() { return program_; }
  Random& random() { return random_; }
  const ValueType& type(int value) const { return program_.values[value]; }
  int rank(int value) const { return static_cast<int>(type(value).dims.size()); }
  const DimInfo& dim(int dim) const { return program_.dims[dim]; }
  /// Blocks around the one being written.
  int depth() const { return depth_; }
  bool is_named() const { return program_.is_named; }
  /// What the next loop keeps: in half of all programs all, in others some or all loops have a
  /// policy of their own.
  PolicyForm policy();
  bool draws_truncate() const { return draws_truncate_; }

  using Accepts = std::function<bool(int value)>;
  /// A visible value, later ones more often; -1 where there is none.
  int pick(const Accepts& accepts);
  /// A visible value that is no array.
  int pick(Element element);
  /// A dim of a value, or a position where its axes are plain; -1 where none is accepted.
  int pick_axis(int value, const std::function<bool(const DimInfo&)>& accepts);
  /// The dim of an axis that pick_axis gave.
  int dim_at(int value, int axis) const { return is_named() ? axis : type(value).dims[axis]; }
  /// Dims that results can be made with: visible ones that have a name, and of plain sizes any.
  std::vector<int> pick_dims(int at_most);
  const std::vector<int>& visible_dims() const { return visible_dims_; }
  /// Those that were visible before the block being written.
  std::vector<int> outer_dims() const {
    return {visible_dims_.begin(), visible_dims_.begin() + dims_begin_};
  }

  int new_value(const ValueType& type);
  int new_dim(DimInfo info);
  /// The plain dim of that size.
  int plain(int size);
  /// A dim with that size: plain, or named and made for the purpose.
  int sized(int size);

  void show(int value) { visible_.push_back(value); }
  void show_dim(int dim) { visible_dims_.push_back(dim); }

  /// Appends an instruction to the block being written, and makes its outputs visible.
  void append(Instruction instruction);
  /// An instruction of a rule given by name, with these inputs: its output.
  int apply(const std::string& rule, const std::vector<int>& inputs, const ValueType& type,
            Instruction attributes = {});
  /// Draws instructions until so many are there.
  void write(int count);

  /// A block with these parameters, written by `inside`, which sees what is visible here.
  Block block(const std::vector<ValueType>& params, const std::function<void(Block&)>& inside);
  /// A value of that type made of what the block being written has seen, `like` (a value of the
  /// type) among it.
  int make_like(int like);

 private:
  const Rule* draw();

  Program& program_;
  Random& random_;
  const Rules& rules_;
  Block* current_ = nullptr;
  std::vector<int> visible_, visible_dims_;
  std::size_t block_begin_ = 0;  // where in visible_ the values of the current block begin
  int dims_begin_ = 0;
  int depth_ = 0;
  int percent_with_policy_ = 0;  // of loops
  bool draws_truncate_ = false;

  friend Program generate(std::uint64_t, const Rules&);
};

/// The program of a seed; the same on every machine.
Program generate(std::uint64_t seed, const Rules& rules);

}  // namespace reel::fuzz
