// cond on leaves: a C++ branch in eager mode, one record with two graphs in a trace.
#include "reel/core/bind.h"
#include "reel/core/errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/str.h"
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

Branch record_branch(const char* name, const std::function<TreeLeaves()>& branch) {
  GraphBuilder builder(name);
  ModeScope scope(builder.scope());
  Branch result;
  result.leaves = branch();
  Tensors outputs;
  for (const TreeLeaf& leaf : result.leaves) {
    if (leaf.kind == TreeLeaf::Kind::tensor) {
      if (!leaf.tensor.is_defined())
        throw StructureError(str("cond: the ", name, " branch returns an empty Tensor"));
      outputs.push_back(leaf.tensor);
    } else if (leaf.kind == TreeLeaf::Kind::dim) {
      throw StructureError(
          str("cond: the ", name, " branch returns Dim ", leaf.dim,
              "; while tracing, return its lengths, and make a Dim from them behind the cond"));
    }
  }
  result.graph = builder.finish(outputs);
  result.captured = builder.captured();
  return result;
}

void check_alike(const TreeLeaves& yes, const TreeLeaves& no, const PathsFn& paths) {
  enum { fine, shape, dtype, structure } worst = fine;
  std::string lines;
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
    if (yes[i].kind != TreeLeaf::Kind::tensor) continue;
    const TensorType &a = yes[i].tensor.type(), &b = no[i].tensor.type();
    bool fits = a.rank() == b.rank();
    for (int k = 0; fits && k < a.rank(); ++k) {
      const bool says = (a.dims()[k].is_named() || a.dims()[k].has_size()) &&
                        (b.dims()[k].is_named() || b.dims()[k].has_size());
      fits = !says || a.dims()[k] == b.dims()[k];
    }
    if (a.is_list() != b.is_list())
      complain(i, structure, str(a), str(b));
    else if (a.dtype() != b.dtype())
      complain(i, dtype, str(a), str(b));
    else if (!fits)
      complain(i, shape, str(a), str(b));
  }
  if (worst == fine) return;
  const std::string text =
      str("cond: the branches return different types", lines, "\nReturn the same type from both.");
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
  if (!is_tracing()) return run(pred.tensor.item<bool>());
  const Branch yes = record_branch("true", [&] { return run(true); });
  const Branch no = record_branch("false", [&] { return run(false); });
  check_alike(yes.leaves, no.leaves, paths);
  CondAttrs attrs;
  CaptureList captures;
  attrs.true_captures = captures.add(yes.captured);
  attrs.false_captures = captures.add(no.captured);
  attrs.on_true = make_sub_graph(yes.graph);
  attrs.on_false = make_sub_graph(no.graph);
  Tensors inputs{pred.tensor};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  return with_tensors(yes.leaves, bind_all(cond_op, inputs, make_attrs(std::move(attrs))));
}

}  // namespace reel
