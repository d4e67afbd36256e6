// Padding may hold anything. Functions that remove an axis that lengths lie over, cut it or move
// its elements must not show padding. Checked for all such functions, and for all ops, so that none
// is forgotten.
#include <limits>
#include <random>
#include <set>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Dim batch("batch", 3), feature("feature", 2), one("one", 1), beam("beam", 2);
const Dim time_dim("time", tensor({3, 1, 2}, {batch})), single("single", tensor({2}, {one}));
const Dim chars("chars", tensor({2, 1, 0, 3, 0, 1, 1, 2, 0}, {batch, Dim("words", 3)}));
const Dim words = chars.length_dims()[1];

struct Call {
  const char* name;
  Tensor (*f)(const Tensor&);
  Dims dims;
};
/// Calls of public functions that return results without the lengths of x.
const std::vector<Call>& calls() {
  static const Dims x{batch, time_dim, feature}, turned{feature, time_dim, batch},
      nested{batch, words, chars}, lone{one, single};
  static const std::vector<Call> list{
      {"SliceOfBatch", [](const Tensor& x) { return slice(x, batch, 1, 2); }, x},
      {"SliceWithoutEnd", [](const Tensor& x) { return slice(x, batch, -2); }, turned},
      {"SliceOfWords", [](const Tensor& x) { return slice(x, words, 1); }, nested},
      {"EverySecond", [](const Tensor& x) { return slice(x, batch, 0, {}, 2); }, x},
      {"Backwards", [](const Tensor& x) { return slice(x, batch, -1, {}, -1); }, x},
      {"SliceToALongerDim", [](const Tensor& x) { return slice(x, time_dim, 0, 2, Dim("two", 2)); },
       x},
      {"StridesToALongerDim",
       [](const Tensor& x) { return slice(x, time_dim, 0, {}, 2, Dim("two", 2)); }, x},
      {"ScalarIndex", [](const Tensor& x) { return gather(x, scalar(1), batch); }, x},
      {"NewEntries",
       [](const Tensor& x) {
         return gather(x, tensor({2, 1}, {beam}), batch);
       },
       turned},
      {"OtherOrder",
       [](const Tensor& x) {
         return gather(x, tensor({1, 0, 2}, {batch}), batch);
       },
       x},
      {"ClippedIndex", [](const Tensor& x) { return gather(x, scalar(9), words, {.clip = true}); },
       nested},
      {"Unstack", [](const Tensor& x) { return unstack(x, batch)[1]; }, turned},
      {"TensorArray", [](const Tensor& x) { return TensorArray::unstack(x, batch).read(1); }, x},
      {"Split", [](const Tensor& x) { return split(x, batch, 3)[1]; }, x},
      {"SplitOfTime", [](const Tensor& x) { return split(x, time_dim, 3, one)[1]; }, x},
      {"Concat",
       [](const Tensor& x) {
         return concat({x, x}, batch);
       },
       x},
      {"ConcatToALongerDim",
       [](const Tensor& x) {
         return concat({x, x}, time_dim, Dim("all", 6));
       },
       x},
      {"Pad", [](const Tensor& x) { return pad(x, batch, 1, 1); }, x},
      {"PadToALongerDim", [](const Tensor& x) { return pad(x, time_dim, 1, 0, 0, Dim("more", 4)); },
       x},
      {"Shift", [](const Tensor& x) { return shift(x, batch, 1); }, x},
      {"Reverse", [](const Tensor& x) { return reverse(x, batch); }, x},
      {"ReverseOfWords", [](const Tensor& x) { return reverse(x, words); }, nested},
      {"Rename", [](const Tensor& x) { return rename(x, batch, Dim("other")); }, x},
      {"RenameToOtherLengths",
       [](const Tensor& x) {
         return rename(x, time_dim, Dim("time", tensor({1, 2, 3}, {batch})));
       },
       x},
      {"RenameOfTime", [](const Tensor& x) { return rename(x, time_dim, Dim("steps", 3)); }, x},
      {"Reshape", [](const Tensor& x) { return reshape(x, {-1}); }, x},
      {"ReshapeToDims",
       [](const Tensor& x) {
         return reshape(x, Dims{Dim("all", 9), feature});
       },
       x},
      {"Squeeze", [](const Tensor& x) { return squeeze(x, one); }, lone},
      {"MergeDims",
       [](const Tensor& x) {
         return merge_dims(x, {batch, time_dim}, {.counts_padding = true});
       },
       x},
      {"MergeDimsToALongerDim",
       [](const Tensor& x) {
         return merge_dims(x, {time_dim, feature}, Dim("longer", tensor({6, 6, 6}, {batch})));
       },
       x},
      {"MergeOneDim",
       [](const Tensor& x) {
         return merge_dims(x, time_dim, Dim("steps", 3), {.counts_padding = true});
       },
       x},
      {"SplitRaggedDim",
       [](const Tensor& x) {
         return split_dim(x, time_dim, {Dim("a"), Dim("b", 2)}, {.fill = 3});
       },
       x},
      {"SplitDim",
       [](const Tensor& x) {
         return split_dim(x, batch, {Dim("a"), Dim("b", 3)});
       },
       x},
      {"SplitDimKnown",
       [](const Tensor& x) {
         return split_dim(x, batch, {Dim("a", 3), Dim("b", 1)});
       },
       x},
      {"Pack", [](const Tensor& x) { return pack(x, ones({batch}, boolean), batch); }, x},
      {"TopK", [](const Tensor& x) { return top_k(x, batch, Dim("best", 1)).values; }, x},
      {"Sort", [](const Tensor& x) { return sort(x, batch); }, x},
      {"CumConcat",
       [](const Tensor& x) {
         return cum_concat(zeros({time_dim, feature}, f64), x, batch).first;
       },
       x},
      {"ScanOverBatch",
       [](const Tensor& x) {
         const auto body = [](const Tensor& row) { return row * 2; };
         return scan(Scan<None, Tensor, None, None, decltype(body)>{
                         .spatial_dim = batch, .xs = x, .body = body})
             .ys;
       },
       x},
      {"SumsInAScanOverBatch",
       [](const Tensor& x) {
         const auto body = [](const Tensor& row) { return sum(row, time_dim); };
         return scan(Scan<None, Tensor, None, None, decltype(body)>{
                         .spatial_dim = batch, .xs = x, .body = body})
             .ys;
       },
       x},
  };
  return list;
}

Tensor padded(const Dims& dims, double value) {
  const TensorType type(f64, dims);
  std::vector<double> numbers(static_cast<std::size_t>(type.numel()));
  std::mt19937 random(7);
  for (double& number : numbers) number = std::uniform_real_distribution<double>(-2, 2)(random);
  return mask_padding(tensor(numbers, dims), value);
}
/// Returns the sum of squares of valid elements.
Tensor total(const Tensor& y) { return sum(square(y)); }

class PaddingTest : public InEveryMode {};
REEL_IN_EVERY_MODE(PaddingTest);

TEST_P(PaddingTest, NothingOfItShows) {
  for (const Call& call : calls()) {
    SCOPED_TRACE(call.name);
    const auto f = run([&](const Tensor& x) { return mask_padding(call.f(x)); });
    expect_same_bits(f(padded(call.dims, kNan)), f(padded(call.dims, 0)));
  }
}

TEST_P(PaddingTest, ItsCotangentsAreZero) {
  for (const Call& call : calls()) {
    SCOPED_TRACE(call.name);
    const auto f = run([&](const Tensor& x) {
      return grad([&](const Tensor& x) { return total(call.f(x)); })(x);
    });
    const Tensor clean = f(padded(call.dims, 0));
    expect_same_bits(f(padded(call.dims, kNan)), clean);
    expect_same_bits(mask_padding(clean), clean);
  }
}

TEST_P(PaddingTest, ACotangentsOwnPaddingReachesNothing) {
  for (const Call& call : calls()) {
    SCOPED_TRACE(call.name);
    const auto f = run([&](const Tensor& x) {
      const auto [y, pullback] = vjp([&](const Tensor& x) { return call.f(x); }, x);
      return mask_padding(pullback(mask_padding(y, kNan)));
    });
    const Tensor x = padded(call.dims, 0);
    for (const double got : values_of(f(x))) EXPECT_FALSE(std::isnan(got));
  }
}

/// Returns the names of the ops that the calls above record.
std::set<std::string> ops_called() {
  std::set<std::string> names;
  for (const Call& call : calls()) {
    GraphBuilder builder("call");
    ModeScope scope(builder.scope());
    const Tensor y = call.f(padded(call.dims, 0));
    const Ref<Graph> graph = builder.finish({y});
    for (const OpRecord& record : graph->records) names.insert(std::string(record.op->name));
  }
  return names;
}

// An op alone relies on its public function. Inverses of these ops meet padding only in gradients.
TEST(EveryOpTest, OpsThatShowPaddingAreCalledByFunctionsThatHideIt) {
  const std::set<std::string> called = ops_called();
  for (const Op* op : all_ops()) {
    if (!op->samples || called.count(std::string(op->name))) continue;
    for (const OpSample& sample : op->samples()) {
      Tensors inputs;
      for (const SampleInput& input : sample.inputs)
        inputs.push_back(is_float(input.type.dtype())
                             ? mask_padding(full(input.type.dims(), 1, f64), kNan)
                             : full(input.type.dims(), std::clamp(1., input.low, input.high),
                                    input.type.dtype()));
      for (const Tensor& y : bind_all(*op, inputs, sample.attrs)) {
        if (!is_float(y.dtype())) continue;
        for (const double value : values_of(mask_padding(y)))
          EXPECT_FALSE(std::isnan(value)) << op->name << " gives " << y.type();
      }
    }
  }
}

}  // namespace
}  // namespace reel
