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
  const Dim part2("part2", 2);
  const Dim part3("part3", 2);
  const Dim part5("part5", 0);
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
    const Tensor v5 = cumprod(v1, time1, {.exclusive = true});
    const Tensor v6 = v1 * v0;
    const Tensor v7 = dropout(v6, 0.25);
    const Tensor v8 = full({}, 0, i32);
    const Tensor v9 = full({}, 2, i32);
    const auto s58 = scan(Scan{
        .spatial_dim = batch0,
        .cond_dims = {},
        .initial = State{{v8, v3}, {}},
        .xs = Tensors{v7, v1},
        .cond = [&](const State& s) -> Tensor {
          const Tensor v54 = s.tensors[0];
          const Tensor v55 = s.tensors[1];
          const Tensor v56 = mod(v2 * 3, 4);
          const Tensor v57 = less(v54, v56);
          return v57;
        },
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v10 = x[0];
              const Tensor v11 = x[1];
              const Tensor v12 = s.tensors[0];
              const Tensor v13 = s.tensors[1];
              const State s47 = cond(
                  v4,
                  [&]() -> State {
                    const Tensor v14 = -0.5 - v5;
                    const auto s23 = scan(Scan{
                        .spatial_dim = time1,
                        .initial = State{{v3, v13}, {}},
                        .xs = Tensors{v6, v5},
                        .body =
                            [&](const Tensors& x, const State& s) {
                              const Tensor v15 = x[0];
                              const Tensor v16 = x[1];
                              const Tensor v17 = s.tensors[0];
                              const Tensor v18 = s.tensors[1];
                              const Tensor v19 = where(v4, v0, v14);
                              const Tensor v20 = v14 - v19;
                              const Tensor v21 = sum(v6, {batch0});
                              const Tensor v22 = mod(v18 + v13, 5);
                              return std::pair{Tensors{v3}, State{{v12, v22}, {}}};
                            },
                        .reverse = true,
                    });
                    const Tensor v23 = s23.ys[0];
                    const Tensor v24 = s23.state.tensors[0];
                    const Tensor v25 = s23.state.tensors[1];
                    return State{{v24}, {}};
                  },
                  [&]() -> State {
                    const State s32 = cond(
                        v4,
                        [&]() -> State {
                          const Tensor v26 = rsqrt(1.5 + cos(v5));
                          const Tensor v27 = mod(v12 + v8, 5);
                          const Tensor v28 = mod(v8 + v27, 5);
                          return State{{v27, v28}, {}};
                        },
                        [&]() -> State {
                          const Tensor v29 = cast(v4, f64);
                          const Tensor v30 = -v9;
                          const Tensor v31 = mod(v8 + v12, 5);
                          return State{{v13, v31}, {}};
                        });
                    const Tensor v32 = s32.tensors[0];
                    const Tensor v33 = s32.tensors[1];
                    const State s44 = cond(
                        v4,
                        [&]() -> State {
                          const Tensor v34 = v5 + v10;
                          const Tensor v35 = tanh(v34);
                          const Tensor v36 = transpose(v35, {batch0, time1});
                          const Tensor v37 = mod(v3 + v32, 5);
                          return State{{v36, v37}, {}};
                        },
                        [&]() -> State {
                          const Tensor v38 = split_dim(v5, batch0, {part2, part3});
                          const Tensor v39 = less(v9, v32);
                          const Tensor v40 = where(v39, v38, v11);
                          const Tensor v41 = v5 + v11;
                          const Tensor v42 = tanh(v41);
                          const Tensor v43 = transpose(v42, {batch0, time1});
                          return State{{v43, v32}, {}};
                        });
                    const Tensor v44 = s44.tensors[0];
                    const Tensor v45 = s44.tensors[1];
                    const Tensor v46 = v13 > 1;
                    return State{{v32}, {}};
                  });
              const Tensor v47 = s47.tensors[0];
              const Tensor v48 = full({batch0}, true, boolean);
              const Tensor v49 = sum(0.5 * v11 + sin(v11));
              const Tensor v50 = gather(v7, v8, time1, {.clip = true});
              const Tensor v51 = v50 * 0.75;
              const Tensor v52 = abs(v51);
              const Tensor v53 = v12 + 1;
              return std::pair{Tensors{v12}, State{{v53, v47}, {}}};
            },
        .max_seq_len = v9,
    });
    const Tensor v58 = s58.ys[0];
    const Tensor v59 = s58.state.tensors[0];
    const Tensor v60 = s58.state.tensors[1];
    const Dim batch04 = s58.dim;
    const Tensor v61 = slice(v6, batch0, 4, 4, part5);
    const Tensor v62 = full({batch0}, 0, i32);
    const Tensor v63 = mod(v62 * 3, 4);
    const auto s92 = scan(Scan{
        .spatial_dim = batch04,
        .cond_dims = {batch0},
        .initial = State{{v62, v60}, {}},
        .xs = Tensors{v58},
        .cond = [&](const State& s) -> Tensor {
          const Tensor v88 = s.tensors[0];
          const Tensor v89 = s.tensors[1];
          const Tensor v90 = mod(v62 * 3, 4);
          const Tensor v91 = less(v88, v90);
          return v91;
        },
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v64 = x[0];
              const Tensor v65 = s.tensors[0];
              const Tensor v66 = s.tensors[1];
              const State s81 = cond(
                  v4,
                  [&]() -> State {
                    const Tensor v67 = full({}, 0, i32);
                    const State s77 = while_loop(
                        [&](const State& s) -> Tensor {
                          const Tensor v73 = s.tensors[0];
                          const Tensor v74 = s.tensors[1];
                          const Tensor v75 = full({}, 2, i32);
                          const Tensor v76 = less(v73, v75);
                          return v76;
                        },
                        [&](const State& s) -> State {
                          const Tensor v68 = s.tensors[0];
                          const Tensor v69 = s.tensors[1];
                          const Tensor v70 = matmul(v1, v0, batch0);
                          const Tensor v71 = v68 + 1;
                          const Tensor v72 = mod(v69 + v64, 5);
                          return State{{v71, v72}, {}};
                        },
                        State{{v67, v59}, {}});
                    const Tensor v77 = s77.tensors[0];
                    const Tensor v78 = s77.tensors[1];
                    const Tensor v79 = log_softmax(v7, {time1});
                    return State{{v60, v4}, {}};
                  },
                  [&]() -> State {
                    const Tensor v80 = mod(v66 + v59, 5);
                    return State{{v80, v4}, {}};
                  });
              const Tensor v81 = s81.tensors[0];
              const Tensor v82 = s81.tensors[1];
              const Tensor v83 = mod(v63, 2) == 0;
              const Tensor v84 = minimum(v81, v65);
              const Tensor v85 = clip(v7, -0.5, 0.75);
              const Tensor v86 = sin(v61);
              const Tensor v87 = v65 + 1;
              return std::pair{Tensors{v61}, State{{v87, v8}, {}}};
            },
        .max_seq_len = v63,
    });
    const Tensor v92 = s92.ys[0];
    const Tensor v93 = s92.state.tensors[0];
    const Tensor v94 = s92.state.tensors[1];
    const Dim batch046 = s92.dim;
    const Tensor v95 = sum(0.5 * v92 + sin(v92));
    return std::pair{v95, Tensors{v95, v92, v93, v94}};
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
