// trace/executors/leaves/file_stack.h — FileStack: residuals in a file.
#pragma once

#include <optional>

#include "reel/trace/executors/leaves/leaf_context.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {

/// A stack in a file: of tensors, or a list.
class FileStack {
 public:
  /// index: the index of the stack among the loop's.   term: the type of a term, if it is known.
  FileStack(const LeafContext& loop, std::size_t index, Spills& spills,
            std::optional<TensorType> term = {});

  /// Takes the term of an iteration.
  void put(const Tensor& term, std::int64_t position) const;
  /// Returns where the term of an iteration lies in memory; null if the type of a term is unknown.
  char* place(std::int64_t position) const;
  /// Sets `out` to a tensor that stands for the residuals. made: the dim that the loop makes, if
  /// any.
  void finish(Tensor& out, const Dim& made) const;

 private:
  TensorType step_type() const;

  LeafContext loop_;
  std::size_t index_;
  Ref<Spilled> steps_;
  std::optional<TensorType> term_;
};

}  // namespace reel
