// core/graph/graph_rewriter.h — GraphRewriter, which copies a graph with changes.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Copies the records of a graph, in any order that makes values before they are read, and changes
/// some of them. Values keep their numbers. The graph must outlive the rewriter.
class GraphRewriter {
 public:
  explicit GraphRewriter(const Graph& from);

  /// Returns the copy so far, for new values, inputs and records.
  Graph& to() { return *to_; }
  const Graph& to() const { return *to_; }

  /// Returns the value that stands for v: v itself unless it was replaced.
  ValueId operator[](ValueId v) const { return v < now_.size() ? now_[v] : v; }
  /// Lets `by` stand for v in all records that are kept from now on, and in the outputs. What
  /// stands for other values stays. Requires a value of the graph.
  void replace(ValueId v, ValueId by);
  /// Returns the values that stand for the operands of a record.
  std::vector<ValueId> inputs_of(const OpRecord& record) const;

  /// Appends a record of the graph with its source line, by default with its own attributes and the
  /// values that stand for its operands. It makes the values that it made before.
  void keep(const OpRecord& record) { keep(record, record.attrs); }
  void keep(const OpRecord& record, AttrsRef attrs) {
    keep(record, std::move(attrs), inputs_of(record));
  }
  void keep(const OpRecord& record, AttrsRef attrs, std::span<const ValueId> in) {
    to_->append(record, std::move(attrs), in, from_.outputs_of(record));
  }

  /// Ends the copy and returns it. Must be called once.
  Ref<Graph> finish();

 private:
  const Graph& from_;
  Ref<Graph> to_;
  std::vector<ValueId> now_;  ///< by value; empty as long as none was replaced
};

}  // namespace reel
