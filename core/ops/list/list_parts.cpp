// Ops on several elements of a list: gather and scatter, extend, concat and split.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/list/term_sum.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

void check_vector(const TensorType& type, std::string_view op, std::string_view what) {
  if (!is_integer(type.dtype()))
    throw DTypeError(str("TensorArray ", op, ": ", what, " must be integers, got ", type));
  if (type.rank() != 1)
    throw ShapeError(str("TensorArray ", op, ": ", what, " must be a vector, got ", type));
}

/// Copies elements one after the other into a tensor of the given type.
class Columns {
 public:
  explicit Columns(const TensorType& type) : out_(allocate_block(type)), to_(out_.data<char>()) {}
  void put(const Tensor& element, std::int64_t bytes) {
    if (!bytes) return;
    if (element.is_defined())
      std::memcpy(to_, element.data<char>(), static_cast<std::size_t>(bytes));
    else
      std::memset(to_, 0, static_cast<std::size_t>(bytes));
    to_ += bytes;
  }
  Tensor finish() { return std::move(out_); }

 private:
  Tensor out_;
  char* to_;
};

/// Calls fn(i, slice) for the slices of x along its leading dim, as views.
template <class Fn>
void each_slice(const Tensor& x, Fn&& fn) {
  const TensorType type = without_first(x.type());
  for (std::int64_t i = 0; i < x.type().sizes()[0]; ++i)
    fn(i, Tensor(allocate_view(type, x.ref(), x.data<char>() + i * type.bytes())));
}

// ---- gather and scatter -------------------------------------------------------------------------

/// Returns a flag for each place: true if its index occurs again later.
std::vector<std::uint8_t> overwritten_by_later(const Tensor& indices) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(indices.numel()));
  std::unordered_set<std::int64_t> seen;
  for (std::size_t i = result.size(); i-- > 0;)
    result[i] = !seen.insert(index_at(indices, static_cast<std::int64_t>(i))).second;
  return result;
}

/// Returns the elements of a list at indices, or zeros like input 2.
Tensor gather_cotangents(const Tensor& list, const Tensor& indices, const Tensor* like,
                         bool last_only);
Tensor list_spread(const Tensor& x, const Tensor& indices, const TensorType& list_type,
                   bool last_only);

const Op list_gather_op{
    .name = "list_gather",
    .type =
        [](TypeArgs& a) {
          if (a.in.size() == 3) {
            a.out.push_back(a.in[2]);
            return;
          }
          const TensorType element = a.in[0].element();
          Dims dims = behind(a.in[1].dims()[0], element);
          for (Dim& of : dims)
            if (is_unknown(of)) of = Dim::unknown();
          a.out.push_back(element.with(dims));
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& [is_lenient, last_only] = a.attr<ListGatherAttrs>();
          const Tensor &list = a.input(0), &indices = a.input(1);
          const std::int64_t count = indices.numel();
          Tensors found;
          TensorType element = list.type().element();
          for (std::int64_t i = 0; i < count; ++i) {
            found.push_back(items_of(list).get(index_at(indices, i)));
            if (!found.back().is_defined() || is_lenient) continue;
            if (element.is_known() && found.back().type() != element)
              throw ShapeError(str("TensorArray gather: element ", index_at(indices, i), " is ",
                                   found.back().type(), ", others are ", element,
                                   "; elements to be stacked must have equal shapes"));
            element = found.back().type();
          }
          if (a.in.size() < 3 && !element.is_known())
            throw ShapeError(str("TensorArray gather: no element is written, and their shape, ",
                                 element, ", is not known"));
          const TensorType type = a.in.size() == 3
                                      ? a.input(2).type()
                                      : element.with(behind(indices.dims()[0], element));
          if (last_only) {
            const std::vector<std::uint8_t> overwritten = overwritten_by_later(indices);
            for (std::size_t i = 0; i < found.size(); ++i)
              if (overwritten[i]) found[i] = Tensor();
          }
          Columns columns(type);
          const std::int64_t bytes = count ? type.bytes() / count : 0;
          for (const Tensor& one : found) columns.put(one, bytes);
          a.decided->push_back(columns.finish());
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, list_spread(at.cotangent(), at.input(1), at.input_type(0),
                                at.attr<ListGatherAttrs>().last_only));
        },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = 0b1,
};

Tensor gather_cotangents(const Tensor& list, const Tensor& indices, const Tensor* like,
                         bool last_only) {
  const AttrsRef attrs = make_attrs(ListGatherAttrs{true, last_only});
  return like ? bind(list_gather_op, {list, indices, *like}, attrs)
              : bind(list_gather_op, {list, indices}, attrs);
}

/// Returns a list with the slices of x at indices; slices of a repeated index are added.
const Op list_spread_op{
    .name = "list_spread",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<ListSpreadAttrs>().list.type); },
    .kernel =
        [](KernelArgs& a) {
          const ModeScope plain({});
          const bool last_only = a.attr<ListSpreadAttrs>().last_only;
          Ref<ListData> data(new ListData);
          std::unordered_map<std::int64_t, CountedTermSum> sums;  // by index that is repeated
          each_slice(a.input(0), [&](std::int64_t i, Tensor slice) {
            const std::int64_t index = index_at(a.input(1), i);
            const Tensor before = data->items.get(index);
            if (last_only || !before.is_defined()) return data->items.set(index, slice);
            const auto [sum, is_first] = sums.try_emplace(index);
            if (is_first) sum->second.add(Tensor(before));
            sum->second.add(std::move(slice));
          });
          for (auto& [index, sum] : sums) data->items.set(index, sum.take());
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .vjp =
        [](Vjp& at) {
          const ListSpreadAttrs& attrs = at.attr<ListSpreadAttrs>();
          at.add(0, gather_cotangents(at.cotangent(), at.input(1),
                                      is_open(attrs.list.type) ? &at.input(0) : nullptr,
                                      attrs.last_only));
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          return OpReads{.inputs = is_open(get<ListSpreadAttrs>(attrs).list.type) ? 0b11u : 0b10u};
        },
    .samples = [] { return OpSamples{}; },
};

Tensor list_spread(const Tensor& x, const Tensor& indices, const TensorType& list_type,
                   bool last_only) {
  return bind(list_spread_op, {x, indices}, make_attrs(ListSpreadAttrs{{list_type}, last_only}));
}

struct ScatterAttrs {
  bool is_open = false;  ///< the list has elements of unknown sizes
  template <class F>
  static void fields(F&& f) {
    f("is_open", &ScatterAttrs::is_open);
  }
};

const Op list_scatter_op{
    .name = "list_scatter",
    .type =
        [](TypeArgs& a) {
          const TensorType &x = a.in[1], &indices = a.in[2];
          check_vector(indices, "scatter", "indices");
          if (!x.rank())
            throw ShapeError(str("TensorArray scatter: ", x, " has no axis to take apart"));
          const Dim &from = x.dims()[0], &to = indices.dims()[0];
          const bool fits = from == to || (!from.is_named() && !to.is_named() &&
                                           !(from.has_size() && to.has_size()));
          if (!fits)
            throw ShapeError(str("TensorArray scatter: ", x, " and indices ", indices,
                                 " differ in their first dim"));
          check_element(without_first(x), a.in[0], "TensorArray scatter");
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const ListData& list = data_of(a.input(0));
          const Tensor& indices = a.input(2);
          const std::int64_t size = list.items.size();
          for (std::int64_t i = 0; i < indices.numel(); ++i)
            check_write(index_at(indices, i), size, list.may_grow);
          a.out[0] = edited(a, 0, [&](PersistentList& items) {
            each_slice(a.input(1), [&](std::int64_t i, Tensor slice) {
              items.set(index_at(indices, i), std::move(slice));
            });
          });
        },
    // As in list_write: the previous elements have no cotangent.
    .vjp =
        [](Vjp& at) {
          const Tensor cotangent = at.cotangent();
          const bool open = at.attr<ScatterAttrs>().is_open;
          if (at.needs(1))
            at.add(1,
                   gather_cotangents(cotangent, at.input(2), open ? &at.input(1) : nullptr, true));
          if (at.needs(0)) at.add(0, list_drop(cotangent, at.input(2)));
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          return OpReads{.inputs = get<ScatterAttrs>(attrs).is_open ? 0b110u : 0b100u};
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

// ---- extend -------------------------------------------------------------------------------------

Tensors list_part(const Tensor& list, const Tensor& size, const TensorType& first,
                  const TensorType& rest);

const Op list_extend_op{
    .name = "list_extend",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const PersistentList more = items_of(a.input(1));
          const std::int64_t size = index_at(a.input(2), 0);
          a.out[0] = edited(a, 0, [&](PersistentList& items) {
            more.each([&](std::int64_t i, const Tensor& x) { items.set(size + i, x); });
            items.resize(std::max(items.size(), size + more.size()));
          });
        },
    .vjp =
        [](Vjp& at) {
          const Tensors parts =
              list_part(at.cotangent(), at.input(2), at.input_type(0), at.input_type(1));
          at.add(0, parts[0]);
          at.add(1, parts[1]);
        },
    .reads = {.inputs = 0b100},
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b11,
};

struct PartAttrs {
  TensorType first{f32}, rest{f32};
  template <class F>
  static void fields(F&& f) {
    f("first", &PartAttrs::first);
    f("rest", &PartAttrs::rest);
  }
};

/// Splits a list at a place: the cotangents of two lists that were concatenated.
const Op list_part_op{
    .name = "list_part",
    .type =
        [](TypeArgs& a) {
          a.out.push_back(a.attr<PartAttrs>().first);
          a.out.push_back(a.attr<PartAttrs>().rest);
        },
    .kernel =
        [](KernelArgs& a) {
          const std::int64_t size = index_at(a.input(1), 0);
          const Ref<ListData> first(new ListData), rest(new ListData);
          items_of(a.input(0)).each([&](std::int64_t i, const Tensor& x) {
            if (i < size)
              first->items.set(i, x);
            else
              rest->items.set(i - size, x);
          });
          a.out[0] = Tensor(allocate_list(a.types[0], first));
          a.out[1] = Tensor(allocate_list(a.types[1], rest));
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, list_of_type(list_extend(at.cotangent(0), at.cotangent(1), at.input(1)),
                                 at.input_type(0)));
        },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

Tensors list_part(const Tensor& list, const Tensor& size, const TensorType& first,
                  const TensorType& rest) {
  return bind_all(list_part_op, {list, size}, make_attrs(PartAttrs{first, rest}));
}

// ---- concat and split ---------------------------------------------------------------------------

const Op list_concat_op{
    .name = "list_concat",
    .type =
        [](TypeArgs& a) {
          const TensorType element = a.in[0].element();
          Dims dims(element.dims().size(), Dim::unknown());
          for (std::size_t i = 1; i < dims.size(); ++i)
            dims[i] = element.dims()[i].has_size() ? element.dims()[i] : Dim::unknown();
          a.out.push_back(element.with(dims));
          a.out.push_back(TensorType(i32, {Dim::unknown()}));
        },
    .kernel =
        [](KernelArgs& a) {
          const ModeScope plain({});
          const Tensor& list = a.input(0);
          const std::int64_t count = items_of(list).size();
          TensorType element = list.type().element();
          Tensors parts;
          std::int64_t total = 0;
          const Tensor lengths(allocate_block(TensorType(i32, {Dim(count)})));
          for (std::int64_t i = 0; i < count; ++i) {
            parts.push_back(element_or_zeros(list, i));
            const TensorType& part = parts.back().type();
            const Dims merged = with_dim(part.dims(), 0, element.dims()[0]);
            if (i && merged != element.dims())
              throw ShapeError(str("TensorArray concat: element ", i, " is ", part, ", others are ",
                                   element.with(with_dim(element.dims(), 0, Dim::unknown())),
                                   "; only the first size may differ"));
            element = element.with(merged);
            total += part.sizes()[0];
            lengths.data<std::int32_t>()[i] =
                checked_i32(part.sizes()[0], "TensorArray concat", "the size of an element");
          }
          element = element.with(with_dim(element.dims(), 0, Dim(total)));
          if (!element.is_known())
            throw ShapeError(str("TensorArray concat: there are no elements, and their shape, ",
                                 list.type().element(), ", is not known"));
          Columns columns(element);
          for (const Tensor& part : parts) columns.put(part, part.type().bytes());
          a.decided->push_back(columns.finish());
          a.decided->push_back(lengths);
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, list_of_type(list_split(at.cotangent(), at.output(1)), at.input_type(0)));
        },
    .reads = {.outputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = 0b1,
};

struct JoinAttrs {
  TensorType type{f32};
  template <class F>
  static void fields(F&& f) {
    f("type", &JoinAttrs::type);
  }
};

/// The cotangent of a split tensor: concatenates elements of these lengths, with zeros for missing
/// ones.
const Op list_join_op{
    .name = "list_join",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<JoinAttrs>().type); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& lengths = a.input(1);
          const TensorType& type = a.types[0];
          const std::int64_t bytes = without_first(type).bytes();
          Columns columns(type);
          for (std::int64_t i = 0; i < lengths.numel(); ++i)
            columns.put(items_of(a.input(0)).get(i), index_at(lengths, i) * bytes);
          a.out[0] = columns.finish();
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, list_of_type(list_split(at.cotangent(), at.input(1)), at.input_type(0)));
        },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

const Op list_split_op{
    .name = "list_split",
    .type =
        [](TypeArgs& a) {
          const TensorType& x = a.in[0];
          check_vector(a.in[1], "split", "lengths");
          if (!x.rank())
            throw ShapeError(str("TensorArray split: ", x, " has no axis to take apart"));
          if (x.is_named())
            throw ShapeError(str("TensorArray split: the dims of ", x,
                                 " are named, and elements could not differ in one"));
          a.out.push_back(x.with(with_dim(x.dims(), 0, Dim::unknown())).as_list());
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor &x = a.input(0), &lengths = a.input(1);
          const std::int64_t bytes = without_first(x.type()).bytes();
          Ref<ListData> data(new ListData);
          std::int64_t sum = 0;
          for (std::int64_t i = 0; i < lengths.numel(); ++i) {
            const std::int64_t length = index_at(lengths, i);
            if (length < 0)
              throw ArgumentError(str("TensorArray split: length ", i, " is ", length,
                                      "; lengths must not be negative"));
            sum += length;
            if (sum > x.type().sizes()[0]) continue;
            data->items.set(
                i, Tensor(allocate_view(x.type().with(with_dim(x.dims(), 0, Dim(length))), x.ref(),
                                        x.data<char>() + (sum - length) * bytes)));
          }
          if (sum != x.type().sizes()[0])
            throw ShapeError(str("TensorArray split: lengths add up to ", sum, ", but ", x.type(),
                                 " has ", x.type().sizes()[0], " along its first axis"));
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(list_join_op, {at.cotangent(), at.input(1)},
                         make_attrs(JoinAttrs{at.input_type(0)})));
        },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
};

}  // namespace

// Type rules cannot check these conditions, and kernels that decide types trust them.
Tensor list_gather(const Tensor& list, const Tensor& indices) {
  check_vector(indices.type(), "gather", "indices");
  const TensorType element = list.type().element();
  if (element.rank() && element.is_named() != indices.dims()[0].is_named())
    throw ShapeError(str("TensorArray gather: indices ", indices.type(), " and elements ", element,
                         " mix named and plain dims; name the dim of the indices as well"));
  return bind(list_gather_op, {list, list_index(list, indices, "gather")},
              make_attrs(ListGatherAttrs{}));
}
Tensor list_scatter(Tensor list, const Tensor& x, const Tensor& indices) {
  const AttrsRef attrs = make_attrs(ScatterAttrs{is_open(list.type())});
  return bind(list_scatter_op, {std::move(list), x, indices}, attrs);
}
Tensor list_extend(Tensor a, const Tensor& b, const Tensor& size) {
  return bind(list_extend_op, {std::move(a), b, size});
}
Tensor list_concat(const Tensor& list) {
  const TensorType element = list.type().element();
  if (!element.rank())
    throw ShapeError(str("TensorArray concat: elements are ", element,
                         ", scalars; they are joined along their first axis"));
  if (element.is_named())
    throw ShapeError(str("TensorArray concat: the dims of elements, ", element,
                         ", are named, so that all have one size; stack them, and merge_dims"));
  return bind_all(list_concat_op, {list})[0];
}
Tensor list_split(const Tensor& x, const Tensor& lengths) {
  return bind(list_split_op, {x, lengths});
}

namespace {
const Op* const kListPartOps[] = {&list_gather_op, &list_spread_op, &list_scatter_op,
                                  &list_concat_op, &list_join_op,   &list_split_op,
                                  &list_extend_op, &list_part_op};
}
std::span<const Op* const> list_part_ops() { return kListPartOps; }

}  // namespace reel
