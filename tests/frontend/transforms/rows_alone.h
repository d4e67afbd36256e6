// tests/frontend/transforms/rows_alone.h — RowsAlone, which compares the rows of vmap with the
// function of each row alone, in every derivative.
#pragma once

#include <functional>

#include "reel/tests/modes.h"

namespace reel {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast
using Derivative = std::function<Function(const Function&)>;

inline const Derivative kDerivatives[] = {
    [](const Function& f) -> Function { return f; },
    [](const Function& f) -> Function { return grad(f); },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor { return jvp(f, x, cos(x)).second; };
    },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor { return hvp(f, x, cos(x)); };
    },
    [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor {
        const Tensor slope = grad(f)(x);
        return sum(square(slope));
      });
    },
};

class RowsAlone : public InEveryMode {
 protected:
  /// Expects that derivatives of f for all rows of x, along plain axes, equal each row's own.
  void expect_as_alone(const Function& f, const Tensor& x) {
    for (const Derivative& derivative : kDerivatives) {
      const Function of_row = derivative(f);
      Tensors alone;
      for (std::int64_t i = 0; i < x.dims()[0].size(); ++i) alone.push_back(of_row(x[i]));
      const Function at_once = vmap(of_row);
      expect_all_close(run(at_once)(x), stack(alone), 1e-9);
      const Function nested = [&](const Tensor& x) -> Tensor {
        return vmap(Function(vmap(of_row)))(x);
      };
      expect_all_close(run(nested)(expand(x,
                                          [&] {
                                            Dims dims = x.dims();
                                            dims.insert(dims.begin(), Dim(2));
                                            return dims;
                                          }()))[1],
                       stack(alone), 1e-9);
    }
  }
  /// Expects the same along a named dim, compared with map.
  void expect_as_map(const Function& f, const Tensor& x, const Dim& rows) {
    for (const Derivative& derivative : kDerivatives) {
      const Function of_row = derivative(f);
      const Function at_once = vmap(of_row, rows);
      expect_all_close(mask_padding(run(at_once)(x)),
                       mask_padding(map(of_row, x, {.spatial_dim = rows})), 1e-9);
    }
  }

  const Dim rows_{"rows", 3};
};

}  // namespace reel
