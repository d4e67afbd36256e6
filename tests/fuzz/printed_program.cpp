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
  const Dim batch0("batch0", 4);
  const Dim time1("time1", tensor(std::vector<int>{4, 2, 0, 3}, {batch0}));
  const Dim in2("in2", 2);
  const Tensor v0 = scalar(1.875, f64);
  const Tensors arguments = [&] {
    return Tensors{
        tensor(std::vector<double>{-0.625, 1.0}, {in2}),
        tensor(std::vector<double>{0.25, -0.5, -0.75, 0.125, -0.25, -0.25, NAN, NAN, NAN, NAN, NAN,
                                   NAN, 0.875, 0.0, -2.0, NAN},
               {batch0, time1}),
        cast(scalar(4.0, f64), i32),
        cast(tensor(std::vector<double>{3.0, -1.0, 0.0, 0.0}, {time1}), i64),
        cast(scalar(1.0, f64), boolean),
    };
  }();
  const Tensors elsewhere = [&] {
    return Tensors{
        tensor(std::vector<double>{-0.625, 1.0}, {in2}),
        tensor(std::vector<double>{0.25, -0.5, -0.75, 0.125, -0.25, -0.25, NAN, NAN, NAN, NAN, NAN,
                                   NAN, 0.875, 0.0, -2.0, NAN},
               {batch0, time1}),
        cast(scalar(4.0, f64), i32),
        cast(tensor(std::vector<double>{3.0, -1.0, 0.0, 0.0}, {time1}), i64),
        cast(scalar(1.0, f64), boolean),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v1 = x[0];
    const Tensor v2 = x[1];
    const Tensor v3 = x[2];
    const Tensor v4 = x[3];
    const Tensor v5 = x[4];
    const Tensor v6 = v2 * -1.75;
    const Tensor v7 = exp(sin(v6));
    const Tensor v8 = cast(v3, i64);
    const State s17 = cond(
        v5,
        [&]() -> State {
          const State s11 = checkpointed(
              [&](const State& s) -> State {
                const Tensor v9 = sin(v1);
                const Tensor v10 = full({batch0}, 2, i32);
                return State{{v10, v0}, {}};
              },
              State{{}, {}}, by_letter(1));
          const Tensor v11 = s11.tensors[0];
          const Tensor v12 = s11.tensors[1];
          const Tensor v13 = v5 || v5;
          const Tensor v14 = v11 / 2;
          const Tensor v15 = mod(v4 + v8, 5);
          return State{{v15}, {}};
        },
        [&]() -> State {
          const Tensor v16 = mod(v4 + v8, 5);
          return State{{v16}, {}};
        });
    const Tensor v17 = s17.tensors[0];
    const Tensor v18 = full({}, 0, i32);
    const Tensor v19 = mod(v18 * 3, 4);
    const State s77 = while_loop(
        [&](const State& s) -> Tensor {
          const Tensor v69 = s.tensors[0];
          const Tensor v70 = s.tensors[1];
          const Tensor v71 = s.tensors[2];
          const Tensor v72 = s.tensors[3];
          const Tensor v73 = less(v69, v19);
          const Tensor v74 = sum(v72);
          const Tensor v75 = v74 <= 1.625;
          const Tensor v76 = v73 && v75;
          return v76;
        },
        [&](const State& s) -> State {
          const Tensor v20 = s.tensors[0];
          const Tensor v21 = s.tensors[1];
          const Tensor v22 = s.tensors[2];
          const Tensor v23 = s.tensors[3];
          const Tensor v24 = full({batch0}, 0, i32);
          const TensorArray v25 = TensorArray(TensorType{f64, {batch0, time1}}, {.size = 0});
          const Tensor v26 = full({}, 2, i32);
          const auto s58 = scan(Scan{
              .spatial_dim = Dim("steps4"),
              .cond_dims = {batch0},
              .cond_before_body = false,
              .initial = State{{v24, v22, v20}, {v25}},
              .xs = Tensors{},
              .cond = [&](const State& s) -> Tensor {
                const Tensor v52 = s.tensors[0];
                const TensorArray v53 = s.arrays[0];
                const Tensor v54 = s.tensors[1];
                const Tensor v55 = s.tensors[2];
                const Tensor v56 = mod(v55 * 3, 4);
                const Tensor v57 = less(v52, v56);
                return v57;
              },
              .body =
                  [&](const Tensors& x, const State& s) {
                    const Tensor v27 = s.tensors[0];
                    const TensorArray v28 = s.arrays[0];
                    const Tensor v29 = s.tensors[1];
                    const Tensor v30 = s.tensors[2];
                    const Tensor v31 = full({batch0}, 0, i32);
                    const Tensor v32 = mod(v20 * 3, 4);
                    const auto s44 = scan(Scan{
                        .spatial_dim = Dim("steps3"),
                        .cond_dims = {batch0},
                        .cond_before_body = false,
                        .initial = State{{v31, v22, v19}, {}},
                        .xs = Tensors{},
                        .cond = [&](const State& s) -> Tensor {
                          const Tensor v39 = s.tensors[0];
                          const Tensor v40 = s.tensors[1];
                          const Tensor v41 = s.tensors[2];
                          const Tensor v42 = mod(v27 * 3, 4);
                          const Tensor v43 = less(v39, v42);
                          return v43;
                        },
                        .body =
                            [&](const Tensors& x, const State& s) {
                              const Tensor v33 = s.tensors[0];
                              const Tensor v34 = s.tensors[1];
                              const Tensor v35 = s.tensors[2];
                              const Tensor v36 = reverse(v23, in2);
                              const Tensor v37 = v33 + 1;
                              const Tensor v38 = mod(v34 + v29, 5);
                              return std::pair{Tensors{}, State{{v37, v38, v32}, {}}};
                            },
                        .max_seq_len = v32,
                        .checkpoint = kept(Checkpoint::every(1)),
                    });
                    const Tensor v44 = s44.state.tensors[0];
                    const Tensor v45 = s44.state.tensors[1];
                    const Tensor v46 = s44.state.tensors[2];
                    const Dim steps3 = s44.dim;
                    const Tensor v47 = 0.25 * cast(v17, f64);
                    const Tensor v48 = shift(v6, time1, 1, 2.0);
                    const Tensor v49 = mean(v2, {batch0, time1});
                    const Tensor v50 = v27 + 1;
                    const Tensor v51 = mod(v29 + v45, 5);
                    return std::pair{Tensors{v47}, State{{v50, v51, v19}, {v28}}};
                  },
              .max_seq_len = v26,
              .checkpoint = kept(Checkpoint::every(1)),
          });
          const Tensor v58 = s58.ys[0];
          const Tensor v59 = s58.state.tensors[0];
          const TensorArray v60 = s58.state.arrays[0];
          const Tensor v61 = s58.state.tensors[1];
          const Tensor v62 = s58.state.tensors[2];
          const Dim steps4 = s58.dim;
          const Tensor v63 = v20 + 1;
          const Tensor v64 = v21 + v0;
          const Tensor v65 = tanh(v64);
          const Tensor v66 = mod(v22 + v61, 5);
          const Tensor v67 = v23 + v1;
          const Tensor v68 = tanh(v67);
          return State{{v63, v65, v66, v68}, {}};
        },
        State{{v18, v6, v8, v1}, {}},
        {.checkpoint = kept(Checkpoint::budget(200).where(by_letter(0))),
         .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))});
    const Tensor v77 = s77.tensors[0];
    const Tensor v78 = s77.tensors[1];
    const Tensor v79 = s77.tensors[2];
    const Tensor v80 = s77.tensors[3];
    const Tensor v81 = min(v7, {batch0});
    const Tensor v82 = sum(v80, {in2});
    const Tensor v83 = gather(v78, mod(v77, 4), batch0);
    const Tensor v84 = cast(v19, f64);
    const Tensor v85 = sum(0.5 * v81 + sin(v81));
    const Tensor v86 = sum(0.5 * v82 + sin(v82));
    const Tensor v87 = v85 + v86;
    const Tensor v88 = sum(0.5 * v83 + sin(v83));
    const Tensor v89 = v87 + v88;
    const Tensor v90 = sum(0.5 * v84 + sin(v84));
    const Tensor v91 = v89 + v90;
    return std::pair{v91, Tensors{v91, v79, v81, v82, v83, v84}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(656);
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
