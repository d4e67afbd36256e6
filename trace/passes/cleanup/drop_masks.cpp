#include "reel/trace/passes/cleanup/drop_masks.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/trace/passes/analysis/results_of_numbers.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Facts about a value of floats: the number of all its elements, if it is one and no NaN, and the
/// numbers +0 and -inf that it has where a mask is false, by mask.
struct Known {
  std::optional<double> number;
  std::map<ValueId, double> masked;

  std::optional<double> under(ValueId mask) const {
    const auto found = masked.find(mask);
    return found == masked.end() ? number : std::optional(found->second);
  }
};

bool is_same(std::optional<double> a, std::optional<double> b) {
  return a && b && *a == *b && std::signbit(*a) == std::signbit(*b);
}

class DroppingMasks {
 public:
  explicit DroppingMasks(const Graph& from) : from_(from), known_(from.types.size()) {}

  Ref<Graph> run() {
    GraphRewriter to(from_);
    for (const OpRecord& record : from_.records) {
      const std::vector<ValueId> in = to.inputs_of(record);
      const auto out = from_.outputs_of(record);
      if (record.op == &where_op && is_masked(in, out[0])) {
        to.replace(out[0], in[1]);
        continue;
      }
      if (out.size() == 1) known_[out[0]] = known_of(record, in);
      to.keep(record, with_all_sub_graphs(record, drop_masks), in);
    }
    return to.finish();
  }

 private:
  /// True if where(mask, x, number) is x.
  bool is_masked(const std::vector<ValueId>& in, ValueId out) const {
    if (from_.types[in[1]] != from_.types[out]) return false;
    const auto& masked = known_[in[1]].masked;
    const auto found = masked.find(in[0]);
    return found != masked.end() && is_same(found->second, known_[in[2]].number);
  }

  Known known_of(const OpRecord& record, const std::vector<ValueId>& in) const {
    const TensorType& made = from_.types[from_.outputs_of(record)[0]];
    if (made.is_list() || !is_float(made.dtype())) return {};
    if (record.op == &full_op) {
      const double number = get<FullAttrs>(record.attrs.get()).number;
      return {std::isnan(number) ? std::nullopt : std::optional(number), {}};
    }
    Known result;
    std::set<ValueId> masks;
    for (const ValueId v : in)
      for (const auto& [mask, number] : known_[v].masked) masks.insert(mask);
    if (record.op == &where_op) masks.insert(in[0]);
    for (const ValueId mask : masks)
      if (const auto number = number_under(mask, record, in); number && is_noted(*number))
        result.masked.emplace(mask, *number);
    return result;
  }

  /// True for +0 and -inf: numbers that masks have, and that all kernels make exactly.
  static bool is_noted(double number) {
    return is_same(number, 0.) || number == -std::numeric_limits<double>::infinity();
  }

  /// Returns the number that a result has where a mask is false.
  std::optional<double> number_under(ValueId mask, const OpRecord& record,
                                     const std::vector<ValueId>& in) const {
    if (record.op == &where_op) {
      const auto x = known_[in[1]].under(mask), other = known_[in[2]].under(mask);
      return mask == in[0] || is_same(x, other) ? other : std::nullopt;
    }
    std::vector<double> numbers;
    std::vector<TensorType> types;
    for (const ValueId v : in) {
      const auto number = known_[v].under(mask);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
      types.push_back(from_.types[v]);
    }
    if (record.op->pointwise) return result_of_numbers(record, types, numbers);
    const bool is_nothing = numbers[0] == -std::numeric_limits<double>::infinity();
    return is_nothing && drops_minus_infinity(record, types[0]) ? std::optional(0.) : std::nullopt;
  }

  const Graph& from_;
  std::vector<Known> known_;  // by value
};

}  // namespace

Ref<Graph> drop_masks(const Graph& graph) { return DroppingMasks(graph).run(); }

}  // namespace reel
