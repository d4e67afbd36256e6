#include "reel/frontend/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "reel/core/base/str.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/custom_vjp.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/attention_stream.h"
#include "reel/frontend/loops/whole_function.h"

namespace reel {
namespace {

/// A window is at most this: sums with positions stay within i32.
constexpr std::int64_t kMaxWindow = std::int64_t{1} << 30;

void check(const Tensor& x, const char* name, const Dims& dims) {
  check_defined("attention", x);
  if (!is_float(x.dtype()))
    throw DTypeError(str("attention: ", name, " must be f32 or f64, got ", x.type()));
  for (const Dim& dim : dims)
    if (find(x.dims(), dim) < 0)
      throw ShapeError(str("attention: ", name, " ", x.type(), " has no dim ", dim));
}

/// Checks an option that has some dims of the products.
void check_option(const Tensor& x, const char* name, const Dims& dims) {
  check_defined("attention", x);
  if (const Dims foreign = without(x.dims(), dims); !foreign.empty())
    throw ShapeError(str("attention: ", name, ' ', x.type(), " has the dim ", foreign[0],
                         ", which neither q nor k has; they have ", join(dims)));
}

/// Returns the positions of queries: those along a dim, and the offset. Returns nothing if they are
/// unknown: without a dim along which they count, an offset must have a number for each query.
/// own: dims of q that k lacks.
std::optional<Tensor> positions_of(const std::optional<Dim>& queries,
                                   const std::optional<Tensor>& offset, const Dims& own) {
  if (!queries) {
    if (!offset || !without(own, offset->dims()).empty()) return std::nullopt;
    return cast(*offset, i32);
  }
  const Tensor along = range(*queries, i32);
  if (!offset) return along;
  Dims dims = offset->dims();
  dims.push_back(*queries);
  return expand(along, dims) + expand(cast(*offset, i32), dims);
}

/// Adds the options about positions, bias and mask. own: dims of q that k lacks.
void add_options(AttentionStream& call, const std::optional<Dim>& queries, const Dims& own,
                 const AttentionOptions& options) {
  if (options.window && *options.window < 0)
    throw ArgumentError(str("attention: window must not be negative, got ", *options.window));
  if (options.window) call.window = std::min(*options.window, kMaxWindow);
  const Dims products = with_more(call.rows, {call.keys});
  if (options.offset) {
    check_option(*options.offset, "offset", call.rows);
    if (is_float(options.offset->dtype()) || options.offset->dtype() == boolean)
      throw DTypeError(str("attention: offset must be i32 or i64, got ", options.offset->type()));
    if (queries && contains(options.offset->dims(), *queries))
      throw ShapeError(str("attention: offset ", options.offset->type(), " has the dim ", *queries,
                           ", along which positions count from it; give it dims of entries only, "
                           "or hide keys of other positions by a mask"));
  }
  if (options.bias) {
    check_option(*options.bias, "bias", products);
    if (options.bias->dtype() != call.dtype)
      throw DTypeError(str("attention: bias must have the dtype of q, ", call.dtype, ", got ",
                           options.bias->type()));
  }
  if (options.mask) {
    check_option(*options.mask, "mask", products);
    if (options.mask->dtype() != boolean)
      throw DTypeError(
          str("attention: mask must be boolean, got ", options.mask->type(),
              "; a mask of 0 and 1: mask != 0; numbers to add, as 0 and -inf: option bias"));
    call.mask = options.mask;
  }
  call.has_bias = options.bias.has_value();
  if (options.bias_of) {
    call.bias_of = options.bias_of->of;
    call.function_inputs = options.bias_of->inputs.size();
  }
  if (call.is_causal || call.window || call.bias_of)
    call.positions = positions_of(queries, options.offset, own);
  if (call.window && !call.positions) {
    const std::string over = own.empty() ? "" : str(" over the dims that only q has, ", join(own));
    throw ArgumentError(
        str("attention: window counts from the position of a query, which is not known; give "
            "queries, the dim of q along which positions count, or offset, a position for each "
            "query",
            over));
  }
  call.skips_blocks = call.window || (call.is_causal && options.offset);
}

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                    const Dim& features, const AttentionOptions& options) {
  check(q, "q", {features});
  check(k, "k", {keys, features});
  check(v, "v", {keys});
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype())
    throw DTypeError(str("attention: dtypes differ: q ", q.type(), ", k ", k.type(), ", v ",
                         v.type(), "; cast them to one"));
  if (options.block < 1)
    throw ArgumentError(str("attention: block must be at least 1, got ", options.block));
  if (!options.scale && !features.has_size())
    throw ArgumentError(str("attention: the size of ", features, " is not known; give scale"));
}

/// The queries, and their dim if a position or an option needs one.
struct Queries {
  Tensor q;
  std::optional<Dim> dim;
  bool are_renamed;  ///< they had the dim of keys, and have another one so that products have both
};

Queries queries_of(const Tensor& given, const Dim& keys, const AttentionOptions& options) {
  const bool is_one_dim = contains(given.dims(), keys);
  std::optional<Dim> queries = options.queries ? options.queries : options.causal;
  if (queries) queries = canonical(*queries);
  if (is_one_dim && (!queries || *queries == keys)) queries = twin(keys);
  const Tensor q = is_one_dim ? rename(given, keys, *queries) : given;
  if (queries && !is_one_dim) check(q, "q", {*queries});
  if (options.causal) {
    const Dim causal = canonical(*options.causal);
    if (!(causal == *queries) && !(is_one_dim && causal == keys)) {
      check(q, "q", {causal});
      throw ShapeError(str("attention: causal ", causal, " and queries ", *queries,
                           " are different dims; give the dim of queries once"));
    }
  }
  return {q, queries, is_one_dim};
}

AttentionStream stream_of(const Queries& queries, const Tensor& k, const Tensor& v, const Dim& keys,
                          const Dim& features, const AttentionOptions& options) {
  AttentionStream call{.keys = keys,
                       .features = features,
                       .dtype = queries.q.dtype(),
                       .is_causal = options.causal.has_value(),
                       .block = Dim("block", options.block)};
  call.rows = without(with_more(without(queries.q.dims(), {features}), without(k.dims(), {keys})),
                      {features});
  call.extra = without(v.dims(), with_more(call.rows, {keys}));
  call.scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(features.size()));
  add_options(call, queries.dim, without(without(queries.q.dims(), {features}), k.dims()), options);
  return call;
}

/// Runs the blocks. The innermost tape takes the gradient from `backward`; the tapes around it
/// record how the residuals were computed.
Tensor run_stream(const AttentionStream& call, const AttentionStream::Inputs& in) {
  ThreadMode aside = thread_mode;
  if (aside.tape) aside.tape = aside.tape->outer;
  Tensor y, log_total;
  {
    const ModeScope scope(aside);
    std::tie(y, log_total) = call.forward(in);
  }
  const auto backward = [call](const Tensors& residuals, const Tensors& g) {
    const std::size_t many = residuals.size();
    return call.backward(call.inputs_of(residuals), residuals[many - 2], residuals[many - 1], g[0]);
  };
  const Tensors inputs = AttentionStream::tensors(in);
  Tensors residuals = inputs;
  residuals.push_back(y);
  residuals.push_back(log_total);
  return with_custom_vjp(inputs, {y}, residuals, backward)[0];
}

/// Computes attention by blocks of keys.
Tensor attention_by_blocks(const Tensor& given_q, const Tensor& given_k, const Tensor& given_v,
                           const Dim& given_keys, const Dim& given_features,
                           const AttentionOptions& options) {
  const Dim keys = canonical(given_keys), features = canonical(given_features);
  check_operands(given_q, given_k, given_v, keys, features, options);
  const Queries queries = queries_of(given_q, keys, options);
  const Tensor k = mask_padding(given_k), v = mask_padding(given_v);
  const AttentionStream call = stream_of(queries, k, v, keys, features, options);
  const Tensor y = run_stream(
      call, {queries.q, k, v, options.bias, options.bias_of ? options.bias_of->inputs : Tensors()});
  return queries.are_renamed ? rename(y, *queries.dim, keys) : y;
}

/// Returns the call with the roles that whole_function.h lists.
WholeFunction as_whole(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                       const Dim& features, const AttentionOptions& options) {
  const auto given = [](const std::optional<Tensor>& x) { return x.value_or(Tensor()); };
  const double scale =
      options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(features.size()));
  const std::optional<Dim>& queries = options.queries ? options.queries : options.causal;
  const double window = options.window ? static_cast<double>(*options.window) : -1;
  // Without `causal` and `window`, nothing reads the offset.
  const bool reads_offset = options.causal || options.window;
  const Dim counted = canonical(queries.value_or(keys));
  const bool has_counted = queries || (q.is_defined() && contains(q.dims(), counted));
  return {"attention",
          {q, k, v, given(options.bias), given(options.mask),
           reads_offset ? given(options.offset) : Tensor()},
          {canonical(keys), canonical(features), counted},
          {scale, double(options.causal.has_value()), window, double(has_counted)}};
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                 const Dim& features, const AttentionOptions& options) {
  const auto run = [&] { return attention_by_blocks(q, k, v, keys, features, options); };
  if (options.bias_of || !WholeFunctions::are_recorded() || !(options.scale || features.has_size()))
    return run();
  return whole_function(as_whole(q, k, v, keys, features, options),
                        [&] { return Tensors{run()}; })[0];
}

}  // namespace reel
