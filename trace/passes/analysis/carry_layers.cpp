#include "reel/trace/passes/analysis/carry_layers.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "reel/core/op/facts.h"

namespace reel {
namespace {

/// The dependence graph of a loop's body, from iteration to iteration: nodes are its values, then
/// its records.
class Dependences {
 public:
  explicit Dependences(const LoopAttrs& attrs) : body_(*attrs.body.graph), first_(count() + 1, 0) {
    each_edge(attrs, [&](std::size_t from, std::size_t) { ++first_[from + 1]; });
    for (std::size_t node = 0; node < count(); ++node) first_[node + 1] += first_[node];
    to_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    each_edge(attrs, [&](std::size_t from, std::size_t to) { to_[next[from]++] = to; });
  }
  std::size_t count() const { return body_.types.size() + body_.records.size(); }
  std::size_t node_of_record(std::size_t r) const { return body_.types.size() + r; }
  /// The nodes that wait for one.
  std::span<const std::size_t> behind(std::size_t node) const {
    return {to_.data() + first_[node], first_[node + 1] - first_[node]};
  }

 private:
  template <class Fn>
  void each_edge(const LoopAttrs& attrs, const Fn& fn) const {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      for (const ValueId v : body_.inputs_of(body_.records[r])) fn(v, node_of_record(r));
      for (const ValueId v : body_.outputs_of(body_.records[r])) fn(node_of_record(r), v);
    }
    const auto before = body_inputs(attrs).carries, behind = body_outputs(attrs).carries;
    for (std::size_t i = 0; i < before.size(); ++i) fn(behind[i], before[i]);
  }

  const Graph& body_;
  std::vector<std::size_t> first_, to_;  ///< edges by node
};

/// Numbers the strongly connected components: one that others wait for has a higher number than
/// these (Tarjan 1972, with a stack of its own).
class Components {
 public:
  explicit Components(const Dependences& all)
      : all_(all), of_(all.count(), kNone), reached_(all.count(), kNone), lowest_(all.count()) {
    for (std::size_t node = 0; node < all.count(); ++node)
      if (reached_[node] == kNone) visit_from(node);
  }
  std::size_t count() const { return count_; }
  std::size_t of(std::size_t node) const { return of_[node]; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Visit {
    std::size_t node, next;  ///< of the edges behind it
  };

  void enter(std::size_t node) {
    reached_[node] = lowest_[node] = time_++;
    open_.push_back(node);
    visits_.push_back({node, 0});
  }
  void visit_from(std::size_t root) {
    enter(root);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      const auto behind = all_.behind(visit.node);
      if (visit.next < behind.size()) {
        const std::size_t to = behind[visit.next++];
        if (reached_[to] == kNone)
          enter(to);
        else if (of_[to] == kNone)
          lowest_[visit.node] = std::min(lowest_[visit.node], reached_[to]);
        continue;
      }
      leave(visit.node);
    }
  }
  void leave(std::size_t node) {
    visits_.pop_back();
    if (!visits_.empty()) {
      std::size_t& before = lowest_[visits_.back().node];
      before = std::min(before, lowest_[node]);
    }
    if (lowest_[node] != reached_[node]) return;
    for (std::size_t member = kNone; member != node;) {
      member = open_.back();
      open_.pop_back();
      of_[member] = count_;
    }
    ++count_;
  }

  const Dependences& all_;
  std::vector<std::size_t> of_, reached_, lowest_, open_;
  std::vector<Visit> visits_;
  std::size_t time_ = 0, count_ = 0;
};

/// A strongly connected component, and the layers that it depends on.
struct Recurrence {
  std::vector<std::size_t> nodes;
  bool has_carry = false, has_product = false;
  int layer = 0;
  int before = -1;               ///< the highest layer of recurrences that it depends on
  int before_with_product = -1;  ///< the same among recurrences with a product
};

}  // namespace

std::vector<int> layers_of_carries(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  const Dependences all(attrs);
  const Components components(all);
  std::vector<Recurrence> recurrences(components.count());
  const auto at = [&](std::size_t node) -> Recurrence& { return recurrences[components.of(node)]; };
  for (std::size_t node = 0; node < all.count(); ++node) at(node).nodes.push_back(node);
  const auto carries = body_inputs(attrs).carries;
  for (const ValueId v : carries) at(v).has_carry = true;
  for (std::size_t r = 0; r < body.records.size(); ++r)
    if (is_product(*body.records[r].op)) at(all.node_of_record(r)).has_product = true;
  for (std::size_t c = recurrences.size(); c-- > 0;) {
    Recurrence& own = recurrences[c];
    if (own.has_carry) {
      own.layer = std::max(0, own.before);
      if (own.has_product) own.layer = std::max(own.layer, own.before_with_product + 1);
      own.before = std::max(own.before, own.layer);
      if (own.has_product) own.before_with_product = std::max(own.before_with_product, own.layer);
    }
    for (const std::size_t node : own.nodes)
      for (const std::size_t behind : all.behind(node)) {
        Recurrence& other = at(behind);
        if (&other == &own) continue;
        other.before = std::max(other.before, own.before);
        other.before_with_product = std::max(other.before_with_product, own.before_with_product);
      }
  }
  std::vector<int> result;
  for (const ValueId v : carries) result.push_back(at(v).layer);
  return result;
}

}  // namespace reel
