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
    const auto f11 = [&](const Tensor& x11) -> Tensor {
      const Tensor v7 = x11;
      const Tensor v8 = [&] {
        const Dim units("units", 2);
        const auto table = SparseEmbedding::init(Dim("symbols", 3), units, {.dtype = f64});
        return sum(table(mod(v4, 3)), units);
      }();
      const Tensor v9 = where(v6, v8, -1.375);
      const Tensor v10 = v8 - v9;
      return v8;
    };
    const Tensor v11 = hvp([&](const Tensor& t) { return sum(f11(t)); }, v0, v0);
    const Tensor v12 = v2 + v11;
    const auto f15 = [&](const Tensors& rows15) -> Tensor {
      const Tensor v13 = rows15[0];
      const Tensor v14 = sum(0.5 * v11 + sin(v11));
      return v14;
    };
    const Tensor v15 = vmap(f15, n2)(Tensors{v11});
    const Tensor v16 = linear_scan(sin(v1), v12, n2);
    const Tensor v17 = full({batch0, in1}, 2, i32);
    const Tensor v18 =
        scan(Scan{.spatial_dim = n2,
                  .initial = [](const Tensor& last) { return 0.5 * last; },
                  .xs = v16,
                  .body =
                      [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                        return std::pair{state - cast(i, slice.dtype()), sin(state) * slice};
                      },
                  .reverse = true})
            .ys;
    const Tensor v19 = sum(v16, {in1});
    const Tensor v20 = clip(v17, -1, 3);
    const Tensor v21 = mean_absolute_error(v18, v16);
    const Tensor v22 = foldl([](const Tensor& state, const Tensor& t) { return tanh(state) + t; },
                             v16, sum(zeros_like(v16), {n2}), {.spatial_dim = n2});
    const Tensor v23 = cast(round(3.0 * tanh(v15)), i32);
    const Tensor v24 = full({}, 0, i32);
    const Tensor v25 = mod(v24 * 3, 4);
    const State s62 = while_loop(
        [&](const State& s) -> Tensor {
          const Tensor v57 = s.tensors[0];
          const Tensor v58 = s.tensors[1];
          const Tensor v59 = s.tensors[2];
          const Tensor v60 = s.tensors[3];
          const Tensor v61 = less(v57, v25);
          return v61;
        },
        [&](const State& s) -> State {
          const Tensor v26 = s.tensors[0];
          const Tensor v27 = s.tensors[1];
          const Tensor v28 = s.tensors[2];
          const Tensor v29 = s.tensors[3];
          const auto f32 = [&](const Tensor& x32) -> Tensor {
            const Tensor v30 = x32;
            const Tensor v31 = cumsum(v12, n2, {.exclusive = true, .reverse = true});
            return v30;
          };
          const Tensor v32 = hvp([&](const Tensor& t) { return sum(f32(t)); }, v27, v27);
          const Tensor v33 = v28 % v24;
          const Tensor v34 = full({}, 0, i32);
          const Tensor v35 = mod(v34 * 3, 4);
          const Tensor v36 = mod(v26 * 3, 4);
          const State s48 = while_loop(
              [&](const State& s) -> Tensor {
                const Tensor v43 = s.tensors[0];
                const Tensor v44 = s.tensors[1];
                const Tensor v45 = s.tensors[2];
                const Tensor v46 = s.tensors[3];
                const Tensor v47 = less(v43, v35);
                return v47;
              },
              [&](const State& s) -> State {
                const Tensor v37 = s.tensors[0];
                const Tensor v38 = s.tensors[1];
                const Tensor v39 = s.tensors[2];
                const Tensor v40 = s.tensors[3];
                const Tensor v41 = cumsum(v19, n2);
                const Tensor v42 = v37 + 1;
                return State{{v42, v32, v2, v6}, {}};
              },
              State{{v34, v1, v29, v6}, {}},
              {.checkpoint = kept(Checkpoint().where(by_letter(1))), .maximum_iterations = v36});
          const Tensor v48 = s48.tensors[0];
          const Tensor v49 = s48.tensors[1];
          const Tensor v50 = s48.tensors[2];
          const Tensor v51 = s48.tensors[3];
          const Tensor v52 = v26 + 1;
          const Tensor v53 = v27 * v50;
          const Tensor v54 = mod(v28 + v36, 5);
          const Tensor v55 = v29 * v21;
          const Tensor v56 = tanh(v55);
          return State{{v52, v53, v54, v56}, {}};
        },
        State{{v24, v16, v3, v21}, {}},
        {.checkpoint = kept(Checkpoint::every(3)),
         .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))});
    const Tensor v62 = s62.tensors[0];
    const Tensor v63 = s62.tensors[1];
    const Tensor v64 = s62.tensors[2];
    const Tensor v65 = s62.tensors[3];
    const Tensor v66 = sum(0.5 * v22 + sin(v22));
    const Tensor v67 = sum(0.5 * v63 + sin(v63));
    const Tensor v68 = v66 + v67;
    const Tensor v69 = sum(0.5 * v65 + sin(v65));
    const Tensor v70 = v68 + v69;
    return std::pair{v70, Tensors{v70, v20, v22, v23, v62, v63, v64, v65}};
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
