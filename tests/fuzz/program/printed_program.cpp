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
    const Tensor v7 = v2 - v0;
    const Tensor v8 = foldl([](const Tensor& state, const Tensor& t) { return tanh(state) + t; },
                            v7, sum(zeros_like(v7), {n2}), {.spatial_dim = n2});
    const auto f29 = [&](const Tensors& rows29) -> Tensor {
      const Tensor v9 = rows29[0];
      const Tensor v10 = full({}, 0, i32);
      const Tensor v11 = mod(v3 * 3, 4);
      const State s26 = while_loop(
          [&](const State& s) -> Tensor {
            const Tensor v22 = s.tensors[0];
            const Tensor v23 = s.tensors[1];
            const Tensor v24 = s.tensors[2];
            const Tensor v25 = less(v22, v11);
            return v25;
          },
          [&](const State& s) -> State {
            const Tensor v12 = s.tensors[0];
            const Tensor v13 = s.tensors[1];
            const Tensor v14 = s.tensors[2];
            const Tensor v15 = argmin(v4, batch0);
            const State s18 = cond(
                v5,
                [&]() -> State {
                  return State{{v11, v12}, {}};
                },
                [&]() -> State {
                  const Tensor v16 = mod(v15 + v12, 5);
                  const Tensor v17 = mod(v10 + v12, 5);
                  return State{{v16, v17}, {}};
                });
            const Tensor v18 = s18.tensors[0];
            const Tensor v19 = s18.tensors[1];
            const Tensor v20 = v12 + 1;
            const Tensor v21 = v14 * v9;
            return State{{v20, v9, v21}, {}};
          },
          State{{v10, v9, v7}, {}}, {.checkpoint = kept(Checkpoint().where(by_letter(1)))});
      const Tensor v26 = s26.tensors[0];
      const Tensor v27 = s26.tensors[1];
      const Tensor v28 = s26.tensors[2];
      return v8;
    };
    const Tensor v29 = vmap(f29, n2)(Tensors{v7});
    const Tensor v30 =
        associative_scan([](const Tensor& l, const Tensor& r) { return l + r + l * r; },
                         0.5 * sin(v0), n2, {.reverse = true});
    const Tensor v31 = pow(1.5 + sin(v30), v8);
    const auto s40 = scan(Scan{
        .spatial_dim = n2,
        .initial = State{{v5, v3}, {}},
        .xs = Tensors{v29},
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v32 = x[0];
              const Tensor v33 = s.tensors[0];
              const Tensor v34 = s.tensors[1];
              const Tensor v35 = v31 + v8;
              const TensorArray v36 =
                  TensorArray(v2.type(), {.size = 0, .dynamic_size = true}).write(mod(v34, 4), v2);
              const Tensor v37 = v33 && v5;
              const Tensor v38 = logical_xor(v33, v37);
              const Tensor v39 = mod(v34 + v3, 5);
              return std::pair{Tensors{v32, v37}, State{{v38, v39}, {}}};
            },
        .checkpoint = kept(Checkpoint::every(2)),
    });
    const Tensor v40 = s40.ys[0];
    const Tensor v41 = s40.ys[1];
    const Tensor v42 = s40.state.tensors[0];
    const Tensor v43 = s40.state.tensors[1];
    const Tensor v44 = tanh(v8);
    const Tensor v45 = random_normal({}, f64);
    const Tensor v46 = softmax(v1, {n2, in1});
    const Tensor v47 = max(v46, {in1});
    const Tensor v48 = random_normal({in1}, f64);
    const Tensor v49 = unpack(cos(pack(v29, {n2})), 0, {n2});
    const Tensor v50 = sum(0.5 * v40 + sin(v40));
    const Tensor v51 = sum(0.5 * v44 + sin(v44));
    const Tensor v52 = v50 + v51;
    const Tensor v53 = sum(0.5 * v45 + sin(v45));
    const Tensor v54 = v52 + v53;
    const Tensor v55 = sum(0.5 * v47 + sin(v47));
    const Tensor v56 = v54 + v55;
    const Tensor v57 = sum(0.5 * v48 + sin(v48));
    const Tensor v58 = v56 + v57;
    const Tensor v59 = sum(0.5 * v49 + sin(v49));
    const Tensor v60 = v58 + v59;
    return std::pair{v60, Tensors{v60, v40, v41, v42, v43, v44, v45, v47, v48, v49}};
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
