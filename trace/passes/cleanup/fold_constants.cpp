#include "reel/trace/passes/cleanup/fold_constants.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/passes/support/compute_now.h"

namespace reel {
namespace {

constexpr std::int64_t kMaxFoldedElements = 1024;

bool is_small(const TensorType& type) {
  return !type.is_list() && type.is_known() && type.numel() <= kMaxFoldedElements;
}

/// Returns true if all elements are equal, bit for bit. The result is then a `full`, which other
/// passes recognise.
bool is_uniform(const Tensor& x) {
  const auto size = static_cast<std::size_t>(size_of(x.dtype()));
  const char* data = x.data<char>();
  for (std::int64_t i = 1; i < x.type().numel(); ++i)
    if (std::memcmp(data, data + static_cast<std::size_t>(i) * size, size) != 0) return false;
  return x.type().numel() > 0;
}

class Folding {
 public:
  explicit Folding(const Graph& from)
      : from_(from), source_of_(from.types.size(), nullptr), values_(from.types.size()) {}

  /// Returns null if nothing folds, so that equal graphs stay one object.
  Ref<Graph> run() {
    GraphRewriter to(from_);
    bool changes = false;
    for (const OpRecord& record : from_.records) {
      const auto in = from_.inputs_of(record), out = from_.outputs_of(record);
      if (is_source(record)) source_of_[out[0]] = &record;
      if (!in.empty() && evaluate(record)) {
        changes = true;
        const Tensor& value = values_[out[0]];
        const TensorType& type = from_.types[out[0]];
        if (is_uniform(value))
          to.to().append(full_op, full_attrs(type, value), {}, out, record.source);
        else
          to.to().append(constant_op, constant_attrs(type, value), {}, out, record.source);
      } else {
        const AttrsRef attrs = with_folded_parts(record);
        changes = changes || attrs.get() != record.attrs.get();
        to.keep(record, attrs);
      }
    }
    if (!changes) return {};
    return to.finish();
  }

 private:
  bool is_source(const OpRecord& record) const {
    const Op* const op = record.op;
    return (op == &full_op || op == &constant_op || op == &range_op) &&
           is_small(from_.types[from_.outputs_of(record)[0]]);
  }
  /// Returns the value of a constant. Computed on first use: most constants are read only by ops
  /// that do not fold.
  const Tensor& value_of(ValueId v) {
    if (!values_[v].is_defined()) compute(*source_of_[v]);
    return values_[v];
  }
  void compute(const OpRecord& record) {
    std::vector<OpInput> inputs;
    for (const ValueId v : from_.inputs_of(record)) inputs.emplace_back(value_of(v));
    const ValueId made = from_.outputs_of(record)[0];
    values_[made] =
        compute_now(record, inputs, record.attrs ? record.attrs->resolve(dims_) : AttrsRef());
    dims_.bind(from_.types[made], values_[made].type());
  }
  /// Returns true if the record's only output is a constant; its value is then in values_.
  bool evaluate(const OpRecord& record) {
    const auto in = from_.inputs_of(record), out = from_.outputs_of(record);
    if (out.size() != 1 || record.op->has_effect || record.op->kernel_decides_types ||
        !is_small(from_.types[out[0]]))
      return false;
    for (const ValueId v : in)
      if (!source_of_[v] && !values_[v].is_defined()) return false;
    bool grows = true;  // readers repeat the number themselves
    for (const ValueId v : in)
      grows = grows && from_.types[v].numel() < from_.types[out[0]].numel();
    if (grows) return false;
    try {
      compute(record);
    } catch (const MemoryError&) {
      throw;  // a graph must not depend on how much memory was free when it was made
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  static AttrsRef with_folded_parts(const OpRecord& record) {
    bool changes = false;
    const auto fold = [&](SubGraph& part) {
      if (!part) return;
      Ref<Graph> folded = Folding(*part.graph).run();
      if (!folded) return;
      changes = true;
      DimEnv names = part.env();
      part = make_sub_graph(std::move(folded), names);
    };
    if (record.op == &loop_op) {
      LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
      if (!attrs.debug.origin) attrs.debug.origin = attrs.body.graph;
      fold(attrs.body);
      fold(attrs.cond);
      if (changes) return make_attrs(std::move(attrs));
    } else if (record.op == &cond_op) {
      CondAttrs attrs = get<CondAttrs>(record.attrs.get());
      fold(attrs.on_true);
      fold(attrs.on_false);
      if (changes) return make_attrs(std::move(attrs));
    }
    return record.attrs;
  }

  static AttrsRef full_attrs(const TensorType& type, const Tensor& value) {
    FullAttrs attrs{type};
    visit(type.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T number = *value.data<T>();
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        attrs.integer = number;
      else
        attrs.number = number;
    });
    return make_attrs(std::move(attrs));
  }
  static AttrsRef constant_attrs(const TensorType& type, const Tensor& value) {
    const Tensor flat(allocate_block(TensorType(value.dtype(), {Dim(value.type().numel())})));
    std::memcpy(flat.data<char>(), value.data<char>(),
                static_cast<std::size_t>(value.type().bytes()));
    return make_attrs(ConstantAttrs{{flat}, type});
  }

  const Graph& from_;
  std::vector<const OpRecord*> source_of_;  ///< by value, its full, constant or range op
  Tensors values_;                          ///< constants computed so far
  DimEnv dims_;                             ///< sizes of the symbols met so far
};

}  // namespace

Ref<Graph> fold_constants(const Graph& graph) {
  Ref<Graph> folded = Folding(graph).run();
  return folded ? folded : Ref<Graph>(new Graph(graph));
}

}  // namespace reel
