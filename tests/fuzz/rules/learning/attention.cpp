// Rules for attention: over keys of every kind, in causal order, and in blocks of several sizes.
#include "reel/frontend/layers/attention.h"

#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr std::size_t kMaxDims = 4;

bool is_real(const Drafter& d, int value) {
  return !d.type(value).is_array && d.type(value).element == Element::real;
}

/// True if the value has the dim, and the dims of its lengths, and if no lengths run over it.
bool has_alone(Drafter& d, int value, int dim) {
  const std::vector<int>& dims = d.type(value).dims;
  return contains(dims, dim) && is_subset(d.dim(dim).over, dims) &&
         dims_running_over(d.program(), dims, dim).empty();
}

/// Operands q, k and v. dims: the keys, the features; if `is_causal`, a dim of q.
bool attended_in(Drafter& d, Instruction& in, bool is_causal) {
  if (!d.is_named()) return false;
  const int k = d.pick([&](int v) { return is_real(d, v) && d.rank(v) > 1; });
  if (k < 0) return false;
  const int keys = d.pick_axis(k, [](const DimInfo&) { return true; });
  const int features = d.pick_axis(k, [](const DimInfo& dim) { return dim.size > 0; });
  if (features < 0 || features == keys) return false;
  if (!has_alone(d, k, keys) || !has_alone(d, k, features)) return false;
  const int q = d.pick([&](int v) {
    return is_real(d, v) && has_alone(d, v, features) && !contains(d.type(v).dims, keys) &&
           d.rank(v) > is_causal;
  });
  const int v = d.pick([&](int v) { return is_real(d, v) && has_alone(d, v, keys); });
  if (q < 0 || v < 0) return false;
  ValueType type;
  std::vector<int> all{keys, features};
  for (const int value : {q, k, v})
    for (const int dim : d.type(value).dims) {
      if (!contains(all, dim)) all.push_back(dim);
      const bool is_summed = dim == keys || (dim == features && value != v);
      if (!is_summed && !contains(type.dims, dim)) type.dims.push_back(dim);
    }
  if (all.size() > kMaxDims || have_one_origin(d.program(), all)) return false;
  in.dims = {keys, features};
  if (is_causal)
    in.dims.push_back(d.pick_axis(q, [&](const DimInfo& dim) { return &dim != &d.dim(features); }));
  in.numbers = {d.random().between(1, 3)};
  return gives(d, in, {q, k, v}, type);
}

bool attended(Drafter& d, Instruction& in) { return attended_in(d, in, false); }
bool attended_in_order(Drafter& d, Instruction& in) { return attended_in(d, in, true); }

/// Operand a: queries, and as keys and values, renamed. dims: the dim of queries, the features.
bool attends_to_itself(Drafter& d, Instruction& in) {
  if (!d.is_named()) return false;
  const int a = d.pick([&](int v) { return is_real(d, v) && d.rank(v) > 1; });
  if (a < 0) return false;
  const int queries = d.pick_axis(a, [](const DimInfo&) { return true; });
  const int features = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0; });
  if (features < 0 || features == queries || !has_alone(d, a, queries) ||
      !has_alone(d, a, features))
    return false;
  in.dims = {queries, features};
  in.numbers = {d.random().between(1, 3)};
  ValueType type = d.type(a);
  std::erase(type.dims, features);
  type.dims.push_back(features);
  return gives(d, in, {a}, type);
}

}  // namespace

Rules attention_rules() {
  return {
      expression(REEL_EXPRESSION([&](const Dim& keys) {
                   const Tensor k = rename(a, to, keys);
                   return attention(sin(a), k, tanh(k), keys, Dims(dims)[1],
                                    {.causal = to, .block = n});
                 }(Dim("keys", to.lengths()))),
                 4, attends_to_itself),
      expression(REEL_EXPRESSION(attention(a, b, c, to, Dims(dims)[1], {.scale = 0.5, .block = n})),
                 10, attended),
      expression(REEL_EXPRESSION(
                     attention(a, b, c, to, Dims(dims)[1], {.causal = Dims(dims)[2], .block = n})),
                 14, attended_in_order),
  };
}

}  // namespace reel::fuzz
