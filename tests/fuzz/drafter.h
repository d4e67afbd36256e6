// tests/fuzz/drafter.h — Drafter, which writes a program instruction by instruction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/tests/fuzz/program/program.h"
#include "reel/tests/fuzz/random.h"
#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

/// The view of a rule while a program is drawn: the values and dims that an instruction may use.
class Drafter {
 public:
  Drafter(Program& program, Random& random, const Rules& rules)
      : program_(program), random_(random), rules_(rules) {}

  Program& program() { return program_; }
  Random& random() { return random_; }
  const ValueType& type(int value) const { return program_.values[value]; }
  int rank(int value) const { return static_cast<int>(type(value).dims.size()); }
  const DimInfo& dim(int dim) const { return program_.dims[dim]; }
  /// Returns the number of blocks around the current one.
  int depth() const { return depth_; }
  bool is_named() const { return program_.is_named; }
  /// Draws the policy of the next loop. In about half of all programs no loop has one, in others
  /// some or all loops do.
  PolicyForm policy();
  bool draws_truncate() const { return draws_truncate_; }

  using Accepts = std::function<bool(int value)>;
  /// Returns a visible value, later ones more often; -1 if none is accepted.
  int pick(const Accepts& accepts);
  /// Returns a visible value that is no array; -1 if there is none.
  int pick(Element element);
  /// Returns a dim of a value, or its position if the axes are plain; -1 if none is accepted.
  int pick_axis(int value, const std::function<bool(const DimInfo&)>& accepts);
  /// Returns the dim of an axis that pick_axis() returned.
  int dim_at(int value, int axis) const { return is_named() ? axis : type(value).dims[axis]; }
  /// Returns dims for a result: visible named ones, or any plain sizes.
  std::vector<int> pick_dims(int at_most);
  const std::vector<int>& visible_dims() const { return visible_dims_; }
  /// Returns the dims that were visible before the current block.
  std::vector<int> outer_dims() const {
    return {visible_dims_.begin(), visible_dims_.begin() + dims_begin_};
  }

  int new_value(const ValueType& type);
  int new_dim(DimInfo info);
  /// Returns the plain dim of this size.
  int plain(int size);
  /// Returns a dim of this size: a plain one, or a new named one.
  int sized(int size);

  void show(int value) { visible_.push_back(value); }
  void show_dim(int dim) { visible_dims_.push_back(dim); }

  /// Appends an instruction to the current block, and makes its outputs visible.
  void append(Instruction instruction);
  /// Appends an instruction of the rule with this name and these inputs. Returns its output.
  int apply(const std::string& rule, const std::vector<int>& inputs, const ValueType& type,
            Instruction attributes = {});
  /// Draws instructions until `count` are appended, or too many draws did not fit.
  void write(int count);

  /// Returns a block with these parameters, written by `inside`. It sees all values that are
  /// visible here.
  Block block(const std::vector<ValueType>& params, const std::function<void(Block&)>& inside);
  /// Returns a value of the type of `like`, computed from `like` and other values of the current
  /// block.
  int make_like(int like);

 private:
  const Rule* draw();

  Program& program_;
  Random& random_;
  const Rules& rules_;
  Block* current_ = nullptr;
  std::vector<int> visible_, visible_dims_;
  std::size_t block_begin_ = 0;  // index in visible_ of the first value of the current block
  int dims_begin_ = 0;
  int depth_ = 0;
  int percent_with_policy_ = 0;  // of loops
  bool draws_truncate_ = false;

  friend Program generate(std::uint64_t, const Rules&);
  friend Program generate_riding(std::uint64_t, const Rules&);
};

/// Returns the program of a seed; the same on every machine.
Program generate(std::uint64_t seed, const Rules& rules);

}  // namespace reel::fuzz
