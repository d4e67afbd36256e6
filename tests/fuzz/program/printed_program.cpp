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
    const auto f33 = [&](const Tensor& x33) -> Tensor {
      const Tensor v7 = x33;
      const Tensor v8 = v1 * -0.25;
      const Tensor v9 = sum(v8, {n2, in1});
      const Tensor v10 = full({}, 0, i32);
      const Tensor v11 = mod(v10 * 3, 4);
      const State s31 = while_loop(
          [&](const State& s) -> Tensor {
            const Tensor v28 = s.tensors[0];
            const Tensor v29 = s.tensors[1];
            const Tensor v30 = less(v28, v11);
            return v30;
          },
          [&](const State& s) -> State {
            const Tensor v12 = s.tensors[0];
            const Tensor v13 = s.tensors[1];
            const State s21 = switch_case(
                v12,
                [&]() -> State {
                  const Tensor v14 = matmul(v0, v8, n2);
                  return State{{v9}, {}};
                },
                [&]() -> State {
                  const Tensor v15 = v9 + v8;
                  const Tensor v16 = erf(v13);
                  return State{{v16}, {}};
                },
                [&]() -> State {
                  const Tensor v17 = mean_pool(
                      v7, {n2},
                      {.size = 2, .stride = 1, .dilation = 2, .padding = WindowPadding::causal});
                  const Tensor v18 = unpack(cos(pack(v7, {n2})), 0, {n2});
                  const Tensor v19 = v13 + v9;
                  const Tensor v20 = tanh(v19);
                  return State{{v20}, {}};
                });
            const Tensor v21 = s21.tensors[0];
            const Tensor v22 = [&] {
              const auto [y, slope] =
                  value_and_grad([](const Tensor& t) { return sum(sin(t) * t); })(v9);
              return y * slope;
            }();
            const Tensor v23 = transpose(v8, {n2, in1});
            const Tensor v24 =
                max_pool(v1, {in1}, {.size = 3, .stride = 1, .padding = WindowPadding::same});
            const Tensor v25 =
                foldr([](const Tensor& state, const Tensor& t) { return sin(state) * t + 0.5; },
                      v24, sum(zeros_like(v24), {n2}), {.spatial_dim = n2});
            const Tensor v26 = v12 + 1;
            const Tensor v27 = v13 * v22;
            return State{{v26, v27}, {}};
          },
          State{{v10, v9}, {}}, {.checkpoint = kept(Checkpoint::every(3).where(by_letter(3)))});
      const Tensor v31 = s31.tensors[0];
      const Tensor v32 = s31.tensors[1];
      return v32;
    };
    const Tensor v33 = hvp([&](const Tensor& t) { return sum(f33(t)); }, v0, v0);
    const Tensor v34 = v2 > -0.375;
    const Tensor v35 = variance(v1, {n2});
    const auto f67 = [&](const Tensors& rows67) -> Tensor {
      const Tensor v36 = rows67[0];
      const Tensor v37 = full({}, 0, i32);
      const Tensor v38 = mod(v37 * 3, 4);
      const Tensor v39 = full({}, 2, i32);
      const State s62 = while_loop(
          [&](const State& s) -> Tensor {
            const Tensor v57 = s.tensors[0];
            const Tensor v58 = s.tensors[1];
            const Tensor v59 = s.tensors[2];
            const Tensor v60 = s.tensors[3];
            const Tensor v61 = less(v57, v38);
            return v61;
          },
          [&](const State& s) -> State {
            const Tensor v40 = s.tensors[0];
            const Tensor v41 = s.tensors[1];
            const Tensor v42 = s.tensors[2];
            const Tensor v43 = s.tensors[3];
            const State s52 = cond(
                v34,
                [&]() -> State {
                  const Tensor v44 = cast(v37, i64);
                  const Tensor v45 = reverse(v33, n2);
                  const Tensor v46 =
                      sum(v42) - 0.5 * sum(cast(range(in1 - Dims({in1, n2})[1]), f64));
                  const Tensor v47 = mod(v3 + v38, 5);
                  return State{{v47}, {}};
                },
                [&]() -> State {
                  const Tensor v48 = log_softmax(v33, {n2});
                  const Tensor v49 = clip(v4, -1, 3);
                  const Tensor v50 = log1p(square(v43));
                  const Tensor v51 = mod(v3 + v39, 5);
                  return State{{v51}, {}};
                });
            const Tensor v52 = s52.tensors[0];
            const Tensor v53 = v40 + 1;
            const Tensor v54 = mod(v41 + v52, 5);
            const Tensor v55 = v43 * v36;
            const Tensor v56 = tanh(v55);
            return State{{v53, v54, v43, v56}, {}};
          },
          State{{v37, v4, v36, v2}, {}},
          {.checkpoint = kept(Checkpoint::every(3).where(by_letter(1))),
           .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1})),
           .maximum_iterations = v39});
      const Tensor v62 = s62.tensors[0];
      const Tensor v63 = s62.tensors[1];
      const Tensor v64 = s62.tensors[2];
      const Tensor v65 = s62.tensors[3];
      const Tensor v66 = v35 * v35;
      return v64;
    };
    const Tensor v67 = vmap(f67, n2)(Tensors{v33});
    const Tensor v68 = scan(Scan{.spatial_dim = in1,
                                 .initial = [](const Tensor& first) { return tanh(first); },
                                 .xs = v35,
                                 .body =
                                     [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                                       const Tensor next = sin(state + slice);
                                       return std::pair{next * cast(i + 1, slice.dtype()), next};
                                     }})
                           .ys;
    const Tensor v69 = logsumexp(v68, {in1});
    const Tensor v70 = v69 - v2;
    const Tensor v71 = transpose(v1, {n2, in1});
    const Tensor v72 = mod(v4 + v4, 5);
    const Tensor v73 = [&](const auto& made) {
      return v69 + sum(std::get<1>(made), {std::get<2>(made)});
    }([&](const Dim& none) {
      Dims all = {};
      all.push_back(none);
      return while_loop(
          [&](const Tensor& i, const Tensor&, const Dim&) { return i < 2; },
          [&](const Tensor& i, const Tensor& s, const Dim& before) {
            const auto longer = cum_concat(v69 * 0.5 + sum(s * s, {before}), tanh(s), before);
            return std::tuple{i + 1, longer.first, longer.second};
          },
          std::tuple{scalar(0), zeros(all, f64) + 0.25, none},
          WhileOptions{.checkpoint = kept(Checkpoint::every(2)), .swap_memory = SwapMemory()});
    }(Dim("hist", scalar(1))));
    const Tensor v74 = where(v34, v73, 0.875);
    const Tensor v75 = concat({v71, 0.5 * v71}, in1, part3);
    const Tensor v76 = sum(0.5 * v67 + sin(v67));
    const Tensor v77 = sum(0.5 * v70 + sin(v70));
    const Tensor v78 = v76 + v77;
    const Tensor v79 = sum(0.5 * v74 + sin(v74));
    const Tensor v80 = v78 + v79;
    const Tensor v81 = sum(0.5 * v75 + sin(v75));
    const Tensor v82 = v80 + v81;
    return std::pair{v82, Tensors{v82, v67, v70, v72, v74, v75}};
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
