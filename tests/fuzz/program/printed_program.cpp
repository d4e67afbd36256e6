#include <cmath>
#include <iostream>

#include "reel/core/runtime/random.h"
#include "reel/frontend/transforms/branch_cost.h"
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
  const Dim in1("in1", 4);
  const Dim part3("part3", 8);
  const Tensor v1 = tensor(std::vector<double>{-2.0, 1.125, 1.625, 1.875}, {in1, batch0});
  const Tensor v6 = cast(scalar(0.0, f64), boolean);
  const Tensors arguments = [&] {
    const Dim n2("n2", scalar(3));
    return Tensors{
        tensor(std::vector<double>{1.5, 2.0, -0.25}, {n2}),
        tensor(std::vector<double>{0.125, 1.25, 0.375, 2.0, -1.875, -1.0, -1.75, 1.375, -0.25,
                                   -0.875, 2.0, -0.375},
               {n2, in1}),
        tensor(std::vector<double>{1.75, -0.625, -1.0}, {n2}),
        cast(scalar(2.0, f64), i32),
        cast(scalar(1.0, f64), i32),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim n2("n2", scalar(3));
    return Tensors{
        tensor(std::vector<double>{1.5, 2.0, -0.25}, {n2}),
        tensor(std::vector<double>{0.125, 1.25, 0.375, 2.0, -1.875, -1.0, -1.75, 1.375, -0.25,
                                   -0.875, 2.0, -0.375},
               {n2, in1}),
        tensor(std::vector<double>{1.75, -0.625, -1.0}, {n2}),
        cast(scalar(2.0, f64), i32),
        cast(scalar(1.0, f64), i32),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim n2 = v0.dim("n2");
    const Tensor v2 = x[1];
    const Tensor v3 = x[2];
    const Tensor v4 = x[3];
    const Tensor v5 = x[4];
    const Tensor v7 = sigmoid(v2);
    const Tensor v8 = minimum(v5, v5);
    const Tensor v9 = full({}, 0, i32);
    const Tensor v10 = mod(v9 * 3, 4);
    const State s43 = while_loop([](const State&) { return true; },
                                 [&](const State& s) -> State {
                                   const Tensor v11 = s.tensors[0];
                                   const Tensor v12 = s.tensors[1];
                                   const Tensor v13 = full({}, 0, i32);
                                   const Tensor v14 = mod(v11 * 3, 4);
                                   const Tensor v15 = mod(v11 * 3, 4);
                                   const State s37 = while_loop(
                                       [&](const State& s) -> Tensor {
                                         const Tensor v32 = s.tensors[0];
                                         const Tensor v33 = s.tensors[1];
                                         const Tensor v34 = s.tensors[2];
                                         const Tensor v35 = s.tensors[3];
                                         const Tensor v36 = less(v32, v14);
                                         return v36;
                                       },
                                       [&](const State& s) -> State {
                                         const Tensor v16 = s.tensors[0];
                                         const Tensor v17 = s.tensors[1];
                                         const Tensor v18 = s.tensors[2];
                                         const Tensor v19 = s.tensors[3];
                                         const Tensor v20 = softplus(v7);
                                         const State s27 = switch_case(
                                             v19,
                                             [&]() -> State {
                                               return State{{v9}, {}};
                                             },
                                             [&]() -> State {
                                               const Tensor v21 = -v3;
                                               const Tensor v22 = ceil(v20);
                                               const Tensor v23 = gather(v22, mod(v16, 4), in1);
                                               return State{{v19}, {}};
                                             },
                                             [&]() -> State {
                                               const Tensor v24 = sum(v7);
                                               const Tensor v25 = v24 * v24;
                                               const Tensor v26 = mod(v18 + v15, 5);
                                               return State{{v26}, {}};
                                             });
                                         const Tensor v27 = s27.tensors[0];
                                         const Tensor v28 = v16 + 1;
                                         const Tensor v29 = logical_xor(v17, v6);
                                         const Tensor v30 = mod(v18 + v27, 5);
                                         const Tensor v31 = mod(v19 + v18, 5);
                                         return State{{v28, v29, v30, v31}, {}};
                                       },
                                       State{{v13, v6, v12, v8}, {}}, {.maximum_iterations = v15});
                                   const Tensor v37 = s37.tensors[0];
                                   const Tensor v38 = s37.tensors[1];
                                   const Tensor v39 = s37.tensors[2];
                                   const Tensor v40 = s37.tensors[3];
                                   const Tensor v41 = v11 + 1;
                                   const Tensor v42 = mod(v12 + v40, 5);
                                   return State{{v41, v42}, {}};
                                 },
                                 State{{v9, v8}, {}}, {.maximum_iterations = v10});
    const Tensor v43 = s43.tensors[0];
    const Tensor v44 = s43.tensors[1];
    const Tensor v45 = cumprod(v7, in1, {.exclusive = true});
    const Tensor v46 = mod(v44 * 3, 4);
    const auto s60 = scan(Scan{
        .spatial_dim = n2,
        .initial = State{{v10, v8}, {}},
        .xs = Tensors{v3},
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v47 = x[0];
              const Tensor v48 = s.tensors[0];
              const Tensor v49 = s.tensors[1];
              const State s55 = switch_case(
                  v49,
                  [&]() -> State {
                    const Tensor v50 = sin(v47);
                    return State{{v48}, {}};
                  },
                  [&]() -> State {
                    const Tensor v51 = matmul(v1, v1, batch0);
                    return State{{v46}, {}};
                  },
                  [&]() -> State {
                    const Tensor v52 = concat({v7, 0.5 * v7}, in1, part3);
                    const Tensor v53 = linear_scan(sin(v45), v45, n2);
                    const Tensor v54 = mod(v4 + v48, 5);
                    return State{{v54}, {}};
                  });
              const Tensor v55 = s55.tensors[0];
              const Tensor v56 = cross_entropy(
                  v7, softmax(sin(v7), {in1}), in1,
                  {.label_smoothing = 0.5, .class_weights = 0.5 + cast(range(in1), f64)});
              const Tensor v57 = softplus(v3);
              const Tensor v58 = attention(v1, v7, v3, n2, Dims({n2, in1, batch0})[1],
                                           {.causal = Dims({n2, in1, batch0})[2], .block = 1});
              const Tensor v59 = mod(v48 + v46, 5);
              return std::pair{Tensors{v56, v48}, State{{v59, v59}, {}}};
            },
        .max_seq_len = v46,
        .reverse = true,
        .checkpoint = kept(Checkpoint().where(by_letter(1))),
        .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1})),
    });
    const Tensor v60 = s60.ys[0];
    const Tensor v61 = s60.ys[1];
    const Tensor v62 = s60.state.tensors[0];
    const Tensor v63 = s60.state.tensors[1];
    const Dim n24 = s60.dim;
    const Tensor v64 = sum(0.5 * v60 + sin(v60));
    return std::pair{v64, Tensors{v64, v43, v60, v61, v62, v63}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(1703);
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
