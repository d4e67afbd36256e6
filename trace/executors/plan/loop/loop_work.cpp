#include "reel/trace/executors/plan/loop/loop_work.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/plan/base/costs.h"

namespace reel {
namespace {

// Multiplications that take as long as an element, each 1/32 of a nanosecond.
constexpr std::int64_t kArithmetic = 4;  ///< 1/8 ns: add, mul and the like
constexpr std::int64_t kAlone = 8;       ///< 1/4 ns: ops without code in chains, as comparisons
constexpr std::int64_t kExp = 16;        ///< 1/2 ns: exp, tanh, sigmoid
constexpr std::int64_t kLog = 24;        ///< 3/4 ns: log and the like
constexpr std::int64_t kIndexed = 32;    ///< 1 ns: ops that read indices
constexpr std::int64_t kSoftmax = 64;    ///< 2 ns: softmax and its relatives

std::int64_t work_of_element(Unary op) {
  switch (op) {
    case Unary::exp:
    case Unary::tanh:
    case Unary::sigmoid:
      return kExp;
    case Unary::expm1:
    case Unary::log:
    case Unary::log1p:
    case Unary::sin:
    case Unary::cos:
    case Unary::arctan:
    case Unary::softplus:
    case Unary::erf:
    case Unary::gelu:
      return kLog;
    default:
      return kArithmetic;
  }
}

std::int64_t work_of_element(Binary op) {
  switch (op) {
    case Binary::add:
    case Binary::sub:
    case Binary::mul:
    case Binary::div:
    case Binary::maximum:
    case Binary::minimum:
      return kArithmetic;
    case Binary::pow:
      return kLog;
    default:
      return kAlone;
  }
}

/// Returns true for softmax and its relatives.
bool sums_exponentials(const Op& op) { return op.neutral == Neutral::minus_infinity; }

/// Returns the work of an element of an op that sums none.
std::int64_t work_of_element(const Op& op, const Attrs* attrs) {
  const std::optional<ElementLoop> loop = element_loop(op);
  if (const Unary* const unary = loop ? std::get_if<Unary>(&*loop) : nullptr)
    return work_of_element(*unary);
  if (const Binary* const binary = loop ? std::get_if<Binary>(&*loop) : nullptr)
    return work_of_element(*binary);
  return fails_for_values(op, attrs) ? kIndexed : kAlone;
}

}  // namespace

LoopWork work_of(const Graph& body, const PlannedTypes& types) {
  LoopWork work;
  for (std::size_t r = 0; r < body.records.size(); ++r) {
    const OpRecord& record = body.records[r];
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    if (record.recompute != Recompute::no || in.empty() || out.empty()) continue;
    if (record.op == &loop_op || record.op == &cond_op) continue;
    const auto is_known = [&](ValueId v) {
      return !types.types[v].is_list() && types.types[v].is_known();
    };
    if (!std::ranges::all_of(in, is_known) || !std::ranges::all_of(out, is_known)) continue;
    if (record.op == &fused_op) {
      const AttrsRef& attrs = types.attrs[r] ? types.attrs[r] : record.attrs;
      const SubGraph& fused = get<FusedAttrs>(attrs.get()).body;
      std::vector<TensorType> given;
      for (const ValueId v : in) given.push_back(types.types[v]);
      const LoopWork inside = work_of(*fused.graph, plan_types(*fused.graph, given, fused.env()));
      work.products += inside.products;
      work.elements += inside.elements;
    } else if (is_product(*record.op)) {
      const TensorType given[] = {types.types[in[0]]}, made[] = {types.types[out[0]]};
      work.products += multiplications({*record.op, record.attrs.get(), given, made});
    } else if (sums_exponentials(*record.op)) {
      work.elements += kSoftmax * types.types[in[0]].numel();
    } else if (combines_elements(*record.op)) {
      work.elements += kArithmetic * types.types[in[0]].numel();
    } else if (record.op->storage != OpStorage::input) {
      work.elements +=
          work_of_element(*record.op, record.attrs.get()) * types.types[out[0]].numel();
    }
  }
  return work;
}

}  // namespace reel
