#include "reel/core/ops/products/batched_dot.h"

#include "reel/core/op/bind.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/products/operand.h"
#include "reel/core/ops/products/unpadded_products.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Calls fn(offset in a, offset in b) for the batch entries of each element of the axes from
/// `level` on, in the order of the result.
template <class Fn>
void each_entry(const Operand& a, const Operand& b, std::size_t level, std::int64_t in_a,
                std::int64_t in_b, const Fn& fn) {
  if (level == a.batch.size()) return fn(in_a, in_b);
  const auto i = static_cast<std::size_t>(a.batch[level]),
             j = static_cast<std::size_t>(b.batch[level]);
  for (std::int64_t k = 0; k < a.type.sizes()[i]; ++k)
    each_entry(a, b, level + 1, in_a + k * a.steps[i], in_b + k * b.steps[j], fn);
}

/// Returns the work of a small product for parallel_ranges().
std::int64_t work_of(const MatrixSizes& s) {
  constexpr std::int64_t kProducts = 16, kCall = 200;  // a quarter of a nanosecond each
  return s.m * s.n * s.k / kProducts + kCall;
}

/// Returns the lengths of a group of axes: from the input if it is given, otherwise from the dims.
LengthsOfEntries lengths_of(const KernelArgs& args, int input, const Operand& of,
                            const std::vector<int>& group) {
  if (input < 0) return {of.type, group, of.batch};
  return {args.input(static_cast<std::size_t>(input)), of.type, group, of.batch};
}

}  // namespace

void batched_dot(KernelArgs& args, const DotAttrs& attrs, const DotLengths& lengths) {
  const Tensor &left = args.input(0), &right = args.input(1);
  Operand a(left.type(), left.data<char>(), attrs.a_batch, attrs.a_contract),
      b(right.type(), right.data<char>(), attrs.b_batch, attrs.b_contract);
  Tensor& out = args.make();
  if (out.type().numel() == 0) return;
  MatrixSizes sizes = arrange(a, b, attrs.order);
  sizes.add = args.adds;
  const auto item = static_cast<std::int64_t>(size_of(out.dtype()));
  const std::int64_t bytes = sizes.m * sizes.n * item;
  const UnpaddedProducts unpadded(out.dtype(), sizes,
                                  {.rows = lengths_of(args, lengths.rows, a, a.free),
                                   .columns = lengths_of(args, lengths.columns, b, b.free),
                                   .terms = lengths_of(args, lengths.terms, a, a.contract)});
  const auto multiply_entries = [&](std::size_t level, std::int64_t in_a, std::int64_t in_b,
                                    char* to) {
    std::int64_t entry = (to - out.data<char>()) / bytes;
    each_entry(a, b, level, in_a, in_b, [&](std::int64_t in_a, std::int64_t in_b) {
      const char *from_a = a.data + in_a * item, *from_b = b.data + in_b * item;
      if (unpadded)
        unpadded.multiply(entry++, from_a, from_b, to);
      else
        multiply(out.dtype(), sizes, from_a, from_b, to);
      to += bytes;
    });
  };
  if (a.batch.empty()) return multiply_entries(0, 0, 0, out.data<char>());
  // Entries are products of their own: no bits depend on where a share of them begins.
  const auto i = static_cast<std::size_t>(a.batch[0]), j = static_cast<std::size_t>(b.batch[0]);
  const std::int64_t count = a.type.sizes()[i], entries = out.type().bytes() / bytes;
  parallel_ranges(count, entries * work_of(sizes), [&](std::int64_t first, std::int64_t some) {
    for (std::int64_t k = first; k < first + some; ++k)
      multiply_entries(1, k * a.steps[i], k * b.steps[j],
                       out.data<char>() + k * (entries / count) * bytes);
  });
}

bool reads_no_padding(const DotAttrs& attrs, const TensorType& a, const TensorType& b) {
  if (attrs.a_contract.size() != 1 || attrs.a_batch.empty()) return false;
  const auto has_lengths = [](const TensorType& type, const std::vector<int>& contract,
                              const std::vector<int>& batch) {
    return LengthsOfEntries(type, contract, batch) && !lengths_run_over(type, contract);
  };
  return has_lengths(a, attrs.a_contract, attrs.a_batch) &&
         has_lengths(b, attrs.b_contract, attrs.b_batch) && has_alike_rows(dot_order(attrs, a, b));
}

const Op unpadded_dot_op{
    .name = "unpadded_dot",
    .type =
        [](TypeArgs& a) {
          const UnpaddedDotAttrs& own = a.attr<UnpaddedDotAttrs>();
          const AttrsRef attrs = make_attrs(DotAttrs(own));
          TypeArgs dot{dot_op, attrs.get(), a.in, a.out};
          dot_op.type(dot);
          if (own.a_batch.empty()) throw ShapeError("unpadded_dot: has no batch");
          const TensorType lengths(i32, {dim_at(a.in[0], own.a_batch[0])});
          for (const int input : {own.terms, own.rows, own.columns})
            if (input >= 0)
              check_operand("unpadded_dot", "lengths", a.in[static_cast<std::size_t>(input)],
                            lengths);
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& attrs = a.attr<UnpaddedDotAttrs>();
          batched_dot(a, attrs, {attrs.terms, attrs.rows, attrs.columns});
        },
    .no_vjp = "plans alone make it, behind all gradients",
    .samples =
        [] {
          const SampleInput lengths{TensorType(i32, {2}), 0, 3, false};
          const auto sample = [&](const Dims& a, const Dims& b, UnpaddedDotAttrs attrs) {
            return OpSample{{{TensorType(f32, a)}, {TensorType(f32, b)}, lengths},
                            make_attrs(std::move(attrs))};
          };
          return OpSamples{sample({2, 3, 4}, {2, 3, 5}, {{{1}, {1}, {0}, {0}}, 2}),
                           sample({2, 3, 4}, {2, 4}, {{{2}, {1}, {0}, {0}}, -1, 2}),
                           sample({2, 4}, {2, 3, 4}, {{{1}, {2}, {0}, {0}}, -1, -1, 2})};
        },
    .can_add = true,
    .fails = fails_without_memory,
    .multiplications = product_multiplications<UnpaddedDotAttrs>,
};

}  // namespace reel
