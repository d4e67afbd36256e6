// Rules for functions of sparse matrices and rows outside of loops.
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/sparse/sparse_tensor.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

/// Operand a: a plain matrix of known sizes. The result has no dims.
bool of_matrix(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? -1 : d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) == 2 &&
           d.dim(d.type(v).dims[0]).has_size() && d.dim(d.type(v).dims[1]).has_size();
  });
  return a >= 0 && gives(d, in, {a}, {});
}

}  // namespace

Rules sparse_matrix_rules() {
  return {
      expression(REEL_EXPRESSION([&] {
                   const Dim rows = 2, columns = a.dim(1);
                   const IndexedSlices slices{a, mod(range(a.dim(0)), 2),
                                              tensor({2, int(columns.size())})};
                   return sum(square(to_dense(coalesced(slices), {rows, columns})));
                 }()),
                 3, of_matrix),
      // No element is 0, which would have no gradient.
      expression(REEL_EXPRESSION(sum(square(to_dense(transpose(from_dense(1.5 + sin(a))))))), 3,
                 of_matrix),
      expression(REEL_EXPRESSION(sum(sin(matmul(from_dense(1.5 + sin(a)), transpose(a, {1, 0}))))),
                 3, of_matrix),
  };
}

}  // namespace reel::fuzz
