// Ops that create tensors from numbers: full, constant, full_like.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

// ---- Numbers ------------------------------------------------------------------------------------

/// A number as an attribute: `number` for floats and booleans, `integer` for integers. Both are
/// exact, and the other one is zero.
struct Number {
  double number = 0;
  std::int64_t integer = 0;

  template <class T>
  T as() const {
    if constexpr (std::is_same_v<T, bool>)
      return number != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(integer);
    else
      return static_cast<T>(number);
  }
};

/// Throws DTypeError if a tensor of the dtype cannot hold the number.
Number checked(std::string_view op, DType dtype, DType kind, double number, std::int64_t integer) {
  if (is_float(dtype)) return {number, 0};
  if (dtype == boolean) {
    if (number != 0 && number != 1)
      throw DTypeError(str(op, ": ", number, " is no boolean; give true or false, 1 or 0"));
    return {number, 0};
  }
  if (kind == f64) {
    if (std::trunc(number) != number)
      throw DTypeError(str(op, ": ", number, " does not fit ", dtype,
                           ", which holds integers; give a dtype of f32 or f64"));
    if (!(number >= -0x1p63 && number < 0x1p63))
      throw DTypeError(str(op, ": ", number, " does not fit ", dtype));
    integer = static_cast<std::int64_t>(number);
  }
  if (dtype == i32 && integer != static_cast<std::int32_t>(integer))
    throw DTypeError(str(op, ": ", integer, " does not fit i32; give the dtype i64"));
  return {0, integer};
}
Number checked(std::string_view op, DType dtype, const NestedList& value) {
  if (value.is_list())
    throw ArgumentError(str(op, ": takes one number, not a list; use tensor() for lists"));
  return checked(op, dtype, value.kind(), value.number(), value.integer());
}

DType default_dtype(DType kind) { return kind == f64 ? f32 : kind == i64 ? i32 : boolean; }

void fill(const Tensor& tensor, const Number& value) {
  visit(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T element = value.as<T>();
    if (tensor.type().numel() == 1)
      *tensor.data<T>() = element;
    else
      fill_items(sizeof(T), tensor.data<void>(), tensor.type().numel(), &element);
  });
}

// ---- full ---------------------------------------------------------------------------------------

TensorType ragged_type(DType dtype) {
  static const Dim& batch = *new Dim("batch", 3);
  static const Dim& time = *new Dim("time", tensor({3, 0, 1}, {batch}));
  return TensorType(dtype, {batch, time});
}

}  // namespace

const Op full_op{
    .name = "full",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<FullAttrs>().type); },
    .kernel =
        [](KernelArgs& a) {
          const FullAttrs& attrs = a.attr<FullAttrs>();
          fill(a.make(), {attrs.number, attrs.integer});
        },
    .no_vjp = "has no inputs",
    .samples =
        [] {
          return OpSamples{
              {{}, make_attrs(FullAttrs{TensorType(f32, {2, 3}), 0.1, 0})},
              {{}, make_attrs(FullAttrs{TensorType(i64, {2}), 0, (std::int64_t{1} << 53) + 1})},
              {{}, make_attrs(FullAttrs{TensorType(boolean, {0, 2}), 1, 0})},
              {{}, make_attrs(FullAttrs{ragged_type(f32), -1, 0})}};
        },
    .known_integer = [](const Attrs* attrs, std::span<const std::int64_t>) -> KnownInteger {
      const auto& [type, number, integer] = get<FullAttrs>(attrs);
      if (type.rank() || is_float(type.dtype())) return std::nullopt;
      return integer;
    },
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          for (int axis = 0; axis < call.out[0].rank(); ++axis)
            f.out(0, axis) = f.add(Role::repeated);
        },
    .zero_if =
        [](const Attrs* attrs, std::uint32_t) {
          const auto& full = get<FullAttrs>(attrs);
          return full.number == 0 && full.integer == 0;
        },
    .fails = never_fails,
};

namespace {

Tensor full_of(std::string_view function, const TensorType& type, const Number& value) {
  if (type.is_unranked()) refuse_unranked(type);
  if (type.is_list())
    throw ArgumentError(
        str(function, ": ", type, " is the type of a TensorArray, not of a tensor"));
  if (is_tracing())
    return bind(full_op, {}, make_attrs(FullAttrs{type, value.number, value.integer}));
  if (!type.is_known())
    throw ShapeError(
        str(function, ": ", type, " has an axis of unknown size; give every dim a size"));
  // Without inputs there is nothing for a tape to record.
  Tensor result(allocate_block(type));
  fill(result, value);
  return result;
}

const TensorType& scalar_type(DType dtype) {
  static const auto& types =
      *new std::array{TensorType(f32), TensorType(f64), TensorType(i32), TensorType(i64),
                      TensorType(boolean)};  // never destroyed: global objects may use it at exit
  return types[static_cast<int>(dtype)];
}

/// Returns the type of a tensor to create. Errors name `function`.
TensorType type_of(std::string_view function, DType dtype, const Dims& dims) {
  if (dims.empty()) return scalar_type(dtype);
  return as_function(function, [&] { return TensorType(dtype, dims); });
}

// ---- full_like ----------------------------------------------------------------------------------

struct FullLikeAttrs {
  double value = 0;
  template <class F>
  static void fields(F&& f) {
    f("value", &FullLikeAttrs::value);
  }
};

Number number_for(DType dtype, int value) {
  return is_integer(dtype) ? Number{0, value} : Number{static_cast<double>(value), 0};
}

/// For rows of vmap. An iteration of a loop makes its own value, which costs less than a slice of
/// the values of all iterations.
Tensors full_like_of_rows(const IterationBatch& at) {
  if (!at.is_vmap) return {};
  return {reel::bind(at.op, {at.in[0]}, at.attrs)};
}

}  // namespace

const Op full_like_op{
    .name = "full_like",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          Tensor& out = a.make();  // not in x's buffer: x may be dead, but only its shape is read,
                                   // which is not worth a dependency
          fill(out, number_for(out.dtype(), static_cast<int>(a.attr<FullLikeAttrs>().value)));
        },
    .no_vjp = "depends on the shape of its input only",
    .samples =
        [] {
          return OpSamples{
              {{{TensorType(f32, {2, 3}), -2, 2, false}}, make_attrs(FullLikeAttrs{1})},
              {{{TensorType(i32, {0}), -2, 2, false}}, make_attrs(FullLikeAttrs{0})},
              {{{ragged_type(f32), -2, 2, false}}, make_attrs(FullLikeAttrs{0})}};
        },
    .iteration_batching = full_like_of_rows,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          for (int axis = 0; axis < call.out[0].rank(); ++axis)
            f.in(0, axis) = f.out(0, axis) = f.add(Role::repeated);
        },
    .zero_if = [](const Attrs* attrs,
                  std::uint32_t) { return get<FullLikeAttrs>(attrs).value == 0; },
    .fails = never_fails,
    .padding = Padding::unread,
};

namespace {

Tensor full_like(std::string_view function, const Tensor& x, int value) {
  check_defined(function, x);
  const TensorType& type = x.type();
  const Number number = number_for(type.dtype(), value);
  // Known plain sizes, and a tensor from outside the trace, have their shape without reading x.
  if (type.node()->is_permanent) return full_of(function, type, number);
  if (!x.is_traced())
    return full_of(function, is_tracing() ? type.with(type.dims()) : type, number);
  return bind(full_like_op, {x}, make_attrs(FullLikeAttrs{static_cast<double>(value)}));
}

}  // namespace

namespace {

// ---- constant -----------------------------------------------------------------------------------

void check_count(std::int64_t count, const TensorType& type) {
  if (type.is_known() && type.numel() != count)
    throw ShapeError(str(
        "tensor: ", count, " values given for ", type, ", which has ", type.numel(), " elements",
        type.is_ragged() ? ", padding included; rows without padding: ragged(rows, "
                           "dims)"
                         : ""));
}

std::string_view bits_of(const Tensor& data) {
  return {data.data<char>(), static_cast<std::size_t>(data.type().bytes())};
}

}  // namespace

bool Numbers::operator==(const Numbers& other) const {
  return data.type() == other.data.type() && bits_of(data) == bits_of(other.data);
}
std::size_t hash_of(const Numbers& numbers) {  // called by each merge_equal, for a few constants
  return std::hash<std::string_view>{}(bits_of(numbers.data).substr(0, 1024));
}
std::ostream& operator<<(std::ostream& out, const Numbers& numbers) { return out << numbers.data; }

const Op constant_op{
    .name = "constant",
    .type =
        [](TypeArgs& a) {
          const ConstantAttrs& attrs = a.attr<ConstantAttrs>();
          check_count(attrs.numbers.data.type().numel(), attrs.type);
          a.out.push_back(attrs.type);
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& data = a.attr<ConstantAttrs>().numbers.data;
          a.out[0] = Tensor(allocate_view(a.types[0], data.ref(), data.block()->data));
        },
    .storage = OpStorage::any,
    .no_vjp = "has no inputs",
    .samples =
        [] {
          return OpSamples{{{},
                            make_attrs(ConstantAttrs{{tensor({1., 2.5, 3., 4., 5., 6.})},
                                                     TensorType(f32, {2, 3})})},
                           {{}, make_attrs(ConstantAttrs{{tensor({7}, {}, i64)}, TensorType(i64)})},
                           {{}, make_attrs(ConstantAttrs{{zeros({9})}, ragged_type(f32)})}};
        },
};

namespace {

/// Makes a tensor of `count` elements; write(pointer) fills it with elements of the dtype.
template <class Write>
Tensor make_tensor(std::int64_t count, const Dims& dims, DType dtype, Write&& write) {
  const TensorType type = type_of("tensor", dtype, dims);
  check_count(count, type);
  if (!is_tracing()) {
    Tensor result(allocate_block(type));
    write(result.data<void>());
    return result;
  }
  Tensor data;
  {
    ModeScope eager({});
    data = Tensor(allocate_block(TensorType(dtype, {Dim(count)})));
    write(data.data<void>());
  }
  return bind(constant_op, {}, make_attrs(ConstantAttrs{{std::move(data)}, type}));
}

/// Returns the dims with sizes for those that are only a name: from the nesting `sizes` of the
/// numbers. For one flat list, which may fill any dims, a single such dim gets the size that the
/// others leave.
Dims with_sizes(Dims dims, const std::vector<std::int64_t>& sizes, DType dtype) {
  const auto is_name = [](const Dim& dim) { return dim.is_undefined(); };
  const auto open = std::find_if(dims.begin(), dims.end(), is_name);
  if (open == dims.end()) return dims;
  if (sizes.size() == dims.size()) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (is_name(dims[i])) dims[i] = Dim(dims[i].name(), sizes[i]);
    return dims;
  }
  std::int64_t others = 1;
  for (const Dim& dim : dims)
    if (!is_name(dim)) others *= dim.size();
  if (std::count_if(dims.begin(), dims.end(), is_name) > 1 || others == 0 || sizes[0] % others)
    throw ShapeError(str("tensor: ", sizes[0], " values in one list do not tell the sizes of ",
                         dtype, dims, "; give sizes to all dims but one, or nest the lists"));
  *open = Dim(open->name(), sizes[0] / others);
  return dims;
}

// ---- Nested lists -------------------------------------------------------------------------------

/// Walks nested lists: reads their shape from the first items and checks that the others agree.
class NestedReader {
 public:
  explicit NestedReader(std::initializer_list<NestedList> values) {
    sizes_.push_back(static_cast<std::int64_t>(values.size()));
    bool is_first = true;
    for (const NestedList& item : values) {
      read(item, 1, is_first);
      is_first = false;
    }
  }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const std::vector<const NestedList*>& numbers() const { return numbers_; }

 private:
  void read(const NestedList& item, std::size_t depth, bool is_first) {
    if (is_first && item.is_list())
      sizes_.push_back(static_cast<std::int64_t>(item.items().size()));
    if (item.is_list() != (depth < sizes_.size()))
      throw ShapeError(str("tensor: the lists are uneven: a number stands beside a list"));
    if (!item.is_list()) {
      numbers_.push_back(&item);
      return;
    }
    if (static_cast<std::int64_t>(item.items().size()) != sizes_[depth])
      throw ShapeError(str("tensor: the lists are uneven: one of ", item.items().size(),
                           " items stands beside one of ", sizes_[depth]));
    for (const NestedList& inner : item.items()) {
      read(inner, depth + 1, is_first);
      is_first = false;
    }
  }

  std::vector<std::int64_t> sizes_;
  std::vector<const NestedList*> numbers_;
};

void check_nesting(const std::vector<std::int64_t>& sizes, const Dims& dims, DType dtype) {
  bool fits = sizes.size() == dims.size();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i)
    fits = !dims[i].has_size() || dims[i].size() == sizes[i];
  if (!fits)
    throw ShapeError(str("tensor: lists nested as [", join(sizes, ","), "] do not fit ", dtype,
                         dims, "; nest them as the dims, or give one flat list"));
}

DType dtype_of_numbers(const std::vector<const NestedList*>& numbers) {
  if (numbers.empty()) return f32;
  DType kind = boolean;
  for (const NestedList* number : numbers) {
    if (number->kind() == f64) return f32;
    if (number->kind() == i64) kind = i64;
  }
  return default_dtype(kind);
}

}  // namespace

// ---- Public functions ---------------------------------------------------------------------------

Tensor tensor(std::initializer_list<NestedList> values, const Dims& dims,
              std::optional<DType> dtype) {
  const NestedReader lists(values);
  const auto& numbers = lists.numbers();
  const DType type = dtype.value_or(dtype_of_numbers(numbers));
  if (!dims.empty() && lists.sizes().size() > 1) check_nesting(lists.sizes(), dims, type);
  const Dims plain(lists.sizes().begin(), lists.sizes().end());
  const Dims sized = dims.empty() ? plain : with_sizes(dims, lists.sizes(), type);
  std::vector<Number> checked_numbers;
  checked_numbers.reserve(numbers.size());
  for (const NestedList* number : numbers)
    checked_numbers.push_back(checked("tensor", type, *number));
  return make_tensor(static_cast<std::int64_t>(numbers.size()), sized, type, [&](void* to) {
    visit(type, [&](auto zero) {
      using T = decltype(zero);
      T* element = static_cast<T*>(to);
      for (const Number& number : checked_numbers) *element++ = number.as<T>();
    });
  });
}

namespace {
/// values: a vector or span of T.
template <class T, class Values>
Tensor tensor_of(const Values& values, const Dims& dims, std::optional<DType> dtype) {
  const DType type = dtype.value_or(dtype_of<T>());
  const auto count = static_cast<std::int64_t>(values.size());
  constexpr DType kKind = std::is_same_v<T, bool> ? boolean : std::is_integral_v<T> ? i64 : f64;
  if (!is_float(type) && type != dtype_of<T>())
    for (const T value : values)
      checked("tensor", type, kKind, static_cast<double>(value), static_cast<std::int64_t>(value));
  const Dims sized = dims.empty() ? Dims{Dim(count)} : with_sizes(dims, {count}, type);
  return make_tensor(count, sized, type, [&](void* to) {
    visit(type, [&](auto zero) {
      using To = decltype(zero);
      std::transform(values.begin(), values.end(), static_cast<To*>(to),
                     [](T value) { return static_cast<To>(value); });
    });
  });
}
}  // namespace

namespace detail {
Tensor tensor_of_bits(const std::vector<bool>& values, const Dims& dims,
                      std::optional<DType> dtype) {
  return tensor_of<bool>(values, dims, dtype);
}
template <class T>
Tensor tensor_of_span(std::span<const T> values, const Dims& dims, std::optional<DType> dtype) {
  return tensor_of<T>(values, dims, dtype);
}
template REEL_API Tensor tensor_of_span(std::span<const float>, const Dims&, std::optional<DType>);
template REEL_API Tensor tensor_of_span(std::span<const double>, const Dims&, std::optional<DType>);
template REEL_API Tensor tensor_of_span(std::span<const std::int32_t>, const Dims&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_span(std::span<const std::int64_t>, const Dims&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_span(std::span<const bool>, const Dims&, std::optional<DType>);
}  // namespace detail

Tensor scalar(const NestedList& value, std::optional<DType> dtype) {
  const DType type = dtype.value_or(default_dtype(value.kind()));
  return full_of("scalar", scalar_type(type), checked("scalar", type, value));
}

Tensor zeros(const TensorType& type) {
  return full_of("zeros", thread_mode.entries ? type.with(type.dims()) : type, {});
}
Tensor zeros(const Dims& dims, DType dtype) {
  return full_of("zeros", type_of("zeros", dtype, dims), {});
}
Tensor ones(const Dims& dims, DType dtype) {
  return full_of("ones", type_of("ones", dtype, dims), checked("ones", dtype, 1));
}
Tensor full(const Dims& dims, const NestedList& value, DType dtype) {
  return full_of("full", type_of("full", dtype, dims), checked("full", dtype, value));
}
Tensor zeros_like(const Tensor& x) { return full_like("zeros_like", x, 0); }
Tensor ones_like(const Tensor& x) { return full_like("ones_like", x, 1); }

namespace {
const Op* const kCreationOps[] = {&full_op, &full_like_op, &constant_op, &range_op, &one_hot_op};
}
std::span<const Op* const> creation_ops() { return kCreationOps; }

}  // namespace reel
