#include <cmath>
#include <iostream>

#include "reel/reel.h"

using namespace reel;

struct State {
  Tensors tensors;
  std::vector<TensorArray> arrays;
};

int main() {
  const Dim batch0("batch0", 4);
  const Tensors arguments = [&] {
    const Dim time1("time1", tensor(std::vector<int>{2, 1, 4, 0}, {batch0}));
    return Tensors{
        tensor(std::vector<double>{0.75, 0.625, NAN, NAN, 0.25, NAN, NAN, NAN, -0.25, -0.125, 2.0,
                                   -1.25, NAN, NAN, NAN, NAN},
               {batch0, time1}),
        tensor(std::vector<double>{-1.375, -1.125, NAN, NAN, 0.25, NAN, NAN, NAN, 1.25, 1.375, 1.25,
                                   -0.125, NAN, NAN, NAN, NAN},
               {batch0, time1}),
        cast(scalar(1.0, f64), i32),
        cast(scalar(1.0, f64), i32),
        cast(scalar(0.0, f64), boolean),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim time1("time1", tensor(std::vector<int>{2, 1, 2, 2}, {batch0}));
    return Tensors{
        tensor(std::vector<double>{0.75, 0.625, -0.125, NAN, 0.25, 1.25, 1.75, 0.875},
               {batch0, time1}),
        tensor(std::vector<double>{-1.375, -1.125, -1.5, NAN, 0.25, 1.5, 0.625, -0.625},
               {batch0, time1}),
        cast(scalar(1.0, f64), i32),
        cast(scalar(1.0, f64), i32),
        cast(scalar(0.0, f64), boolean),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim time1 = v0.dim("time1");
    const Tensor v1 = x[1];
    const Tensor v2 = x[2];
    const Tensor v3 = x[3];
    const Tensor v4 = x[4];
    const Tensor v5 = full({}, 0, i32);
    const Tensor v6 = mod(v3 * 3, 4);
    const State s43 = while_loop(
        [&](const State& s) -> Tensor {
          const Tensor v39 = s.tensors[0];
          const Tensor v40 = s.tensors[1];
          const Tensor v41 = s.tensors[2];
          const Tensor v42 = less(v39, v6);
          return v42;
        },
        [&](const State& s) -> State {
          const Tensor v7 = s.tensors[0];
          const Tensor v8 = s.tensors[1];
          const Tensor v9 = s.tensors[2];
          const Tensor v10 = sqrt(v1 - 0.03);
          const Tensor v11 = floor(v10);
          const Tensor v12 = mod(v5 * 3, 4);
          const auto s32 = scan(Scan{
              .spatial_dim = time1,
              .initial = State{{v9, v7}, {}},
              .xs = Tensors{v8},
              .body =
                  [&](const Tensors& x, const State& s) {
                    const Tensor v13 = x[0];
                    const Tensor v14 = s.tensors[0];
                    const Tensor v15 = s.tensors[1];
                    const Tensor v16 = cast(v14, f64);
                    const State s25 = cond(
                        v9,
                        [&]() -> State {
                          const Tensor v17 = tanh(v13);
                          const Tensor v18 = isfinite(v13);
                          const Tensor v19 = zeros({time1}, f64);
                          return State{{v16}, {}};
                        },
                        [&]() -> State {
                          const Tensor v20 = v16 + 0.25;
                          const Tensor v21 = random_uniform({time1}, -1, 1, f64);
                          const Tensor v22 = minimum(v5, v15);
                          const Tensor v23 = v16 + v20;
                          const Tensor v24 = tanh(v23);
                          return State{{v24}, {}};
                        });
                    const Tensor v25 = s25.tensors[0];
                    const Tensor v26 = v13 + v11;
                    const Tensor v27 = cumprod(v11, batch0, {.exclusive = true});
                    const Tensor v28 = sin(v26);
                    const Tensor v29 = v16 > 0.875;
                    const Tensor v30 = logical_xor(v14, v29);
                    const Tensor v31 = mod(v15 + v5, 5);
                    return std::pair{Tensors{v25, v13}, State{{v30, v31}, {}}};
                  },
              .max_seq_len = v12,
          });
          const Tensor v32 = s32.ys[0];
          const Tensor v33 = s32.ys[1];
          const Tensor v34 = s32.state.tensors[0];
          const Tensor v35 = s32.state.tensors[1];
          const Dim time12 = s32.dim;
          const Tensor v36 = v7 + 1;
          const Tensor v37 = v8 * v10;
          const Tensor v38 = tanh(v37);
          return State{{v36, v38, v34}, {}};
        },
        State{{v5, v0, v4}, {}});
    const Tensor v43 = s43.tensors[0];
    const Tensor v44 = s43.tensors[1];
    const Tensor v45 = s43.tensors[2];
    const Tensor v46 = abs(v1);
    const Tensor v47 = permutation(time1);
    const Tensor v48 = rsqrt(1.5 + cos(v46));
    const Tensor v49 = maximum(v46, v46);
    const Tensor v50 = max(v46, {batch0, time1});
    const Tensor v51 = sum(0.5 * v44 + sin(v44));
    const Tensor v52 = sum(0.5 * v48 + sin(v48));
    const Tensor v53 = v51 + v52;
    const Tensor v54 = sum(0.5 * v49 + sin(v49));
    const Tensor v55 = v53 + v54;
    const Tensor v56 = sum(0.5 * v50 + sin(v50));
    const Tensor v57 = v55 + v56;
    return std::pair{v57, Tensors{v57, v43, v44, v45, v47, v48, v49, v50}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(103);
    try {
      const auto [results, gradient] = function(arguments);
      std::cout << what << ":\n";
      for (const Tensor& result : results.second) std::cout << "  " << result << '\n';
      for (const Tensor& cotangent : gradient) std::cout << "  gradient " << cotangent << '\n';
    } catch (const std::exception& error) {
      std::cout << what << " throws: " << error.what() << '\n';
    }
  };
  const auto eager = value_and_grad(function);
  const auto traced = jit(eager);
  show("eager", eager, arguments);
  show("traced", traced, arguments);
  show("of traced", value_and_grad(jit(function)), arguments);
  show("eager elsewhere", eager, elsewhere);
  show("traced elsewhere", traced, elsewhere);
  const auto slope = [](const auto& f) {
    return [f](const Tensors& x) {
      Tensor total = scalar(0.0, f64);
      for (const Tensor& cotangent : grad(f)(x))
        if (is_float(cotangent.dtype())) total = total + sum(sin(cotangent));
      return std::pair{total, Tensors{total}};
    };
  };
  const auto second = value_and_grad(slope(function));
  show("second gradient, eager", second, arguments);
  show("second gradient, traced", jit(second), arguments);
  show("second gradient of traced", value_and_grad(slope(jit(function))), arguments);
}
