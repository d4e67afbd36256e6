#include "reel/trace/passes/fusion/fuse_pointwise.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/fused.h"
#include "reel/trace/passes/fusion/pointwise_groups.h"
#include "reel/trace/passes/support/sub_graphs.h"
#include "reel/trace/passes/support/windowed_pass.h"

namespace reel {
namespace {

/// Writes the graph with a `fused` record for each group.
class Fusion {
 public:
  explicit Fusion(const Graph& graph) : graph_(graph), groups_(graph), to_(graph) {
    reads_outside_.assign(graph.types.size(), 0);
    for (const ValueId v : graph.outputs) reads_outside_[v] = 1;
    for (std::size_t r = 0; r < graph.records.size(); ++r)
      for (const ValueId v : graph.inputs_of(graph.records[r])) readers_.emplace_back(v, r);
    std::sort(readers_.begin(), readers_.end());
  }

  Ref<Graph> run() {
    const std::size_t count = graph_.records.size();
    std::vector<std::uint8_t> is_done(count);
    // A fused record stands where the group's last record was. Its operands precede it there,
    // unless it reads a group that comes later.
    std::vector<std::size_t> order;
    std::vector<std::size_t> last(count);
    for (std::size_t r = 0; r < count; ++r) last[unit(r)] = r;
    for (std::size_t r = 0; r < count; ++r)
      if (last[unit(r)] == r) order.push_back(unit(r));
    while (!order.empty()) {
      std::vector<std::size_t> waiting;
      for (const std::size_t u : order) {
        const bool ready = std::none_of(order.begin(), order.end(), [&](std::size_t other) {
          return !is_done[other] && other != u && unit_needs(u, other);
        });
        if (!ready) {
          waiting.push_back(u);
          continue;
        }
        emit(u);
        is_done[u] = 1;
      }
      order = std::move(waiting);
    }
    return to_.finish();
  }

 private:
  /// Returns the record that stands for those emitted together with r: the head of its fused group,
  /// or r.
  std::size_t unit(std::size_t r) const {
    const std::size_t head = groups_.head(r);
    return groups_.is_fused(head) ? head : r;
  }
  /// A group that is not fused has one record, or records that depend on each other in their order:
  /// joining readers makes only groups of two or more walks, which are fused.
  bool unit_needs(std::size_t u, std::size_t other) const {
    const std::size_t a = groups_.head(u), b = groups_.head(other);
    return a == b ? other < u : groups_.needs(a, b);
  }

  void emit(std::size_t u) {
    if (!groups_.is_fused(groups_.head(u))) {
      const OpRecord& record = graph_.records[u];
      to_.keep(record, with_all_sub_graphs(record, fuse_pointwise));
      return;
    }
    const std::vector<std::size_t>& records = groups_.records(u);
    PartOfGraph body =
        part_of_graph(graph_, records, [&](ValueId v) { return is_read_outside(v, u); });
    if (body.graph->outputs.empty()) return;  // no reader
    body.graph->name = "fused";
    const auto outside = [&](const std::vector<ValueId>& values) {
      std::vector<ValueId> result;
      for (const ValueId v : values) result.push_back(body.outside[v]);
      return result;
    };
    const std::vector<ValueId> in = outside(body.graph->inputs), out = outside(body.graph->outputs);
    to_.to().append(fused_op, make_attrs(FusedAttrs{make_sub_graph(std::move(body.graph))}), in,
                    out, graph_.records[records.front()].source);
  }

  bool is_read_outside(ValueId v, std::size_t u) const {
    if (reads_outside_[v]) return true;
    auto it = std::lower_bound(readers_.begin(), readers_.end(), std::pair{v, std::size_t{0}});
    for (; it != readers_.end() && it->first == v; ++it)
      if (groups_.head(it->second) != u) return true;
    return false;
  }

  const Graph& graph_;
  PointwiseGroups groups_;
  GraphRewriter to_;
  std::vector<std::uint8_t> reads_outside_;  ///< by value: it is an output of the graph
  std::vector<std::pair<ValueId, std::size_t>> readers_;  ///< value and reading record, sorted
};

/// The dependency matrix takes memory by the square of the number of records, and finding groups
/// takes still more time. An unrolled loop has tens of thousands of records.
constexpr std::size_t kMaxRecords = 1024;

}  // namespace

Ref<Graph> fuse_pointwise(const Graph& graph) {
  return windowed_pass(graph, kMaxRecords,
                       [](const Graph& window) { return Fusion(window).run(); });
}

}  // namespace reel
