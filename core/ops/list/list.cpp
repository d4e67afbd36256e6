#include "reel/core/ops/list/list.h"

#include <cstring>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

void check_index(const TensorType& index, std::string_view op) {
  if (!is_integer(index.dtype()))
    throw DTypeError(str(op, ": a TensorArray index must be an integer, got ", index));
  if (index.rank())
    throw ShapeError(str(op, ": a TensorArray index must be a scalar, got ", index));
}

const Op list_new_op{
    .name = "list_new",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<ListNewAttrs>().list.type); },
    .kernel =
        [](KernelArgs& a) {
          Ref<ListData> data(new ListData);
          data->items.resize(a.attr<ListNewAttrs>().size);
          data->may_grow = a.attr<ListNewAttrs>().may_grow;
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .no_vjp = "has no inputs",
    .samples = [] { return OpSamples{}; },
};

struct WriteAttrs {
  bool is_push = false;
  bool is_open = false;  ///< the list has elements of unknown sizes
  template <class F>
  static void fields(F&& f) {
    f("is_push", &WriteAttrs::is_push);
    f("is_open", &WriteAttrs::is_open);
  }
};

Tensor list_one_hot(const Tensor& x, const Tensor& index, const TensorType& list_type);
/// Returns the element at index, or zeros of the type of `like` if it was not written.
Tensor list_read_like(const Tensor& list, const Tensor& index, const Tensor& like);

const Op list_write_op{
    .name = "list_write",
    .type =
        [](TypeArgs& a) {
          check_element(
              a.in[1], a.in[0],
              a.attr<WriteAttrs>().is_push ? "TensorArray push_back" : "TensorArray write");
          check_index(a.in[2], "TensorArray write");
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const ListData& list = data_of(a.input(0));
          const std::int64_t index = index_at(a.input(2), 0), size = list.items.size();
          check_write(index, size, list.may_grow || a.attr<WriteAttrs>().is_push);
          a.out[0] = edited(a, 0, [&](PersistentList& items) { items.set(index, a.input(1)); });
        },
    // x̄ = l̄[i]. The previous element at i has no cotangent.
    .vjp =
        [](Vjp& at) {
          const Tensor cotangent = at.cotangent();
          if (at.needs(1))
            at.add(1, at.attr<WriteAttrs>().is_open
                          ? list_read_like(cotangent, at.input(2), at.input(1))
                          : list_read(cotangent, at.input(2), true));
          if (at.needs(0)) at.add(0, list_drop(cotangent, at.input(2)));
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          return OpReads{.inputs = get<WriteAttrs>(attrs).is_open ? 0b110u : 0b100u};
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b11,
};

/// Returns the list without the elements at indices.
const Op list_drop_op{
    .name = "list_drop",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& indices = a.input(1);
          a.out[0] = edited(a, 0, [&](PersistentList& items) {
            for (std::int64_t i = 0; i < indices.numel(); ++i)
              if (const std::int64_t index = index_at(indices, i); items.get(index).is_defined())
                items.set(index, Tensor());
          });
        },
    .vjp = [](Vjp& at) { at.add(0, list_drop(at.cotangent(), at.input(1))); },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

const Op list_read_op{
    .name = "list_read",
    .type =
        [](TypeArgs& a) {
          check_index(a.in[1], "TensorArray read");
          a.out.push_back(any_element(a.in[0]));
        },
    .kernel =
        [](KernelArgs& a) {
          const std::int64_t index = index_at(a.input(1), 0), size = items_of(a.input(0)).size();
          if (!a.attr<ListReadAttrs>().is_lenient && (index < 0 || index >= size))
            throw IndexError(
                str("TensorArray read: index ", index, " is out of range for ", size, " elements"));
          a.decided->push_back(element_or_zeros(a.input(0), index));
        },
    .vjp = [](Vjp& at) { at.add(0, list_one_hot(at.cotangent(), at.input(1), at.input_type(0))); },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = 0b1,
};

const Op list_read_like_op{
    .name = "list_read_like",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[2]); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& found = items_of(a.input(0)).get(index_at(a.input(1), 0));
          a.decided->push_back(found.is_defined() ? found : zeros(a.input(2).type()));
        },
    .vjp = [](Vjp& at) { at.add(0, list_one_hot(at.cotangent(), at.input(1), at.input_type(0))); },
    .reads = {.inputs = 0b10},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = 0b101,
};
Tensor list_read_like(const Tensor& list, const Tensor& index, const Tensor& like) {
  return bind(list_read_like_op, {list, index, like});
}

const Op list_one_hot_op{
    .name = "list_one_hot",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<ListTypeAttrs>().list.type); },
    .kernel =
        [](KernelArgs& a) {
          Ref<ListData> data(new ListData);
          data->items.set(index_at(a.input(1), 0), a.input(0));
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, is_open(at.attr<ListTypeAttrs>().list.type)
                        ? list_read_like(at.cotangent(), at.input(1), at.input(0))
                        : list_read(at.cotangent(), at.input(1), true));
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          return OpReads{.inputs = is_open(get<ListTypeAttrs>(attrs).list.type) ? 0b11u : 0b10u};
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};
Tensor list_one_hot(const Tensor& x, const Tensor& index, const TensorType& list_type) {
  return bind(list_one_hot_op, {x, index}, make_attrs(ListTypeAttrs{{list_type}}));
}

struct IndexAttrs {
  std::string method;  ///< of TensorArray, for messages
  template <class F>
  static void fields(F&& f) {
    f("method", &IndexAttrs::method);
  }
};

const Op list_index_op{
    .name = "list_index",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[1].with(i64)); },
    .kernel =
        [](KernelArgs& a) {
          const std::int64_t size = items_of(a.input(0)).size();
          const Tensor& indices = a.input(1);
          auto* out = a.make().data<std::int64_t>();
          for (std::int64_t i = 0; i < indices.numel(); ++i) {
            const std::int64_t index = index_at(indices, i);
            if (index < -size || index >= size)
              throw IndexError(str("TensorArray ", a.attr<IndexAttrs>().method, ": index ", index,
                                   " is out of range for ", size, " elements"));
            out[i] = index < 0 ? index + size : index;
          }
        },
    .no_vjp = "an index is an integer",
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

const Op list_stack_op{
    .name = "list_stack",
    .type =
        [](TypeArgs& a) {
          const TensorType element = any_element(a.in[0]);
          a.out.push_back(
              element.with(behind(a.attr<ListStackAttrs>().dim.value_or(Dim::unknown()), element)));
        },
    .kernel =
        [](KernelArgs& a) {
          const ListStackAttrs& attrs = a.attr<ListStackAttrs>();
          const PersistentList& items = items_of(a.input(0));
          const bool has_size = attrs.dim && attrs.dim->has_size();
          const std::int64_t count = has_size ? attrs.dim->size() : items.size();
          if (count != items.size() && !attrs.is_lenient)
            throw ShapeError(str("TensorArray stack: dim ", *attrs.dim, " has size ", count,
                                 ", but the array has ", items.size(), " elements"));
          TensorType element = a.input(0).type().element();
          items.each([&](std::int64_t i, const Tensor& x) {
            if (element.is_known() && x.type() != element)
              throw ShapeError(str("TensorArray stack: element ", i, " is ", x.type(),
                                   ", others are ", element,
                                   "; elements to be stacked must have equal shapes"));
            element = x.type();
          });
          if (!element.is_known() && !attrs.is_lenient)
            throw ShapeError(str(
                "TensorArray stack: ", count ? "no element was written" : "there are no elements",
                ", and their shape, ", element, ", is not known"));
          if (!element.is_known()) {  // no elements: an unknown size counts as zero
            Dims dims;
            for (const Dim& dim : element.dims()) dims.push_back(dim.has_size() ? dim : Dim(0));
            element = element.with(dims);
          }
          const Dim leading = has_size ? *attrs.dim : Dim(count);
          Tensor out(allocate_block(element.with(behind(leading, element))));
          char* to = out.data<char>();
          const std::size_t bytes = static_cast<std::size_t>(element.bytes());
          if (bytes) {
            for (std::int64_t i = 0; i < count; ++i, to += bytes) {
              const Tensor& x = items.get(i);
              if (x.is_defined())
                std::memcpy(to, x.data<char>(), bytes);
              else
                std::memset(to, 0, bytes);
            }
          }
          a.decided->push_back(std::move(out));
        },
    .vjp =
        [](Vjp& at) {
          at.add(0,
                 list_of_type(list_unstack(without_padding(at.cotangent(), 0)), at.input_type(0)));
        },
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = 0b1,
};

const Op list_unstack_op{
    .name = "list_unstack",
    .type =
        [](TypeArgs& a) {
          if (!a.in[0].rank())
            throw ShapeError(str("TensorArray unstack: ", a.in[0], " has no axis to take apart"));
          a.out.push_back(without_first(a.in[0]).as_list());
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = a.input(0);
          const TensorType element = a.types[0].element();
          Ref<ListData> data(new ListData);
          const std::int64_t count = x.type().sizes()[0];
          for (std::int64_t i = 0; i < count; ++i)
            data->items.set(
                i, Tensor(allocate_view(element, x.ref(), x.data<char>() + i * element.bytes())));
          data->items.resize(count);
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .vjp =
        [](Vjp& at) {
          const TensorType& x = at.input_type(0);
          Tensor stacked = list_stack(at.cotangent(), x.dims()[0], true);
          at.add(0, std::move(stacked));
        },
    .samples = [] { return OpSamples{}; },
};

const Op list_size_op{
    .name = "list_size",
    .type = [](TypeArgs& a) { a.out.push_back(TensorType(i32)); },
    .kernel =
        [](KernelArgs& a) {
          *a.make().data<std::int32_t>() =
              checked_i32(items_of(a.input(0)).size(), "TensorArray", "its size");
        },
    .no_vjp = "a size is an integer",
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

}  // namespace

Tensor list_new(const TensorType& element, std::int64_t size, bool may_grow) {
  return bind(list_new_op, {}, make_attrs(ListNewAttrs{{element.as_list()}, size, may_grow}));
}
Tensor empty_list(const TensorType& list_type) { return list_new(list_type.element(), 0); }

Tensor list_write(Tensor list, const Tensor& x, const Tensor& index) {
  const AttrsRef attrs = make_attrs(WriteAttrs{false, is_open(list.type())});
  return bind(list_write_op, {std::move(list), x, index}, attrs);
}
Tensor list_push(Tensor list, const Tensor& x) {
  const Tensor index = list_size(list);
  const AttrsRef attrs = make_attrs(WriteAttrs{true, is_open(list.type())});
  return bind(list_write_op, {std::move(list), x, index}, attrs);
}
Tensor list_drop(Tensor list, const Tensor& indices) {
  return bind(list_drop_op, {std::move(list), indices});
}
Tensor list_read(const Tensor& list, const Tensor& index, bool is_lenient) {
  check_index(index.type(), "TensorArray read");
  return bind(list_read_op, {list, is_lenient ? index : list_index(list, index)},
              make_attrs(ListReadAttrs{is_lenient}));
}
Tensor list_index(const Tensor& list, const Tensor& indices, const std::string& method) {
  return bind(list_index_op, {list, indices}, make_attrs(IndexAttrs{method}));
}
Tensor list_stack(const Tensor& list, const std::optional<Dim>& dim, bool is_lenient) {
  return bind(list_stack_op, {list},
              make_attrs(ListStackAttrs{dim ? std::optional(canonical(*dim)) : dim, is_lenient}));
}
Tensor list_unstack(const Tensor& x) { return bind(list_unstack_op, {x}); }
Tensor list_size(const Tensor& list) { return bind(list_size_op, {list}); }
bool is_list_push(const OpRecord& record) {
  return record.op == &list_write_op && get<WriteAttrs>(record.attrs.get()).is_push;
}
bool is_list_size(const OpRecord& record) { return record.op == &list_size_op; }

Tensor make_list(const TensorType& element, const Tensors& elements) {
  Ref<ListData> data(new ListData);
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i].is_defined()) data->items.set(static_cast<std::int64_t>(i), elements[i]);
  data->items.resize(static_cast<std::int64_t>(elements.size()));
  return Tensor(allocate_list(element.as_list(), data));
}

Tensors list_elements(const Tensor& list) {
  Tensors result(static_cast<std::size_t>(items_of(list).size()));
  items_of(list).each(
      [&](std::int64_t i, const Tensor& x) { result[static_cast<std::size_t>(i)] = x; });
  return result;
}

namespace {
const Op* const kListOps[] = {&list_new_op,       &list_write_op,   &list_drop_op,  &list_read_op,
                              &list_read_like_op, &list_one_hot_op, &list_index_op, &list_stack_op,
                              &list_unstack_op,   &list_size_op};
}
std::span<const Op* const> list_ops() { return kListOps; }

}  // namespace reel
