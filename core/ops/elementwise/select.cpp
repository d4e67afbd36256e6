// where and cast.
#include <array>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

constexpr std::string_view kRoles[] = {"condition", "a", "b"};

struct CastAttrs {
  DType dtype;
  template <class F>
  static void fields(F&& f) {
    f("dtype", &CastAttrs::dtype);
  }
};

/// Attributes of where. A where of elements has none.
struct WhereAttrs {
  bool selects_whole = false;  ///< select_whole
  template <class F>
  static void fields(F&& f) {
    f("selects_whole", &WhereAttrs::selects_whole);
  }
};
const AttrsRef& whole() {
  static const AttrsRef& attrs = *new AttrsRef(make_attrs(WhereAttrs{true}));
  return attrs;
}

/// Adds the cotangent of select_whole to the operand that was taken.
void add_to_taken(Vjp& at) {
  const Tensor g = at.cotangent(), none = literal(0, g.dtype());
  for (const std::size_t i : {1, 2}) {
    if (!at.needs(i)) continue;
    const Tensor is_taken = i == 1 ? at.input(0) : logical_not(at.input(0));
    at.add(i, unbroadcast(select_whole(is_taken, g, none), at.input_type(i)), is_taken);
  }
}

}  // namespace

constinit const Op where_op{
    .name = "where",
    .type =
        [](TypeArgs& args) {
          const TensorType &condition = args.in[0], &a = args.in[1], &b = args.in[2];
          if (condition.dtype() != boolean)
            throw DTypeError(str("where: the condition must be boolean, but is ", condition,
                                 "; compare it, e.g. condition != 0"));
          if (a != b) check_same_dtype("where", a, b, Roles(kRoles).subspan(1));
          args.out.push_back(broadcast("where", args.in, kRoles, a.dtype()));
        },
    .kernel = where_kernel,
    .vjp =
        [](Vjp& at) {
          // Rows of vmap have a condition each: then elements are selected.
          if (at.attrs() && !at.input_type(0).rank()) return add_to_taken(at);
          const Tensor &condition = at.input(0), g = at.cotangent();
          if (at.needs(1)) at.add(1, unbroadcast(where(condition, g, 0), at.input_type(1)));
          if (at.needs(2)) at.add(2, unbroadcast(where(condition, 0, g), at.input_type(2)));
        },
    .reads = {.inputs = 1},
    .samples =
        [] {
          const Dim batch("batch", 3), feature("feature", 4);
          const Dim time("time", tensor(std::vector<std::int32_t>{3, 1, 2}, {batch}));
          const Dims shapes[][3] = {
              {{2, 3}, {2, 3}, {2, 3}},
              {{}, {}, {}},
              {{}, {2, 3}, {2, 3}},
              {{2, 3}, {}, {3}},
              {{2, 1}, {1, 9}, {}},
              {{0, 3}, {3}, {}},
              {{batch}, {batch, feature}, {feature}},
              {{feature, batch}, {batch, feature}, {}},
              {{batch, time}, {batch, time}, {batch}},
          };
          OpSamples samples;
          for (const auto& [condition, a, b] : shapes)
            samples.push_back({{{TensorType(boolean, condition), 0, 1, false},
                                {TensorType(f32, a)},
                                {TensorType(f32, b)}}});
          samples.push_back({{{TensorType(boolean), 0, 1, false},
                              {TensorType(f32, {batch, time})},
                              {TensorType(f32, {batch, time})}},
                             whole()});
          return samples;
        },
    .pointwise = true,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b110) == 0b110; },
    .padding = Padding::selected,
};

constinit const Op cast_op{
    .name = "cast",
    .type =
        [](TypeArgs& args) {
          args.out.push_back(retyped(args.in[0], args.attr<CastAttrs>().dtype));
        },
    .kernel = cast_kernel,
    .vjp =
        [](Vjp& at) {
          const DType from = at.input_type(0).dtype();
          if (is_float(from) && is_float(at.output_type().dtype()))
            at.add(0, cast(at.cotangent(), from));
        },
    .samples =
        [] {
          const Dim batch("batch", 3);
          const auto sample = [](DType from, const Dims& dims, DType to) {
            return OpSample{{{TensorType(from, dims), -2, 2, is_float(from) && is_float(to)}},
                            make_attrs(CastAttrs{to})};
          };
          return OpSamples{sample(f32, {2, 9}, f64), sample(f64, {batch}, f32),
                           sample(f32, {5}, i32),    sample(i32, {batch}, f32),
                           sample(i64, {0, 3}, f64), sample(f32, {}, boolean)};
        },
    .pointwise = true,
    .known_integer = [](const Attrs*, std::span<const std::int64_t> in) -> KnownInteger {
      return in[0];
    },
};

Tensor where(const Arg& condition, const Arg& a, const Arg& b) {
  if (condition.is_number())
    throw ArgumentError(
        "where: the condition is a number; it must be a boolean tensor, or C++ chooses: condition "
        "? a : b");
  if (!a.is_number() && !b.is_number()) {
    if (has_slices()) {
      Tensor which = condition.tensor(), x = a.tensor(), y = b.tensor();
      if (meet_slices(std::array{&which, &x, &y})) return bind(where_op, {which, x, y});
    }
    return bind(where_op, {condition.input(), a.input(), b.input()});
  }
  if (a.is_number() && b.is_number()) {
    const DType dtype = a.is_floating() || b.is_floating() ? f32 : i32;
    return bind(where_op, {condition.input(), literal(a, dtype), literal(b, dtype)});
  }
  const Tensor& given = (a.is_number() ? b : a).tensor();
  check_defined("where", given);
  if (has_slices() && condition.tensor().is_defined()) {
    Tensor which = condition.tensor(), x = given;
    if (meet_slices(std::array{&which, &x}))
      return a.is_number() ? where(which, a, x) : where(which, x, b);
  }
  if (a.is_number())
    return bind(where_op,
                {condition.input(), literal("where", a, "b", b.tensor().type()), b.input()});
  return bind(where_op,
              {condition.input(), a.input(), literal("where", b, "a", a.tensor().type())});
}

Tensor select_whole(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return bind(where_op, {condition, a, b}, whole());
}

Tensor cast(const Tensor& x, DType dtype) {
  check_defined("cast", x);
  if (x.dtype() == dtype) return x;
  static const auto& attrs = *new std::array{
      make_attrs(CastAttrs{f32}), make_attrs(CastAttrs{f64}), make_attrs(CastAttrs{i32}),
      make_attrs(CastAttrs{i64}),
      make_attrs(CastAttrs{boolean})};  // never destroyed: global objects may use it at exit
  return bind(cast_op, {x}, attrs[column_of(dtype)]);
}

namespace {
const Op* const kSelectOps[] = {&where_op, &cast_op};
}
std::span<const Op* const> select_ops() { return kSelectOps; }

}  // namespace reel
