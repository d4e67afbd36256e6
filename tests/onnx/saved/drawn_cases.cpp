#include "reel/tests/onnx/saved/drawn_cases.h"

#include <algorithm>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/derivatives.h"
#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/program/families.h"

namespace reel {
namespace {

/// Returns the op in the first line of the list of refused ops.
std::string first_op(const std::string& message) {
  const std::size_t begin = message.find("\n  ");
  if (begin == std::string::npos) return message;
  const std::size_t end = message.find_first_of(" :\n", begin + 3);
  return message.substr(begin + 3, end - begin - 3);
}

/// True if two runs with other random numbers return other values.
bool draws(const fuzz::Function& f, const Tensors& x) {
  manual_seed(1);
  const Tensors first = f(x);
  manual_seed(2);
  return fuzz::difference(first, f(x)).has_value();
}

/// Returns the rules that are drawn. Left out are random numbers, which ONNX draws differently;
/// checks of values, which a saved model does not have; convolutions, since onnxruntime refuses
/// empty axes; and families that were never tried in ONNX.
const fuzz::Rules& rules_for_onnx() {
  static const fuzz::Rules& rules = *[] {
    auto* const kept = new fuzz::Rules;
    fuzz::Rules left_out;
    for (const auto family :
         {fuzz::random_rules, fuzz::check_rules, fuzz::layer_rules, fuzz::tree_rules,
          fuzz::packing_rules, fuzz::fold_rules, fuzz::sparse_matrix_rules, fuzz::alignment_rules,
          fuzz::optimiser_rules, fuzz::jacobian_rules, fuzz::resizing_rules, fuzz::window_rules})
      for (const fuzz::Rule* const rule : family()) left_out.push_back(rule);
    for (const fuzz::Rule* const rule : fuzz::all_rules())
      if (std::none_of(left_out.begin(), left_out.end(),
                       [&](const fuzz::Rule* other) { return other->name() == rule->name(); }))
        kept->push_back(rule);
    return kept;
  }();
  return rules;
}

}  // namespace

DrawnCases drawn_cases(std::uint64_t first, int count) {
  DrawnCases result;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    fuzz::Program program = fuzz::generate(seed, rules_for_onnx());
    program.real = f32;  // onnxruntime lacks many ops for f64
    const fuzz::Arguments arguments = fuzz::make_arguments(program, {});
    const fuzz::Function values = [&](const Tensors& x) {
      return fuzz::Machine(program, arguments).run(x);
    };
    const fuzz::Function f = seed % 2 ? fuzz::with_gradient(values) : values;
    const Tensors x = fuzz::passed_arguments(program, arguments);
    ++result.programs;
    if (draws(f, x)) {
      ++result.drawing;
      continue;
    }
    SavedCase saved = saved_case(str("program ", seed), f, std::tuple{x}, {.arguments = {"x"}});
    saved.tolerance = 1e-3;
    if (seed == 175) saved.tolerance = 0.02;  // x · (1 + 1e-7) changes a gradient by 1.5 %
    if (saved.failure.find("ONNX cannot express") != std::string::npos) {
      ++result.refused[first_op(saved.failure)];
      result.errors.push_back(std::move(saved.failure));
    } else {
      result.cases.push_back(std::move(saved));
    }
  }
  return result;
}

}  // namespace reel
