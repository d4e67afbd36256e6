#include "reel/frontend/transforms/vmap.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/graphs_of_record.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/runtime/random.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/loops/scan_slices.h"
#include "reel/frontend/loops/trace_subcomputation.h"
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/frontend/transforms/row_batch.h"
#include "reel/frontend/transforms/row_scan.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel::detail {
namespace {

/// A recorded function of one row.
struct RecordedRow {
  Ref<Graph> graph;
  Tensors captured;
  TreeLeaves result;  ///< has the types of the graph's promises
};

/// Returns the dim, or the slice of it that an argument has: in the body of a loop, or of a vmap.
Dim dim_of_arguments(const VmapSpec& spec, const Dim& given) {
  const Dim dim = canonical(given);
  for (const TreeLeaf& leaf : spec.arguments) {
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined() ||
        leaf.tensor.type().is_list())
      continue;
    const int axis = find_axis(leaf.tensor.dims(), dim);
    if (axis >= 0) return canonical(leaf.tensor.dims()[static_cast<std::size_t>(axis)]);
  }
  return dim;
}

/// One call of a function under vmap, in a trace.
class VmapCall {
 public:
  explicit VmapCall(const VmapSpec& spec) : spec_(spec) { find_rows(); }

  TreeLeaves run() {
    // Without a dim that is known now, the rows have no dim inside.
    if (rows_.is_ragged() || (!is_named_ && !rows_.has_size())) return run_in_loop();
    try {
      TreeLeaves result;
      const Tensors outputs = record_attempt([&] { return run_at_once(result); });
      return with_outputs(result, outputs);
    } catch (const RowsRefused&) {
      return run_in_loop();
    }
  }

 private:
  bool is_mapped(const TreeLeaf& leaf) const {
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined() ||
        leaf.tensor.type().is_list())
      return false;
    return is_named_ ? find(leaf.tensor.dims(), rows_) >= 0 : true;
  }

  void find_rows() {
    is_named_ = spec_.dim && spec_.dim->is_named();
    if (is_named_) rows_ = dim_of_arguments(spec_, *spec_.dim);
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < spec_.arguments.size(); ++i) {
      const TreeLeaf& leaf = spec_.arguments[i];
      if (leaf.kind == TreeLeaf::Kind::tensor) check_ranked(leaf.tensor);
      if (!is_mapped(leaf)) continue;
      const Tensor& x = leaf.tensor;
      if (!is_named_ && (!x.rank() || x.type().is_named()))
        throw ShapeError(str("vmap: ", spec_.paths()[i], " is ", x.type(),
                             x.rank() ? ", whose dims are named; give vmap the dim of the rows"
                                      : ", a scalar: it has no axis of rows; capture it instead"));
      xs_.push_back(with_axis_first(x, is_named_ ? find(x.dims(), rows_) : 0));
      const Dim& first = xs_.back().dims()[0];
      if (!is_named_ && xs_.size() == 1) rows_ = first;
      if (!is_named_ && !rows_.has_size() && first.has_size()) rows_ = first;
      if (!is_named_ && first.has_size() && rows_.has_size() && !(first == rows_))
        throw ShapeError(str("vmap: ", spec_.paths()[i], " is ", x.type(), ", with ", first,
                             " rows, but arguments before have ", rows_,
                             "; all have the rows as their first axis"));
    }
    if (xs_.empty())
      throw ShapeError(is_named_ ? str("vmap: no argument has the dim ", rows_,
                                       "; give the dim of the rows, with x.dim(name)")
                                 : std::string("vmap: no argument is a tensor with rows"));
    if (!is_named_ && spec_.dim && spec_.dim->has_size() && rows_.has_size() &&
        !(*spec_.dim == rows_))
      throw ShapeError(str("vmap: the arguments have ", rows_,
                           " rows, but their number is given as ", *spec_.dim,
                           "; leave it out: the rows are the first axis"));
  }

  /// The form of map: a loop over the rows.
  TreeLeaves run_in_loop() const {
    ScanSpec loop = row_scan("vmap", "vmap", rows_, xs_);
    loop.xs_paths = [&] {
      std::vector<std::string> all = spec_.paths(), mapped;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (is_mapped(spec_.arguments[i])) mapped.push_back(all[i]);
      return mapped;
    };
    loop.y_paths = loop.first_y_paths = spec_.result_paths;
    loop.body = [&](const TreeLeaves& x, const TreeLeaves&) {
      return ScanStep{spec_.function(arguments_of_row(tensors_of(x))), {}};
    };
    return scan_leaves(loop).ys;
  }

  TreeLeaves arguments_of_row(const Tensors& rows) const {
    TreeLeaves result = spec_.arguments;
    std::size_t next = 0;
    for (TreeLeaf& leaf : result)
      if (is_mapped(leaf)) leaf.tensor = rows[next++];
    return result;
  }

  /// Records f for one row. Inputs: the position of the row, the rows of `lengths`, the arguments.
  RecordedRow record(RandomScope& random) {
    const Dims ragged = dims_with_lengths_along(xs_);
    for (const Dim& dim : ragged) lengths_.push_back(lengths_along(dim, rows_));
    GraphBuilder builder("row", "the function under vmap");
    ModeScope scope(builder.scope());
    random.begin(builder.add_input(TensorType(i64)));
    DimChanges slices;
    for (std::size_t i = 0; i < ragged.size(); ++i) {
      const bool has_rows = find(lengths_[i].dims(), rows_) >= 0;
      const TensorType& type = lengths_[i].type();
      const Tensor given = builder.add_input(slices(has_rows ? slice_type(type) : type));
      slices.add(canonical(ragged[i]), slice_of_dim(ragged[i], given));
    }
    Tensors rows;
    for (const Tensor& x : xs_) rows.push_back(builder.add_input(slices(slice_type(x.type()))));
    const TakenRowsScope all_rows(TakenRowsRule::never);  // of a vmap inside
    RecordedRow row;
    row.result = spec_.function(arguments_of_row(rows));
    row.graph = finish_part(builder, outputs_of(row.result));
    row.captured = builder.captured();
    return row;
  }

  /// Returns the dim of the rows while the function is applied: another one if values inside have
  /// it as well, or a named one for plain rows. Graphs of loops, branches and recorded functions
  /// are not searched: such a function gets another dim.
  Dim rows_inside(const Graph& graph) const {
    if (!is_named_) return Dim("rows", rows_.size());
    const bool may_meet =
        std::ranges::any_of(graph.types,
                            [&](const TensorType& type) {
                              return contains(type.dims(), rows_) || runs_over(type, rows_);
                            }) ||
        std::ranges::any_of(graph.records,
                            [](const OpRecord& record) { return has_sub_graphs(*record.op); });
    if (!may_meet) return rows_;
    return rows_.has_size() ? Dim(rows_.name(), rows_.size()) : Dim(rows_.name(), rows_.lengths());
  }

  /// Returns outputs_of() the results for all rows. result: receives their structure.
  Tensors run_at_once(TreeLeaves& result) {
    lengths_.clear();
    // As in map, the call takes one number of the stream; if it is refused, it takes none.
    RandomScope random;
    const RecordedRow row = record(random);
    refuse_arrays(row.result);
    check_names(row.result);
    const Dim inside = rows_inside(*row.graph);
    const auto many = [&](const Tensor& x) {
      if (!is_named_ || inside == rows_) return RowValue{x, true};
      if (has_lengths_of_absent(x.type(), rows_))  // rename leaves these over the former dim
        throw RowsRefused(str("an axis of ", x.type(), " lacks dims of its lengths"));
      return RowValue{rename(x, rows_, inside), true};
    };
    RowValues inputs{{range(inside, i64), true}};
    for (const Tensor& lengths : lengths_) {
      const bool has_rows = find(lengths.dims(), rows_) >= 0;
      inputs.push_back(has_rows ? many(lengths) : RowValue{lengths});
    }
    // identity() makes own values, so that each gets one cotangent from the call, as in eager mode.
    const auto own = [](const Tensor& x) {
      return is_float(x.dtype()) && !x.type().is_list() ? identity(x) : x;
    };
    for (const Tensor& x : xs_) inputs.push_back(many(own(x)));
    for (const Tensor& captured : row.captured) inputs.push_back({own(captured)});
    RowBatch batch(row.graph, Rows(inside), dims_outside());
    Tensors outputs;
    const std::size_t tensors = tensors_of(row.result).size();  // the tokens of Dims follow
    for (const RowValue& value : batch.run(std::move(inputs)))
      outputs.push_back(outputs.size() < tensors ? outside(value, inside) : value.value);
    result = row.result;
    return outputs;
  }
  DimEnv dims_outside() const { return DimEnv::renaming(); }

  /// Throws StructureError if a result is a TensorArray: its elements would need the rows, and its
  /// size may differ between rows.
  void refuse_arrays(const TreeLeaves& results) const {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Tensor& x = results[i].tensor;
      if (results[i].kind == TreeLeaf::Kind::tensor && x.is_defined() && x.type().is_array())
        throw StructureError(str("vmap: ", spec_.result_paths()[i], " is a TensorArray (", x.type(),
                                 "), which has no axis for the rows; return its stack(), or "
                                 "differentiate with respect to a stacked tensor"));
    }
  }

  /// Throws ShapeError if the rows have a name and a result has plain axes: map refuses these, too.
  void check_names(const TreeLeaves& results) const {
    if (!is_named_) return;
    std::string lines;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Tensor& x = results[i].tensor;
      if (results[i].kind == TreeLeaf::Kind::tensor && x.is_defined() && !x.type().is_list() &&
          x.rank() && !x.type().is_named())
        lines += str("\n  ", spec_.result_paths()[i], ": ", x.type(), ", whose dims have no names");
    }
    if (lines.empty()) return;
    throw ShapeError(str("vmap: the rows are along a dim with a name, ", rows_,
                         ", but not all results have named dims", lines,
                         "\nGive every axis of a result a Dim with a name, or let the arguments "
                         "have none."));
  }

  /// Returns a result with its rows in front, as the caller named them.
  Tensor outside(const RowValue& value, const Dim& inside) const {
    const TensorType row = type_of_row(value);
    const Tensor x = as_many(value, Rows(inside));
    if (!is_named_) return x.type().is_named() && x.rank() == 1 ? renamed(x, 0, rows_) : x;
    if (inside == rows_) return x;
    if (contains(row.dims(), rows_))
      throw ShapeError(str("vmap: a result has the dim of the rows, ", rows_, ", in every row: ",
                           row, "; rename it inside the function, to another Dim"));
    return rename(x, inside, rows_);
  }

  const VmapSpec& spec_;
  bool is_named_ = false;
  Dim rows_{0};
  Tensors xs_;       ///< the mapped arguments, with the rows in front
  Tensors lengths_;  ///< of their ragged dims with a length for each row
};

/// vmap over the entries of several dims: these are merged in the arguments, and split in the
/// results. Along ragged dims the valid entries are packed.
TreeLeaves vmap_entries(VmapSpec spec) {
  Dims dims = *std::exchange(spec.dims, std::nullopt);
  for (Dim& dim : dims) dim = dim_of_arguments(spec, dim);
  if (dims.empty()) throw ArgumentError("vmap: there are no dims; give the dims of the entries");
  for (const Dim& dim : dims)
    if (!dim.is_named())
      throw ArgumentError(str("vmap: ", dims, " has a plain size; give named dims"));
  const bool is_ragged = std::ranges::any_of(dims, [](const Dim& dim) { return dim.is_ragged(); });
  std::optional<Dim> entries;
  const auto merged = [&](const Tensor& x) {
    Dims all = x.dims();
    for (const Dim& dim : dims)
      if (!contains(all, dim)) all.insert(all.begin(), dim);
    const Tensor whole = all == x.dims() ? x : expand(x, all);
    const Tensor made = with_axis_first(whole, find(all, dims[0]));
    const Tensor result =
        is_ragged ? pack(made, Axes(dims), entries) : merge_dims(made, Axes(dims), entries);
    if (!entries) entries = result.dims()[0];
    return result;
  };
  for (TreeLeaf& leaf : spec.arguments)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
        !leaf.tensor.type().is_list() && std::ranges::any_of(dims, [&](const Dim& dim) {
          return contains(leaf.tensor.dims(), dim);
        }))
      leaf.tensor = merged(leaf.tensor);
  if (!entries)
    throw ShapeError(str("vmap: no argument has one of the dims ", dims,
                         "; give the dims of the entries, with x.dim(name)"));
  spec.dim = entries;
  TreeLeaves results = vmap_leaves(spec);
  for (TreeLeaf& leaf : results)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
        contains(leaf.tensor.dims(), *entries))
      leaf.tensor =
          is_ragged ? unpack(leaf.tensor, *entries, dims) : split_dim(leaf.tensor, *entries, dims);
  return results;
}

}  // namespace

TreeLeaves vmap_leaves(const VmapSpec& spec) try {
  if (spec.dims) return vmap_entries(spec);
  if (is_tracing()) return VmapCall(spec).run();
  const auto at_once = [&](const TreeLeaves& arguments) {
    VmapSpec inside = spec;
    inside.arguments = arguments;
    return VmapCall(inside).run();
  };
  return run_recorded("vmap", spec.arguments, at_once, "to apply ops to all rows at once");
} catch (const std::bad_alloc&) {
  throw_no_memory_in("vmap");
}

}  // namespace reel::detail
