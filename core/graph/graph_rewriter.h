// core/graph/graph_rewriter.h — GraphRewriter, which copies a graph with changes; graphs inlined in
// others, and some records as a graph of their own.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Stands for a value that is yet to be made.
inline constexpr ValueId kNoValue = ~ValueId{0};

/// Appends the records of a graph to another one, with their source lines.
///
/// place: by value of `part`, the value of `to` that stands for it. Gets a new value in the place
/// of each kNoValue that a record makes.
void inline_graph(Graph& to, const Graph& part, std::vector<ValueId>& place);
/// As above, with a value of `to` for each input. Returns the values that the outputs became.
std::vector<ValueId> inline_graph(Graph& to, const Graph& part, std::span<const ValueId> inputs);

/// Some records of a graph, as a graph with its own numbers of values.
struct PartOfGraph {
  Ref<Graph> graph;
  std::vector<ValueId> outside;  ///< by value of the part, the value of the whole graph
};
/// Returns some records of a graph, in this order. Their operands that none of them makes are the
/// inputs, in the order of the first readers; the values for which is_output() is true are the
/// outputs.
PartOfGraph part_of_graph(const Graph& whole, std::span<const std::size_t> records,
                          const std::function<bool(ValueId)>& is_output);

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
  /// Lets `by` stand for v in all records that are kept from now on, and in the outputs. The
  /// replacements of other values stay. Requires a value of the graph.
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
    keep(record, std::move(attrs), in, from_.outputs_of(record));
  }
  /// Appends a record, of this graph or another, that reads and makes these values of the copy.
  void keep(const OpRecord& record, AttrsRef attrs, std::span<const ValueId> in,
            std::span<const ValueId> out) {
    to_->append(record, std::move(attrs), in, out);
  }
  /// Appends the records of another graph. Returns the values that its outputs became.
  std::vector<ValueId> inline_graph(const Graph& part, std::span<const ValueId> inputs) {
    return reel::inline_graph(*to_, part, inputs);
  }

  /// Ends the copy and returns it. Must be called once.
  Ref<Graph> finish();

 private:
  const Graph& from_;
  Ref<Graph> to_;
  std::vector<ValueId> now_;  ///< by value; empty as long as none was replaced
};

}  // namespace reel
