// argsort and top_k: positions in the order of the elements.
#include "reel/core/ops/indexing/sort.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

// ---- Order --------------------------------------------------------------------------------------

/// Returns an unsigned number for an element, in the order of the elements. Both zeros are equal;
/// NaN equals itself and is the largest.
template <class T>
auto order_key(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<std::uint8_t>(x);
  } else {
    using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Key kSign = Key{1} << (8 * sizeof(T) - 1);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<Key>(x) ^ kSign;
    } else {
      if (x != x) return std::numeric_limits<Key>::max();
      const Key bits = std::bit_cast<Key>(x + T{0});  // -0 becomes 0
      // Inverts all bits of a negative number, and the sign bit of others. Without a branch,
      // because signs cannot be predicted.
      return bits ^ ((Key{0} - (bits >> (8 * sizeof(T) - 1))) | kSign);
    }
  }
}

/// An element of a line as one number, with its key above its position: lines are sorted by keys,
/// and equal ones by position.
template <class T>
struct Item {
  using Key = decltype(order_key(T{}));
  __extension__ using Number =
      std::conditional_t<sizeof(Key) == 8, unsigned __int128, std::uint64_t>;
  Number number;

  static Item ascending(T x, std::int64_t position) { return {order_key(x), position}; }
  static Item descending(T x, std::int64_t position) {
    return {static_cast<Key>(~order_key(x)), position};
  }
  std::int32_t position() const { return static_cast<std::int32_t>(number); }
  bool operator<(const Item& other) const { return number < other.number; }

 private:
  Item(Key key, std::int64_t position)
      : number(static_cast<Number>(key) << 32 | static_cast<Number>(position)) {}
};

/// Tells which elements are no padding.
class Validity {
 public:
  Validity(const TensorType& type, const std::vector<int>& axes) {
    if (!reduces_padding(type, axes)) return;
    is_padding_.resize(static_cast<std::size_t>(type.numel()));
    for_each_padding(type, [&](std::int64_t first, std::int64_t count) {
      std::fill_n(is_padding_.begin() + first, count, true);
    });
  }
  bool all() const { return is_padding_.empty(); }
  bool operator()(std::int64_t element) const {
    return all() || !is_padding_[static_cast<std::size_t>(element)];
  }

 private:
  std::vector<char> is_padding_;
};

// ---- argsort ------------------------------------------------------------------------------------

/// Sorts valid elements among their own places; padding stays in place.
template <class T>
void argsort_line(const T* x, std::int32_t* out, std::int64_t first, const AxisView& view,
                  bool descending, const Validity& is_valid, std::vector<Item<T>>& items) {
  items.clear();
  for (std::int64_t p = 0; p < view.size; ++p) {
    const std::int64_t at = first + p * view.inner;
    if (is_valid(at))
      items.push_back(descending ? Item<T>::descending(x[at], p) : Item<T>::ascending(x[at], p));
  }
  std::sort(items.begin(), items.end());
  auto next = items.begin();
  for (std::int64_t p = 0; p < view.size; ++p) {
    const std::int64_t at = first + p * view.inner;
    out[at] = is_valid(at) ? (next++)->position() : static_cast<std::int32_t>(p);
  }
}

}  // namespace

const Op argsort_op{
    .name = "argsort",
    .type =
        [](TypeArgs& a) {
          check_positions_fit("argsort", a.in[0], a.attr<SortAttrs>().axis);
          a.out.push_back(a.in[0].with(i32));
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& [axis, descending] = a.attr<SortAttrs>();
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          const AxisView view = view_axis(x.type(), axis);
          const Validity is_valid(x.type(), {axis});
          visit(x.dtype(), [&, descending = descending](auto zero) {
            using T = decltype(zero);
            std::vector<Item<T>> items;
            items.reserve(static_cast<std::size_t>(view.size));
            for (std::int64_t o = 0; o < view.outer; ++o)
              for (std::int64_t i = 0; i < view.inner; ++i)
                argsort_line(x.data<T>(), out.data<std::int32_t>(), o * view.size * view.inner + i,
                             view, descending, is_valid, items);
          });
        },
    .no_vjp = "positions are integers",
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const auto sample = [](const Dims& x, int axis, bool descending, DType dtype = f32) {
            return OpSample{{{TensorType(dtype, x)}}, make_attrs(SortAttrs{axis, descending})};
          };
          return OpSamples{
              sample({7}, 0, false),     sample({2, 5}, 1, true),  sample({5, 2}, 0, false),
              sample({9}, 0, true, i32), sample(dims, 1, false),   sample(dims, 0, true),
              sample({3, 0}, 1, false),  sample({0, 3}, 1, false), sample({9}, 0, false, i64)};
        },
    .iteration_batching = axis_across_iterations<SortAttrs>,
    .axes = axes_beside_worked<SortAttrs>,
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall& call, std::size_t, int) { return call.in[0].is_ragged(); },
};

// ---- top_k --------------------------------------------------------------------------------------

namespace {

Dims top_k_dims(const TensorType& x, const TopKAttrs& attrs) {
  Dims dims = x.dims();
  dims.erase(dims.begin() + attrs.axis, dims.begin() + attrs.axis + attrs.count);
  return insert_dim(std::move(dims), attrs.axis, attrs.k);
}

/// Throws ShapeError if k exceeds the number of elements. Entries of ragged axes may have fewer.
void check_k(const TensorType& x, const TopKAttrs& attrs) {
  std::int64_t size = 1;
  for (int axis : attrs.axes()) {
    const Dim& dim = dim_at(x, axis);
    if (dim.is_ragged() || !dim.has_size()) return;
    size = multiply_sizes(size, dim.size(), "top_k");
  }
  if (attrs.k.has_size() && attrs.k.size() > size) {
    std::string along = axis_name(x, attrs.axis);
    for (int axis = attrs.axis + 1; axis < attrs.axis + attrs.count; ++axis)
      along += " and " + axis_name(x, axis);
    throw ShapeError(str("top_k: k is ", attrs.k, ", but there are ", size, " elements along ",
                         along, "; take fewer"));
  }
}

/// The best items of a line. A few are always sorted, since a heap would take a branch that cannot
/// be predicted at every level; of more, the worst is in front until they are sorted.
template <class T>
class Best {
 public:
  explicit Best(std::size_t k) : k_(k) { items_.reserve(k); }

  void offer(T x, std::int64_t position) {
    const auto item = Item<T>::descending(x, position);
    if (items_.size() < k_) {
      items_.push_back(item);
      if (is_few())
        insert(item);
      else
        std::push_heap(items_.begin(), items_.end());
    } else if (item < worst()) {
      if (is_few()) return insert(item);
      std::pop_heap(items_.begin(), items_.end());
      items_.back() = item;
      std::push_heap(items_.begin(), items_.end());
    }
  }
  bool is_full() const { return items_.size() == k_; }
  std::int64_t worst_position() const { return worst().position(); }
  const std::vector<Item<T>>& sorted() {
    if (!is_few()) std::sort_heap(items_.begin(), items_.end());
    return items_;
  }
  void clear() { items_.clear(); }

 private:
  static constexpr std::size_t kFew = 16;

  bool is_few() const { return k_ <= kFew; }
  const Item<T>& worst() const { return is_few() ? items_.back() : items_.front(); }
  /// Replaces the last item. Items behind the new one move by a place, without branches.
  void insert(const Item<T>& item) {
    Item<T>* at = items_.data() + items_.size() - 1;
    at->number = item.number;
    for (; at != items_.data(); --at) {
      const auto here = at->number, before = at[-1].number;
      const auto least = here < item.number ? here : item.number;
      at->number = before < least ? least : before;
    }
    at->number = at->number < item.number ? at->number : item.number;
  }

  std::size_t k_;
  std::vector<Item<T>> items_;
};

/// Elements that are compared with the worst item together: many, and then few of them.
constexpr std::int64_t kBlock = 64, kFewTogether = 16;

/// Returns false only if none of kCount elements is larger than `worst`, or NaN. Compares bits of
/// floats as integers: a comparison with NaN would raise an exception.
template <std::int64_t kCount, class T>
__attribute__((optimize("O3"))) bool may_be_above(const T* x, T worst) {
  int count = 0;
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    constexpr Bits kValue = std::numeric_limits<Bits>::max();
    const Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    // Negative numbers have the order of their inverted bits.
    const auto ordered = [](Bits bits) { return bits ^ (bits < 0 ? kValue : Bits{0}); };
    const Bits limit = ordered(std::bit_cast<Bits>(worst));
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto bits = std::bit_cast<Bits>(x[i]);
      count += (ordered(bits) > limit) | ((bits & kValue) > infinity);
    }
  } else {
    for (std::int64_t i = 0; i < kCount; ++i) count += x[i] > worst;
  }
  return count != 0;
}

void top_k_kernel(KernelArgs& a) {
  const TopKAttrs& attrs = a.attr<TopKAttrs>();
  const Tensor& x = a.input(0);
  for (std::size_t i = 0; i < a.types.size(); ++i) a.make(i);
  const std::int64_t k = attrs.k.size();
  if (a.types[0].numel() == 0) return;
  const Reduced view = view_axes(x.type(), attrs.axes());
  const Validity is_valid(x.type(), attrs.axes());
  visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Best<T> best(static_cast<std::size_t>(k));
    const bool is_run = view.inner == 1 && is_valid.all();
    for (std::int64_t line = 0; line < view.outer * view.inner; ++line) {
      const std::int64_t outer = line / view.inner, inner = line % view.inner;
      const std::int64_t first = outer * view.n * view.inner + inner;
      best.clear();
      const T* const elements = x.data<T>() + first;
      for (std::int64_t p = 0; p < view.n;) {
        // Most blocks of a long line have no element that is better than the worst item.
        if (is_run && best.is_full()) {
          const T worst = elements[best.worst_position()];
          if (view.n - p >= kBlock && !may_be_above<kBlock>(elements + p, worst)) {
            p += kBlock;
            continue;
          }
          if (view.n - p >= kFewTogether && !may_be_above<kFewTogether>(elements + p, worst)) {
            p += kFewTogether;
            continue;
          }
        }
        const std::int64_t end = std::min(p + kFewTogether, view.n);
        if (is_run)
          for (; p < end; ++p) best.offer(elements[p], p);
        else
          for (; p < end; ++p)
            if (is_valid(first + p * view.inner)) best.offer(elements[p * view.inner], p);
      }
      std::int64_t to = outer * k * view.inner + inner;
      const std::int64_t end = to + k * view.inner;
      for (const auto& item : best.sorted()) {
        std::int64_t position = item.position();
        a.out[0].data<std::int32_t>()[to] = item.position();
        for (int i = attrs.count; i-- > 0;) {
          const std::int64_t size = x.type().sizes()[static_cast<std::size_t>(attrs.axis + i)];
          a.out[static_cast<std::size_t>(1 + i)].data<std::int32_t>()[to] =
              static_cast<std::int32_t>(position % size);
          position /= size;
        }
        to += view.inner;
      }
      for (; to < end; to += view.inner)
        for (std::size_t i = 0; i < a.out.size(); ++i)
          a.out[i].data<std::int32_t>()[to] = i == 0 ? -1 : 0;
    }
  });
}

}  // namespace

/// Finds the k largest elements along adjacent axes. Outputs: the position along all axes together,
/// -1 if there is none; then the position along each axis, 0 if there is none.
const Op top_k_op{
    .name = "top_k",
    .type =
        [](TypeArgs& a) {
          const TopKAttrs& attrs = a.attr<TopKAttrs>();
          check_k(a.in[0], attrs);
          check_positions_fit("top_k", a.in[0], attrs.axis, attrs.count);
          const TensorType type(i32, top_k_dims(a.in[0], attrs));
          for (int i = 0; i <= attrs.count; ++i) a.out.push_back(type);
        },
    .kernel = top_k_kernel,
    .no_vjp = "positions are integers",
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim best("best", 2), none("none", 0);
          const auto sample = [](const Dims& x, int axis, int count, const Dim& k,
                                 DType dtype = f32) {
            return OpSample{{{TensorType(dtype, x)}}, make_attrs(TopKAttrs{axis, count, k})};
          };
          return OpSamples{sample({40}, 0, 1, 3),         sample({2, 5}, 1, 1, 5),
                           sample({5, 2}, 0, 1, 2),       sample({2, 3, 4, 2}, 1, 2, 7),
                           sample({9}, 0, 1, 4, i32),     sample(dims, 1, 1, best),
                           sample(dims, 0, 1, best),      sample(dims, 1, 2, best),
                           sample(dims, 0, 2, best, f64), sample({0, 3}, 1, 1, 2),
                           sample(dims, 2, 1, none)};
        },
    .iteration_batching = axis_across_iterations<TopKAttrs>,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const auto& best = call.attr<TopKAttrs>();
          axes_around(best.axis, best.count, 1, call, f);
        },
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall& call, std::size_t, int) { return call.in[0].is_ragged(); },
};

namespace {

/// Returns x with the axes adjacent, in the listed order, at the place of the foremost one. Ties
/// then do not depend on the order of x's dims.
Tensor side_by_side(const Tensor& x, const std::vector<int>& axes, int front) {
  std::vector<Axis> order;
  bool is_sorted = true;
  const auto add = [&](int axis) {
    is_sorted = is_sorted && axis == static_cast<int>(order.size());
    order.emplace_back(axis);
  };
  for (int i = 0; i < x.rank(); ++i) {
    if (i == front)
      for (int axis : axes) add(axis);
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) add(i);
  }
  return is_sorted ? x : transpose(x, Axes(std::move(order)));
}

/// Returns the dim of the new axis: for named dims a number gets a name.
Dim checked_k(const TensorType& x, const Dim& k) {
  if (k.is_undefined() || k.is_ragged())
    throw ArgumentError(str("top_k: k must have one size, got the dim ", k));
  if (k.is_named() && !x.is_named())
    throw ShapeError(
        str("top_k: k is the named dim ", k, ", but ", x, " has plain sizes; give a number"));
  return canonical(x.is_named() && !k.is_named() ? Dim("k", k.size()) : k);
}

}  // namespace

// ---- Public functions ---------------------------------------------------------------------------

Tensor argsort(const Tensor& x, const Axis& axis, bool descending) {
  return bind(argsort_op, {x}, make_attrs(SortAttrs{axis.in(x, "argsort"), descending}));
}

Tensor sort(const Tensor& x, const Axis& along, bool descending) {
  const int axis = along.in(x, "sort");
  return take_along(x, argsort(x, axis, descending), axis);
}

namespace {
/// top_k of x alone: lengths that run over the axes do not go along.
TopKOverAxes top_k_along(const Tensor& x, const std::vector<int>& axes, const Dim& k) {
  const int front = *std::min_element(axes.begin(), axes.end());
  const TopKAttrs attrs{front, static_cast<int>(axes.size()), checked_k(x.type(), k)};
  const Tensor lines = side_by_side(x, axes, front);
  Tensors found = bind_all(top_k_op, {lines}, make_attrs(attrs));
  // found[0] has the positions along all axes together. Only its axis `front` is new; its other
  // axes match those of x.
  GatherAttrs places{.axis = front, .count = attrs.count, .rule = IndexRule::optional};
  for (int i = 0; i < found[0].rank(); ++i)
    places.matched.push_back(i == front ? -1 : i < front ? i : i + attrs.count - 1);
  Tensor values = gather_positions(lines, found[0], make_attrs(std::move(places)));
  bool may_lack = reduces_padding(lines.type(), attrs.axes());
  for (int axis : attrs.axes()) may_lack = may_lack || dim_at(lines.type(), axis).is_ragged();
  if (may_lack) values = where(found[0] < 0, full({}, lowest(x.dtype()), x.dtype()), values);
  found.erase(found.begin());
  return {std::move(values), std::move(found), attrs.k};
}
}  // namespace

// Example: over words, for each place among the letters. Valid elements come first, as many as
// there are words with a letter at that place. Therefore the n-th of the k results has as many
// letters as the n-th longest word.
TopKOverAxes top_k(const Tensor& x, const std::vector<Axis>& over, const Dim& k) {
  const std::vector<int> axes = Axes(over).in(x, "top_k");
  if (axes.empty()) throw ArgumentError("top_k: was given no axes");
  if (!has_lengths_along(x.type(), axes)) return top_k_along(x, axes, k);
  Dims dims;
  for (const int axis : axes) dims.push_back(dim_at(x.type(), axis));
  TopKOverAxes result = top_k_along(x, axes, checked_k(x.type(), k));
  const auto take = [&](const Tensor& of, int) {
    return maximum(top_k_along(of, Axes(dims).in(of, "top_k"), result.dim).values, 0);
  };
  AlongAxis longest(dims, take,
                    {.keeps_axis = contains(dims, result.dim),
                     .key = [&] { return key_along("top_k", dims).dim(result.dim); },
                     .entries = with_entries_of(dims),
                     .makes_places = true});
  const DimChanges& changes = longest.slices_of(x.type());
  for (Tensor& index : result.indices) index = resized(index, changes(index.dims()));
  result.values = resized(result.values, changes(result.values.dims()));
  return result;
}

TopK top_k(const Tensor& x, const Axis& axis, const Dim& k) {
  TopKOverAxes all = top_k(x, std::vector<Axis>{axis}, k);
  return {std::move(all.values), std::move(all.indices[0]), std::move(all.dim)};
}

namespace {
const Op* const kSortOps[] = {&argsort_op, &top_k_op};
}
std::span<const Op* const> sort_ops() { return kSortOps; }

}  // namespace reel
