// tests/fuzz/machine.h — Machine, which runs a program with the functions that users call.
#pragma once

#include <vector>

#include "reel/frontend/tensor_array.h"
#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// What a value is while a program runs: one or the other.
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

/// What a program is run with.
struct Arguments {
  std::vector<Dim> dims;  ///< those that have a name, and a size before a run; others are empty
  Tensors all;            ///< one for each input, captured ones too
};

/// Runs a program once, in whatever mode is active.
class Machine {
 public:
  /// dims and captured tensors come from `outside`, the others from run's arguments.
  Machine(const Program& program, const Arguments& outside);

  /// arguments: those inputs that are not captured, in order -> the results of main.
  Tensors run(const Tensors& arguments);
  /// Runs, and says whether all numbers were finite that the program came by (eager mode only).
  bool stays_finite(const Tensors& arguments);

  // For rules.
  const Program& program() const { return program_; }
  Slot& operator[](int value) { return slots_[value]; }
  const Tensor& tensor(int value) const { return slots_[value].tensor; }
  const Dim& dim(int dim) const { return dims_[dim]; }
  Dims dims(const std::vector<int>& list) const;
  /// The dim was made by an instruction.
  void found(int dim, const Dim& actual) { dims_[dim] = actual; }
  /// Slices were made, which these values have.
  void found(const std::vector<SlicedDim>& slices, const std::vector<int>& values);
  void run(const Block& block);
  /// As a tree, and back.
  State gather(const std::vector<int>& values) const;
  void assign(const std::vector<int>& values, const State& state);

 private:
  const Program& program_;
  const Arguments& outside_;
  std::vector<Slot> slots_;
  std::vector<Dim> dims_;
  bool watches_ = false, met_others_ = false;
};

/// Those inputs that are no captured tensors, of the arguments for all.
Tensors passed_arguments(const Program& program, const Arguments& arguments);

}  // namespace reel::fuzz
