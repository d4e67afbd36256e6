// Every function on tensors names itself in the error for an empty tensor.
#include <functional>
#include <string>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/functions/positions.h"
#include "reel/core/functions/scatter.h"
#include "reel/core/functions/transforms.h"
#include "reel/core/ops.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/core/types/partial_shape.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

struct Call {
  std::string name;  ///< the beginning of the message
  std::function<void(const Tensor& empty, const Tensor& x)> call;
};

#define REEL_CALL(name, ...)                                                                      \
  Call {                                                                                          \
    name,                                                                                         \
        [](const Tensor& e, [[maybe_unused]] const Tensor& x) { static_cast<void>(__VA_ARGS__); } \
  }

std::vector<Call> calls_of_one() {
  return {
      REEL_CALL("neg", -e),
      REEL_CALL("exp", exp(e)),
      REEL_CALL("gelu", gelu(e)),
      REEL_CALL("logical_not", !e),
      REEL_CALL("cast", cast(e, f64)),
      REEL_CALL("clip", clip(e, 0, 1)),
      REEL_CALL("transpose", transpose(e, {1, 0})),
      REEL_CALL("reshape", reshape(e, {2})),
      REEL_CALL("reshape", reshape(e, Dims{Dim("a", 2)})),
      REEL_CALL("rename", rename(e, 0, Dim("a", 2))),
      REEL_CALL("expand", expand(e, {Dim("a", 2)})),
      REEL_CALL("broadcast_to", broadcast_to(e, {2})),
      REEL_CALL("merge_dims", merge_dims(e, {0, 1})),
      REEL_CALL("split_dim", split_dim(e, 0, {Dim(1), Dim(2)})),
      REEL_CALL("squeeze", squeeze(e, 0)),
      REEL_CALL("concat", concat({e, e}, 0)),
      REEL_CALL("stack", stack({e, e})),
      REEL_CALL("item", e.item<float>()),
      REEL_CALL("to_vector", e.to_vector<float>()),
      REEL_CALL("unstack", unstack(e)),
      REEL_CALL("split", split(e, 0, 2)),
      REEL_CALL("slice", slice(e, 0, 0, 1)),
      REEL_CALL("slice", slice(e, 0, 0, 1, 2)),
      REEL_CALL("slice", slice(e, 0, x, x)),
      REEL_CALL("spread", spread(e, x)),
      REEL_CALL("spread", spread(x, e)),
      REEL_CALL("search_sorted", search_sorted(e, x, 0)),
      REEL_CALL("search_sorted", search_sorted(x, e, 0)),
      REEL_CALL("repeat", repeat(e, x, 0)),
      REEL_CALL("scatter", scatter(e, x, {Dim("n", 2)}, Dim("to", 2))),
      REEL_CALL("scatter", scatter(x, e, {Dim("n", 2)}, Dim("to", 2))),
      REEL_CALL("scatter_argmax", scatter_argmax(x, e, Dim("n", 2), Dim("to", 2))),
      REEL_CALL("shift", shift(e, 0, 1)),
      REEL_CALL("pad", pad(e, 0, 1, 1)),
      REEL_CALL("reverse", reverse(e, 0)),
      REEL_CALL("conv", conv(e, x, 0)),
      REEL_CALL("conv", conv(x, e, 0)),
      REEL_CALL("rfft", rfft(e, 0)),
      REEL_CALL("irfft", irfft({e, x}, 0)),
      REEL_CALL("fft", fft({x, e}, 0)),
      REEL_CALL("ifft", ifft({e, x}, 0)),
      REEL_CALL("max_pool", max_pool(e, 0, {.size = 2})),
      REEL_CALL("mean_pool", mean_pool(e, 0, {.size = 2})),
      REEL_CALL("sum", sum(e)),
      REEL_CALL("sum", sum(e, 0)),
      REEL_CALL("prod", prod(e)),
      REEL_CALL("prod", prod(e, 0)),
      REEL_CALL("mean", mean(e)),
      REEL_CALL("mean", mean(e, 0)),
      REEL_CALL("variance", variance(e)),
      REEL_CALL("variance", variance(e, 0)),
      REEL_CALL("max", max(e)),
      REEL_CALL("max", max(e, 0)),
      REEL_CALL("min", min(e)),
      REEL_CALL("min", min(e, 0)),
      REEL_CALL("any", any(e)),
      REEL_CALL("any", any(e, 0)),
      REEL_CALL("all", all(e)),
      REEL_CALL("all", all(e, 0)),
      REEL_CALL("argmax", argmax(e)),
      REEL_CALL("argmax", argmax(e, 0)),
      REEL_CALL("argmin", argmin(e)),
      REEL_CALL("argmin", argmin(e, 0)),
      REEL_CALL("logsumexp", logsumexp(e)),
      REEL_CALL("logsumexp", logsumexp(e, 0)),
      REEL_CALL("softmax", softmax(e, 0)),
      REEL_CALL("log_softmax", log_softmax(e, 0)),
      REEL_CALL("cumsum", cumsum(e, 0)),
      REEL_CALL("cumprod", cumprod(e, 0)),
      REEL_CALL("logcumsumexp", logcumsumexp(e, 0)),
      REEL_CALL("sort", sort(e, 0)),
      REEL_CALL("argsort", argsort(e, 0)),
      REEL_CALL("top_k", top_k(e, 0, 1)),
      REEL_CALL("top_k", top_k(e, std::vector<Axis>{0}, 1)),
      REEL_CALL("print", print(e)),
      REEL_CALL("identity", identity(e)),
      REEL_CALL("checkpoint_name", checkpoint_name(e, "a")),
      REEL_CALL("stop_gradient", stop_gradient(e)),
      REEL_CALL("one_hot", one_hot(e, 3)),
      REEL_CALL("zeros_like", zeros_like(e)),
      REEL_CALL("ones_like", ones_like(e)),

      REEL_CALL("mask_padding", mask_padding(e)),
      REEL_CALL("bernoulli", bernoulli(e, Dims{2})),
      REEL_CALL("categorical", categorical(e, 0)),
      REEL_CALL("dropout", dropout(e, 0.5)),
      REEL_CALL("ensure_shape", ensure_shape(e, PartialShape{2})),
  };
}

std::vector<Call> calls_of_several() {
  return {
      REEL_CALL("add", x + e),
      REEL_CALL("sub", e - x),
      REEL_CALL("mul", x * e),
      REEL_CALL("mul", 2 * e),
      REEL_CALL("div", e / 2),
      REEL_CALL("remainder", e % x),
      REEL_CALL("floor_divide", floor_divide(e, x)),
      REEL_CALL("mod", mod(x, e)),
      REEL_CALL("pow", pow(e, 2)),
      REEL_CALL("maximum", maximum(e, 0)),
      REEL_CALL("minimum", minimum(x, e)),
      REEL_CALL("equal", e == x),
      REEL_CALL("less", x < e),
      REEL_CALL("logical_and", e && x),
      REEL_CALL("where", where(e, x, x)),
      REEL_CALL("where", where(x == x, e, x)),
      REEL_CALL("where", where(x == x, 0, e)),
      REEL_CALL("matmul", matmul(e, x)),
      REEL_CALL("matmul", matmul(x, e)),
      REEL_CALL("matmul", matmul(x, e, Dim("a", 2))),
      REEL_CALL("concat", concat({x, e}, 0)),
      REEL_CALL("stack", stack({x, e})),
      REEL_CALL("cum_concat", cum_concat(x, e, 0)),
      REEL_CALL("cum_concat", cum_concat(e, x, 0)),
      REEL_CALL("gather", gather(x, e, 0)),
      REEL_CALL("gather", gather(e, x, 0)),
      REEL_CALL("scatter_add", scatter_add(e, x, x, 0)),
      REEL_CALL("scatter_add", scatter_add(x, e, x, 0)),
      REEL_CALL("scatter_add", scatter_add(x, cast(x, i32), e, 0)),
      REEL_CALL("scatter_max", scatter_max(e, x, x, 0)),
      REEL_CALL("pack", pack(e, x == x)),
      REEL_CALL("pack", pack(x, e)),
      REEL_CALL("unpack", unpack(e, 0, x == x)),
      REEL_CALL("unpack", unpack(x, 0, e)),
      REEL_CALL("unpack", unpack(x, 0, x == x, e)),
  };
}

/// Returns the calls with a message that does not begin with the function's name.
std::string wrong_ones(const std::vector<Call>& calls) {
  std::string result;
  for (const Call& at : calls) {
    std::string message = "no error";
    try {
      at.call(Tensor(), ones({2, 2}));
    } catch (const ArgumentError& error) {
      message = error.message();
    } catch (const std::exception& error) {
      message = str("another error: ", error.what());
    }
    if (message != at.name + ": " + kGivenEmptyTensor)
      result += str(at.name, " -> ", message, '\n');
  }
  return result;
}

TEST(EmptyTensorTest, AFunctionOfOneTensorNamesItself) {
  EXPECT_EQ(wrong_ones(calls_of_one()), "");
}
TEST(EmptyTensorTest, AFunctionOfSeveralTensorsNamesItself) {
  EXPECT_EQ(wrong_ones(calls_of_several()), "");
}

}  // namespace
}  // namespace reel
