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
  const Dim batch0("batch0", 4);
  const Dim in1("in1", 1);
  const Dim part4("part4", 1);
  const Tensor v6 = cast(scalar(0.0, f64), boolean);
  const Tensors arguments = [&] {
    const Dim n2("n2", scalar(1));
    return Tensors{
        tensor(std::vector<double>{-0.125}, {n2}),
        tensor(std::vector<double>{1.75}, {n2, in1}),
        scalar(-1.5, f64),
        cast(scalar(4.0, f64), i32),
        cast(tensor(std::vector<double>{1.0, 2.0, 0.0, 0.0}, {batch0}), i32),
        cast(scalar(1.0, f64), boolean),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim n2("n2", scalar(3));
    return Tensors{
        tensor(std::vector<double>{-0.125, 0.5, -0.875}, {n2}),
        tensor(std::vector<double>{1.75, 0.125, 0.75}, {n2, in1}),
        scalar(-1.5, f64),
        cast(scalar(4.0, f64), i32),
        cast(tensor(std::vector<double>{1.0, 2.0, 0.0, 0.0}, {batch0}), i32),
        cast(scalar(1.0, f64), boolean),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim n2 = v0.dim("n2");
    const Tensor v1 = x[1];
    const Tensor v2 = x[2];
    const Tensor v3 = x[3];
    const Tensor v4 = x[4];
    const Tensor v5 = x[5];
    const Tensor v7 = v2 * v0;
    const Tensor v8 = random_integers({}, -2, 4);
    const Tensor v9 = sort(v7, n2, true);
    const Tensor v10 = v4 + 1;
    const State s38 = cond(
        v5,
        [&]() -> State {
          const Tensor v11 = v7 < v2;
          const Tensor v12 = linear_scan(sin(v7), v7, n2);
          const Tensor v13 = v7 * v9;
          const Tensor v14 = tanh(v13);
          return State{{v7, v14}, {}};
        },
        [&]() -> State {
          const Tensor v15 = full({}, 0, i32);
          const Tensor v16 = mod(v15 * 3, 4);
          const auto s34 = scan(Scan{
              .spatial_dim = n2,
              .cond_dims = {},
              .initial = State{{v15, v8}, {}},
              .xs = Tensors{v9},
              .cond = [&](const State& s) -> Tensor {
                const Tensor v28 = s.tensors[0];
                const Tensor v29 = s.tensors[1];
                const Tensor v30 = mod(v15 * 3, 4);
                const Tensor v31 = less(v28, v30);
                const Tensor v32 = v2 <= -2.0;
                const Tensor v33 = v31 && v32;
                return v33;
              },
              .body =
                  [&](const Tensors& x, const State& s) {
                    const Tensor v17 = x[0];
                    const Tensor v18 = s.tensors[0];
                    const Tensor v19 = s.tensors[1];
                    const Tensor v20 = shift(v7, n2, -2);
                    const Tensor v21 = v1 + v17;
                    const Tensor v22 = dropout(v0, 0.25);
                    const Tensor v23 =
                        linear_scan(tanh(v22), v9, scalar(-2.0, f64), n2, {.reverse = true});
                    const Tensor v24 = sum(sin(reshape(v22, {-1})));
                    const Tensor v25 = log(1.5 + sin(v7));
                    const Tensor v26 = v18 + 1;
                    const Tensor v27 = mod(v19 + v16, 5);
                    return std::pair{Tensors{}, State{{v26, v27}, {}}};
                  },
              .max_seq_len = v16,
              .checkpoint = kept(Checkpoint::budget(100)),
          });
          const Tensor v34 = s34.state.tensors[0];
          const Tensor v35 = s34.state.tensors[1];
          const Dim n23 = s34.dim;
          const Tensor v36 = v7 + v9;
          const Tensor v37 = tanh(v36);
          return State{{v9, v37}, {}};
        });
    const Tensor v38 = s38.tensors[0];
    const Tensor v39 = s38.tensors[1];
    const Tensor v40 = v9 + v38;
    const auto f46 = [&](const Tensors& rows46) -> Tensor {
      const Tensor v41 = rows46[0];
      const Tensor v42 = rows46[1];
      const Tensor v43 = sqrt(0.5 + square(v42));
      const Tensor v44 = v2 <= -1.75;
      const Tensor v45 = mean_absolute_error(v40, v0);
      return v45;
    };
    const Tensor v46 = vmap(f46, n2)(Tensors{v7, v9});
    const Tensor v47 = one_hot(mod(v8, 1), part4, f64);
    const auto f52 = [&](const Tensors& rows52) -> Tensor {
      const Tensor v48 = rows52[0];
      const Tensor v49 = rows52[1];
      const Tensor v50 = softmax(v40, {n2});
      const Tensor v51 = linear_scan(sin(v48), v40, n2);
      return v47;
    };
    const Tensor v52 = vmap(f52, n2)(Tensors{v46, v9});
    const Tensor v53 = scan(Scan{.spatial_dim = n2,
                                 .initial = [](const Tensor& first) { return tanh(first); },
                                 .xs = v40,
                                 .body =
                                     [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                                       const Tensor next = sin(state + slice);
                                       return std::pair{next * cast(i + 1, slice.dtype()), next};
                                     }})
                           .ys;
    const State s69 = switch_case(
        v8,
        [&]() -> State {
          const Tensor v54 = 1.625 - v52;
          const State s64 = cond(
              v6,
              [&]() -> State {
                const TensorArray v55 = TensorArray::unstack(v53, n2);
                const Tensor v56 = softplus(v53);
                const Tensor v57 = v46 + v40;
                const Tensor v58 = tanh(v57);
                const Tensor v59 = v9 + v58;
                const Tensor v60 = tanh(v59);
                return State{{v58, v60}, {}};
              },
              [&]() -> State {
                const Tensor v61 = sum(v54, {part4});
                const Tensor v62 = v9 + v39;
                const Tensor v63 = tanh(v62);
                return State{{v53, v63}, {}};
              });
          const Tensor v64 = s64.tensors[0];
          const Tensor v65 = s64.tensors[1];
          return State{{v9}, {}};
        },
        [&]() -> State {
          return State{{v40}, {}};
        },
        [&]() -> State {
          const Tensor v66 =
              cross_entropy(v52, argmax(cos(3.0 * v52), part4) - 1, part4,
                            {.ignore = -1, .class_weights = 0.5 + cast(range(part4), f64)});
          const Tensor v67 = v47 >= v66;
          const Tensor v68 = v46 + v38;
          return State{{v68}, {}};
        });
    const Tensor v69 = s69.tensors[0];
    const Tensor v70 =
        scan(Scan{.spatial_dim = n2,
                  .initial = [](const Tensor& last) { return 0.5 * last; },
                  .xs = v38,
                  .body =
                      [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                        return std::pair{state - cast(i, slice.dtype()), sin(state) * slice};
                      },
                  .reverse = true})
            .ys;
    const Tensor v71 = sum(0.5 * v69 + sin(v69));
    const Tensor v72 = sum(0.5 * v70 + sin(v70));
    const Tensor v73 = v71 + v72;
    return std::pair{v73, Tensors{v73, v10, v69, v70}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(77);
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
