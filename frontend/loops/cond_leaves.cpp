// cond on leaves: a C++ branch in eager mode, one record with two graphs in a trace.
#include <algorithm>
#include <memory>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/loops/state/fresh_dims.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

struct Branch {
  std::unique_ptr<GraphBuilder> builder;
  TreeLeaves leaves;
  Ref<Graph> graph = {};  ///< null until finish()
  Tensors captured = {};
};

/// Transposes named dims into the order of the other branch's, and makes ranks unknown that are
/// unknown there.
void adapt_to(TreeLeaves& leaves, const TreeLeaves& other) {
  for (std::size_t i = 0; i < std::min(leaves.size(), other.size()); ++i) {
    Tensor& x = leaves[i].tensor;
    if (!x.is_defined() || !other[i].tensor.is_defined()) continue;
    if (is_unranked(other[i].tensor)) x = as_unranked(x);
    if (is_unranked(x) || !x.type().is_named()) continue;
    const Dims &from = x.dims(), &to = other[i].tensor.dims();
    if (from != to && std::is_permutation(from.begin(), from.end(), to.begin(), to.end()))
      x = transpose(x, to);
  }
}

/// True if the rank of a leaf is unknown there, but not here.
bool knows_more_ranks(const TreeLeaves& here, const TreeLeaves& there) {
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
    if (!is_unranked(here[i].tensor) && is_unranked(there[i].tensor)) return true;
  return false;
}

/// Throws StructureError if the leaves that a branch returned hold empty Tensors; names all of
/// them.
void check_none_is_empty(const std::string& function, const std::string& branch,
                         const TreeLeaves& leaves, const PathsFn& paths) {
  const std::string empty = detail::paths_of_empty(leaves, paths);
  if (!empty.empty())
    throw StructureError(str(function, ": ", branch, " returns empty Tensors: ", empty,
                             "; give them values, or let them be std::optional<Tensor>"));
}

/// Records a branch without its end. other: the leaves that the other branch has returned.
Branch record_branch(const char* label, const std::string& function, const std::string& name,
                     const std::function<TreeLeaves()>& branch, const PathsFn& paths,
                     const TreeLeaves& other = {}) {
  Branch result{std::make_unique<GraphBuilder>(label, str(name, " of ", function)), {}};
  ModeScope scope(result.builder->scope());
  result.leaves = branch();
  check_none_is_empty(function, name, result.leaves, paths);
  adapt_to(result.leaves, other);
  return result;
}

/// Returns true if a Dim of the results has a fixed size in one branch, and in the other branch
/// another size, or one that only a run knows. The cond then has a Dim that only a run knows.
bool sizes_differ(const TreeLeaves& yes, const TreeLeaves& no) {
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.is_named() && b.is_named() && a.raw_size() != b.raw_size();
  };
  for (std::size_t i = 0; i < std::min(yes.size(), no.size()); ++i) {
    if (has_token(yes[i]) && has_token(no[i]) && differ(yes[i].dim, no[i].dim)) return true;
    if (!yes[i].tensor.is_defined() || !no[i].tensor.is_defined()) continue;
    const TensorType &of_yes = yes[i].tensor.type(), &of_no = no[i].tensor.type();
    if (of_yes.is_list() || of_no.is_list()) continue;  // or the rank is not known
    const Dims &a = of_yes.dims(), &b = of_no.dims();
    for (std::size_t axis = 0; axis < std::min(a.size(), b.size()); ++axis)
      if (differ(a[axis], b[axis])) return true;
  }
  return false;
}

/// Ends the recording of a branch.
void finish(Branch& branch, bool makes_dims_anew) {
  const ModeScope scope(branch.builder->scope());
  FreshDims fresh(*branch.builder);
  for (const TreeLeaf& leaf : branch.leaves) {
    if (!makes_dims_anew) break;
    if (has_token(leaf)) fresh.add(leaf.dim);
    if (leaf.tensor.is_defined() && !leaf.tensor.type().is_list()) fresh.add_all(leaf.tensor);
  }
  branch.graph = finish_part(*branch.builder, outputs_of(fresh(branch.leaves)));
  branch.captured = branch.builder->captured();
}

/// Decides which dims of the branches may meet: equal ones, Dims in the same leaf of the result,
/// and dims that each branch makes itself.
class BranchMerge {
 public:
  BranchMerge(const Branch& yes, const Branch& no, const std::vector<detail::LeafPair>& leaves)
      : yes_(yes), no_(no) {
    for (const auto& [path, a, b] : leaves)
      if (a && b && has_token(*a) && has_token(*b)) leaves_.emplace_back(a->dim, b->dim);
  }

  bool may_meet(const Dim& a, const Dim& b) const {
    if (a == b) return true;
    if (!a.is_named() || !b.is_named()) {
      const bool both_say = (a.is_named() || a.has_size()) && (b.is_named() || b.has_size());
      return !both_say;
    }
    if (is_leaf(a, b)) return is_of_a_kind(a, b);
    const DimExpression *of_a = expression_of(a), *of_b = expression_of(b);
    if (of_a && of_b && of_a->operation == of_b->operation && of_a->number == of_b->number &&
        may_meet(of_a->operands, of_b->operands))
      return true;
    return is_made(*yes_.graph, a) && is_made(*no_.graph, b) && is_of_a_kind(a, b);
  }
  bool may_meet(const Dims& a, const Dims& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Dim& x, const Dim& y) { return may_meet(x, y); });
  }

 private:
  /// True if the branch makes the dim: from values, or as a static dim that none of its captures
  /// has.
  static bool is_made(const Graph& branch, const Dim& dim) {
    if (!dim.is_symbol() || !dim.has_size()) return makes_dim(branch, dim);
    return std::none_of(branch.inputs.begin(), branch.inputs.end(),
                        [&](ValueId v) { return contains(branch.types[v].dims(), dim); });
  }
  bool is_leaf(const Dim& a, const Dim& b) const {
    return std::any_of(leaves_.begin(), leaves_.end(),
                       [&](const auto& leaf) { return leaf.first == a && leaf.second == b; });
  }
  /// True if both have one size for all, or lengths over the same dims.
  bool is_of_a_kind(const Dim& a, const Dim& b) const {
    return may_meet(a.length_dims(), b.length_dims());
  }

  const Branch &yes_, &no_;
  std::vector<std::pair<Dim, Dim>> leaves_;
};

void check_alike(const Branch& on_true, const Branch& on_false, const PathsFn& true_paths,
                 const PathsFn& false_paths, const BranchNames& names) {
  const bool is_alike = detail::same_structure(on_true.leaves, on_false.leaves);
  std::vector<detail::LeafPair> leaves;  // if the structures agree, errors alone need the paths
  if (is_alike)
    for (std::size_t i = 0; i < on_true.leaves.size(); ++i)
      leaves.push_back({{}, &on_true.leaves[i], &on_false.leaves[i]});
  else
    leaves = detail::pair_leaves(on_true.leaves, true_paths(), on_false.leaves, false_paths());
  const BranchMerge dims(on_true, on_false, leaves);
  enum { fine, shape, dtype, structure } worst = fine;
  const auto difference = [&](const TreeLeaf* a, const TreeLeaf* b) {
    if (!a || !b || a->kind != b->kind || a->fixed != b->fixed) return structure;
    if (a->kind == TreeLeaf::Kind::dim) return dims.may_meet(a->dim, b->dim) ? fine : shape;
    if (a->kind != TreeLeaf::Kind::tensor) return fine;
    if (a->tensor.type().is_list() != b->tensor.type().is_list()) return structure;
    if (a->tensor.dtype() != b->tensor.dtype()) return dtype;
    if (is_unranked(a->tensor)) return fine;
    return dims.may_meet(a->tensor.dims(), b->tensor.dims()) ? fine : shape;
  };
  std::string lines;
  bool has_named = false;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& [path, a, b] = leaves[i];
    const auto how = difference(a, b);
    worst = std::max(worst, how);
    if (how == fine) continue;
    lines += str("\n  ", is_alike ? true_paths()[i] : path, ": ", a ? detail::print(*a) : "nothing",
                 ' ', names.on_true, ", ", b ? detail::print(*b) : "nothing", ' ', names.on_false);
    if (how == dtype) lines += " (dtypes differ)";
    if (how != shape) continue;
    if (a->kind == TreeLeaf::Kind::dim) {
      lines += " (dims differ)";
      continue;
    }
    const TensorType &yes = a->tensor.type(), &no = b->tensor.type();
    lines += str(" (", detail::dims_differ(yes, no), ')');
    has_named = has_named || (yes.is_named() && no.is_named());
  }
  if (worst == fine) return;
  const std::string text = str(
      names.function, ": the branches return different types", lines,
      "\nReturn the same type from both.",
      has_named ? " Where a dim differs on purpose, return the Dim as well: the result then has "
                  "a new one."
                : "");
  if (worst == structure) throw StructureError(text);
  if (worst == dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}  // namespace

TreeLeaves cond_leaves(const LoopCondition& pred, const std::function<TreeLeaves()>& on_true,
                       const std::function<TreeLeaves()>& on_false, const PathsFn& true_paths,
                       const PathsFn& false_paths, const BranchNames& names) try {
  RandomScope random;
  const auto run = [&](bool taken) {
    random.begin(taken ? 1 : 0);
    return taken ? on_true() : on_false();
  };
  if (pred.fixed) return run(*pred.fixed);
  if (!pred.tensor.is_defined()) throw StructureError("cond: pred is an empty Tensor");
  if (pred.tensor.dtype() != boolean)
    throw DTypeError(str("cond: pred must be a boolean scalar, got ", pred.tensor.type(),
                         "; compare, as in x > 0"));
  if (pred.tensor.rank())
    throw ShapeError(
        str("cond: pred must be a boolean scalar, got ", pred.tensor.type(),
            "; reduce it with any or all, choose element by element with where, or let each row "
            "take its branch with vmap"));
  if (!is_tracing()) {
    MarkedLoop marks;  // as in a graph, a branch's cotangents are summed first
    marks.begin_iteration(0);
    const std::uint64_t begin = next_block_id();
    const bool is_true = pred.tensor.item<bool>();
    TreeLeaves leaves = run(is_true);
    check_none_is_empty(names.function, is_true ? names.true_branch : names.false_branch, leaves,
                        is_true ? true_paths : false_paths);
    return own_state(std::move(leaves), begin);
  }
  const auto record_yes = [&](const TreeLeaves& other) {
    return record_branch(
        "true", names.function, names.true_branch, [&] { return run(true); }, true_paths, other);
  };
  Branch yes = record_yes({});
  Branch no = record_branch(
      "false", names.function, names.false_branch, [&] { return run(false); }, false_paths,
      yes.leaves);
  if (knows_more_ranks(yes.leaves, no.leaves)) yes = record_yes(no.leaves);
  // A loop around the cond may call it many times. In eager mode, each call makes Dims of its own.
  const bool is_in_body = thread_mode.builder->outer();
  const bool makes_dims_anew = is_in_body && sizes_differ(yes.leaves, no.leaves);
  finish(yes, makes_dims_anew);
  finish(no, makes_dims_anew);
  check_alike(yes, no, true_paths, false_paths, names);
  CondAttrs attrs;
  CaptureList captures;
  attrs.true_captures = captures.add(yes.captured);
  attrs.false_captures = captures.add(no.captured);
  attrs.on_true = make_sub_graph(yes.graph);
  attrs.on_false = make_sub_graph(no.graph);
  Tensors inputs{pred.tensor};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  return with_outputs(yes.leaves, bind_all(cond_op, inputs, make_attrs(std::move(attrs))));
} catch (const std::bad_alloc&) {
  throw_no_memory_in("cond");
}

}  // namespace reel
