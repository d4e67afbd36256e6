#include "reel/frontend/layers/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/attention_stream.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/loops/whole_function.h"

namespace reel {
namespace {

constexpr std::string_view kLinearAttention = "linear_attention";

void check(const Tensor& x, const char* role, DType dtype, const Dims& needed) {
  check_defined(kLinearAttention, x);
  if (!is_float(dtype) || x.dtype() != dtype)
    throw DTypeError(str(kLinearAttention, ": ", role, " is ", x.type(), ", but q is ", dtype,
                         "; q, k, v, the state and the options need one floating dtype"));
  for (const Dim& dim : needed)
    if (find(x.dims(), dim) < 0)
      throw ShapeError(str(kLinearAttention, ": ", role, ' ', x.type(), " has no dim ", dim));
}
void check_within(const Tensor& x, const char* role, const Dims& allowed) {
  if (const Dims foreign = without(x.dims(), allowed); !foreign.empty())
    throw ShapeError(str(kLinearAttention, ": ", role, ' ', x.type(), " has the dim ", foreign[0],
                         "; its dims must be among ", join(allowed)));
}

/// Checks a call. time: the dim of time, or none in a step.
void check_call(const Tensor& q, const Tensor& k, const Tensor& v, const Dims& time,
                const Dim& features, const Tensor& state, const LinearAttentionOptions& options) {
  const DType dtype = q.dtype();
  check(k, "k", dtype, with_more(time, {features}));
  const Dims of_k = without(k.dims(), time);
  check(q, "q", dtype, k.dims());
  check(v, "v", dtype, without(k.dims(), {features}));
  if (find(v.dims(), features) >= 0)
    throw ShapeError(str(kLinearAttention, ": v ", v.type(), " has the dim of features, ", features,
                         "; give it another name"));
  const Dims of_state = with_more(of_k, without(v.dims(), time));
  check(state, "the state", dtype, of_state);
  check_within(state, "the state", of_state);
  if (const Dims both = without(v.dims(), without(v.dims(), without(q.dims(), k.dims())));
      !both.empty())
    throw ShapeError(str(kLinearAttention, ": q ", q.type(), " and v ", v.type(), " have the dim ",
                         both[0], ", which k ", k.type(), " lacks"));
  if (options.decay) {
    check(*options.decay, "decay", dtype, time);
    check_within(*options.decay, "decay", k.dims());
  }
  if (options.beta) {
    check(*options.beta, "beta", dtype, time);
    check_within(*options.beta, "beta", v.dims());
  }
  if (!options.scale && !features.has_size())
    throw ArgumentError(
        str(kLinearAttention, ": the size of ", features, " is not known; give scale"));
}

double scale_of(const LinearAttentionOptions& options, const Dim& features) {
  return options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(features.size()));
}

/// Returns {y, the next state}, which has the order of the dims of `before`.
std::pair<Tensor, Tensor> step(const Tensor& q, const Tensor& k, const Tensor& v,
                               const Dim& features, const Tensor& before,
                               const std::optional<Tensor>& decay,
                               const std::optional<Tensor>& beta, double scale) {
  const Dims& dims = before.dims();
  const Tensor decayed = decay ? before * exp(*decay) : before;
  Tensor update = v;
  if (beta) {
    const Tensor error = v - matmul(k, decayed, features);
    update = error * *beta;
  }
  const auto over_state = [&](const Tensor& x) {
    Dims own;
    for (const Dim& dim : dims)
      if (contains(x.dims(), dim)) own.push_back(dim);
    return expand(transpose(x, Axes(own)), dims);
  };
  const Tensor next = transpose(decayed, Axes(dims)) + over_state(k) * over_state(update);
  const Dims of_y = with_more(without(q.dims(), {features}), without(v.dims(), q.dims()));
  return {transpose(matmul(q, next, features) * scale, Axes(of_y)), next};
}

}  // namespace

std::pair<Tensor, Tensor> linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                                                const Dim& given_features, const Tensor& state,
                                                const LinearAttentionOptions& options) {
  const Dim features = canonical(given_features);
  check_defined(kLinearAttention, q);
  check_call(q, k, v, {}, features, state, options);
  return step(q, k, v, features, state, options.decay, options.beta, scale_of(options, features));
}

std::pair<Tensor, Tensor> linear_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Dim& given_time, const Dim& given_features,
                                           const Tensor& state,
                                           const LinearAttentionOptions& options) {
  const Dim time = canonical(given_time), features = canonical(given_features);
  check_defined(kLinearAttention, q);
  check_call(q, k, v, {time}, features, state, options);
  const double scale = scale_of(options, features);
  const auto run = [&]() -> Tensors {
    Tensors xs{q, k, v};
    for (const std::optional<Tensor>* more : {&options.decay, &options.beta})
      if (*more) xs.push_back(**more);
    const auto body = [&](const Tensors& x, const Tensor& before) {
      std::size_t next = 3;
      std::optional<Tensor> decay, beta;
      if (options.decay) decay = x[next++];
      if (options.beta) beta = x[next++];
      return step(x[0], x[1], x[2], features, before, decay, beta, scale);
    };
    const auto [ys, last, end] = scan(Scan{.spatial_dim = time,
                                           .initial = state,
                                           .xs = xs,
                                           .body = body,
                                           .name = std::string(kLinearAttention)});
    return {ys, last};
  };
  const auto given = [](const std::optional<Tensor>& x) { return x.value_or(Tensor()); };
  const Tensors made =
      WholeFunctions::are_recorded()
          ? whole_function({std::string(kLinearAttention),
                            {q, k, v, state, given(options.decay), given(options.beta)},
                            {time, features},
                            {scale}},
                           run)
          : run();
  return {made[0], made[1]};
}

}  // namespace reel
