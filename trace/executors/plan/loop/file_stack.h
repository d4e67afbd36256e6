// trace/executors/plan/loop/file_stack.h — FileStack, FileListStack: residuals in a file.
#pragma once

#include <utility>

#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/stack_of_run.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {

/// A stack of tensors of one size.
class FileStack {
 public:
  FileStack(const StackOfRun& stack, Ref<Spilled> steps)
      : stack_(stack), steps_(std::move(steps)) {}

  char* place(std::int64_t position) const;
  void put(const Tensor& term, std::int64_t position) const {
    copy_elements(place(position), term);
  }
  void finish(Tensor& out, const Dim& made) const;

 private:
  StackOfRun stack_;
  Ref<Spilled> steps_;
};

/// A stack that is a list.
class FileListStack {
 public:
  FileListStack(const StackOfRun& stack, Ref<Spilled> steps)
      : stack_(stack), steps_(std::move(steps)) {}

  char* place(std::int64_t) const { return nullptr; }
  void put(const Tensor& term, std::int64_t position) const;
  void finish(Tensor& out, const Dim&) const;

 private:
  StackOfRun stack_;
  Ref<Spilled> steps_;
};

}  // namespace reel
