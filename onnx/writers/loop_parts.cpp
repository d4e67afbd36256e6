#include "reel/onnx/writers/loop_parts.h"

#include <algorithm>
#include <string>

#include "reel/onnx/borders.h"
#include "reel/onnx/writers/lists.h"

namespace reel::exported {
namespace {

/// Returns true if the values of all iterations have one size, as far as the type tells.
bool is_even(const TensorType& type) {
  if (is_token(type)) return !type.is_list();
  const Dims& dims = type.dims();
  return !type.is_list() &&
         std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return known_size(dim) >= 0; });
}

}  // namespace

bool LoopParts::is_joined(std::size_t stack) const {
  return attrs_.stacks[stack].is_list && is_only_joined(to_, results_.stacks[stack]);
}

void LoopParts::check_expressible(const GraphWriter& body) const {
  if (attrs_.keeps_few_steps() || attrs_.has_windows())
    throw NotExpressible{std::string(reason_against("recompute"))};
  for (const LoopStack& stack : attrs_.stacks)
    if (stack.role == StackRole::inner_checkpoints)
      throw NotExpressible{std::string(reason_against("recompute"))};
  const auto terms = body_outputs(attrs_).stacks;
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (attrs_.stacks[i].is_list && !is_even(body.type(terms[i])) && !is_joined(i))
      throw NotExpressible{
          "a gradient reads values of each iteration whose sizes change from iteration to "
          "iteration; a tensor of ONNX has elements of one size"};
}

}  // namespace reel::exported
