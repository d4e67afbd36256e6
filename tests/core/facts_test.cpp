// Requirements on the facts that ops tell: zeros, failures, neutral numbers, work.
#include "reel/core/op/facts.h"

#include <gtest/gtest.h>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/element_order.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

std::vector<const Op*> ops_with(bool (*has)(const Op&)) {
  std::vector<const Op*> result;
  for (const Op* op : all_ops())
    if (op->samples && has(*op)) result.push_back(op);
  return result;
}
std::string name_of(const ::testing::TestParamInfo<const Op*>& info) {
  return std::string(info.param->name);
}

// ---- Zeros --------------------------------------------------------------------------------------

class ZerosOfEveryOp : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, ZerosOfEveryOp, ::testing::ValuesIn(ops_with([](const Op& op) {
                           return !op.has_effect && (op.vjp || op.zero_if);
                         })),
                         name_of);

/// Returns true if all elements are zero, of either sign.
bool is_zero(const Tensor& x) {
  return !x.type().is_list() && *all(equal(cast(mask_padding(x), f64), 0)).data<bool>();
}

TEST_P(ZerosOfEveryOp, GivesZeroForTheToldOperands) {
  const Op& op = *GetParam();
  for (const OpSample& sample : op.samples()) {
    const Tensors in = draw_sample(sample, false);
    ASSERT_LT(in.size(), 8u);
    const auto gives = [&](std::uint32_t subset) {
      const auto is_in = [&](std::size_t i) { return (subset >> i & 1) != 0; };
      return gives_zero(op, sample.attrs.get(), operand_bits(in.size(), is_in), in.size());
    };
    for (std::uint32_t subset = 0; subset < 1u << in.size(); ++subset) {
      // A divisor that is zero too tells nothing of the quotient.
      bool is_least = gives(subset);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (subset >> i & 1) is_least = is_least && !gives(subset & ~(1u << i));
      if (!is_least) continue;
      Tensors operands = in;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (subset >> i & 1) operands[i] = zeros_like(in[i]);
      for (const Tensor& y : bind_all(op, operands, sample.attrs))
        EXPECT_TRUE(is_zero(y)) << op.name << " of zeros " << subset << ": " << y.type();
    }
  }
}

TEST(ZerosTest, AreToldForTheOperandsThatMakeThem) {
  const auto gives = [](const Op& op, std::uint32_t zeros, std::size_t operands,
                        const AttrsRef& attrs = {}) {
    return gives_zero(op, attrs.get(),
                      operand_bits(operands, [&](std::size_t i) { return (zeros >> i & 1) != 0; }),
                      operands);
  };
  EXPECT_TRUE(gives(mul_op, 0b01, 2));
  EXPECT_TRUE(gives(mul_op, 0b10, 2));
  EXPECT_FALSE(gives(mul_op, 0, 2));
  EXPECT_FALSE(gives(add_op, 0b01, 2));
  EXPECT_TRUE(gives(add_op, 0b11, 2));
  EXPECT_TRUE(gives(div_op, 0b01, 2));
  EXPECT_FALSE(gives(div_op, 0b10, 2));
  EXPECT_FALSE(gives(exp_op, 0b1, 1));
  EXPECT_TRUE(gives(sum_op, 0b1, 1, reduce_attrs({0})));
  EXPECT_FALSE(gives(prod_op, 0b1, 1, reduce_attrs({0})));
}

// ---- Linear operands ----------------------------------------------------------------------------

/// Returns true if the operands are floats, and the op tells that its results are linear in them.
bool is_told_linear(const Op& op, const Attrs* attrs, const Tensors& in, std::uint32_t subset) {
  for (std::size_t i = 0; i < in.size(); ++i)
    if ((subset >> i & 1) && (in[i].type().is_list() || !is_float(in[i].dtype()))) return false;
  const auto is_in = [&](std::size_t i) { return (subset >> i & 1) != 0; };
  const auto is_none = [](std::size_t) { return false; };
  return is_linear_in(op, attrs, operand_bits(in.size(), is_in), operand_bits(in.size(), is_none),
                      in.size());
}

TEST_P(ZerosOfEveryOp, ResultsAreLinearInTheToldOperands) {
  const Op& op = *GetParam();
  for (const OpSample& sample : op.samples()) {
    const Tensors x = draw_sample(sample, false), y = draw_sample(sample, false, 11);
    for (std::uint32_t subset = 1; subset < 1u << x.size(); ++subset) {
      if (!is_told_linear(op, sample.attrs.get(), x, subset)) continue;
      Tensors of_y = x, of_both = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (subset >> i & 1) of_y[i] = y[i], of_both[i] = x[i] + 2 * y[i];
      const Tensors at_x = bind_all(op, x, sample.attrs), at_y = bind_all(op, of_y, sample.attrs),
                    at_both = bind_all(op, of_both, sample.attrs);
      for (std::size_t k = 0; k < at_x.size(); ++k) {
        if (at_x[k].type().is_list() || !is_float(at_x[k].dtype())) continue;
        SCOPED_TRACE(str(op.name, " of operands ", subset, ", ", at_x[k].type()));
        expect_all_close(mask_padding(at_both[k]), mask_padding(at_x[k] + 2 * at_y[k]), 1e-4);
      }
    }
  }
}

TEST(LinearOperandsTest, AreToldByGradientsThatReadOtherOperands) {
  const auto is_linear = [](const Op& op, std::uint32_t in, std::uint32_t zeros,
                            std::size_t operands) {
    const auto bits = [&](std::uint32_t of) {
      return operand_bits(operands, [&](std::size_t i) { return (of >> i & 1) != 0; });
    };
    return is_linear_in(op, nullptr, bits(in), bits(zeros), operands);
  };
  EXPECT_TRUE(is_linear(neg_op, 0b1, 0, 1));
  EXPECT_FALSE(is_linear(exp_op, 0b1, 0, 1));
  EXPECT_TRUE(is_linear(add_op, 0b11, 0, 2));
  EXPECT_FALSE(is_linear(add_op, 0b01, 0, 2));  // x + 1
  EXPECT_TRUE(is_linear(add_op, 0b01, 0b10, 2));
  EXPECT_TRUE(is_linear(mul_op, 0b01, 0, 2));
  EXPECT_FALSE(is_linear(mul_op, 0b11, 0, 2));
  EXPECT_TRUE(is_linear(div_op, 0b01, 0, 2));
  EXPECT_FALSE(is_linear(div_op, 0b10, 0, 2));
  EXPECT_FALSE(is_linear(where_op, 0b010, 0, 3));
  EXPECT_TRUE(is_linear(where_op, 0b010, 0b100, 3));
  EXPECT_TRUE(is_linear(where_op, 0b110, 0, 3));
}

// ---- Failures -----------------------------------------------------------------------------------

class FailuresOfEveryOp : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, FailuresOfEveryOp, ::testing::ValuesIn(ops_with([](const Op& op) {
                           return op.fails || op.pointwise;
                         })),
                         name_of);

/// Returns integers and floats that an op that checks its operands would refuse.
Tensor strange(const Tensor& x, double number) {
  if (x.type().is_list() || x.dtype() == boolean) return x;
  return cast(full(x.dims(), is_float(x.dtype()) || !std::isnan(number) ? number : -1e9, f64),
              x.dtype());
}

TEST_P(FailuresOfEveryOp, FailsForValuesOfToldOperandsOnly) {
  const Op& op = *GetParam();
  for (const OpSample& sample : op.samples()) {
    const std::uint32_t checked = failures_of(op, sample.attrs.get()).values;
    for (const double number : {1e9, -1e9, 0., std::numeric_limits<double>::quiet_NaN()}) {
      Tensors in = draw_sample(sample, false);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (!(checked >> i & 1)) in[i] = strange(in[i], number);
      EXPECT_NO_THROW(bind_all(op, in, sample.attrs)) << op.name << " of " << number;
    }
  }
}

TEST(FailuresTest, IndicesAreCheckedUnlessTheyAreClipped) {
  for (const IndexRule rule : {IndexRule::from_end, IndexRule::strict, IndexRule::optional}) {
    const AttrsRef attrs = make_attrs(GatherAttrs{.matched = {-1}, .rule = rule});
    EXPECT_EQ(failures_of(gather_op, attrs.get()).values, 0b10u);
    EXPECT_THROW(bind(gather_op, {ones({3}), tensor({7})}, attrs), IndexError);
  }
  const AttrsRef attrs = make_attrs(GatherAttrs{.matched = {-1}, .rule = IndexRule::clip});
  EXPECT_EQ(failures_of(gather_op, attrs.get()).values, 0u);
}

// An op with independent rows runs on rows of finished entries too, which may hold anything.
TEST(FailuresTest, AreToldByOpsThatKeepAxesApart) {
  for (const Op* op : all_ops())
    if (op->axes && !op->has_effect && op->samples)
      for (const OpSample& sample : op->samples()) {
        if (sample.inputs.empty()) continue;
        EXPECT_NE(failures_of(*op, sample.attrs.get()).values, kAll) << op->name;
        break;
      }
}

// ---- Neutral numbers ----------------------------------------------------------------------------

class NeutralOfEveryOp : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, NeutralOfEveryOp, ::testing::ValuesIn(ops_with([](const Op& op) {
                           return op.neutral != Neutral::none;
                         })),
                         name_of);

/// Returns the first axis of an operand that the op reduces or normalises; -1 if there is none.
int worked_axis(const AxisFactors& factors, std::size_t i, int rank) {
  for (int axis = 0; axis < rank; ++axis) {
    const int factor = factors.in(i, axis);
    if (factor == AxisFactors::kWhole || factors.role(factor) == Role::summed ||
        factors.role(factor) == Role::unordered)
      return axis;
  }
  return -1;
}

TEST_P(NeutralOfEveryOp, ChangesNoResult) {
  const Op& op = *GetParam();
  int tried = 0;
  for (const OpSample& sample : op.samples()) {
    Tensors in = draw_sample(sample, false);
    if (std::ranges::any_of(in, [](const Tensor& x) { return x.type().is_named(); })) continue;
    const Tensor expected = bind_all(op, in, sample.attrs)[0];
    std::vector<TensorType> types;
    for (const Tensor& x : in) types.push_back(x.type());
    const AxisFactors factors =
        axis_factors({op, sample.attrs.get(), types, {&expected.type(), 1}});
    const int first = worked_axis(factors, 0, in[0].rank());
    bool is_padded = first >= 0;
    for (std::size_t i = 0; is_padded && i < in.size(); ++i) {
      const int axis = i == 0 ? first : factors.axis_in(i, factors.in(0, first));
      const auto number = neutral_number(op, in[i].dtype());
      is_padded = axis >= 0 && number;
      if (!is_padded) break;
      Dims dims = in[i].dims();
      dims[static_cast<std::size_t>(axis)] = Dim(2);
      in[i] = concat({in[i], cast(full(dims, *number, f64), in[i].dtype())}, axis);
    }
    if (!is_padded || expected.type().numel() == 0) continue;
    ++tried;
    Tensor made = bind_all(op, in, sample.attrs)[0];
    for (int axis = 0; axis < made.rank(); ++axis)
      made = slice(made, axis, 0, expected.shape()[static_cast<std::size_t>(axis)]);
    expect_all_close(made, expected, 1e-6);
  }
  EXPECT_GT(tried, 0);
}

// ---- Identity -----------------------------------------------------------------------------------

TEST(ReturnsInputTest, HoldsForOpsWhoseResultIsTheirOperand) {
  for (const Op* op : all_ops())
    if (op->returns_input)
      for (const OpSample& sample : op->samples()) {
        const Tensors in = draw_sample(sample, false);
        expect_same_bits(bind_all(*op, in, sample.attrs)[0], in[0]);
      }
}

TEST(KeepsElementsTest, HoldsForOpsWhoseResultHasTheElementsInTheirOrder) {
  int tried = 0;
  for (const Op* op : all_ops())
    if (keeps_elements(*op))
      for (const OpSample& sample : op->samples()) {
        const Tensors in = draw_sample(sample, false);
        const Tensor made = bind_all(*op, in, sample.attrs)[0];
        ASSERT_EQ(made.type().bytes(), in[0].type().bytes());
        EXPECT_EQ(std::memcmp(made.data<char>(), in[0].data<char>(),
                              static_cast<std::size_t>(made.type().bytes())),
                  0)
            << op->name;
        ++tried;
      }
  EXPECT_GT(tried, 5);
}

TEST(RepeatsElementsTest, HoldsForNewAxes) {
  const auto repeats = [](const Op& op, const AttrsRef& attrs, const TensorType& in) {
    TypeList out;
    TypeArgs args{op, attrs.get(), {&in, 1}, out};
    op.type(args);
    return repeats_elements({op, attrs.get(), {&in, 1}, out.span()});
  };
  const TensorType x(f32, {2, 3});
  EXPECT_TRUE(repeats(expand_op, make_attrs(ExpandAttrs{{-1, 0, 1}, {Dim(7)}}), x));
  EXPECT_FALSE(repeats(expand_op, make_attrs(ExpandAttrs{{1, 0}, {}}), x));
  EXPECT_TRUE(repeats(spread_op, make_attrs(SpreadAttrs{{0}, Dims{Dim(4)}}), x));
  EXPECT_FALSE(repeats(neg_op, {}, x));
}

// ---- Lengths ------------------------------------------------------------------------------------

class LengthsOfEveryOp : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, LengthsOfEveryOp, ::testing::ValuesIn(ops_with([](const Op& op) {
                           return op.axes != nullptr;
                         })),
                         name_of);

/// Returns the dims with a fixed dim of the same extent in the place of every ragged one.
Dims without_lengths(const Dims& dims, std::vector<std::pair<Dim, Dim>>& fixed) {
  Dims result;
  for (const Dim& dim : dims) {
    if (!dim.is_ragged()) {
      result.push_back(dim);
      continue;
    }
    auto known = std::ranges::find(fixed, dim, &std::pair<Dim, Dim>::first);
    if (known == fixed.end()) known = fixed.insert(fixed.end(), {dim, Dim("fixed", dim.size())});
    result.push_back(known->second);
  }
  return result;
}

/// Returns true if the op tells that it reads lengths over a length dim of the ragged dim.
bool tells_of_lengths(const OpCall& call, const Dim& ragged) {
  for (std::size_t i = 0; i < call.in.size(); ++i)
    if (const int axis = find(call.in[i].dims(), ragged.length_dims()[0]);
        axis >= 0 && call.op.reads_lengths && call.op.reads_lengths(call, i, axis))
      return true;
  return false;
}

// In a row block, ragged dims have no lengths: the op must give the same elements then.
TEST_P(LengthsOfEveryOp, AreReadByOpsThatTell) {
  const Op& op = *GetParam();
  for (const OpSample& sample : op.samples()) {
    bool has_lengths_in_attrs = false;
    if (sample.attrs)
      sample.attrs->each_symbol([&](const Dim& dim) { has_lengths_in_attrs |= dim.is_ragged(); });
    if (has_lengths_in_attrs) continue;
    const Tensors in = draw_sample(sample, false);
    std::vector<std::pair<Dim, Dim>> fixed;
    Tensors without;
    std::vector<TensorType> types;
    for (const Tensor& x : in) {
      types.push_back(x.type());
      const TensorType type = x.type().with(without_lengths(x.dims(), fixed));
      without.push_back(Tensor(allocate_view(type, x.ref(), x.data<char>())));
    }
    if (fixed.empty()) continue;
    const Tensor expected = bind_all(op, in, sample.attrs)[0],
                 made = bind_all(op, without, sample.attrs)[0];
    ASSERT_EQ(made.type().numel(), expected.type().numel());
    const Tensor as_expected(allocate_view(expected.type(), made.ref(), made.data<char>()));
    const Tensor a = mask_padding(as_expected), b = mask_padding(expected);
    if (std::memcmp(a.data<char>(), b.data<char>(), static_cast<std::size_t>(a.type().bytes())) ==
        0)
      continue;
    EXPECT_TRUE(
        tells_of_lengths({op, sample.attrs.get(), types, {&expected.type(), 1}}, fixed[0].first))
        << op.name << " of " << types[0];
  }
}

// ---- Memory -------------------------------------------------------------------------------------

class ResultsOnInputs : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, ResultsOnInputs, ::testing::ValuesIn(ops_with(may_lie_on_input)),
                         name_of);

TEST_P(ResultsOnInputs, HaveTheBitsOfResultsElsewhere) {
  const Op& op = *GetParam();
  int checked = 0;
  for (const OpSample& sample : op.samples()) {
    const Tensors in = draw_sample(sample, false);
    const Tensor expected = bind_all(op, in, sample.attrs)[0];
    const TensorType& type = expected.type();
    if (in[0].type() != type) continue;
    const auto bytes = static_cast<std::size_t>(type.bytes());
    const Tensor place(allocate_block(type));
    std::memcpy(place.data<char>(), in[0].data<char>(), bytes);
    std::vector<OpInput> operands;
    for (std::size_t i = 0; i < in.size(); ++i) operands.emplace_back(i == 0 ? place : in[i]);
    Tensor out = place;
    KernelArgs args{op, sample.attrs.get(), operands, false, {&type, 1}, {&out, 1}};
    op.kernel(args);
    const Tensor a = mask_padding(out), b = mask_padding(expected);
    EXPECT_EQ(std::memcmp(a.data<char>(), b.data<char>(), bytes), 0) << op.name << " of " << type;
    ++checked;
  }
  EXPECT_GT(checked, 0) << op.name;
}

// ---- Work ---------------------------------------------------------------------------------------

TEST(MultiplicationsTest, CountOfAProductIsTheProductOfItsSizes) {
  const TensorType a(f32, {2, 3, 4}), b(f32, {2, 4, 5}), out(f32, {2, 3, 5});
  const AttrsRef attrs = make_attrs(DotAttrs{{2}, {1}, {0}, {0}});
  const TensorType in[] = {a, b};
  EXPECT_EQ(multiplications({dot_op, attrs.get(), in, {&out, 1}}), 2 * 3 * 4 * 5);
  EXPECT_EQ(multiplications({mul_op, nullptr, in, {&a, 1}}), 0);
}

}  // namespace
}  // namespace reel
