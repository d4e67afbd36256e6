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
    const Tensor v7 = [&](const Dim& keys) {
      const Tensor k = rename(v1, n2, keys);
      return attention(sin(v1), k, tanh(k), keys, Dims({n2, in1})[1], {.causal = n2, .block = 3});
    }(Dim("keys", n2.lengths()));
    const Tensor v8 = [&](const auto& made) {
      return sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim});
    }([&](const Dim& none) {
      Dims all = {in1, n2};
      all.erase(all.begin());
      all.push_back(none);
      return scan(Scan{.spatial_dim = in1,
                       .initial = std::pair{zeros(all, f64) + 0.25, none},
                       .xs = v7,
                       .body =
                           [](const Tensor& t, const std::pair<Tensor, Dim>& s) {
                             const auto longer = cum_concat(t * 0.5, tanh(s.first), s.second);
                             return std::pair{sum(square(longer.first), {longer.second}), longer};
                           },
                       .checkpoint = kept(Checkpoint().where(by_letter(2))),
                       .swap_memory = SwapMemory()});
    }(Dim("hist", scalar(1))));
    const Tensor v9 = truncated_normal({in1}, 0, 0.5, f64);
    const TensorArray v10 =
        TensorArray(v2.type(), {.size = 1, .dynamic_size = true}).write(mod(v3, 4), v2);
    const Tensor v11 = where(assert_that(mask_padding(square(v9) >= 0.0 || isnan(v9), false),
                                         "squares are not negative", v9),
                             sin(v9), v9);
    const Tensor v12 = where(v6, v11, 0.25);
    const Tensor v13 = mean(v7, {n2, in1});
    const Tensor v14 = mask_padding(v12);
    const Tensor v15 = set_at(0.5 * v7, -1 - mod(v4, 1), -1.625, in1);
    const Tensor v16 = [&] {
      const Dim units("units", 2), time = Dims({in1, n2})[1];
      const auto cell = GruCell::init(in1, units, {.dtype = f64});
      return sum(recur(cell, v15, time,
                       {.reverse = true,
                        .checkpoint = kept(Checkpoint::budget(700)),
                        .swap_memory = SwapMemory()})
                     .outputs,
                 {units, time});
    }();
    const Tensor v17 = matmul(v15, v15, n2);
    const Tensor v18 = sigmoid(v17);
    const Tensor v19 = sum(0.5 * v8 + sin(v8));
    const Tensor v20 = sum(0.5 * v13 + sin(v13));
    const Tensor v21 = v19 + v20;
    const Tensor v22 = sum(0.5 * v14 + sin(v14));
    const Tensor v23 = v21 + v22;
    const Tensor v24 = sum(0.5 * v16 + sin(v16));
    const Tensor v25 = v23 + v24;
    const Tensor v26 = sum(0.5 * v18 + sin(v18));
    const Tensor v27 = v25 + v26;
    return std::pair{v27, Tensors{v27, v8, v13, v14, v16, v18}};
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
