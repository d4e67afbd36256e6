// Requirements on every op that tells of its axes: operands that are rotated along a factor give
// results that are rotated, or the same if they are reduced over it; one element of a mapped factor
// changes no result at another one; and results over a factor that no operand has are as told.
#include "reel/core/op/axes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/merge.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/sizes.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

/// Returns x with its elements along an axis moved by one: the last one comes first.
Tensor rotated(const Tensor& x, int axis) {
  const std::vector<std::int64_t> sizes = x.shape();
  const auto at = static_cast<std::size_t>(axis);
  const auto product = [&](std::size_t begin, std::size_t end) {
    return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(begin),
                           sizes.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{1},
                           std::multiplies<>());
  };
  const std::int64_t outer = product(0, at), n = sizes[at], inner = product(at + 1, sizes.size());
  const auto bytes = static_cast<std::size_t>(inner) * size_of(x.dtype());
  const Tensor result(allocate_block(x.type()));
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      std::memcpy(result.data<char>() + static_cast<std::size_t>(i * n + (k + 1) % n) * bytes,
                  x.data<char>() + static_cast<std::size_t>(i * n + k) * bytes, bytes);
  return result;
}

/// Returns x with the elements of `from` at index 0 of an axis.
Tensor with_first_of(const Tensor& x, const Tensor& from, int axis) {
  const std::vector<std::int64_t> sizes = x.shape();
  const Tensor result(allocate_block(x.type()));
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
  std::int64_t inner = bytes;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < sizes.size(); ++i) inner *= sizes[i];
  const std::int64_t row = inner * sizes[static_cast<std::size_t>(axis)];
  for (std::int64_t at = 0; at < x.type().bytes(); at += inner)
    std::memcpy(result.data<char>() + at, (at % row < inner ? from : x).data<char>() + at,
                static_cast<std::size_t>(inner));
  return result;
}

/// An op applied to the operands of a sample.
class Applied {
 public:
  Applied(const Op& op, const OpSample& sample) : op_(op), attrs_(sample.attrs) {
    in_ = draw_sample(sample, false);
    others_ = draw_sample(sample, false, 11);
    out_ = bind_all(op, in_, attrs_);
    for (const Tensor& x : in_) in_types_.push_back(x.type());
    for (const Tensor& y : out_) out_types_.push_back(y.type());
  }
  OpCall call() const { return {op_, attrs_.get(), in_types_, out_types_}; }
  AxisFactors factors() const { return axis_factors(call()); }
  const Tensors& in() const { return in_; }
  const Tensors& out() const { return out_; }

  /// Returns true if the factor has several elements, and neither its dims have lengths nor lengths
  /// run over them: rows of other lengths do not move.
  bool may_move(const AxisFactors& factors, int factor) const {
    bool has_several = false;
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (const int axis = factors.axis_in(i, factor); axis >= 0) {
        const Dim& dim = in_types_[i].dims()[static_cast<std::size_t>(axis)];
        if (has_lengths(in_types_, dim) || has_lengths(out_types_, dim)) return false;
        has_several = has_several || dim.size() > 1;
      }
    return has_several;
  }
  /// Expects that operands rotated along a factor give rotated results.
  void expect_rotated(const AxisFactors& factors, int factor) const {
    const Tensors made = applied(
        [&](const Tensor& x, std::size_t, int axis) { return rotated(x, axis); }, factors, factor);
    const Role role = factors.role(factor);
    for (std::size_t k = 0; k < made.size(); ++k) {
      const int axis = factors.axis_out(k, factor);
      EXPECT_EQ(axis >= 0, role != Role::summed && role != Role::unordered) << "result " << k;
      if (axis >= 0)
        expect_same_bits(mask_padding(made[k]), mask_padding(rotated(out_[k], axis)));
      else if (role == Role::unordered && op_.name != "scatter_add")
        expect_same_bits(mask_padding(made[k]), mask_padding(out_[k]));
      else  // the terms are added in another order
        expect_all_close(mask_padding(made[k]), mask_padding(out_[k]), 1e-5);
    }
  }
  /// Expects that other operands at one index of a mapped factor change no result at another index.
  void expect_apart(const AxisFactors& factors, int factor) const {
    const Tensors made = applied([&](const Tensor& x, std::size_t i,
                                     int axis) { return with_first_of(x, others_[i], axis); },
                                 factors, factor);
    for (std::size_t k = 0; k < made.size(); ++k) {
      const int axis = factors.axis_out(k, factor);
      expect_same_bits(mask_padding(with_first_of(made[k], out_[k], axis)), mask_padding(out_[k]));
    }
  }

 private:
  /// Returns the results with change(x, number, axis) in place of the operands with the factor.
  template <class Change>
  Tensors applied(const Change& change, const AxisFactors& factors, int factor) const {
    Tensors in = in_;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (const int axis = factors.axis_in(i, factor); axis >= 0) in[i] = change(in[i], i, axis);
    return bind_all(op_, in, attrs_);
  }
  static bool has_lengths(const std::vector<TensorType>& types, const Dim& dim) {
    return dim.is_ragged() || std::ranges::any_of(types, [&](const TensorType& type) {
             return std::ranges::any_of(
                 type.dims(), [&](const Dim& other) { return contains(other.length_dims(), dim); });
           });
  }
  const Op& op_;
  AttrsRef attrs_;
  Tensors in_, others_, out_;
  std::vector<TensorType> in_types_, out_types_;
};

std::vector<const Op*> ops_with_axes() {
  std::vector<const Op*> result;
  for (const Op* op : all_ops())
    if ((op->axes || op->pointwise) && op->samples) result.push_back(op);
  return result;
}

/// Expects equal elements over result axes of Role::repeated, and different ones over axes that
/// the op draws. Returns the number of repeated and drawn axes that no operand has.
int made(const Op& op) {
  int result = 0;
  for (const OpSample& sample : op.samples()) {
    const Applied applied(op, sample);
    const AxisFactors factors = applied.factors();
    const Tensor& out = applied.out()[0];
    for (int axis = 0; axis < out.rank(); ++axis) {
      const int factor = factors.out(0, axis);
      const bool is_drawn = factors.role(factor) == Role::drawn;
      bool is_read = false;
      for (std::size_t i = 0; i < applied.in().size(); ++i)
        is_read = is_read || factors.axis_in(i, factor) >= 0;
      if (is_read || (!is_drawn && factors.role(factor) != Role::repeated)) continue;
      if (out.type().is_ragged() || out.shape()[static_cast<std::size_t>(axis)] < 2) continue;
      SCOPED_TRACE(str(op.name, ": axis ", axis, " of ", out.type()));
      ++result;
      const Tensor moved = rotated(out, axis);
      if (is_drawn)
        EXPECT_FALSE(*any(equal(moved, out)).data<bool>());
      else
        expect_same_bits(moved, out);
    }
  }
  return result;
}

class AxesOfEveryOp : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, AxesOfEveryOp, ::testing::ValuesIn(ops_with_axes()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(AxesOfEveryOp, FactorsAreIndices) {
  int moved = 0;
  for (const OpSample& sample : GetParam()->samples()) {
    const Applied applied(*GetParam(), sample);
    const AxisFactors factors = applied.factors();
    std::vector<int> done;
    for (std::size_t i = 0; i < applied.in().size(); ++i)
      for (int axis = 0; axis < applied.in()[i].rank(); ++axis) {
        const int factor = factors.in(i, axis);
        if (factor == AxisFactors::kWhole || std::ranges::count(done, factor)) continue;
        SCOPED_TRACE(str(GetParam()->name, ": factor of axis ", axis, " of operand ", i, ", ",
                         applied.in()[i].type()));
        done.push_back(factor);
        if (!applied.may_move(factors, factor)) continue;
        ++moved;
        applied.expect_rotated(factors, factor);
        if (factors.role(factor) == Role::mapped || factors.role(factor) == Role::drawn)
          applied.expect_apart(factors, factor);
      }
  }
  EXPECT_GT(moved + made(*GetParam()), 0);
}

/// Returns the operands with the first `count` elements of a factor.
Tensors first_of_factor(const Tensors& in, const AxisFactors& factors, int factor,
                        std::int64_t count) {
  Tensors result = in;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (const int axis = factors.axis_in(i, factor); axis >= 0)
      result[i] = slice(in[i], axis, 0, count);
  return result;
}

// Row blocks may run as one if their bits do not depend on the number of rows.
TEST_P(AxesOfEveryOp, AlikeElementsHaveTheSameBitsInAnyNumber) {
  const Op& op = *GetParam();
  for (const OpSample& sample : op.samples()) {
    const Applied applied(op, sample);
    const Tensors &in = applied.in(), &out = applied.out();
    const auto is_plain = [](const Tensor& x) {
      return !x.type().is_list() && !x.type().is_named();
    };
    if (!std::ranges::all_of(in, is_plain) || !std::ranges::all_of(out, is_plain)) continue;
    const AxisFactors factors = applied.factors();
    for (int axis = 0; axis < out[0].rank(); ++axis) {
      const int factor = factors.out(0, axis);
      const std::int64_t size = out[0].shape()[static_cast<std::size_t>(axis)];
      if (factors.role(factor) != Role::mapped) continue;
      for (std::int64_t count = 1; count < size; ++count) {
        if (!factors.are_alike(applied.call(), factor, count)) continue;
        SCOPED_TRACE(str(op.name, ": ", count, " of axis ", axis, " of ", out[0].type()));
        Tensors some;
        try {
          some = bind_all(op, first_of_factor(in, factors, factor, count), sample.attrs);
        } catch (const Error&) {
          break;  // the attributes name the size
        }
        for (std::size_t k = 0; k < out.size(); ++k)
          if (const int at = factors.axis_out(k, factor);
              at >= 0 && some[k].shape()[static_cast<std::size_t>(at)] == count)
            expect_same_bits(some[k], slice(out[k], at, 0, count));
      }
    }
  }
}

TEST(AlikeElementsTest, AreToldByProductsAndReductions) {
  const auto alike = [](const Op& op, const AttrsRef& attrs, const std::vector<TensorType>& in,
                        int axis, std::int64_t count) {
    TypeList out;
    TypeArgs args{op, attrs.get(), in, out};
    op.type(args);
    const OpCall call{op, attrs.get(), in, out.span()};
    const AxisFactors factors = axis_factors(call);
    return factors.are_alike(call, factors.in(0, axis), count);
  };
  const TensorType matrix(f32, {64, 512}), other(f32, {512, 128}), batch(f32, {4, 8, 16}),
      others(f32, {4, 16, 8});
  const AttrsRef dot = make_attrs(DotAttrs{{1}, {0}, {}, {}}),
                 dots = make_attrs(DotAttrs{{2}, {1}, {0}, {0}});
  EXPECT_EQ(alike(dot_op, dot, {matrix, other}, 0, 16),
            dot_rows_are_alike(get<DotAttrs>(dot.get()), matrix, other, 16));
  EXPECT_FALSE(alike(dot_op, make_attrs(DotAttrs{{0}, {1}, {}, {}}), {other, matrix}, 1, 16));
  EXPECT_TRUE(alike(dot_op, dots, {batch, others}, 0, 2));
  EXPECT_FALSE(alike(dot_op, dots, {batch, others}, 1, 2));
  for (const Op* op : {&sum_op, &max_op, &softmax_op}) {
    EXPECT_TRUE(alike(*op, reduce_attrs({1}), {batch}, 0, 2));
    EXPECT_FALSE(alike(*op, reduce_attrs({1}), {batch}, 2, 8));
  }
  EXPECT_TRUE(alike(exp_op, {}, {batch}, 2, 8));
}

/// A letter for each axis, as in einsum: "ij,jk->ik". Axes that are whole have the letter *, sums
/// are upper-case, extremes have a point behind them, draws a tilde, equal elements an equals sign.
std::string letters(const Op& op, const Attrs* attrs, const std::vector<TensorType>& in) {
  TypeList out;
  TypeArgs args{op, attrs, in, out};
  op.type(args);
  const AxisFactors f = axis_factors({op, attrs, in, out.span()});
  std::string result;
  const auto letter = [&](int factor) {
    if (factor == AxisFactors::kWhole) return std::string("*");
    const Role role = f.role(factor);
    const char of_added = static_cast<char>((role == Role::summed ? 'A' : 'a') - 2 - factor);
    constexpr const char* kSigns[] = {"", "~", "=", "", "."};  // by role
    if (factor < 0) return std::string(1, of_added) + kSigns[static_cast<int>(role)];
    return std::string(1, static_cast<char>('i' + factor));
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    result += i ? "," : "";
    for (int axis = 0; axis < in[i].rank(); ++axis) result += letter(f.in(i, axis));
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    result += k ? "," : "->";
    for (int axis = 0; axis < out.span()[k].rank(); ++axis) result += letter(f.out(k, axis));
  }
  return result;
}

struct Letters {
  const Op& op;
  AttrsRef attrs;
  std::vector<TensorType> in;
  const char* expected;
};

TEST(AxisFactorsTest, ReadAsEinsum) {
  const auto f = [](std::initializer_list<std::int64_t> sizes) {
    Dims dims;
    for (const std::int64_t size : sizes) dims.emplace_back(size);
    return TensorType(f32, dims);
  };
  const TensorType x = f({2, 3, 4}), index = TensorType(i32, {5});
  const Dim batch("batch", 2), time("time", 3);
  const Letters all[] = {
      {add_op, {}, {x, f({4})}, "ijk,k->ijk"},
      {add_op, {}, {x, f({3, 1})}, "ijk,j*->ijk"},
      {mul_op, {}, {TensorType(f32, {batch, time}), TensorType(f32, {time})}, "ij,j->ij"},
      {sum_op, reduce_attrs({1}), {x}, "iAj->ij"},
      {max_op, reduce_attrs({0, 2}), {x}, "a.ib.->i"},
      {prod_op, reduce_attrs({1}), {x}, "i*j->ij"},
      {softmax_op, reduce_attrs({2}), {x}, "ij*->ijk"},
      {dot_op, make_attrs(DotAttrs{{1}, {0}, {}, {}}), {f({2, 3}), f({3, 4})}, "iA,Aj->ij"},
      {dot_op, make_attrs(DotAttrs{{2}, {1}, {0}, {0}}), {x, f({2, 4, 5})}, "ijA,iAk->ijk"},
      {transpose_op, make_attrs(TransposeAttrs{{2, 0, 1}}), {x}, "jki->ijk"},
      {expand_op, make_attrs(ExpandAttrs{{-1, 0}, {Dim(7)}}), {f({3})}, "j->a=j"},
      {reshape_op, make_attrs(ReshapeAttrs{{2, 12}, {}}), {x}, "i**->ij"},
      {merge_dims_op, make_attrs(MergeDimsAttrs{0, 2, {}}), {x}, "**j->ij"},
      {split_dim_op, make_attrs(SplitDimAttrs{2, {Dim(2), Dim(2)}}), {x}, "ij*->ijkl"},
      {slice_op, make_attrs(SliceAttrs{1, 0, 2, {}}), {x}, "i*k->ijk"},
      {shift_op, make_attrs(ShiftAttrs{1, Dim(3), 0}), {x, TensorType(i32, {2})}, "i*k,i->ijk"},
      {gather_op, make_attrs(GatherAttrs{1, {-1}}), {x, index}, "i*k,j->ijk"},
      {gather_op, make_attrs(GatherAttrs{1, {0, -1}}), {x, TensorType(i32, {2, 5})}, "i*k,ij->ijk"},
      {scatter_add_op,
       make_attrs(GatherAttrs{1, {-1}}),
       {x, index, f({2, 5, 4})},
       "i*k,a.,ia.k->ijk"},
      {linear_scan_op,
       make_attrs(LinearScanAttrs{1, false, kScanA | kScanB, kScanB, 0}),
       {f({2, 4}), x},
       "ik,i*k->ijk"},
  };
  for (const auto& [op, attrs, in, expected] : all)
    EXPECT_EQ(letters(op, attrs.get(), in), expected) << op.name;
}

}  // namespace
}  // namespace reel
