// Rules for sparse tensors and rows as states of loops: their number of elements changes from
// iteration to iteration.
#include "reel/frontend/loops/fold.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/sparse/sparse_tensor.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr int kRows = 3;

/// Returns a plain real vector of known size with at least one element; -1 if there is none.
int pick_vector(Drafter& d) {
  return d.is_named() ? -1 : d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) == 1 &&
           d.dim(d.type(v).dims[0]).size > 0;
  });
}

bool of_one(Drafter& d, Instruction& in) {
  const int a = pick_vector(d);
  in.numbers = {d.random().between(0, 3)};
  in.policy = d.policy();
  return a >= 0 && gives(d, in, {a}, {.dims = {d.plain(kRows)}});
}

bool of_two(Drafter& d, Instruction& in) {
  const int a = pick_vector(d), b = a < 0 ? -1 : pick_vector(d);
  in.policy = d.policy();
  return b >= 0 && gives(d, in, {a, b}, {.dims = {d.plain(kRows)}});
}

}  // namespace

Rules sparse_rules() {
  return {
      expression(REEL_EXPRESSION(ensure_shape(
                     to_dense(IndexedSlices{a, mod(range(a.dim(0)), 2), tensor({3})}), {3})),
                 2, of_one),
      expression(REEL_EXPRESSION(ensure_shape(
                     to_dense(fori_loop(
                         0, n,
                         [](const Tensor&, const IndexedSlices& s) {
                           return IndexedSlices{tanh(s.values) * 1.5, s.indices, s.dense_shape};
                         },
                         IndexedSlices{a, mod(range(a.dim(0)), 3), tensor({3})},
                         {.checkpoint = keep, .swap_memory = swap})),
                     {3})),
                 2, of_one),
      expression(
          REEL_EXPRESSION(ensure_shape(
              to_dense(fori_loop(0, n,
                                 [](const Tensor&, const SparseTensor& s) {
                                   return SparseTensor{
                                       concat({s.indices, mod(s.indices + 1, 3)}, 0),
                                       concat({tanh(s.values), s.values * 0.5}, 0), s.dense_shape};
                                 },
                                 SparseTensor{stack({mod(range(a.dim(0)), 3)}, 1), a, tensor({3})},
                                 {.checkpoint = keep, .swap_memory = swap})),
              {3})),
          3, of_one),
      // ys do not depend on the state.
      expression(
          REEL_EXPRESSION([](const auto& made) {
            return ensure_shape(to_dense(made.state), {3}) + sum(made.ys);
          }(scan(Scan{.initial = SparseTensor{stack({mod(range(a.dim(0)), 3)}, 1), a, tensor({3})},
                          .xs = b,
                          .body =
                              [](const Tensor& row, const SparseTensor& s) {
                                return std::pair{
                                    tanh(row) + 1.,
                                    SparseTensor{concat({s.indices, tensor({{1}})}, 0),
                                                 concat({sin(s.values) * row, stack({row})}, 0),
                                                 s.dense_shape}};
                              },
                          .checkpoint = keep,
                          .swap_memory = swap}))),
          3, of_two),
      expression(
          REEL_EXPRESSION([](const auto& made) {
            return ensure_shape(to_dense(made.state), {3}) * sum(made.ys);
          }(scan(Scan{.initial = SparseTensor{stack({mod(range(a.dim(0)), 3)}, 1), a, tensor({3})},
                          .xs = b,
                          .body =
                              [](const Tensor& row, const SparseTensor& s) {
                                const SparseTensor next{
                                    concat({s.indices, mod(s.indices + 2, 3)}, 0),
                                    concat({s.values * 0.5, tanh(s.values * row)}, 0),
                                    s.dense_shape};
                                return std::pair{sum(square(to_dense(next))), next};
                              },
                          .reverse = true,
                          .checkpoint = keep,
                          .swap_memory = swap}))),
          3, of_two),
  };
}

}  // namespace reel::fuzz
