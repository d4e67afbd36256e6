#include "reel/trace/passes/cleanup/drop_masks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Sorted masks.
using Masks = std::vector<ValueId>;

Masks of_both(const Masks& a, const Masks& b) {
  Masks result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}
void add(Masks& masks, ValueId mask) {
  const auto place = std::lower_bound(masks.begin(), masks.end(), mask);
  if (place == masks.end() || *place != mask) masks.insert(place, mask);
}
bool has(const Masks& masks, ValueId mask) {
  return std::binary_search(masks.begin(), masks.end(), mask);
}

/// Facts about a value: the number of all its elements, if it is one and no NaN, and the masks
/// under which it is 0 (not -0) or -inf, where these are false.
struct Known {
  std::optional<double> number;
  Masks zero, nothing;
};

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
    const Known &x = known_[in[1]], &other = known_[in[2]];
    return (is_zero(other) && has(x.zero, in[0])) || (is_nothing(other) && has(x.nothing, in[0]));
  }

  static bool is_zero(const Known& of) { return of.number == 0 && !std::signbit(*of.number); }
  static bool is_nothing(const Known& of) {
    return of.number == -std::numeric_limits<double>::infinity();
  }
  static bool is_positive(const Known& of) {
    return of.number && *of.number > 0 && std::isfinite(*of.number);
  }

  Known known_of(const OpRecord& record, const std::vector<ValueId>& in) const {
    Known result;
    const Op* const op = record.op;
    const auto operand = [&](std::size_t i) -> const Known& { return known_[in[i]]; };
    if (op == &full_op) {
      const auto& full = get<FullAttrs>(record.attrs.get());
      if (is_float(full.type.dtype()) && !std::isnan(full.number)) result.number = full.number;
    } else if (op == &where_op) {
      const Known &x = operand(1), &other = operand(2);
      result.zero = is_zero(other) ? x.zero : of_both(x.zero, other.zero);
      result.nothing = is_nothing(other) ? x.nothing : of_both(x.nothing, other.nothing);
      if (is_zero(other)) add(result.zero, in[0]);
      if (is_nothing(other)) add(result.nothing, in[0]);
    } else if (op == &add_op || op == &sub_op) {
      result.zero = of_both(operand(0).zero, operand(1).zero);
    } else if (op == &mul_op) {
      result.zero = is_positive(operand(0))   ? operand(1).zero
                    : is_positive(operand(1)) ? operand(0).zero
                                              : of_both(operand(0).zero, operand(1).zero);
    } else if (op == &div_op) {
      if (is_positive(operand(1))) result.zero = operand(0).zero;
    } else if (op == &softmax_op) {
      result.zero = operand(0).nothing;  // also in rows of nothing else
    }
    return result;
  }

  const Graph& from_;
  std::vector<Known> known_;  // by value
};

}  // namespace

Ref<Graph> drop_masks(const Graph& graph) { return DroppingMasks(graph).run(); }

}  // namespace reel
