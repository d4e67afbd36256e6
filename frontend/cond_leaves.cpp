// cond on leaves: a C++ branch in eager mode, one record with two graphs in a trace.
#include <algorithm>

#include "reel/core/bind.h"
#include "reel/core/errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/str.h"
#include "reel/frontend/leaves.h"
#include "reel/frontend/loop_leaves.h"
#include "reel/frontend/loop_recording.h"
#include "reel/frontend/tree.h"

namespace reel {
namespace {

struct Branch {
  TreeLeaves leaves;
  Ref<Graph> graph;
  Tensors captured;
};

/// A Dim that the other branch may return another one for.
bool has_token(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::dim && leaf.dim.is_named() && !leaf.dim.is_undefined();
}

/// Named dims in the order that the other branch gave them.
void order_dims_like(TreeLeaves& leaves, const TreeLeaves& other) {
  for (std::size_t i = 0; i < std::min(leaves.size(), other.size()); ++i) {
    Tensor& x = leaves[i].tensor;
    if (!x.is_defined() || !other[i].tensor.is_defined() || !x.type().is_named()) continue;
    const Dims &from = x.dims(), &to = other[i].tensor.dims();
    if (from != to && std::is_permutation(from.begin(), from.end(), to.begin(), to.end()))
      x = transpose(x, to);
  }
}

/// other: what the branch recorded before this one returned.
Branch record_branch(const char* name, const std::function<TreeLeaves()>& branch,
                     const TreeLeaves& other = {}) {
  GraphBuilder builder(name);
  ModeScope scope(builder.scope());
  Branch result;
  result.leaves = branch();
  order_dims_like(result.leaves, other);
  Tensors outputs;
  for (const TreeLeaf& leaf : result.leaves) {
    if (leaf.kind == TreeLeaf::Kind::tensor) {
      if (!leaf.tensor.is_defined())
        throw StructureError(str("cond: the ", name, " branch returns an empty Tensor"));
      outputs.push_back(leaf.tensor);
    }
  }
  for (const TreeLeaf& leaf : result.leaves)
    if (has_token(leaf)) outputs.push_back(dim_token(leaf.dim));
  result.graph = finish_part(builder, outputs);
  result.captured = builder.captured();
  return result;
}

/// Which dims of the branches may meet: equal ones, Dims that are the same leaf of the result, and
/// those that each branch makes itself.
class Meeting {
 public:
  Meeting(const Branch& yes, const Branch& no) : yes_(yes), no_(no) {
    for (std::size_t i = 0; i < std::min(yes.leaves.size(), no.leaves.size()); ++i)
      if (has_token(yes.leaves[i]) && has_token(no.leaves[i]))
        leaves_.emplace_back(yes.leaves[i].dim, no.leaves[i].dim);
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
    return makes_dim(*yes_.graph, a) && makes_dim(*no_.graph, b) && is_of_a_kind(a, b);
  }
  bool may_meet(const Dims& a, const Dims& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Dim& x, const Dim& y) { return may_meet(x, y); });
  }

 private:
  bool is_leaf(const Dim& a, const Dim& b) const {
    return std::any_of(leaves_.begin(), leaves_.end(),
                       [&](const auto& leaf) { return leaf.first == a && leaf.second == b; });
  }
  /// One size for all, or lengths over the same dims.
  bool is_of_a_kind(const Dim& a, const Dim& b) const {
    return may_meet(a.length_dims(), b.length_dims());
  }

  const Branch &yes_, &no_;
  std::vector<std::pair<Dim, Dim>> leaves_;
};

void check_alike(const Branch& on_true, const Branch& on_false, const PathsFn& paths) {
  const TreeLeaves &yes = on_true.leaves, &no = on_false.leaves;
  const Meeting dims(on_true, on_false);
  enum { fine, shape, dtype, structure } worst = fine;
  std::string lines;
  bool has_named = false;
  const auto complain = [&](std::size_t i, auto severity, const std::string& a,
                            const std::string& b) {
    worst = std::max(worst, severity);
    const auto names = paths();
    lines +=
        str("\n  ", i < names.size() ? names[i] : "result", ": ", a, " if true, ", b, " if false");
  };
  for (std::size_t i = 0; i < std::max(yes.size(), no.size()); ++i) {
    if (i >= yes.size() || i >= no.size() || yes[i].kind != no[i].kind ||
        yes[i].fixed != no[i].fixed) {
      complain(i, structure, i < yes.size() ? "present" : "absent",
               i < no.size() ? "another structure" : "absent");
      break;
    }
    if (yes[i].kind == TreeLeaf::Kind::dim && !dims.may_meet(yes[i].dim, no[i].dim))
      complain(i, shape, detail::print(yes[i]), detail::print(no[i]));
    if (yes[i].kind != TreeLeaf::Kind::tensor) continue;
    const TensorType &a = yes[i].tensor.type(), &b = no[i].tensor.type();
    const bool fits = dims.may_meet(a.dims(), b.dims());
    has_named = has_named || (!fits && a.is_named() && b.is_named());
    if (a.is_list() != b.is_list())
      complain(i, structure, str(a), str(b));
    else if (a.dtype() != b.dtype())
      complain(i, dtype, str(a), str(b));
    else if (!fits)
      complain(i, shape, str(a), str(b));
  }
  if (worst == fine) return;
  const std::string text = str(
      "cond: the branches return different types", lines, "\nReturn the same type from both.",
      has_named ? " Where a dim differs on purpose, return the Dim as well: the result then has "
                  "a new one."
                : "");
  if (worst == structure) throw StructureError(text);
  if (worst == dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}  // namespace

TreeLeaves cond_leaves(const LoopCondition& pred, const std::function<TreeLeaves()>& on_true,
                       const std::function<TreeLeaves()>& on_false, const PathsFn& paths) {
  RandomScope random;
  const auto run = [&](bool taken) {
    random.begin(taken ? 1 : 0);
    return taken ? on_true() : on_false();
  };
  if (pred.fixed) return run(*pred.fixed);
  if (pred.tensor.dtype() != boolean)
    throw DTypeError(str("cond: pred must be a boolean scalar, got ", pred.tensor.type(),
                         "; compare, as in x > 0"));
  if (pred.tensor.rank())
    throw ShapeError(str("cond: pred must be a boolean scalar, got ", pred.tensor.type(),
                         "; reduce it with any or all, or choose element by element with where"));
  if (!is_tracing()) {
    MarkedLoop marks;  // in a graph too, what a branch adds to a gradient is added up first
    marks.begin_iteration();
    const std::uint64_t begin = next_block_id();
    return own_state(run(pred.tensor.item<bool>()), begin);
  }
  const Branch yes = record_branch("true", [&] { return run(true); });
  const Branch no = record_branch(
      "false", [&] { return run(false); }, yes.leaves);
  check_alike(yes, no, paths);
  CondAttrs attrs;
  CaptureList captures;
  attrs.true_captures = captures.add(yes.captured);
  attrs.false_captures = captures.add(no.captured);
  attrs.on_true = make_sub_graph(yes.graph);
  attrs.on_false = make_sub_graph(no.graph);
  Tensors inputs{pred.tensor};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  const Tensors outputs = bind_all(cond_op, inputs, make_attrs(std::move(attrs)));
  TreeLeaves result = with_tensors(yes.leaves, outputs);
  std::size_t token = tensors_of(yes.leaves).size();
  for (TreeLeaf& leaf : result)
    if (has_token(leaf)) leaf.dim = outputs[token++].dims()[1];
  return result;
}

}  // namespace reel
