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
#include "reel/core/ops/reductions/reduce.h"

namespace reel {
namespace {

/// Multiplications that take as long as an element: of arithmetic, an eighth of a nanosecond; of
/// ops without machine code in chains, such as comparisons and copies; of exp, tanh and sigmoid; of
/// log and the like; of ops that read indices; of softmax and its relatives, about two nanoseconds.
constexpr std::int64_t kArithmetic = 4, kAlone = 8, kExp = 16, kLog = 24, kIndexed = 32,
                       kSoftmax = 64;

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

bool is_softmax(const Op& op) {
  return &op == &softmax_op || &op == &log_softmax_op || &op == &logsumexp_op;
}

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
    } else if (is_softmax(*record.op)) {
      work.elements += kSoftmax * types.types[in[0]].numel();
    } else if (record.op->neutral != Neutral::none) {  // reduces its operand
      work.elements += kArithmetic * types.types[in[0]].numel();
    } else if (record.op->storage != OpStorage::input) {
      work.elements +=
          work_of_element(*record.op, record.attrs.get()) * types.types[out[0]].numel();
    }
  }
  return work;
}

}  // namespace reel
