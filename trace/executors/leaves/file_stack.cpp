#include "reel/trace/executors/leaves/file_stack.h"

#include <utility>

#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/leaves/terms_of_chunk.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

FileStack::FileStack(const LeafContext& loop, std::size_t index, Spills& spills,
                     std::optional<TensorType> term)
    : loop_(loop),
      index_(index),
      steps_(spills.make_for_steps(loop.attrs, index, loop.chunks, loop.iterations.expected())),
      term_(std::move(term)) {}

void FileStack::put(const Tensor& term, std::int64_t position) const {
  if (char* const to = place(position)) return copy_elements(to, term);
  for_each_step(loop_, owned(term), position,
                [&](std::int64_t at, const Tensor& element) { steps_->put(at, element); });
}

char* FileStack::place(std::int64_t position) const {
  if (!term_) return nullptr;
  return steps_->place(remove_chunk_dim(loop_.attrs, *term_), loop_.first_step_at(position));
}

TensorType FileStack::step_type() const {
  if (term_) return remove_chunk_dim(loop_.attrs, *term_);
  if (const auto type = steps_->type()) return *type;
  return type_without_iterations(loop_.attrs, loop_.inputs,
                                 remove_chunk_dim(loop_.attrs, loop_.formal_term(index_)));
}

void FileStack::finish(Tensor& out, const Dim& made) const {
  const TensorType step = step_type();
  const TensorType type = loop_.attrs.stacks[index_].is_list
                              ? step.as_list()
                              : stacked(step, loop_.stack_dim(index_, made));
  out = make_residual(type, Ref<ResidualSource>(steps_.get()), 0);
}

}  // namespace reel
