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
  const Dim batch0("batch0", 1);
  const Dim part3("part3", 2);
  const Dim part4("part4", 1);
  const Tensor v6 = cast(scalar(2.0, f64), i32);
  const Tensors arguments = [&] {
    const Dim time1("time1", tensor(std::vector<int>{0}, {batch0}));
    const Dim n2("n2", scalar(4));
    return Tensors{
        tensor(std::vector<double>{}, {batch0, time1}),
        tensor(std::vector<double>{0.375, -0.625, 2.0, 1.25}, {n2}),
        tensor(std::vector<double>{-1.5, 0.75, -0.5, -1.625}, {n2}),
        scalar(1.875, f64),
        tensor(std::vector<double>{0.0}, {batch0}),
        tensor(std::vector<double>{}, {time1}),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim time1("time1", tensor(std::vector<int>{3}, {batch0}));
    const Dim n2("n2", scalar(1));
    return Tensors{
        tensor(std::vector<double>{-1.625, -0.5, 0.625}, {batch0, time1}),
        tensor(std::vector<double>{0.375}, {n2}),
        tensor(std::vector<double>{-1.5}, {n2}),
        scalar(1.875, f64),
        tensor(std::vector<double>{0.0}, {batch0}),
        tensor(std::vector<double>{0.125, 0.125, 1.625}, {time1}),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim time1 = v0.dim("time1");
    const Tensor v1 = x[1];
    const Dim n2 = v1.dim("n2");
    const Tensor v2 = x[2];
    const Tensor v3 = x[3];
    const Tensor v4 = x[4];
    const Tensor v5 = x[5];
    const Tensor v7 = cast(round(3.0 * tanh(v4)), i32);
    const Tensor v8 = softmax(v5, {time1});
    const Tensor v9 = sqrt(0.5 + square(v3));
    const State s12 = checkpointed(
        [&](const State& s) -> State {
          const Tensor v10 = s.tensors[0];
          const Tensor v11 = log1p(square(v5));
          return State{{v9, v7}, {}};
        },
        State{{v5}, {}});
    const Tensor v12 = s12.tensors[0];
    const Tensor v13 = s12.tensors[1];
    const Tensor v14 = log_softmax(v1, {n2});
    const Tensor v15 = mask_padding(v4, -0.625);
    const Tensor v16 = custom_vjp(
        [](Tensor t) {
          return std::pair{square(t), t};
        },
        [](Tensor u, Tensor dy) { return 2.0 * u * dy; })(v15);
    const Tensor v17 = full({}, 0, i32);
    const Tensor v18 = mod(v17 * 3, 4);
    const Tensor v19 = mod(v17 * 3, 4);
    const State s56 = while_loop(
        [&](const State& s) -> Tensor {
          const Tensor v50 = s.tensors[0];
          const Tensor v51 = s.tensors[1];
          const Tensor v52 = less(v50, v18);
          const Tensor v53 = sum(v51);
          const Tensor v54 = v53 <= 2.0;
          const Tensor v55 = v52 && v54;
          return v55;
        },
        [&](const State& s) -> State {
          const Tensor v20 = s.tensors[0];
          const Tensor v21 = s.tensors[1];
          const Tensor v22 = full({}, 0, i32);
          const State s42 = while_loop(
              [&](const State& s) -> Tensor {
                const Tensor v37 = s.tensors[0];
                const Tensor v38 = s.tensors[1];
                const Tensor v39 = s.tensors[2];
                const Tensor v40 = full({}, 2, i32);
                const Tensor v41 = less(v37, v40);
                return v41;
              },
              [&](const State& s) -> State {
                const Tensor v23 = s.tensors[0];
                const Tensor v24 = s.tensors[1];
                const Tensor v25 = s.tensors[2];
                const auto s30 = scan(Scan{
                    .spatial_dim = time1,
                    .initial = State{{v13}, {}},
                    .xs = Tensors{v8},
                    .body =
                        [&](const Tensors& x, const State& s) {
                          const Tensor v26 = x[0];
                          const Tensor v27 = s.tensors[0];
                          const Tensor v28 = mean(v15, {batch0});
                          const Tensor v29 = mod(v27 + v24, 5);
                          return std::pair{Tensors{}, State{{v29}, {}}};
                        },
                    .truncate = 3,
                });
                const Tensor v30 = s30.state.tensors[0];
                const Tensor v31 = log(1.5 + sin(v16));
                const Tensor v32 = v14 + v2;
                const Tensor v33 = custom_vjp(
                    [](Tensor t) {
                      return std::pair{square(t), t};
                    },
                    [](Tensor u, Tensor dy) { return 2.0 * u * dy; })(v16);
                const Tensor v34 = v23 + 1;
                const Tensor v35 = mod(v24 + v34, 5);
                const Tensor v36 = mod(v25 + v23, 5);
                return State{{v34, v35, v36}, {}};
              },
              State{{v22, v19, v20}, {}},
              {.checkpoint = kept(Checkpoint::every(1).where(by_letter(3)))});
          const Tensor v42 = s42.tensors[0];
          const Tensor v43 = s42.tensors[1];
          const Tensor v44 = s42.tensors[2];
          const Tensor v45 = concat({v16, 0.5 * v16}, batch0, part3);
          const Tensor v46 = slice(v15, batch0, 0, 1, part4);
          const Tensor v47 = v8 + 0.875;
          const Tensor v48 = v20 + 1;
          const Tensor v49 = v21 + v47;
          return State{{v48, v49}, {}};
        },
        State{{v17, v5}, {}},
        {.checkpoint = kept(Checkpoint::every(2).where(by_letter(0))),
         .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1})),
         .maximum_iterations = v19});
    const Tensor v56 = s56.tensors[0];
    const Tensor v57 = s56.tensors[1];
    const Tensor v58 = sum(0.5 * v12 + sin(v12));
    const Tensor v59 = sum(0.5 * v57 + sin(v57));
    const Tensor v60 = v58 + v59;
    return std::pair{v60, Tensors{v60, v12, v56, v57}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(547);
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
  has_policies = false;
  show("eager, without policies", eager, arguments);
  show("traced, without policies", jit(eager), arguments);
  show("second gradient, eager, without policies", second, arguments);
}
