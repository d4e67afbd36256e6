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
  const Dim part3("part3", 2);
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
    const Tensor v7 = [&] {
      const Dim units("units", 2), time = Dims({in1, n2})[1];
      const auto cell = LstmCell::init(in1, units, {.dtype = f64});
      return sum(recur(cell, v1, time,
                       {.checkpoint = Checkpoint(),
                        .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))})
                     .state.h,
                 units);
    }();
    const Tensor v8 = zeros({n2}, f64);
    const Tensor v9 = mean_absolute_error(v7, v7);
    const auto f13 = [&](const Tensors& rows13) -> Tensor {
      const Tensor v10 = rows13[0];
      const Tensor v11 = [&] {
        Tensor p = v7;
        Sgd sgd(p, {.learning_rate = 0.5, .momentum = 0.75, .nesterov = true});
        sgd.update(p, sin(p));
        sgd.update(p, cos(p));
        return p;
      }();
      const Tensor v12 = [&] {
        Tensor p = v10;
        Adam adam(p, {.learning_rate = 0.25, .clip_norm = 2});
        adam.update(p, 1.5 + sin(p));
        adam.update(p, 2.0 + cos(p));
        return p;
      }();
      return v12;
    };
    const Tensor v13 = vmap(f13, n2)(Tensors{v0});
    const auto f19 = [&](const Tensor& x19) -> Tensor {
      const Tensor v14 = x19;
      const Tensor v15 = sum(v1, {in1});
      const Tensor v16 = argmin(v4, batch0);
      const Tensor v17 = rsqrt(1.5 + cos(v7));
      const Tensor v18 = max(v1, {n2});
      return v9;
    };
    const auto pulled19 = vjp(f19, v2);
    const Tensor v19 =
        fori_loop(0, 2,
                  [&](const Tensor&, const std::pair<Tensor, Tensor>& s) {
                    return std::pair{tanh(s.first), s.second + pulled19.second(s.first)};
                  },
                  std::pair{pulled19.first, pulled19.second(pulled19.first)},
                  {.checkpoint = Checkpoint(),
                   .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))})
            .second;
    const auto f24 = [&](const Tensors& rows24) -> Tensor {
      const Tensor v20 = rows24[0];
      const Tensor v21 = v8 + v13;
      const Tensor v22 = sum(v13, {n2});
      const Tensor v23 = v21 - v22;
      return v23;
    };
    const Tensor v24 = vmap(f24, batch0)(Tensors{v4});
    const Tensor v25 =
        where_nested(v24 > 0.625, std::pair{sin(v24), v24}, std::pair{v24, cos(v24)}).first;
    const Tensor v26 = slice(v25, batch0, 0, {}, 2, part3);
    const Tensor v27 = cast(v4, i64);
    const auto s36 = scan(Scan{
        .spatial_dim = batch0,
        .initial = State{{v3, v19}, {}},
        .xs = Tensors{v24, v25},
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v28 = x[0];
              const Tensor v29 = x[1];
              const Tensor v30 = s.tensors[0];
              const Tensor v31 = s.tensors[1];
              const Tensor v32 = [&] {
                const Dim units("units", 2);
                return sum(Linear::init(part3, units, {.dtype = f64})(v26), units);
              }();
              const Tensor v33 = ceil(v19);
              const Tensor v34 = logical_xor(v5, v6);
              const Tensor v35 = v33 * v33;
              return std::pair{Tensors{v32}, State{{v3, v19}, {}}};
            },
        .checkpoint = kept(Checkpoint::every(1).where(by_letter(1))),
    });
    const Tensor v36 = s36.ys[0];
    const Tensor v37 = s36.state.tensors[0];
    const Tensor v38 = s36.state.tensors[1];
    const Tensor v39 =
        scan(Scan{.spatial_dim = n2,
                  .initial = [](const Tensor& last) { return 0.5 * last; },
                  .xs = v8,
                  .body =
                      [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                        return std::pair{state - cast(i, slice.dtype()), sin(state) * slice};
                      },
                  .reverse = true})
            .ys;
    const Tensor v40 = set_at(v24, mod(v37, 4), sin(gather(v24, mod(v37 + 1, 4), batch0)), batch0);
    const Tensor v41 = sum(0.5 * v36 + sin(v36));
    const Tensor v42 = sum(0.5 * v38 + sin(v38));
    const Tensor v43 = v41 + v42;
    const Tensor v44 = sum(0.5 * v39 + sin(v39));
    const Tensor v45 = v43 + v44;
    const Tensor v46 = sum(0.5 * v40 + sin(v40));
    const Tensor v47 = v45 + v46;
    return std::pair{v47, Tensors{v47, v27, v36, v38, v39, v40}};
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
