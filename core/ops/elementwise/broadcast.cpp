#include "reel/core/ops/elementwise/broadcast.h"

#include <algorithm>
#include <new>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

// ---- Messages -----------------------------------------------------------------------------------

std::string list(std::span<const TensorType> operands, Roles roles) {
  std::string result;
  for (std::size_t k = 0; k < operands.size(); ++k)
    result += str(k ? ", " : "", roles[k], ' ', operands[k]);
  return result;
}

Dims lacking(const TensorType& type, const Dims& all) {
  Dims result;
  for (const Dim& dim : all)
    if (!contains(type.dims(), dim)) result.push_back(dim);
  return result;
}

[[noreturn]] void refuse_mixed(std::string_view op, std::span<const TensorType> operands,
                               Roles roles) {
  std::size_t named = 0, plain = 0;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].rank()) (operands[k].is_named() ? named : plain) = k;
  throw ShapeError(
      str(op, ": named and plain dims meet: ", list(operands, roles), "; name the dims of ",
          roles[plain], ": make it with them, e.g. tensor(..., {", operands[named].dims()[0].name(),
          "}), or reshape(", roles[plain], ", {", operands[named].dims()[0].name(), "})"));
}

[[noreturn]] void refuse_dims(std::string_view op, std::span<const TensorType> operands,
                              Roles roles) {
  Dims all;
  for (const TensorType& type : operands)
    for (const Dim& dim : type.dims())
      if (!contains(all, dim)) all.push_back(dim);
  std::string missing, twins;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].rank()) continue;
    missing += str(missing.empty() ? "" : ", ", roles[k], ' ', operands[k], " lacks ",
                   join(lacking(operands[k], all), " and "));
  }
  for (std::size_t i = 0; i < operands.size() && twins.empty(); ++i)
    for (std::size_t j = 0; j < i && twins.empty(); ++j)
      twins = one_dim_hint(operands[i].dims(), operands[j].dims());
  throw ShapeError(str(
      op, ": dims differ: ", missing,
      operands.size() == 2 ? "; each lacks a dim of the other, but one" : "; one",
      " operand must have all dims of the result: give it the missing ones with expand", twins));
}

[[noreturn]] void refuse_sizes(std::string_view op, std::span<const TensorType> operands,
                               Roles roles, int axis, const Dim& a, const Dim& b) {
  throw ShapeError(str(op, ": sizes differ: ", list(operands, roles), "; axis ", axis,
                       " has sizes ", a, " and ", b, ", which must be equal, or one of them 1"));
}

// ---- Rules --------------------------------------------------------------------------------------

void check_rank(std::string_view op, std::span<const TensorType> operands, Roles roles, int rank) {
  if (rank > kMaxBroadcastAxes)
    throw ShapeError(str(op, ": ", list(operands, roles), "; at most ", kMaxBroadcastAxes,
                         " axes can be broadcast"));
}

/// Returns the dims of one operand with the dtype; reuses the type of another operand if it is the
/// same.
TensorType as_operand(std::span<const TensorType> operands, std::size_t k, DType dtype) {
  for (const TensorType& type : operands)
    if (type.dtype() == dtype && same_dims(type.dims(), operands[k].dims())) return type;
  return retyped(operands[k], dtype);
}

TensorType broadcast_named(std::string_view op, std::span<const TensorType> operands, Roles roles,
                           DType dtype) {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Dims& all = operands[k].dims();
    bool has_all = true;
    for (std::size_t j = 0; j < operands.size() && has_all; ++j)
      for (const Dim& dim : operands[j].dims()) has_all = has_all && (j == k || contains(all, dim));
    if (!has_all) continue;
    check_rank(op, operands, roles, operands[k].rank());
    return as_operand(operands, k, dtype);
  }
  refuse_dims(op, operands, roles);
}

bool is_one(const Dim& dim) { return dim.raw_size() == 1; }

TensorType broadcast_plain(std::string_view op, std::span<const TensorType> operands, Roles roles,
                           DType dtype) {
  int rank = 0;
  for (const TensorType& type : operands) rank = std::max(rank, type.rank());
  check_rank(op, operands, roles, rank);
  const Dim* result[kMaxBroadcastAxes] = {};
  for (const TensorType& type : operands)
    for (int i = 0; i < type.rank(); ++i) {
      const int axis = i + rank - type.rank();
      const Dim &dim = type.dims()[i], *so_far = result[axis];
      if (!so_far || is_one(*so_far)) {
        result[axis] = &dim;
      } else if (!is_one(dim) && dim.has_size()) {
        if (so_far->has_size() && so_far->size() != dim.size())
          refuse_sizes(op, operands, roles, axis - rank, *so_far, dim);
        result[axis] = &dim;  // a static size decides an unknown one
      }
    }
  const auto is_result = [&](const TensorType& type) {
    if (type.rank() != rank) return false;
    for (int i = 0; i < rank; ++i)
      if (!(type.dims()[i] == *result[i])) return false;
    return true;
  };
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (is_result(operands[k])) return as_operand(operands, k, dtype);
  Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(*result[i]);
  return TensorType(dtype, dims);
}

// ---- Cotangents ---------------------------------------------------------------------------------

struct SumToAttrs {
  TensorType to{f32};
  template <class F>
  static void fields(F&& f) {
    f("to", &SumToAttrs::to);
  }
};

Tensor unbroadcast_named(Tensor cotangent, const TensorType& to) {
  std::vector<Axis> repeated;
  for (int i = 0; i < cotangent.rank(); ++i)
    if (!contains(to.dims(), cotangent.dims()[i])) repeated.emplace_back(i);
  if (!repeated.empty()) cotangent = sum(cotangent, Axes(std::move(repeated)));
  return cotangent.dims() == to.dims() ? cotangent : transpose(cotangent, Axes(to.dims()));
}

Tensor unbroadcast_plain(Tensor cotangent, const TensorType& to) {
  const Dims& from = cotangent.dims();
  const int extra = cotangent.rank() - to.rank();
  std::vector<Axis> repeated;
  bool is_certain = true, keeps_ones = false;
  for (int i = 0; i < cotangent.rank(); ++i) {
    if (i < extra) {
      repeated.emplace_back(i);
    } else if (!(to.dims()[i - extra] == from[i])) {
      is_certain = is_certain && is_one(to.dims()[i - extra]);
      keeps_ones = true;
      repeated.emplace_back(i);
    }
  }
  // Only a run determines if an axis of unknown size was repeated.
  if (!is_certain || (keeps_ones && !to.is_known()))
    return bind(sum_to_op, {cotangent}, make_attrs(SumToAttrs{to}));
  if (!repeated.empty()) cotangent = sum(cotangent, Axes(std::move(repeated)));
  return keeps_ones ? reshape(cotangent, to.dims()) : cotangent;
}

[[noreturn]] void refuse_cotangent(const TensorType& from, const TensorType& to) {
  throw ShapeError(str("sum_to: the value ", to, " does not broadcast to its cotangent ", from));
}

/// Throws ShapeError unless a tensor of type `to` can be repeated to the type `from`.
void check_can_be_summed(const TensorType& from, const TensorType& to) {
  const auto is_missing = [&](const Dim& dim) { return !contains(from.dims(), dim); };
  if (from.rank() < to.rank() || (to.is_named() && std::ranges::any_of(to.dims(), is_missing)))
    refuse_cotangent(from, to);
  const std::size_t extra = from.dims().size() - to.dims().size();
  for (std::size_t i = 0; i < to.dims().size(); ++i)
    if (!to.is_named() && !(to.dims()[i] == from.dims()[extra + i]) && !is_one(to.dims()[i]))
      refuse_cotangent(from, to);
}

}  // namespace

TensorType retyped(const TensorType& type, DType dtype) {
  if (type.dtype() == dtype) return type;
  if (!type.node()->is_permanent) return type.with(dtype);
  // Types of plain sizes are never freed: remember the latest look-ups of this thread.
  struct Entry {
    const TypeNode* from;
    DType dtype;
    alignas(TensorType) std::byte to[sizeof(TensorType)];
  };
  constexpr std::size_t kEntries = 64;
  static constinit thread_local Entry entries[kEntries] = {};
  Entry& entry = entries[(type.node()->hash + static_cast<std::size_t>(dtype)) % kEntries];
  if (entry.from != type.node() || entry.dtype != dtype) {
    new (entry.to) TensorType(type.with(dtype));
    entry.from = type.node();
    entry.dtype = dtype;
  }
  return *std::launder(reinterpret_cast<const TensorType*>(entry.to));
}

TensorType broadcast(std::string_view op, std::span<const TensorType> operands, Roles roles,
                     DType dtype) {
  bool any_named = false, any_plain = false;
  std::size_t first = 0;  // the first operand with dims
  for (std::size_t k = operands.size(); k-- > 0;) {
    if (operands[k].rank() == 0) continue;
    (operands[k].is_named() ? any_named : any_plain) = true;
    first = k;
  }
  bool is_same = true;
  for (const TensorType& type : operands)
    is_same = is_same && (type.rank() == 0 || same_dims(type.dims(), operands[first].dims()));
  if (is_same) return as_operand(operands, first, dtype);
  if (any_named && any_plain) refuse_mixed(op, operands, roles);
  return any_named ? broadcast_named(op, operands, roles, dtype)
                   : broadcast_plain(op, operands, roles, dtype);
}

void check_same_dtype(std::string_view op, const TensorType& a, const TensorType& b, Roles roles) {
  if (a.dtype() == b.dtype()) return;
  throw DTypeError(str(op, ": dtypes differ: ", roles[0], ' ', a, ", ", roles[1], ' ', b,
                       "; cast one of them, e.g. cast(", roles[1], ", ", a.dtype(), ')'));
}

Tensor unbroadcast(Tensor cotangent, const TensorType& to) {
  if (cotangent.type() == to) return cotangent;
  if (to.rank() == 0) return sum(cotangent);
  return to.is_named() ? unbroadcast_named(std::move(cotangent), to)
                       : unbroadcast_plain(std::move(cotangent), to);
}

const Op sum_to_op{
    .name = "sum_to",
    .type =
        [](TypeArgs& args) {
          const TensorType& to = args.attr<SumToAttrs>().to;
          if (args.in[0].rank() < to.rank()) refuse_cotangent(args.in[0], to);
          if (args.in[0].is_known() && to.is_known()) check_can_be_summed(args.in[0], to);
          args.out.push_back(to);
        },
    // All sizes are known in a run: then it is a sum and a reshape.
    .kernel =
        [](KernelArgs& args) {
          ModeScope plain({});
          check_can_be_summed(args.input(0).type(), args.types[0]);
          args.out[0] = unbroadcast(args.input(0), args.types[0]);
        },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, add(zeros(at.input_type(0)), at.cotangent())); },
    .samples =
        [] {
          const auto sample = [](const Dims& from, const Dims& to) {
            return OpSample{{{TensorType(f32, from)}}, make_attrs(SumToAttrs{TensorType(f32, to)})};
          };
          return OpSamples{sample({2, 3}, {3}), sample({2, 3}, {2, 1}), sample({4, 2, 3}, {1, 3}),
                           sample({0, 3}, {3}), sample({2, 3}, {2, 3})};
        },
};

std::int64_t broadcast_stride(const TypeNode& operand, const TypeNode& result, int axis) {
  int at = axis - static_cast<int>(result.dims.size() - operand.dims.size());
  if (result.is_named) at = operand.dims.empty() ? -1 : find(operand.dims, result.dims[axis]);
  if (at < 0 || operand.sizes[at] == 1) return 0;
  std::int64_t stride = 1;
  for (std::size_t i = at + 1; i < operand.sizes.size(); ++i) stride *= operand.sizes[i];
  return stride;
}

}  // namespace reel
