// frontend/transforms/row_batch.h — RowBatch, which applies a graph of one row to all rows at once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// The dim of the rows. In front of plain sizes stands a plain one.
struct Rows {
  Dim named;
  std::optional<Dim> plain;  ///< none: refused, because only a run knows its size
  bool are_taken = false;    ///< true: those that take a branch, packed (TakenRows)

  /// Requires a dim that is named and not ragged.
  explicit Rows(const Dim& named)
      : named(named), plain(named.has_size() ? std::optional(Dim(named.size())) : std::nullopt) {}
  /// Makes packed rows. plain: has the size of the named dim in every run.
  Rows(const Dim& named, const Dim& plain) : named(named), plain(plain), are_taken(true) {}
};

/// A value of the graph: one for all rows, or (is_many) a tensor with the rows in front. Elements
/// of a list of many have the rows in front.
struct RowValue {
  Tensor value;
  bool is_many = false;
};
using RowValues = std::vector<RowValue>;

/// Thrown if a graph cannot be applied to all rows at once.
class RowsRefused : public TraceError {
 public:
  using TraceError::TraceError;
};

/// Records a part of the active trace that may throw RowsRefused. If it throws, none of
/// its records, which could have effects, and no entry of a tape stays. Returns the results of
/// `part` as values of the active trace; empty Tensors stay empty.
Tensors record_attempt(const std::function<Tensors()>& part);

/// Applies the records of a graph to all rows along a dim, in the trace that is being recorded.
///
/// - Ops with a rule (IterationBatchingRule) are applied once, to all rows.
/// - A loop becomes one loop over all rows. If rows differ in their numbers of iterations, they
///   become entries that finish one by one.
/// - A cond with a predicate for each row computes a branch if some row takes it. Either the rows
///   that take it are packed (computes_taken_rows() in branch_cost.h), or other rows read the
///   values of a row that takes it. The other rows then cause neither NaN nor errors.
/// - Any other op runs in a loop over the rows. Such a loop becomes one loop over merged rows under
///   another vmap (one_loop_over_rows()).
///
/// Requires an active trace.
class RowBatch {
 public:
  /// env: dims for the graph's free symbols.
  RowBatch(const GraphRef& graph, const Rows& rows, DimEnv env);
  RowBatch(const SubGraph& graph, const Rows& rows);

  /// Returns the outputs. inputs: formal ones and captures. Throws RowsRefused.
  RowValues run(RowValues inputs);

  /// Returns the dim outside for a dim of the graph.
  Dim resolve(const Dim& dim) { return env_.resolve(dim); }
  /// Returns the dim outside for a dim that tensors of the graph have; nullopt for one that only
  /// lists have, which may belong to the loop that made the list.
  std::optional<Dim> of_tensors(const Dim& dim);
  /// Returns true if the dim outside is known before a record makes it.
  bool knows(const Dim& dim) const { return env_.knows(dim); }
  /// Binds the symbols of one row's type to the dims of all rows. These may have lengths for each
  /// row, over dims that the row's lengths lack.
  void bind_row(const TensorType& row, const TensorType& actual);
  void bind_dim(const Dim& row, const Dim& actual);

 private:
  RowValues apply(const OpRecord& record, const RowValues& in);
  RowValues apply_once(const OpRecord& record, const RowValues& in);
  RowValues apply_in_loop(const OpRecord& record, const RowValues& in);
  RowValue defined_dim(const OpRecord& record, const RowValue& lengths);
  bool apply_rule(const OpRecord& record, const RowValues& in, RowValues& out);
  bool apply_own_rule(const OpRecord& record, const RowValues& in, RowValues& out);
  bool hide_padding(const OpRecord& record, Tensors& operands, const TensorType& result) const;
  DimEnv env_of_row(const OpRecord& record, const Tensors& in);
  AttrsRef attrs_of(const OpRecord& record);
  bool knows(const TensorType& type) const;
  bool reads_lengths_of_rows(const OpRecord& record);
  bool fits(const OpRecord& record, const Tensors& made);

  GraphRef held_;  ///< without unread lists
  const Graph& graph_;
  Rows rows_;
  DimEnv env_;
  std::unordered_set<const DimNode*> of_tensors_;  ///< symbols that not only lists have
};

// Forms of values with rows in front.

/// Returns the value with rows in front: repeated if it is one for all rows. Rows of scalars are
/// named, whatever an op before has made them, so that values of two branches have one type.
Tensor as_many(const RowValue& value, const Rows& rows);
/// Returns the type of one row.
TensorType type_of_row(const RowValue& value);
/// Returns the plain dim of the rows. Throws RowsRefused if there is none.
Dim plain_rows(const Rows& rows);
/// Returns named dims of these plain sizes. Throws RowsRefused if one is not known.
Dims names_for(const Dims& plain);
/// Returns x, a tensor of many rows, with all its axes named, and the first one called `rows`.
Tensor in_named_form(const Tensor& x, const Rows& rows);
/// Returns a tensor with the elements of x and the dims of `row` behind the rows: undoes
/// in_named_form.
Tensor from_named_form(const Tensor& x, const TensorType& row, const Rows& rows);
/// Returns a mask over rows as it broadcasts with x, a tensor of many rows.
Tensor mask_for(const Tensor& mask, const Tensor& x);
/// Returns true if the lengths of a dim of the type run over the rows.
bool runs_over(const TensorType& type, const Dim& rows);

/// A sub-graph that was recorded again, for all rows.
struct RecordedRows {
  SubGraph graph;
  Tensors captured;
  std::vector<TensorType> types;      ///< of its outputs
  std::vector<std::uint8_t> is_many;  ///< by output
};
/// Records a sub-graph for all rows. Outputs listed in `wanted` have the rows in front.
RecordedRows record_for_rows(const SubGraph& of, const RowValues& inputs, const Rows& rows,
                             const std::vector<std::uint8_t>& wanted);

// Records with graphs as attributes. in: operands of the op; attrs: resolved.

/// Returns the results of a loop over all rows. outside: of the graph with the record.
RowValues loop_over_rows(const AttrsRef& attrs, const RowValues& in, RowBatch& outside,
                         const Rows& rows);
/// Returns the results of a loop over all rows. A loop without a state becomes one loop over the
/// rows and its own elements if no op of its body has a form for all rows, or if loop_over_rows
/// refuses it. Loops over rows then do not nest: under k calls of vmap, each level would record and
/// run them again. A loop with sizes that only a run knows nests, and one with large captures
/// of each row, which would be repeated. Throws RowsRefused.
RowValues one_loop_over_rows(const AttrsRef& attrs, const RowValues& in, RowBatch& outside,
                             const Rows& rows);
/// Returns the results of a cond. Its predicate may differ between rows.
RowValues cond_over_rows(const AttrsRef& attrs, const RowValues& in, const Rows& rows);
RowValues checkpointed_over_rows(const AttrsRef& attrs, const RowValues& in, const Rows& rows);
RowValues custom_vjp_over_rows(const AttrsRef& attrs, const RowValues& in, const Rows& rows);

}  // namespace reel
