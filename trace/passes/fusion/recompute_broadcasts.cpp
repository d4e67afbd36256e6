#include "reel/trace/passes/fusion/recompute_broadcasts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/graph/record_call.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/trace/passes/fusion/tile_ops.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// A smaller value stays in the second-level cache.
constexpr std::int64_t kLargeBytes = 1 << 20;
/// A value takes about as long as four element-wise ops on it to be written and read.
constexpr std::size_t kMaxOps = 4;
/// If an operand is as large, a copy saves no reading.
constexpr std::size_t kMaxOpsOnLarge = 2;
/// Operands of at most a quarter of the bytes count as small.
constexpr std::int64_t kTimesSmaller = 4;
/// A value is followed from its first reader to its last one. In all, at most kMaxPasses times the
/// records of the graph are followed, so that the pass takes linear time.
constexpr std::size_t kMaxPasses = 64;

std::int64_t bytes_of(const TensorType& type) {
  return least_elements(type) * static_cast<std::int64_t>(size_of(type.dtype()));
}

/// Returns true for an op of one or two instructions.
bool is_simple(const OpRecord& record) {
  const auto loop = element_loop(*record.op);
  if (!loop) return false;
  const auto is_one_of = [](auto op, auto... ops) { return ((op == ops) || ...); };
  if (const Unary* op = std::get_if<Unary>(&*loop))
    return is_one_of(*op, Unary::neg, Unary::abs, Unary::square, Unary::relu);
  if (const Binary* op = std::get_if<Binary>(&*loop))
    return is_one_of(*op, Binary::add, Binary::sub, Binary::mul, Binary::maximum, Binary::minimum);
  return false;
}

class Recomputing {
 public:
  explicit Recomputing(const Graph& from)
      : from_(from), to_(from), made_by_(from.types.size(), kNone), readers_(from.types.size()) {
    for (std::size_t r = 0; r < from.records.size(); ++r) {
      for (const ValueId v : from.outputs_of(from.records[r])) made_by_[v] = r;
      for (const ValueId v : from.inputs_of(from.records[r])) readers_[v].push_back(r);
    }
    for (std::size_t r = 0;
         r < from.records.size() && followed_ <= kMaxPasses * from.records.size(); ++r)
      find_copies(from.outputs_of(from.records[r]));
  }

  Ref<Graph> run() {
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      std::vector<ValueId> in = to_.inputs_of(record);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (const auto copy = copies_.find({from_.inputs_of(record)[i], r}); copy != copies_.end())
          in[i] = copy_of(from_.inputs_of(record)[i], copy->second);
      to_.keep(record, with_all_sub_graphs(record, recompute_broadcasts), in);
    }
    return to_.finish();
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// A value, and a record that reads it; or the first of the records that share a copy.
  struct Read {
    ValueId value;
    std::size_t record;
    bool operator==(const Read&) const = default;
  };
  struct HashOfRead {
    std::size_t operator()(const Read& read) const { return read.value * 1'000'003u ^ read.record; }
  };

  /// The records that compute a value again for its later readers.
  struct Ops {
    std::vector<std::size_t> records = {};  ///< in their order
    bool has_large = false;                 ///< an operand is large, and kept for later readers
  };

  /// Adds the records that compute a value of operands which are much smaller, or which records
  /// from `later` on read too. Returns false if it is not cheap.
  bool find_ops(ValueId v, std::int64_t bytes, std::size_t later, Ops& ops) const {
    const std::size_t r = made_by_[v];
    if (std::ranges::find(ops.records, r) != ops.records.end()) return true;
    if (r == kNone || from_.records[r].output_count != 1) return false;
    const OpRecord& record = from_.records[r];
    if (!element_loop(*record.op) && !repeats(record)) return false;
    for (const ValueId in : from_.inputs_of(record)) {
      if (bytes_of(from_.types[in]) * kTimesSmaller <= bytes) continue;
      Ops more = ops;
      const bool is_found = find_ops(in, bytes, later, more),
                 is_kept = made_by_[in] == kNone || readers_[in].back() >= later ||
                           !is_fusable(from_.records[made_by_[in]]);
      if (is_kept && (!is_found || more.has_large))
        ops.has_large = true;
      else if (is_found)
        ops = std::move(more);
      else
        return false;
    }
    ops.records.push_back(r);
    return ops.records.size() <= 2 * kMaxOps;
  }
  bool repeats(const OpRecord& record) const {
    return repeats_elements(*RecordCall(from_, record));
  }
  bool are_cheap(const Ops& ops) const {
    const auto count = [&](auto is) {
      return static_cast<std::size_t>(
          std::ranges::count_if(ops.records, [&](std::size_t r) { return is(from_.records[r]); }));
    };
    const std::size_t computing = count([&](const OpRecord& record) { return !repeats(record); });
    if (!ops.has_large) return computing <= kMaxOps;
    return computing <= kMaxOpsOnLarge && computing == count(is_simple);
  }

  /// Finds the readers of a record's result that get a copy.
  void find_copies(std::span<const ValueId> outputs) {
    if (outputs.size() != 1) return;
    const ValueId v = outputs[0];
    const std::int64_t bytes = bytes_of(from_.types[v]);
    if (readers_[v].size() < 2 || bytes == 0 ||
        (bytes < kLargeBytes && !repeats(from_.records[made_by_[v]])) ||
        std::ranges::find(from_.outputs, v) != from_.outputs.end())
      return;
    std::vector<std::size_t> left = readers_apart(readers_[v].front(), readers_[v]);
    Ops ops;
    if (left.empty() || !find_ops(v, bytes, left.front(), ops) || !are_cheap(ops)) return;
    bool found = false;
    while (!left.empty()) {
      const std::size_t first = left.front();
      const std::vector<std::size_t> apart = readers_apart(first, left);
      if (is_fusable(from_.records[first]))
        for (const std::size_t r : left)
          if (std::ranges::find(apart, r) == apart.end()) {
            copies_.insert_or_assign({v, r}, first);
            found = true;
          }
      left = apart;
    }
    if (found) ops_of_.emplace(v, std::move(ops.records));
  }

  /// Returns the readers that cannot be fused with the first one: they depend on it by another op,
  /// or on a recurrence that begins at the other end.
  std::vector<std::size_t> readers_apart(std::size_t first,
                                         const std::vector<std::size_t>& readers) {
    followed_ += readers.back() - first + 1;
    enum : std::uint8_t { kBehind = 1, kApart = 2 };
    std::vector<std::uint8_t> state(from_.types.size());
    std::vector<std::size_t> result;
    std::optional<bool> walk;  // of recurrences that may be fused with the first reader
    for (std::size_t r = first; r <= readers.back(); ++r) {
      const OpRecord& record = from_.records[r];
      const bool is_reader = std::ranges::binary_search(readers, r);
      std::uint8_t of_record = r == first ? kBehind : 0;
      for (const ValueId in : from_.inputs_of(record)) of_record = std::max(of_record, state[in]);
      if (const auto other = walks_back(record); other && (of_record || is_reader)) {
        if (!walk) walk = other;
        if (*walk != *other) of_record = kApart;
      }
      if (of_record == kApart && is_reader) result.push_back(r);
      if (of_record && !is_fusable(record)) of_record = kApart;
      for (const ValueId out : from_.outputs_of(record)) state[out] = of_record;
    }
    return result;
  }

  /// Returns the copy of a value for a group of readers, which its first reader appends.
  ValueId copy_of(ValueId v, std::size_t first) {
    const auto [found, is_new] = made_.try_emplace({v, first});
    if (!is_new) return found->second;
    std::unordered_map<ValueId, ValueId> here;
    for (const std::size_t r : ops_of_.at(v)) {
      const OpRecord& record = from_.records[r];
      std::vector<ValueId> in = to_.inputs_of(record);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (const auto copy = here.find(from_.inputs_of(record)[i]); copy != here.end())
          in[i] = copy->second;
      const ValueId out = from_.outputs_of(record)[0];
      here[out] = to_.to().add_value(from_.types[out]);
      to_.keep(record, record.attrs, in, std::array{here[out]});
    }
    return made_[{v, first}] = here.at(v);
  }

  const Graph& from_;
  GraphRewriter to_;
  std::vector<std::size_t> made_by_;                              ///< by value: a record, or kNone
  std::vector<std::vector<std::size_t>> readers_;                 ///< by value, ascending
  std::unordered_map<ValueId, std::vector<std::size_t>> ops_of_;  ///< of values that are copied
  std::unordered_map<Read, std::size_t, HashOfRead> copies_;      ///< the first reader of each copy
  std::unordered_map<Read, ValueId, HashOfRead> made_;
  std::size_t followed_ = 0;  ///< records, by readers_apart()
};

}  // namespace

Ref<Graph> recompute_broadcasts(const Graph& graph) { return Recomputing(graph).run(); }

}  // namespace reel
