#include "reel/core/ops/creation/draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops/creation/draw_checks.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/philox.h"
#include "reel/core/ops/kernels/philox_table.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

/// Returns a number in (0, 1): never 0, so that its logarithm is finite.
double open_unit(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>(std::uint64_t{high} << 21 ^ low >> 11) + 0.5) * 0x1p-53;
}

/// Returns one number of the pair of Box & Muller (1958).
double normal(const std::array<std::uint32_t, 4>& words) {
  const double radius = std::sqrt(-2 * std::log(open_unit(words[0], words[1])));
  return radius * std::cos(2 * M_PI * open_unit(words[2], words[3]));
}

const TensorType& key_type() {
  static const TensorType& type = *new TensorType(i64, {2});
  return type;
}

/// Returns the number of axes of the result that have keys of their own: rows of vmap.
int keyed_axes(const TensorType& key) { return key.rank() - 1; }

/// A second input gives the dims that a trace does not know; only its shape is read.
void draw_type(TypeArgs& a) {
  const TensorType& type = a.attr<DrawAttrs>().type;
  const TensorType& key = a.in[0];
  if (key.rank() <= 1 || a.in.size() > 1) check_operand(a.op.name, "the key", key, key_type());
  bool fits = key.dtype() == i64 && !key.is_named() && keyed_axes(key) <= type.rank() &&
              dim_at(key, keyed_axes(key)) == Dim(2);
  for (int axis = 0; fits && axis < keyed_axes(key); ++axis) {
    const Dim &keys = dim_at(key, axis), &rows = dim_at(type, axis);
    fits = !keys.has_size() || !rows.has_size() || keys.raw_size() == rows.raw_size();
  }
  if (!fits)
    throw ShapeError(str(a.op.name, ": the keys of ", type, " are i64[..., 2], got ", key));
  a.out.push_back(a.in.size() == 1 ? type : type.with(a.in[1].dims()));
}

/// Interleaves the bits of the positions, the lowest bits first (Morton, 1966).
std::uint64_t interleave(std::span<const std::uint64_t> positions) {
  if (positions.size() == 1) return positions[0];
  std::uint64_t result = 0;
  int to = 0;
  for (int bit = 0; to < 64; ++bit)
    for (std::size_t i = 0; i < positions.size() && to < 64; ++i, ++to)
      result |= (positions[i] >> bit & 1) << to;
  return result;
}

/// Rows of a tensor, along an axis.
struct SomeRows {
  std::size_t axis;
  const std::int64_t* numbers;
  std::int64_t all;  ///< the number of rows of the whole tensor
};

/// Calls fn(first, count) for every run of elements in order. They are keyed by consecutive numbers
/// from `first` on.
///
/// The number is the element's position, unless the type is ragged. Then its high part interleaves
/// the positions along ragged axes, so that the axes' extents do not matter: an entry draws the
/// same numbers for any size of the longest entry.
///
/// rows: which rows of the tensor the elements are; null: all of them.
template <class Fn>
void each_run(const TensorType& type, const SomeRows* rows, Fn&& fn) {
  const std::int64_t count = type.numel();
  if (count == 0) return;
  const auto is_row = [&](std::size_t axis) { return rows && axis == rows->axis; };
  const auto whole_size = [&](std::size_t axis) {
    return static_cast<std::uint64_t>(is_row(axis) ? rows->all : type.sizes()[axis]);
  };
  std::uint64_t others = 1;
  for (std::size_t axis = 0; axis < type.dims().size(); ++axis)
    if (!type.dims()[axis].is_ragged()) others *= whole_size(axis);
  // Elements along the last axes have consecutive numbers.
  std::size_t axes = type.dims().size();
  std::uint64_t inner = 1;
  for (; axes > 0 && !type.dims()[axes - 1].is_ragged() && !is_row(axes - 1); --axes)
    inner *= whole_size(axes - 1);
  std::vector<std::uint64_t> ragged;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count) / inner; ++i) {
    std::uint64_t rest = i, among_others = 0, step = inner;
    ragged.clear();
    for (std::size_t axis = axes; axis-- > 0;) {
      const auto size = static_cast<std::uint64_t>(type.sizes()[axis]), at = rest % size;
      rest /= size;
      if (type.dims()[axis].is_ragged()) {
        ragged.push_back(at);
        continue;
      }
      among_others += (is_row(axis) ? static_cast<std::uint64_t>(rows->numbers[at]) : at) * step;
      step *= whole_size(axis);
    }
    fn((ragged.empty() ? 0 : interleave(ragged) * others) + among_others,
       static_cast<std::int64_t>(inner));
  }
}

const PhiloxTable& philox_table() {
  static const PhiloxTable& table = for_this_processor(REEL_TABLES(philox_table));
  return table;
}

/// Numbers of elements, and the first draw of each.
class DrawBlock {
 public:
  DrawBlock(std::uint64_t key, std::uint64_t high) : key_(key), high_(high) {}

  int count() const { return count_; }
  /// Appends numbers from `first` on until the block is full. Returns how many it took.
  std::int64_t push(std::uint64_t first, std::int64_t count) {
    const auto taken = static_cast<int>(std::min<std::int64_t>(count, kPhiloxBlock - count_));
    for (int i = 0; i < taken; ++i) numbers_[count_ + i] = first + static_cast<std::uint64_t>(i);
    count_ += taken;
    return taken;
  }
  bool is_full() const { return count_ == kPhiloxBlock; }
  void clear() { count_ = 0; }
  /// Computes the words that `block` sets, a member of PhiloxTable.
  void compute(PhiloxBlock block) { block(key_, high_, numbers_, words_); }

  const std::uint32_t (*words() const)[kPhiloxBlock] { return words_; }
  std::array<std::uint32_t, 4> draw(int i, std::uint64_t attempt) const {
    if (attempt) return philox(key_, attempt << kAttemptBits | high_, numbers_[i]);
    return {words_[0][i], words_[1][i], words_[2][i], words_[3][i]};
  }

 private:
  std::uint64_t key_, high_;
  int count_ = 0;
  std::uint64_t numbers_[kPhiloxBlock] = {};
  std::uint32_t words_[4][kPhiloxBlock];
};

/// Sets every element by Element::set(block, attrs, out) for a block of them, with each key.
/// runs: calls its argument with the runs of numbers of one key's elements.
template <class Element, class Runs>
void draw(KernelArgs& a, const DrawAttrs& attrs, const Runs& runs) {
  const auto* const keys = a.input(0).data<std::int64_t>();
  const std::int64_t key_count = a.input(0).type().numel() / 2;
  const Tensor& out = a.make();
  visit(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      T* to = out.data<T>();
      for (const std::int64_t* key = keys; key != keys + 2 * key_count; key += 2) {
        DrawBlock block(static_cast<std::uint64_t>(key[0]),
                        static_cast<std::uint64_t>(key[1] + attrs.number));
        const auto flush = [&] {
          Element::set(block, attrs, to);
          to += block.count();
          block.clear();
        };
        runs([&](std::uint64_t first, std::int64_t count) {
          for (std::int64_t done = 0; done < count;) {
            done += block.push(first + static_cast<std::uint64_t>(done), count - done);
            if (block.is_full()) flush();
          }
        });
        if (block.count()) flush();
      }
    }
  });
}

/// Sets elements to element(draws, attrs), one at a time. draws(0), draws(1), ... are independent
/// and of 128 bits each.
template <class T, class Fn>
void set_each(DrawBlock& block, const DrawAttrs& attrs, T* out, const Fn& element) {
  block.compute(philox_table().block);
  for (int i = 0; i < block.count(); ++i)
    out[i] = static_cast<T>(
        element([&](std::uint64_t attempt) { return block.draw(i, attempt); }, attrs));
}

struct Uniform {
  template <class T>
  static void set(DrawBlock& block, const DrawAttrs& attrs, T* out) {
    const PhiloxTable& table = philox_table();
    const T low = static_cast<T>(attrs.low), high = static_cast<T>(attrs.high),
            span = static_cast<T>(attrs.high - attrs.low);
    if constexpr (sizeof(T) == 4) {
      block.compute(table.one_word);
      table.uniform_f32(block.words(), low, span, high, out, block.count());
    } else {
      block.compute(table.two_words);
      table.uniform_f64(block.words(), low, span, high, out, block.count());
    }
  }
};
struct Normal {
  template <class T>
  static void set(DrawBlock& block, const DrawAttrs& attrs, T* out) {
    if constexpr (sizeof(T) == 4) {
      block.compute(philox_table().three_words);
      return philox_table().normal_f32(block.words(), out, block.count());
    }
    set_each(block, attrs, out,
             [](const auto& draws, const DrawAttrs&) { return normal(draws(0)); });
  }
};
struct TruncatedNormal {
  template <class T>
  static void set(DrawBlock& block, const DrawAttrs& attrs, T* out) {
    if constexpr (sizeof(T) == 4) {
      block.compute(philox_table().three_words);
      philox_table().normal_f32(block.words(), out, block.count());
      for (int i = 0; i < block.count(); ++i) {  // nineteen of twenty are accepted at once
        for (std::uint64_t attempt = 1; std::abs(out[i]) > 2; ++attempt)
          out[i] = static_cast<T>(normal(block.draw(i, attempt)));
        out[i] = static_cast<T>(attrs.low + attrs.high * static_cast<double>(out[i]));
      }
      return;
    }
    set_each(block, attrs, out, [](const auto& draws, const DrawAttrs& how) {
      double z = normal(draws(0));  // nineteen of twenty are accepted at once
      for (std::uint64_t attempt = 1; std::abs(z) > 2; ++attempt) z = normal(draws(attempt));
      return how.low + how.high * z;
    });
  }
};

template <class Element>
void draw_kernel(KernelArgs& a) {
  const Dims& dims = a.types[0].dims();
  const TensorType of_key =
      a.types[0].with(Dims(dims.begin() + keyed_axes(a.input(0).type()), dims.end()));
  draw<Element>(a, a.attr<DrawAttrs>(), [&](const auto& fn) { each_run(of_key, nullptr, fn); });
}

/// Draws with the key of each row of vmap. Iterations of a loop keep keys of their own. Elements of
/// ragged dims have numbers by the lengths of one row, which only this row tells.
Tensors draw_across_rows(const IterationBatch& at) {
  if (!at.is_vmap || at.in.size() != 1 || at.step_out[0].is_ragged()) return {};
  DrawAttrs attrs = at.attr<DrawAttrs>();
  attrs.type = at.step_out[0].with(at.with_time(at.step_out[0].dims()));
  return bind_all(at.op, {at.in[0]}, make_attrs(std::move(attrs)));
}

/// Draws some rows of a tensor.
template <class Element>
void draw_rows(KernelArgs& a) {
  const DrawRowsAttrs& attrs = a.attr<DrawRowsAttrs>();
  const SomeRows rows{static_cast<std::size_t>(attrs.axis), a.input(1).data<std::int64_t>(),
                      *a.input(2).data<std::int64_t>()};
  draw<Element>(a, attrs, [&](const auto& fn) { each_run(a.types[0], &rows, fn); });
}

OpSamples draw_samples() {
  const SampleInput key{TensorType(i64, {2}), 0, 100, false};
  const Dims& dims = sample_dims();
  return {{{key}, make_attrs(DrawAttrs{TensorType(f32, {2, 3}), 1, 0, 1})},
          {{key}, make_attrs(DrawAttrs{TensorType(f64, {0, 3}), 0, -1, 1})},
          {{key}, make_attrs(DrawAttrs{TensorType(f64, dims), 3, -1, 1})},
          {{{TensorType(i64, {2, 2}), 0, 100, false}},
           make_attrs(DrawAttrs{TensorType(f32, {2, 3}), 1, 0, 1})},
          {{key, {TensorType(i32, {2, 3}), 0, 1, false}},
           make_attrs(DrawAttrs{TensorType(f32, {unknown, 3}), 0, 0, 1})}};
}

/// Keys have no negative numbers: a truncated normal would draw one candidate for ever.
Failures draw_fails(const Attrs*) { return {.values = 0b1}; }

/// The kernel numbers elements by their positions in the whole tensor, so each axis tells them
/// apart. Not so if sizes come from a second operand, if lengths of all rows number the elements,
/// or if rows have keys of their own.
void drawn_axes(const OpCall& call, AxisFactors& f) {
  if (call.in.size() > 1 || call.out[0].is_ragged() || keyed_axes(call.in[0])) return;
  for (int axis = 0; axis < call.out[0].rank(); ++axis) f.out(0, axis) = f.add(Role::drawn);
}

}  // namespace

const Op random_uniform_op{
    .name = "random_uniform",
    .type = draw_type,
    .kernel = draw_kernel<Uniform>,
    .no_vjp = "random numbers depend on nothing but keys",
    .samples = draw_samples,
    .iteration_batching = draw_across_rows,
    .axes = drawn_axes,
    .fails = draw_fails,
};

const Op random_normal_op{
    .name = "random_normal",
    .type = draw_type,
    .kernel = draw_kernel<Normal>,
    .no_vjp = "random numbers depend on nothing but keys",
    .samples = draw_samples,
    .iteration_batching = draw_across_rows,
    .axes = drawn_axes,
    .fails = draw_fails,
};

const Op truncated_normal_op{
    .name = "truncated_normal",
    .type = draw_type,
    .kernel = draw_kernel<TruncatedNormal>,
    .no_vjp = "random numbers depend on nothing but keys",
    .samples = draw_samples,
    .iteration_batching = draw_across_rows,
    .axes = drawn_axes,
    .fails = draw_fails,
};

namespace {
const Op* const kDraws[] = {&random_uniform_op, &random_normal_op, &truncated_normal_op};
}

bool is_draw(const Op& op) {
  return std::find(std::begin(kDraws), std::end(kDraws), &op) != std::end(kDraws);
}

DrawRowsAttrs draw_rows_attrs(const OpRecord& draw, int axis) {
  const auto kind = std::find(std::begin(kDraws), std::end(kDraws), draw.op) - std::begin(kDraws);
  return {get<DrawAttrs>(draw.attrs.get()), axis, static_cast<int>(kind)};
}

void append_draw_rows(Graph& to, const OpRecord& draw, int axis, const DrawRowsInputs& in,
                      std::span<const ValueId> out) {
  to.append(draw_rows_op, make_attrs(draw_rows_attrs(draw, axis)),
            std::array{in.key, in.numbers, in.count}, out);
}

const Op draw_rows_op{
    .name = "draw_rows",
    .type =
        [](TypeArgs& a) {
          const DrawRowsAttrs& attrs = a.attr<DrawRowsAttrs>();
          check_operand("draw_rows", "the key", a.in[0], key_type());
          check_operand("draw_rows", "the number of rows", a.in[2], TensorType(i64));
          const Dim &numbers = dim_at(a.in[1], 0), &rows = dim_at(attrs.type, attrs.axis);
          check_operand("draw_rows", "the row numbers", a.in[1],
                        TensorType(i64, {rows.is_named() ? rows : numbers}));
          TensorType type = attrs.type;
          if (!type.is_named()) type = type.with(with_dim(type.dims(), attrs.axis, numbers));
          a.out.push_back(std::move(type));
        },
    .kernel =
        [](KernelArgs& a) {
          constexpr OpKernel kKernels[] = {draw_rows<Uniform>, draw_rows<Normal>,
                                           draw_rows<TruncatedNormal>};
          kKernels[a.attr<DrawRowsAttrs>().kind](a);
        },
    .no_vjp = "random numbers depend on nothing but keys",
    .samples =
        [] {
          const SampleInput key{TensorType(i64, {2}), 0, 100, false},
              count{TensorType(i64), 5, 5, false};
          const auto sample = [&](const Dims& dims, int axis, const Dim& rows, int kind) {
            return OpSample{
                {key, {TensorType(i64, {rows}), 0, 4, false}, count},
                make_attrs(DrawRowsAttrs{{TensorType(f32, dims), 1, 0, 1}, axis, kind})};
          };
          const Dim batch("batch", 2), feature("feature", 3);
          const Dims& ragged = sample_dims();
          return OpSamples{sample({4, 3}, 0, 2, 0), sample({3, 4}, 1, 2, 1),
                           sample({batch, feature}, 0, batch, 2),
                           sample({feature, batch}, 1, batch, 0), sample(ragged, 0, ragged[0], 0)};
        },
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const int axis = call.attr<DrawRowsAttrs>().axis;
          f.in(1, 0) = f.out(0, axis) = f.add(Role::drawn);
        },
    .fails = draw_fails,
};

namespace {
const Op* const kDrawOps[] = {&random_uniform_op, &random_normal_op, &truncated_normal_op,
                              &draw_rows_op, &checked_logits_op};
}
std::span<const Op* const> draw_ops() { return kDrawOps; }

}  // namespace reel
