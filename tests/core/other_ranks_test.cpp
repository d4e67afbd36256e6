// Operands of other ranks than an op's samples have: the op refuses them, or its result has the
// type of its type rule. It never reads or writes beyond a tensor: in a build with
// AddressSanitizer, each tensor is an allocation of its own.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

/// How an operand differs from the sample's.
enum Rank { kSame, kScalar, kWithoutFirst, kWithoutLast, kMoreInFront, kMoreBehind, kRanks };

/// Returns a sample's operand with another rank; nothing if another Rank gives the same one.
std::optional<SampleInput> with_rank(SampleInput input, int rank, bool is_named) {
  if (input.type.is_list()) return rank == kSame ? std::optional(input) : std::nullopt;
  Dims dims = input.type.dims();
  if (!dims.empty()) is_named = input.type.is_named();
  const Dim more = is_named ? Dim("more", 2) : Dim(2);
  if (dims.empty() && rank != kSame && rank != kMoreInFront) return std::nullopt;
  if (dims.size() == 1 && (rank == kWithoutFirst || rank == kWithoutLast)) return std::nullopt;
  if (rank == kScalar) dims.clear();
  if (rank == kWithoutFirst) dims.erase(dims.begin());
  if (rank == kWithoutLast) dims.pop_back();
  if (rank == kMoreInFront) dims.insert(dims.begin(), more);
  if (rank == kMoreBehind) dims.push_back(more);
  input.type = input.type.with(dims);
  return input;
}

/// Calls visit(sample) with operands of other ranks: all combinations of up to three operands;
/// of more, each alone and all alike.
template <class Visit>
void each_of_other_ranks(const OpSample& sample, const Visit& visit) {
  const std::size_t count = sample.inputs.size();
  bool is_named = false;
  for (const SampleInput& input : sample.inputs) is_named = is_named || input.type.is_named();
  const auto visit_ranks = [&](const std::vector<int>& ranks) {
    OpSample other = sample;
    for (std::size_t i = 0; i < count; ++i) {
      const auto input = with_rank(sample.inputs[i], ranks[i], is_named);
      if (!input) return;
      other.inputs[i] = *input;
    }
    visit(other);
  };
  if (count <= 3) {
    int combinations = 1;
    for (std::size_t i = 0; i < count; ++i) combinations *= kRanks;
    for (int number = 0; number < combinations; ++number) {
      std::vector<int> ranks;
      for (int rest = number; ranks.size() < count; rest /= kRanks) ranks.push_back(rest % kRanks);
      visit_ranks(ranks);
    }
    return;
  }
  for (int rank = kScalar; rank < kRanks; ++rank) {
    visit_ranks(std::vector<int>(count, rank));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<int> ranks(count);
      ranks[i] = rank;
      visit_ranks(ranks);
    }
  }
}

class OtherRanks : public ::testing::TestWithParam<const Op*> {
 protected:
  const Op& op() const { return *GetParam(); }
  OpSamples samples() const { return op().samples ? op().samples() : OpSamples{}; }
  static std::string text_of(const Tensors& inputs) {
    std::string text;
    for (const Tensor& input : inputs) text += str(text.empty() ? "" : ", ", input.type());
    return text;
  }
  /// Returns results that are computed and read, or nothing if the op refuses its operands.
  Tensors results_of(const OpSample& sample, const Tensors& inputs) const try {
    const Tensors results = bind_all(op(), inputs, sample.attrs);
    for (const Tensor& result : results)
      if (!result.type().is_list()) values_of(result);
    return results;
  } catch (const InternalError& error) {
    ADD_FAILURE() << op().name << " of " << text_of(inputs) << ": " << error.what();
    return {};
  } catch (const Error&) {
    return {};
  }
};

INSTANTIATE_TEST_SUITE_P(Ops, OtherRanks, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(OtherRanks, AreRefusedOrHaveResults) {
  for (const OpSample& sample : samples())
    each_of_other_ranks(sample, [&](const OpSample& other) {
      const Tensors inputs = draw_sample(other, false);
      const Tensors results = results_of(other, inputs);
      if (results.empty() || op().kernel_decides_types) return;
      TypeList in, out;
      for (const Tensor& input : inputs) in.push_back(input.type());
      TypeArgs rule{op(), sample.attrs.get(), in, out};
      op().type(rule);
      ASSERT_EQ(results.size(), out.size());
      for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].type(), out[i]);
    });
}

/// Gradients are of the operands' types, or an error says why there are none.
TEST_P(OtherRanks, HaveGradientsOfTheirTypes) {
  if (!op().vjp) return;
  for (const OpSample& sample : samples())
    each_of_other_ranks(sample, [&](const OpSample& other) {
      const Tensors inputs = draw_sample(other, true);
      if (!has_floating(inputs) || results_of(other, inputs).empty()) return;
      try {
        const Tensors gradient = grad([&](const Tensors& x) {
          Tensor total = scalar(0., f64);
          for (const Tensor& result : bind_all(op(), x, sample.attrs))
            if (is_float(result.dtype())) total = total + sum(cast(result, f64));
          return total;
        })(inputs);
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (is_float(inputs[i].dtype())) {
            EXPECT_EQ(gradient[i].type(), inputs[i].type());
            values_of(gradient[i]);
          }
      } catch (const Error& error) {
        ADD_FAILURE() << op().name << " of " << text_of(inputs) << ": " << error.what();
      }
    });
}

TEST(OtherRanksTest, ErrorsNameOpTypeAndAxis) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(message_of<ShapeError>([&] {
              bind(slice_op, {x}, make_attrs(SliceAttrs{2, 0, 1, {}}));
            }),
            "slice: f32[2,3] has no axis 2");
  EXPECT_EQ(message_of<ShapeError>([&] {
              bind(scan_lag_op, {x, zeros({2})}, make_attrs(ScanWalkAttrs{0, false}));
            }),
            "scan_lag: the first row is f32[2], but should be f32[3]");
}

}  // namespace
}  // namespace reel
