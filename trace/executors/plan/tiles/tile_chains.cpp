#include "reel/trace/executors/plan/tiles/tile_chains.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/trace/executors/plan/tiles/chain_cache.h"

namespace reel {
namespace {

class Order {
 public:
  Order(std::span<const StepInOrder> steps, int values)
      : steps_(steps), is_waited_for_(static_cast<std::size_t>(values)) {
    for (const StepInOrder& step : steps) is_waited_for_[static_cast<std::size_t>(step.out)] = true;
    for (std::size_t s = 0; s < steps.size(); ++s) left_.push_back(static_cast<int>(s));
  }

  bool is_done() const { return left_.empty(); }
  /// Returns the kind of the first step that is ready. Returns kNoChain if any ready step is in no
  /// chain: such steps run first, so that chains that wait for them grow.
  int next_kind() const {
    int kind = kNoChain;
    for (std::size_t i = left_.size(); i-- > 0;) {
      if (!is_ready(left_[i])) continue;
      kind = step(left_[i]).kind;
      if (kind == kNoChain) return kind;
    }
    return kind;
  }
  /// Removes ready steps of a kind in order, until take() returns false for one.
  template <class Take>
  void take_ready(int kind, Take&& take) {
    bool is_full = false;
    std::erase_if(left_, [&](int s) {
      if (is_full || step(s).kind != kind || !is_ready(s)) return false;
      is_full = !take(s);
      if (!is_full) is_waited_for_[static_cast<std::size_t>(step(s).out)] = false;
      return !is_full;
    });
  }

 private:
  const StepInOrder& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  bool is_ready(int s) const {
    return std::none_of(step(s).in.begin(), step(s).in.end(),
                        [&](int v) { return is_waited_for_[static_cast<std::size_t>(v)]; });
  }

  std::span<const StepInOrder> steps_;
  std::vector<bool> is_waited_for_;  ///< by value: a remaining step makes it
  std::vector<int> left_;
};

}  // namespace

std::vector<std::vector<int>> steps_in_chains(
    std::span<const StepInOrder> steps, int values,
    const std::function<bool(const std::vector<int>&)>& fits) {
  std::vector<std::vector<int>> groups;
  Order order(steps, values);
  while (!order.is_done()) {
    const int kind = order.next_kind();
    if (kind == kNoChain) {
      order.take_ready(kind, [&](int s) {
        groups.push_back({s});
        return true;
      });
      continue;
    }
    std::vector<int> chain;
    order.take_ready(kind, [&](int s) {
      chain.push_back(s);
      if (chain.size() == 1 || fits(chain)) return true;
      chain.pop_back();
      return false;
    });
    groups.push_back(std::move(chain));
  }
  return groups;
}

namespace {

class Chains {
 public:
  Chains(std::vector<TileStep> steps, const std::vector<TileCell>& cells, const Repeats& repeats)
      : steps_(std::move(steps)),
        cells_(cells),
        repeats_(repeats),
        reads_(cells.size()),
        in_chain_(cells.size()) {
    for (const TileStep& step : steps_)
      for (const int c : step.in) ++reads_[at(c)];
  }

  std::vector<TileStep> run() {
    std::vector<StepInOrder> in_order;
    for (const TileStep& step : steps_) in_order.push_back({step.in, step.out[0], kind_of(step)});
    std::vector<TileStep> made;
    for (const std::vector<int>& group :
         steps_in_chains(in_order, static_cast<int>(cells_.size()),
                         [&](const auto& chain) { return fits(chain); })) {
      Made chain;
      if (group.size() > 1) {
        chain = chain_of(group);
        chain.step.code = code_of(chain.chain);
      }
      if (chain.step.code)
        made.push_back(std::move(chain.step));
      else
        for (const int s : group) made.push_back(std::move(steps_[at(s)]));
    }
    return made;
  }

 private:
  struct Made {
    Chain chain;
    TileStep step;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  bool fits(const std::vector<int>& group) {
    // A chain is written anew for each step that may be appended. The value between two long chains
    // stays in the cache.
    constexpr std::size_t kMaxSteps = 96;
    if (group.size() > kMaxSteps) return false;
    // Each step reads at most two operands and makes one result.
    if (static_cast<int>(3 * group.size()) <= chain_registers()) return true;
    const Chain chain = chain_of(group).chain;
    return chain.places() <= kMaxChainPlaces && chain.registers() <= chain_registers();
  }

  /// Returns the kind of a step. Steps that may form a chain have one size, and all work on
  /// elements or all on a number per row.
  int kind_of(const TileStep& step) const {
    const TileCell& out = cells_[at(step.out[0])];
    if (out.item < 4 || step.walk != TileWalk::none) return kNoChain;
    if (step.op) {
      const auto loop = element_loop(*step.op);  // none for a sum
      if (!loop || step.from != step.to || !has_code(*loop, step.to)) return kNoChain;
    }
    return static_cast<int>(out.item) + out.is_of_rows;
  }

  /// A cell in the chain under construction.
  struct InChain {
    int value = -1;
    int reads = 0;  ///< in the chain
    bool is_made = false;
  };
  InChain& in_chain(int c) { return in_chain_[at(c)]; }

  Made chain_of(const std::vector<int>& group) {
    Made made;
    const TileCell& first = cells_[at(steps_[at(group[0])].out[0])];
    made.chain.item = first.item;
    for (const int s : group)
      for (const int c : steps_[at(s)].in) in_chain(c) = {};
    for (const int s : group) in_chain(steps_[at(s)].out[0]) = {.is_made = true};
    for (const int s : group)
      for (const int c : steps_[at(s)].in) {
        InChain& read = in_chain(c);
        ++read.reads;
        if (read.value >= 0 || read.is_made) continue;
        read.value = static_cast<int>(made.step.in.size());
        made.step.in.push_back(c);
        made.chain.repeats.push_back(repeats_(c, first.is_of_rows));
      }
    for (const int s : group) {
      const TileStep& step = steps_[at(s)];
      const int out = step.out[0];
      int in[2] = {-1, -1};
      for (std::size_t i = 0; i < step.in.size(); ++i) in[i] = in_chain(step.in[i]).value;
      in_chain(out).value = made.chain.append(code(step), in[0], in[1]);
      if (cells_[at(out)].output < 0 && in_chain(out).reads == reads_[at(out)])
        continue;  // only read in the chain
      made.chain.results.push_back(in_chain(out).value);
      made.step.out.push_back(out);
    }
    return made;
  }
  static Chain::Code code(const TileStep& step) {
    if (!step.op) return std::nullopt;
    const ElementLoop loop = *element_loop(*step.op);
    if (const Unary* op = std::get_if<Unary>(&loop)) return *op;
    return std::get<Binary>(loop);
  }

  std::vector<TileStep> steps_;
  const std::vector<TileCell>& cells_;
  const Repeats& repeats_;
  std::vector<int> reads_;         ///< by cell: number of operands that read it
  std::vector<InChain> in_chain_;  ///< by cell; of the last chain only
};

/// Returns all that Chains reads, with no sizes.
std::string structure_of(const std::vector<TileStep>& steps, const std::vector<TileCell>& cells,
                         const Repeats& repeats) {
  std::string key;
  const auto put = [&](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::size_t operands = 0;
  for (const TileStep& step : steps) operands += step.in.size();
  key.reserve(3 * cells.size() + 32 * steps.size() + sizeof(int) * operands + 32);
  put(&pointwise_table());  // instruction set
  put(cells.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const TileCell& cell = cells[c];
    put(static_cast<std::int8_t>(cell.item));
    put(static_cast<std::int8_t>(cell.is_of_rows + 2 * (cell.output < 0) +
                                 4 * repeats(static_cast<int>(c), false) +
                                 8 * repeats(static_cast<int>(c), true)));
  }
  for (const TileStep& step : steps) {
    put(step.op);
    put(step.walk);
    put(step.from);
    put(step.to);
    put(step.out[0]);
    put(step.in.size());
    for (const int c : step.in) put(c);
  }
  return key;
}

}  // namespace

std::vector<TileStep> with_chains(std::vector<TileStep> steps, const std::vector<TileCell>& cells,
                                  const Repeats& repeats) {
  std::string structure = structure_of(steps, cells, repeats);
  if (auto known = chain_cache().find(structure)) return *std::move(known);
  std::vector<TileStep> made = Chains(std::move(steps), cells, repeats).run();
  chain_cache().insert(std::move(structure), made);
  return made;
}

}  // namespace reel
