#include "reel/trace/passes/cleanup/fold_captures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/support/compute_now.h"

namespace reel {
namespace {

/// The bytes that results may take, or as many as the captured tensors if these take more.
constexpr std::int64_t kMaxFoldedBytes = std::int64_t{16} << 20;

/// Returns true for types without dims of a call: all calls may then have the same tensor.
bool is_fixed(const TensorType& type) {
  return !type.is_list() && type.is_known() && !type.node()->has_symbols;
}

class FoldingCaptures {
 public:
  FoldingCaptures(const Graph& from, const Tensors& captured)
      : from_(from),
        values_(from.types.size()),
        source_of_(from.types.size(), nullptr),
        is_result_(from.types.size(), 0),
        is_folded_(from.types.size(), 0),
        reads_left_(from.types.size(), 0) {
    for (std::size_t i = 0; i < captured.size(); ++i)
      if (const ValueId v = from.inputs[from.formal_count + i]; is_fixed(from.types[v])) {
        values_[v] = captured[i];
        bytes_left_ += from.types[v].bytes();
      }
    bytes_left_ = std::max(bytes_left_, kMaxFoldedBytes);
    for (const ValueId v : from.outputs) is_result_[v] = 1;
    for (const OpRecord& record : from.records)
      for (const ValueId v : from.inputs_of(record)) ++reads_left_[v];
  }

  CapturedGraph run(const Tensors& captured) {
    GraphRewriter to(from_);
    std::vector<ValueId> folded;
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      if (!evaluate(r)) {
        to.keep(record);
        continue;
      }
      const ValueId made = from_.outputs_of(record)[0];
      to.to().inputs.push_back(made);
      folded.push_back(made);
    }
    if (folded.empty()) return {};
    std::vector<int> kept;
    Ref<Graph> graph = drop_dead(*to.finish(), &kept);
    Tensors read;
    for (const int i : kept) {
      const auto at = static_cast<std::size_t>(i);
      read.push_back(at < captured.size() ? captured[at] : values_[folded[at - captured.size()]]);
    }
    return {std::move(graph), std::move(read)};
  }

 private:
  /// Returns the value of a constant. Computed on first use, as most constants are read by ops that
  /// do not fold.
  const Tensor& value_of(ValueId v) {
    if (!values_[v].is_defined()) compute(*source_of_[v]);
    return values_[v];
  }
  void compute(const OpRecord& record) {
    std::vector<OpInput> inputs;
    for (const ValueId v : from_.inputs_of(record)) inputs.emplace_back(value_of(v));
    values_[from_.outputs_of(record)[0]] = compute_now(record, inputs, record.attrs);
  }
  /// Returns true if the ops of this kind make the same value in every call, at the cost of a pass
  /// over it. Loops, branches and calls are left out: they have no `axes`.
  bool folds(std::size_t r) const {
    const OpRecord& record = from_.records[r];
    const Op& op = *record.op;
    return record.output_count == 1 && (op.pointwise || op.axes) && !op.has_effect &&
           !op.multiplications && !op.kernel_decides_types && record.recompute == Recompute::no &&
           !from_.schedule().attrs_have_symbols[r] &&
           is_fixed(from_.types[from_.outputs_of(record)[0]]);
  }
  /// Returns the bytes of folded results that no op behind this one reads.
  std::int64_t bytes_read_last(const OpRecord& record) const {
    const auto in = from_.inputs_of(record);
    std::int64_t bytes = 0;
    for (auto v = in.begin(); v != in.end(); ++v)
      if (is_folded_[*v] && std::find(in.begin(), v, *v) == v &&
          std::count(in.begin(), in.end(), *v) == reads_left_[*v])
        bytes += from_.types[*v].bytes();
    return bytes;
  }
  /// Frees the folded results that only folded ops read: the new graph has no reader of them.
  void note_reads(const OpRecord& record) {
    for (const ValueId v : from_.inputs_of(record))
      if (--reads_left_[v] == 0 && is_folded_[v]) values_[v] = Tensor();
  }
  /// Returns true if the record's output is a value of captures; it is then in values_ until the
  /// last op that reads it folds.
  bool evaluate(std::size_t r) {
    const OpRecord& record = from_.records[r];
    const auto in = from_.inputs_of(record);
    if (in.empty()) {
      if (record.output_count == 1 && !record.op->has_effect &&
          !from_.schedule().attrs_have_symbols[r] &&
          is_fixed(from_.types[from_.outputs_of(record)[0]]))
        source_of_[from_.outputs_of(record)[0]] = &record;
      return false;
    }
    if (!folds(r) || is_result_[from_.outputs_of(record)[0]]) return false;
    std::int64_t largest = 0;
    bool reads_capture = false;
    for (const ValueId v : in) {
      if (!values_[v].is_defined() && !source_of_[v]) return false;
      reads_capture = reads_capture || !source_of_[v];
      largest = std::max(largest, from_.types[v].numel());
    }
    const TensorType& type = from_.types[from_.outputs_of(record)[0]];
    const std::int64_t given_back = bytes_read_last(record);
    if (!reads_capture || type.numel() > largest || type.bytes() > bytes_left_ + given_back)
      return false;
    try {
      compute(record);
    } catch (const MemoryError&) {
      throw;
    } catch (const Error&) {
      return false;
    }
    bytes_left_ += given_back - type.bytes();
    is_folded_[from_.outputs_of(record)[0]] = 1;
    note_reads(record);
    return true;
  }

  const Graph& from_;
  Tensors values_;                          ///< of captures, of ops on them, and of constants
  std::vector<const OpRecord*> source_of_;  ///< by value, the op that makes a constant
  std::vector<std::uint8_t> is_result_;     ///< by value
  std::vector<std::uint8_t> is_folded_;     ///< by value
  std::vector<std::ptrdiff_t> reads_left_;  ///< by value, operands of ops that have not folded
  std::int64_t bytes_left_ = 0;             ///< of results that may still fold
};

}  // namespace

CapturedGraph fold_captures(const Graph& graph, const Tensors& captured) {
  if (captured.empty()) return {};
  return FoldingCaptures(graph, captured).run(captured);
}

}  // namespace reel
