#include "reel/core/dims/dim_slices.h"

#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "reel/core/dims/dim_facts.h"
#include "reel/core/dims/slice_uses.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// The serials of the whole dim and of the slice's graph (0: none), and the key of the slice. In a
/// body with finished entries, the whole dim as the body sees it may be freed before the slice.
using Key = std::tuple<std::uint64_t, std::uint64_t, std::string>;
struct Origin {
  Dim whole;
  Key place;     ///< in Table::slices
  SliceKey key;  ///< empty if the slice is not to be found again
};

/// Holds no reference to slices: each leaves the table when it is freed.
struct Table {
  std::mutex mutex;
  std::unordered_map<const DimNode*, Origin> origins;
  std::map<Key, const DimNode*> slices;
};
Table& table() {
  static Table& instance = *new Table;  // dims may be freed after static objects are
  return instance;
}

/// Returns the slice of this key if it still has an owner. Requires the table's mutex.
std::optional<Dim> find_again(const Table& t, const Key& key) {
  const auto found = t.slices.find(key);
  if (found == t.slices.end()) return std::nullopt;
  std::uint32_t count = found->second->refs.load(std::memory_order_relaxed);
  while (count && !found->second->refs.compare_exchange_weak(count, count + 1)) {
  }
  if (!count) return std::nullopt;
  return Dim::of_node(Ref<const DimNode>::adopt(found->second));
}

/// Returns true if `whole`, the noted whole dim of a slice, is `dim` where the code runs
/// now: a trace has a symbol for it, and a loop with finished entries shows it with other lengths.
bool is_seen_as(const Dim& whole, const Dim& dim) {
  if (whole == dim) return true;
  if (whole.is_symbol()) return false;
  if (is_tracing()) return dim.is_symbol() && thread_mode.builder->stands_for(dim, whole);
  return thread_mode.entries && thread_mode.entries->visible(whole) == dim;
}

std::uint64_t serial_of(const GraphBuilder* builder) { return builder ? builder->serial() : 0; }

/// Requires has_slices(). Calls fn with the dim's entry in the table, if there is one.
template <class Fn>
auto with_origin(const Dim& dim, Fn&& fn) -> decltype(fn(std::declval<const Origin&>())) {
  if (!dim.node() || !has_slices()) return std::nullopt;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto found = t.origins.find(dim.node());
  return found == t.origins.end() ? std::nullopt : fn(found->second);
}

}  // namespace

std::optional<Dim> whole_of(const Dim& dim) {
  return with_origin(dim, [](const Origin& origin) { return std::optional(origin.whole); });
}

std::optional<Dim> known_slice(const Dim& found_by, const SliceKey& key) {
  Table& t = table();
  if (key.is_empty() || !has_slices()) return std::nullopt;
  const std::string bytes = key.bytes();
  const std::lock_guard lock(t.mutex);
  for (const GraphBuilder* builder = thread_mode.builder;; builder = builder->outer()) {
    auto found = find_again(t, Key{found_by.serial(), serial_of(builder), bytes});
    if (found || !builder) return found;
  }
}

std::optional<Dim> whole_of_known(const Dim& slice, const SliceKey& key) {
  return with_origin(slice, [&](const Origin& origin) {
    const bool is_it = !key.is_empty() && std::get<std::string>(origin.place) == key.bytes();
    return is_it ? std::optional(origin.whole) : std::nullopt;
  });
}

std::optional<KnownSlice> noted_slice(const Dim& slice) {
  return with_origin(slice, [](const Origin& origin) {
    const bool is_known =
        !origin.key.is_empty() && std::get<0>(origin.place) == origin.whole.serial();
    return is_known ? std::optional(KnownSlice{origin.whole, origin.key}) : std::nullopt;
  });
}

void note_slice(const Dim& dim, const Dim& whole, const Dim& found_by, const SliceKey& key) {
  const Key place{found_by.serial(), serial_of(thread_mode.builder),
                  key.is_empty() ? std::string() : key.bytes()};
  Table& t = table();
  Origin origin{whole, place, key};  // freed outside of the lock, as in forget_slice()
  const std::lock_guard lock(t.mutex);
  const auto [found, is_new] = t.origins.emplace(dim.node(), origin);
  detail::slice_count += is_new;
  if (key.is_empty()) return;
  if (!is_new) {  // a slice keeps its first key
    if (!found->second.key.is_empty()) return;
    std::swap(found->second, origin);
  }
  t.slices[place] = dim.node();
}

void adopt_slice(const Dim& slice) {
  if (!slice.node() || !has_slices()) return;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto found = t.origins.find(slice.node());
  if (found == t.origins.end() || found->second.key.is_empty()) return;
  Key& place = found->second.place;
  Key here = place;
  std::get<1>(here) = serial_of(thread_mode.builder);
  if (here == place || !t.slices.emplace(here, slice.node()).second) return;
  if (const auto before = t.slices.find(place);
      before != t.slices.end() && before->second == slice.node())
    t.slices.erase(before);
  place = std::move(here);
}

void forget_slice(const DimNode* node) {
  if (!has_slices()) return;
  Table& t = table();
  Origin origin;  // freed outside of the lock: the whole dim may be freed with it
  const std::lock_guard lock(t.mutex);
  const auto found = t.origins.find(node);
  if (found == t.origins.end()) return;
  std::swap(origin, found->second);
  t.origins.erase(found);
  --detail::slice_count;
  const auto slice = t.slices.find(origin.place);
  if (slice != t.slices.end() && slice->second == node) t.slices.erase(slice);
}

void copy_slice(const Dim& from, const Dim& to) {
  if (const std::optional<Dim> whole = whole_of(from)) note_slice(to, *whole, *whole, {});
}

void join_slices(std::span<const Dim> inside, const Dim& made, DimEnv& outside) {
  if (!has_slices()) return;
  const auto resolved = [&](const Dim& dim) {
    return outside.knows(dim) ? outside.resolve(dim) : dim;
  };
  std::optional<Dim> whole;
  std::optional<SliceKey> key;
  for (const Dim& dim : inside) {
    std::optional<Dim> of = whole_of(dim);
    if (!of || (whole && !(resolved(*of) == *whole))) return;
    of = resolved(*of);
    const std::optional<KnownSlice> known = noted_slice(dim);
    const SliceKey own = known ? known->key.with_dims(resolved) : SliceKey();
    key = !whole || key->bytes() == own.bytes() ? own : SliceKey();
    whole = of;
  }
  if (whole) note_slice(made, *whole, *whole, known_slice(*whole, *key) ? SliceKey() : *key);
}

namespace {

/// Returns a computed dim with the whole dims in place of slices of them.
Dim of_wholes(const Dim& dim, const Dims& wholes) {
  if (const DimExpression* expression = expression_of(dim)) {
    Dims operands;
    for (const Dim& of : expression->operands) operands.push_back(of_wholes(of, wholes));
    return recompute(*expression, operands);
  }
  for (const Dim& whole : wholes)
    if (is_slice_of(dim, whole)) return whole;
  return dim;
}

/// is_slice_of() by the dims themselves.
bool knows_slices(const Dim& dim, const Dim& whole) {
  if (const DimExpression* expression = expression_of(dim)) {
    const DimExpression* of_whole = expression_of(whole);
    if (!of_whole || of_whole->operation != expression->operation ||
        of_whole->number != expression->number ||
        of_whole->operands.size() != expression->operands.size())
      return false;
    bool is_slice = false;
    for (std::size_t i = 0; i < expression->operands.size(); ++i) {
      const Dim &mine = expression->operands[i], &other = of_whole->operands[i];
      const bool is_one = is_slice_of(mine, other);
      if (!is_one && !(mine == other)) return false;
      is_slice = is_slice || is_one;
    }
    return is_slice;
  }
  for (std::optional<Dim> at = whole_of(dim); at; at = whole_of(*at)) {
    if (!is_seen_as(*at, whole)) continue;
    SliceUses* const uses = SliceUses::innermost();
    if (uses && dim.is_symbol() && !at->is_symbol()) uses->note(dim, *at);
    return true;
  }
  return false;
}

/// is_slice_of() in a trace that does not know the slices from which dims of its arguments are
/// computed: compares the dims from outside.
bool is_slice_outside(const Dim& dim, const Dim& whole) {
  const GraphBuilder& builder = *thread_mode.builder;
  const std::optional<Dim> slice = builder.outside(dim), all = builder.outside(whole);
  if (!slice || !all || !expression_of(*slice)) return false;
  const ModeScope outside({nullptr, nullptr, builder.root().around().entries});
  if (!is_slice_of(*slice, *all)) return false;
  SliceUses* const uses = SliceUses::innermost();
  if (!uses) return true;
  Dims wholes;
  for_each_operand(*all, [&](const Dim& of) { wholes.push_back(of); });
  for_each_operand(dim, [&](const Dim& symbol) {
    const std::optional<Dim> of = builder.outside(symbol);
    if (of && symbol.is_symbol() && expression_of(*of)) uses->note(symbol, of_wholes(*of, wholes));
  });
  return true;
}

}  // namespace

bool is_slice_of(const Dim& dim, const Dim& whole) {
  if (!has_slices()) return false;
  if (knows_slices(dim, whole)) return true;
  return is_tracing() && thread_mode.builder->hides_operands() && is_slice_outside(dim, whole);
}

std::optional<Dim> shared_whole(const Dim& a, const Dim& b) {
  for (std::optional<Dim> at = a; at; at = whole_of(*at))
    if (is_seen_as(*at, b) || is_slice_of(b, *at)) return at;
  return std::nullopt;
}

int find_axis(const Dims& dims, const Dim& dim) {
  const int place = find(dims, dim);
  if (place >= 0 || !dim.is_named() || !has_slices()) return place;
  int found = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!is_slice_of(dims[i], dim)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace reel
