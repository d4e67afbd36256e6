// Loops without a state, applied to all rows as one loop over the rows of both levels.
#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/ops/control/graphs_of_record.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/element_order.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/frontend/transforms/row_batch.h"
#include "reel/frontend/transforms/row_scan.h"

namespace reel {
namespace {

bool has_known_sizes(const TensorType& type) {
  return !type.is_list() && !type.is_ragged() &&
         std::ranges::all_of(type.dims(), [](const Dim& dim) { return dim.has_size(); });
}

bool reads(const Graph& graph, ValueId value) {
  return std::ranges::count(graph.outputs, value) ||
         std::ranges::any_of(graph.records, [&](const OpRecord& record) {
           return std::ranges::count(graph.inputs_of(record), value);
         });
}

/// Captures of each row are repeated for all elements of the loop, and slices that all rows share
/// for all rows. A loop is merged if these copies have at most kMaxRepeated elements, or at most as
/// many as its other slices and its results together.
constexpr double kMaxRepeated = 1 << 16;

Dims join(Dims front, std::span<const Dim> rest) {
  front.insert(front.end(), rest.begin(), rest.end());
  return front;
}

/// One loop over merged rows.
///
/// Before: for each element of the loop, a body of all rows.
/// After: for each row and each element, the body of one row.
class MergedLoop {
 public:
  MergedLoop(const LoopAttrs& attrs, const RowValues& in, const Rows& rows)
      : attrs_(attrs), body_(*attrs.body.graph), given_(operands_of(attrs, in)), rows_(rows) {}

  /// Returns true if each iteration computes on its own, and all sizes that are merged are known.
  bool has_form() const {
    const bool has_state = !attrs_.carries.empty() || !attrs_.sums.empty() || attrs_.cond;
    const bool is_part = attrs_.chunking.over_chunks || attrs_.chunking.within_chunk;
    if (has_state || is_part || attrs_.has_entries() || attrs_.has_windows() ||
        !attrs_.trips.is_full || attrs_.trips.is_reverse || !rows_.named.has_size() ||
        attrs_.slices.empty() || attrs_.stacks.empty())
      return false;
    // A policy belongs to the loop as the user wrote it. Captures cannot have its dim twice.
    const auto has_dim_of_loop = [&](const RowValue& capture) {
      return capture.is_many && attrs_.stacks[0].dim.is_named() &&
             !capture.value.type().is_list() &&
             contains(capture.value.dims(), attrs_.stacks[0].dim);
    };
    if (attrs_.policy.has_checkpoints() || attrs_.policy.swaps || attrs_.policy.rule ||
        std::ranges::any_of(given_.captures, has_dim_of_loop))
      return false;
    const auto is_sized = [](const RowValue& value) { return has_known_sizes(value.value.type()); };
    const auto is_sized_if_many = [&](const RowValue& value) {
      return !value.is_many || is_sized(value);
    };
    const auto is_output = [](const LoopStack& stack) {
      return !stack.is_list && !stack.is_raw() && stack.dim.has_size();
    };
    // Behind plain rows, sizes that only a run knows stay as they are.
    const auto is_term = [&](ValueId v) {
      const TensorType& type = body_.types[v];
      const bool is_plain =
          !type.is_list() && !type.is_ragged() && !attrs_.stacks[0].dim.is_named();
      return is_plain || has_known_sizes(type);
    };
    return std::ranges::all_of(given_.slices, is_sized) &&
           std::ranges::all_of(given_.captures, is_sized_if_many) &&
           std::ranges::all_of(attrs_.stacks, is_output) &&
           std::ranges::all_of(body_.outputs, is_term) && repeats_few() &&
           std::ranges::none_of(attrs_.body.bindings, [&](const auto& binding) {
             return runs_over(canonical(binding.second), rows_.named);
           });
  }

  RowValues run() {
    const Dim& elements = attrs_.stacks[0].dim;
    const std::int64_t count = rows_.named.size() * elements.size();
    is_named_ = elements.is_named();
    front_ = is_named_ ? Dims{rows_.named, elements} : Dims{plain_rows(rows_), elements};
    merged_ = is_named_ ? Dim("rows", count) : Dim(count);
    reads_position_ = reads(body_, body_.inputs[0]);
    // A loop is called by its function and its name: vmap "norm".
    const std::size_t quote = std::min(attrs_.name.find(" \""), attrs_.name.size());
    const std::string function = attrs_.name.substr(0, quote);
    const std::string name = quote < attrs_.name.size()
                                 ? attrs_.name.substr(quote + 2, attrs_.name.size() - quote - 3)
                                 : "";
    RowValues out;
    for (const Tensor& stack :
         map_rows(row_scan(function.c_str(), name, merged_, operands()), attrs_.stacks.size(),
                  [&](const Tensors& x) { return row(x); }))
      out.push_back({split_dim(stack, 0, front_), true});
    out.push_back({scalar(elements.size(), i32)});  // the trip count
    return out;
  }

 private:
  bool repeats_few() const {
    const double elements = static_cast<double>(attrs_.stacks[0].dim.size());
    constexpr double kUnknownSize = 1;
    const auto elements_of = [](const TensorType& type) {
      return estimated_numel(type, kUnknownSize);
    };
    double repeated = 0, own = 0;  // elements of one row
    for (const RowValue& capture : given_.captures)
      if (capture.is_many) repeated += elements * elements_of(type_of_row(capture));
    for (const RowValue& slices : given_.slices)
      (slices.is_many ? own : repeated) += elements_of(type_of_row(slices));
    for (const ValueId v : body_.outputs) own += elements * elements_of(body_.types[v]);
    const double rows = static_cast<double>(rows_.named.size());
    return repeated <= own || rows * repeated <= kMaxRepeated;
  }

  /// Returns the operands of the merged loop: positions, if the body reads them, slices, and
  /// captures of each row.
  Tensors operands() const {
    Tensors result;
    if (reads_position_) {
      const Tensor positions = range(front_[1], i64);
      result.push_back(merged(
          expand(is_named_ ? positions : reshape(positions, Dims{Dim(1), front_[1]}), front_)));
    }
    for (const RowValue& slices : given_.slices)
      result.push_back(merged(in_form(as_many(slices, rows_))));
    for (const int i : attrs_.body_captures)
      if (const RowValue& capture = given_.captures[static_cast<std::size_t>(i)]; capture.is_many)
        result.push_back(merged(repeated(in_form(capture.value))));
    return result;
  }

  /// Returns x, with the rows in front, with names for all axes or for none.
  Tensor in_form(const Tensor& x) const {
    if (is_named_) return in_named_form(x, rows_);
    return x.type().is_named() ? reshape(x, x.type().sizes()) : x;
  }
  /// Repeats x, with the rows in front, for all elements.
  Tensor repeated(const Tensor& x) const {
    const auto rest = std::span(x.dims()).subspan(1);
    const Tensor one = is_named_ ? x : reshape(x, join({front_[0], Dim(1)}, rest));
    return expand(one, join(front_, rest));
  }
  /// Returns x, with rows and elements in front, with one axis for both.
  Tensor merged(const Tensor& x) const {
    return reshape(x, join({merged_}, std::span(x.dims()).subspan(2)));
  }

  /// Applies the body of one row to slices of operands().
  Tensors row(const Tensors& x) const {
    std::size_t next = 0;
    const auto take = [&](const Dims& dims) {
      const Tensor& value = x[next++];
      return value.dims() == dims ? value : reshape(value, dims);
    };
    Tensors inputs{reads_position_ ? take({}) : scalar(0, i64)};
    for (const RowValue& slices : given_.slices) {
      const Dims& dims = slices.value.dims();
      inputs.push_back(take(Dims(dims.begin() + 1 + slices.is_many, dims.end())));
    }
    for (const int i : attrs_.body_captures) {
      const RowValue& capture = given_.captures[static_cast<std::size_t>(i)];
      inputs.push_back(capture.is_many ? take(type_of_row(capture).dims()) : capture.value);
    }
    DimEnv env = attrs_.body.env();
    return replay(body_, inputs, env);
  }

  const LoopAttrs& attrs_;
  const Graph& body_;
  LoopOperands<const RowValue> given_;
  const Rows& rows_;
  bool is_named_ = false, reads_position_ = false;
  Dims front_;  ///< of rows and elements
  Dim merged_{0};
};

/// True if some op of the body has no form for all rows, and no op with a form computes elements.
bool runs_row_by_row(const Graph& body) {
  const auto has_form = [](const OpRecord& record) {
    return !record.input_count || iteration_batching_rule(*record.op) || record.op->returns_input ||
           has_sub_graphs(*record.op);
  };
  const auto computes = [&](const OpRecord& record) {
    return has_form(record) && record.input_count && !keeps_elements(*record.op) &&
           !record.op->returns_input;
  };
  return !std::ranges::all_of(body.records, has_form) &&
         std::ranges::none_of(body.records, computes);
}

}  // namespace

RowValues one_loop_over_rows(const AttrsRef& ref, const RowValues& in, RowBatch& outside,
                             const Rows& rows) {
  const LoopAttrs& attrs = get<LoopAttrs>(ref.get());
  MergedLoop loop(attrs, in, rows);
  if (!loop.has_form()) return loop_over_rows(ref, in, outside, rows);
  if (runs_row_by_row(*attrs.body.graph)) return loop.run();
  try {
    RowValues out;
    const Tensors made = record_attempt([&] {
      out = loop_over_rows(ref, in, outside, rows);
      Tensors values;
      for (const RowValue& value : out) values.push_back(value.value);
      return values;
    });
    for (std::size_t k = 0; k < out.size(); ++k) out[k].value = made[k];
    return out;
  } catch (const RowsRefused&) {
    return loop.run();
  }
}

}  // namespace reel
