#include "reel/core/op/check_results.h"

#include <optional>
#include <string>

#include "reel/core/base/forward_op.h"
#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/types/non_finite.h"

namespace reel {
namespace {

/// Returns the known facts about the operands: "; its operands are finite".
std::string operands_text(std::span<const OpInput> inputs, const Tensors& running) {
  bool has_numbers = false;
  std::string wrong;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = *inputs[i].tensor;
    if (!input.is_defined() || !is_float(input.dtype())) continue;
    has_numbers = true;
    if (const auto found = find_non_finite(input, running))
      wrong += str("; operand ", i, ", ", input.type(), ", ", found->text, " already");
  }
  if (!wrong.empty()) return wrong;
  return has_numbers ? inputs.size() == 1 ? "; its operand is finite" : "; its operands are finite"
                     : "";
}

/// Returns a line that names the ops of the forward pass if the op is part of a gradient.
std::string gradient_text() {
  std::string result;
  for (const std::string_view op : forward_ops_of(detail::open_source))
    result += str(result.empty() ? "\nin the gradient of " : " in the gradient of ", op);
  if (result.empty()) return result;
  const std::string place = place_text(detail::open_source);
  return place.empty() ? result : str(result, " at ", place);
}

[[noreturn]] void refuse(const Op& op, std::span<const OpInput> inputs, const Tensor& output,
                         const NonFinite& found, const Tensors& running) {
  throw NumericsError(str(op.name, ": its result, ", output.type(), ", ", found.all(),
                          operands_text(inputs, running), gradient_text()));
}

/// Ops without samples are not checked. Among them are the ops that run graphs, such as loops: the
/// ops of their graphs were checked, and residuals of finished entries may have any value. Other
/// ops without samples move elements that were checked, such as ops on lists.
bool has_no_samples(const Op& op) { return !op.samples || op.samples().empty(); }

bool has_infinity(std::span<const OpInput> inputs, const Tensors& running) {
  for (const OpInput& input : inputs)
    if (find_non_finite(*input.tensor, running, Search::infinities)) return true;
  return false;
}

}  // namespace

void check_results(const Op& op, std::span<const OpInput> inputs, std::span<const Tensor> outputs) {
  const bool infinities = thread_mode.nan_checks->infinities;
  for (const Tensor& output : outputs) {
    if (!output.is_defined() || !is_float(output.dtype())) continue;
    if (inputs.empty() || !find_non_finite(output, {}) || has_no_samples(op)) continue;
    const Tensors running = detail::RunningEntries::masks();
    if (const auto found = find_non_finite(output, running, Search::nan))
      refuse(op, inputs, output, *found, running);
    if (!infinities || has_infinity(inputs, running)) continue;
    if (const auto found = find_non_finite(output, running, Search::infinities))
      refuse(op, inputs, output, *found, running);
  }
}

}  // namespace reel
