// Rules for loops under policies with growing states: vectors, histories along a Dim in the state,
// arrays, rows.
#include "reel/frontend/loops/fold.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/loops/while_loop.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/tree/tensor_array.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

/// Chooses a plain real vector with a size.
bool of_vector(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? -1 : d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) == 1 &&
           d.dim(d.type(v).dims[0]).size > 0;
  });
  if (a < 0) return false;
  in.numbers = {d.random().between(0, 3)};
  in.policy = d.policy();
  return gives(d, in, {a}, {});
}
bool of_rows(Drafter& d, Instruction& in) {
  if (!of_vector(d, in)) return false;
  d.program().values[in.outputs[0]].dims = {d.plain(3)};
  return true;
}

/// Chooses reals with named dims.
bool of_named(Drafter& d, Instruction& in) {
  const int a = !d.is_named() ? -1 : d.pick(Element::real);
  if (a < 0 || d.rank(a) > 2) return false;
  in.numbers = {d.random().between(0, 3)};
  in.policy = d.policy();
  in.dims = d.type(a).dims;
  return gives(d, in, {a}, d.type(a));
}

/// Chooses reals for the loop's slices. dims: the scanned dim, and the dims of a slice.
bool of_slices(Drafter& d, Instruction& in) {
  const int a = !d.is_named() ? -1 : d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) > 0;
  });
  if (a < 0 || d.rank(a) > 3) return false;
  const int along = d.type(a).dims[d.random().below(d.rank(a))];
  // Slices with their own lengths have another Dim in each iteration.
  if (!dims_running_over(d.program(), d.type(a).dims, along).empty()) return false;
  // Histories of entries that finish one by one need the dims of the entries.
  if (!is_subset(d.dim(along).over, d.type(a).dims)) return false;
  in.dims = {along};
  ValueType type;
  for (const int dim : d.type(a).dims)
    if (dim != along) {
      in.dims.push_back(dim);
      type.dims.push_back(dim);
    }
  in.policy = d.policy();
  return gives(d, in, {a}, type);
}

/// Along a dim of one size: a history that all entries share would be longer than an ended entry.
bool of_slices_alike(Drafter& d, Instruction& in) {
  return of_slices(d, in) && !d.dim(in.dims[0]).is_ragged();
}

}  // namespace

Rules growing_rules() {
  return {
      expression(REEL_EXPRESSION(sum(std::get<1>(while_loop(
                     [&](const Tensor& i, const Tensor&) { return i < n; },
                     [](const Tensor& i, const Tensor& s) {
                       return std::tuple{i + 1, concat({tanh(s), stack({sum(s * s) * 0.1})}, 0)};
                     },
                     std::tuple{scalar(0), a},
                     {.shape_invariants = {std::nullopt, PartialShape{unknown}},
                      .checkpoint = keep,
                      .swap_memory = swap})))),
                 4, of_vector),
      expression(
          REEL_EXPRESSION(ensure_shape(
              to_dense(std::get<1>(while_loop(
                  [&](const Tensor& i, const IndexedSlices&) { return i < n; },
                  [](const Tensor& i, const IndexedSlices& s) {
                    return std::tuple{i + 1,
                                      IndexedSlices{concat({tanh(s.values), s.values * 0.5}, 0),
                                                    concat({s.indices, mod(s.indices + 1, 3)}, 0),
                                                    s.dense_shape}};
                  },
                  std::tuple{scalar(0), IndexedSlices{a, mod(range(a.dim(0)), 3), tensor({3})}},
                  {.shape_invariants = {std::nullopt, PartialShape{unknown}},
                   .checkpoint = keep,
                   .swap_memory = swap}))),
              {3})),
          3, of_rows),
      // A history along a Dim: each iteration reads the elements of all iterations before.
      expression(REEL_EXPRESSION([&](const auto& made) {
                   return a + sum(std::get<1>(made), {std::get<2>(made)});
                 }([&](const Dim& none) {
                   Dims all = dims;
                   all.push_back(none);
                   return while_loop(
                       [&](const Tensor& i, const Tensor&, const Dim&) { return i < n; },
                       [&](const Tensor& i, const Tensor& s, const Dim& before) {
                         const auto longer =
                             cum_concat(a * 0.5 + sum(s * s, {before}), tanh(s), before);
                         return std::tuple{i + 1, longer.first, longer.second};
                       },
                       std::tuple{scalar(0), zeros(all, real) + 0.25, none},
                       WhileOptions{.checkpoint = keep, .swap_memory = swap});
                 }(Dim("hist", scalar(1))))),
                 4, of_named),
      expression(REEL_EXPRESSION([&](const auto& made) {
                   return made.first.read(-1) + made.first.read(0) * made.second;
                 }(fori_loop(0, n,
                                 [](const Tensor&, const std::pair<TensorArray, Tensor>& s) {
                                   return std::pair{s.first.push_back(sin(s.second)),
                                                    s.first.read(0) * 0.5 + s.second};
                                 },
                                 std::pair{TensorArray(TensorType{real, dims}).push_back(a), a},
                                 {.checkpoint = keep, .swap_memory = swap}))),
                 3, of_named),
      expression(REEL_EXPRESSION([&](const auto& made) {
                   return sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim});
                 }([&](const Dim& none) {
                   Dims all = dims;
                   all.erase(all.begin());
                   all.push_back(none);
                   return scan(Scan{
                       .spatial_dim = to,
                       .initial = std::pair{zeros(all, real) + 0.25, none},
                       .xs = a,
                       .body =
                           [](const Tensor& t, const std::pair<Tensor, Dim>& s) {
                             const auto longer = cum_concat(t * 0.5, tanh(s.first), s.second);
                             return std::pair{sum(square(longer.first), {longer.second}), longer};
                           },
                       .checkpoint = keep,
                       .swap_memory = swap});
                 }(Dim("hist", scalar(1))))),
                 4, of_slices_alike),
      // Each entry has a history of its own length.
      expression(REEL_EXPRESSION([&](const auto& made) {
                   return sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim});
                 }([&](const Dim& none) {
                   Dims all = dims;
                   all.erase(all.begin());
                   all.push_back(none);
                   return scan(
                       Scan{.spatial_dim = to,
                            .initial = std::pair{zeros(all, real), none},
                            .xs = a,
                            .body =
                                [](const Tensor& t, const std::pair<Tensor, Dim>& s) {
                                  const auto longer = cum_concat(t, tanh(s.first), s.second);
                                  return std::pair{sum(longer.first, {longer.second}), longer};
                                },
                            .checkpoint = keep,
                            .swap_memory = swap});
                 }(Dim("hist", zeros(to.is_ragged() ? to.length_dims() : Dims{}, i32))))),
                 3, of_slices),
  };
}

}  // namespace reel::fuzz
