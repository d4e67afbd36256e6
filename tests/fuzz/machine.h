// tests/fuzz/machine.h — Machine, which runs a program with the functions that users call.
#pragma once

#include <optional>
#include <vector>

#include "reel/frontend/tree/tensor_array.h"
#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// A value while a program runs: a tensor or an array.
struct Slot {
  Slot() = default;
  Slot(Tensor t) : tensor(std::move(t)) {}
  Slot(TensorArray a) : array(std::move(a)) {}

  Tensor tensor;
  TensorArray array;
};

/// The state of a loop, as a tree.
struct State {
  Tensors tensors;
  std::vector<TensorArray> arrays;
};

/// Dims and tensors for a run of a program.
struct Arguments {
  std::vector<Dim> dims;  ///< named dims with a size before a run; others are empty
  Tensors all;            ///< one for each input, captured ones too
  /// A dim that the program does not know of. The program then is a function of one row that is
  /// applied to all rows at once: all of its tensors have the dim.
  std::optional<Dim> batch = {};
  /// True: all tensors have plain axes, in the order of the dims' numbers (relations/plain_form.h).
  bool is_plain = false;
};

/// Runs a program once, in whatever mode is active.
class Machine {
 public:
  /// outside: captured dims and tensors; others come from run()'s arguments. Must outlive the
  /// machine, as must the program.
  Machine(const Program& program, const Arguments& outside);

  /// Runs the program. arguments: the inputs that are not captured, in order. Returns the results
  /// of main.
  Tensors run(const Tensors& arguments);
  /// Runs the program. Returns true if all its values were finite and none was hidden. Requires
  /// eager mode.
  bool stays_finite(const Tensors& arguments);

  // The following members are for rules.
  const Program& program() const { return program_; }
  Slot& operator[](int value) { return slots_[value]; }
  const Tensor& tensor(int value) const { return slots_[value].tensor; }
  const Dim& dim(int dim) const { return dims_[dim]; }
  Dims dims(const std::vector<int>& list) const;
  /// True if tensors have plain axes although the program has named dims.
  bool is_plain() const { return outside_.is_plain; }
  /// Stores a dim that an instruction made.
  void found(int dim, const Dim& actual) { dims_[dim] = actual; }
  /// Stores the Dims of slices, as these values have them.
  void found(const std::vector<SlicedDim>& slices, const std::vector<int>& values);
  void run(const Block& block);
  /// True in stays_finite().
  bool watches() const { return watches_; }
  /// Notes that values of an instruction are in no result, so that they cannot be tested.
  void hides_values() { met_others_ = true; }
  /// Return a tensor, the initial state of a loop, and the dims of its condition. If there is a
  /// batch, they have its dim.
  Tensor batched(const Tensor& x) const;
  State initial(const std::vector<int>& values) const;
  Dims cond_dims(const std::vector<int>& list) const;
  /// Return values as a tree, and assign them from one.
  State gather(const std::vector<int>& values) const;
  void assign(const std::vector<int>& values, const State& state);

 private:
  const Program& program_;
  const Arguments& outside_;
  std::vector<Slot> slots_;
  std::vector<Dim> dims_;
  bool watches_ = false, met_others_ = false;
};

/// Returns the arguments that are not captured.
Tensors passed_arguments(const Program& program, const Arguments& arguments);

}  // namespace reel::fuzz
