#include <cmath>
#include <iostream>

#include "reel/core/random.h"
#include "reel/reel.h"

using namespace reel;

struct State {
  Tensors tensors;
  std::vector<TensorArray> arrays;
};

/// While this is false, loops keep all, and functions under checkpoint(f) are called as they are.
bool has_policies = true;

template <class Policy>
Policy kept(const Policy& policy) {
  return has_policies ? policy : Policy();
}

/// By the first letter of the op that makes a value.
SavingRule by_letter(int letters) {
  return [letters](const StepValue& value) {
    return Saving((value.op[0] + value.name.size() + letters) % 4);
  };
}

template <class F>
State checkpointed(F f, const State& state, const SavingRule& rule = {}) {
  return has_policies ? checkpoint(f, rule)(state) : f(state);
}

int main() {
  const Dim batch0("batch0", 3);
  const Dim time1("time1", tensor(std::vector<int>{3, 3, 1}, {batch0}));
  const Tensor v4 = cast(scalar(0.0, f64), boolean);
  const Tensors arguments = [&] {
    const Dim n3("n3", scalar(0));
    return Tensors{
        cast(tensor(std::vector<double>{}, {n3}), f32),
        cast(tensor(std::vector<double>{0.375, 1.125, -0.5, -0.875, -1.375, NAN, -1.125, -2.0, NAN},
                    {time1, batch0}),
             f32),
        cast(scalar(1.0, f64), i32),
        cast(tensor(std::vector<double>{}, {time1, n3}), i32),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim n3("n3", scalar(4));
    return Tensors{
        cast(tensor(std::vector<double>{1.25, -0.625, -1.625, 1.25}, {n3}), f32),
        cast(tensor(std::vector<double>{0.375, 1.125, -0.5, -0.875, -1.375, NAN, -1.125, -2.0, NAN},
                    {time1, batch0}),
             f32),
        cast(scalar(1.0, f64), i32),
        cast(tensor(std::vector<double>{4.0, 4.0, 1.0, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0, 2.0, 1.0},
                    {time1, n3}),
             i32),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim n3 = v0.dim("n3");
    const Tensor v1 = x[1];
    const Tensor v2 = x[2];
    const Tensor v3 = x[3];
    const Tensor v5 = random_uniform({}, -1, 1, f32);
    const Tensor v6 = 0.0 - v1;
    const Tensor v7 = clip(v6, v5, 1.5);
    const Tensor v8 = gelu(v1, GeluForm::tanh);
    const Tensor v9 = full({n3}, 0, i32);
    const Tensor v10 = mod(v9 * 3, 4);
    const auto s50 = scan(Scan{
        .spatial_dim = Dim("steps5"),
        .cond_dims = {n3},
        .initial = State{{v9, v7}, {}},
        .xs = Tensors{},
        .cond = [&](const State& s) -> Tensor {
          const Tensor v44 = s.tensors[0];
          const Tensor v45 = s.tensors[1];
          const Tensor v46 = mod(v10 * 3, 4);
          const Tensor v47 = less(v44, v46);
          const Tensor v48 = v5 <= 0.125;
          const Tensor v49 = v47 && v48;
          return v49;
        },
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v11 = s.tensors[0];
              const Tensor v12 = s.tensors[1];
              const Tensor v13 = log(1.5 + sin(v12));
              const Tensor v14 = sum(v3, {n3});
              const Tensor v15 = full({}, 0, i32);
              const Tensor v16 = mod(v15 * 3, 4);
              const State s40 = while_loop(
                  [&](const State& s) -> Tensor {
                    const Tensor v37 = s.tensors[0];
                    const Tensor v38 = s.tensors[1];
                    const Tensor v39 = less(v37, v16);
                    return v39;
                  },
                  [&](const State& s) -> State {
                    const Tensor v17 = s.tensors[0];
                    const Tensor v18 = s.tensors[1];
                    const TensorArray v19 = TensorArray(TensorType{f32, {}}, {.size = 2});
                    const Tensor v20 = full({}, 2, i32);
                    const auto s31 = scan(Scan{
                        .spatial_dim = time1,
                        .initial = State{{v10, v5}, {v19}},
                        .xs = Tensors{v7, v13},
                        .body =
                            [&](const Tensors& x, const State& s) {
                              const Tensor v21 = x[0];
                              const Tensor v22 = x[1];
                              const TensorArray v23 = s.arrays[0];
                              const Tensor v24 = s.tensors[0];
                              const Tensor v25 = s.tensors[1];
                              const Tensor v26 = cast(v18, f32);
                              const Tensor v27 = variance(v26, {n3});
                              const Tensor v28 = v22 < v22;
                              const Tensor v29 = -1.125 / (2.0 + square(v5));
                              const Tensor v30 = mod(v24 + v15, 5);
                              return std::pair{Tensors{}, State{{v30, v5}, {v23}}};
                            },
                        .max_seq_len = v20,
                        .checkpoint = kept(Checkpoint::budget(400)),
                    });
                    const TensorArray v31 = s31.state.arrays[0];
                    const Tensor v32 = s31.state.tensors[0];
                    const Tensor v33 = s31.state.tensors[1];
                    const Dim time14 = s31.dim;
                    const Tensor v34 = v6 < v6;
                    const Tensor v35 = v17 + 1;
                    const Tensor v36 = mod(v18 + v35, 5);
                    return State{{v35, v36}, {}};
                  },
                  State{{v15, v3}, {}}, {.checkpoint = kept(Checkpoint::every(3))});
              const Tensor v40 = s40.tensors[0];
              const Tensor v41 = s40.tensors[1];
              const Tensor v42 = v11 + 1;
              const Tensor v43 = v12 + v8;
              return std::pair{Tensors{v15}, State{{v42, v43}, {}}};
            },
        .max_seq_len = v10,
        .checkpoint = kept(Checkpoint::every(3)),
        .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1})),
    });
    const Tensor v50 = s50.ys[0];
    const Tensor v51 = s50.state.tensors[0];
    const Tensor v52 = s50.state.tensors[1];
    const Dim steps5 = s50.dim;
    const Tensor v53 = mean(v8, {time1, batch0});
    const Tensor v54 = sum(0.5 * v52 + sin(v52));
    const Tensor v55 = sum(0.5 * v53 + sin(v53));
    const Tensor v56 = v54 + v55;
    return std::pair{v56, Tensors{v56, v50, v51, v52, v53}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(919);
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
      Tensor total = scalar(0.0, f32);
      for (const Tensor& cotangent : grad(f)(x))
        if (is_float(cotangent.dtype())) total = total + sum(sin(cotangent));
      return std::pair{total, Tensors{total}};
    };
  };
  const auto second = value_and_grad(slope(function));
  show("second gradient, eager", second, arguments);
  show("second gradient, traced", jit(second), arguments);
  show("second gradient of traced", value_and_grad(slope(jit(function))), arguments);
  has_policies = false;
  show("eager, without policies", eager, arguments);
  show("traced, without policies", jit(eager), arguments);
  show("second gradient, eager, without policies", second, arguments);
}
