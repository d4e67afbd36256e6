#include <cmath>
#include <iostream>

#include "reel/core/runtime/random.h"
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
  const Tensors arguments = [&] {
    const Dim time1("time1", tensor(std::vector<int>{4, 1, 3}, {batch0}));
    const Dim n3("n3", scalar(1));
    const Dim other4("other4", tensor(std::vector<int>{0, 1, 0}, {batch0}));
    return Tensors{
        tensor(std::vector<double>{0.875, 1.0, 0.625, -0.875, 0.75, NAN, NAN, NAN, -1.0, -0.125,
                                   -1.25, NAN},
               {batch0, time1}),
        tensor(std::vector<double>{-0.625}, {n3}),
        tensor(std::vector<double>{NAN, 1.25, NAN}, {other4, batch0}),
        scalar(-0.125, f64),
        cast(scalar(1.0, f64), i32),
        cast(scalar(0.0, f64), boolean),
    };
  }();
  const Tensors elsewhere = [&] {
    const Dim time1("time1", tensor(std::vector<int>{0, 0, 0}, {batch0}));
    const Dim n3("n3", scalar(2));
    const Dim other4("other4", tensor(std::vector<int>{4, 4, 4}, {batch0}));
    return Tensors{
        tensor(std::vector<double>{}, {batch0, time1}),
        tensor(std::vector<double>{-0.625, -0.25}, {n3}),
        tensor(std::vector<double>{-0.875, 1.25, 0.375, 1.375, -2.0, 1.375, 0.5, -1.875, 0.25,
                                   -1.75, 1.75, -1.875},
               {other4, batch0}),
        scalar(-0.125, f64),
        cast(scalar(1.0, f64), i32),
        cast(scalar(0.0, f64), boolean),
    };
  }();
  const auto function = [&](const Tensors& x) {
    const Tensor v0 = x[0];
    const Dim time1 = v0.dim("time1");
    const Tensor v1 = x[1];
    const Dim n3 = v1.dim("n3");
    const Tensor v2 = x[2];
    const Dim other4 = v2.dim("other4");
    const Tensor v3 = x[3];
    const Tensor v4 = x[4];
    const Tensor v5 = x[5];
    const Tensor v6 = minimum(v4, v4);
    const Tensor v7 = [&](auto f) {
      const auto jitted = jit(f, {.executor = Executor::interpreter});
      const auto call = [&](const auto& s) {
        const Tensor t = jitted(s), u = f(s);
        if (!t.is_traced() && !all(t == u || isnan(u)).template item<bool>())
          throw ArgumentError("jit: the trace of another type");
        return t;
      };
      return call(std::pair{v2, sin(v2)}) + call(std::tuple{v2, sin(v2)}) +
             call(std::array{v2, sin(v2)});
    }([]<class T>(const T& s) {
      if constexpr (std::is_same_v<T, std::pair<Tensor, Tensor>>)
        return std::get<0>(s) * std::get<1>(s);
      else if constexpr (std::is_same_v<T, std::tuple<Tensor, Tensor>>)
        return std::get<0>(s) - std::get<1>(s);
      else
        return tanh(std::get<1>(s));
    });
    const State s49 = cond(
        v5,
        [&]() -> State {
          const Tensor v8 = v7 + v3;
          const Tensor v9 = tanh(v8);
          const Tensor v10 = transpose(v9, {batch0, other4});
          return State{{v6, v10}, {}};
        },
        [&]() -> State {
          const auto f44 = [&](const Tensor& x44) -> Tensor {
            const Tensor v11 = x44;
            const auto s19 = scan(Scan{
                .spatial_dim = batch0,
                .initial = State{{v11, v6}, {}},
                .xs = Tensors{v7, v0},
                .body =
                    [&](const Tensors& x, const State& s) {
                      const Tensor v12 = x[0];
                      const Dim other4_5 = v12.dim(other4.name());
                      const Tensor v13 = x[1];
                      const Dim time1_6 = v13.dim(time1.name());
                      const Tensor v14 = s.tensors[0];
                      const Tensor v15 = s.tensors[1];
                      const Tensor v16 = matmul(v13, v13, time1_6);
                      const Tensor v17 = v14 * v16;
                      const Tensor v18 = mod(v15 + v6, 5);
                      return std::pair{Tensors{v4}, State{{v17, v18}, {}}};
                    },
                .reverse = true,
            });
            const Tensor v19 = s19.ys[0];
            const Tensor v20 = s19.state.tensors[0];
            const Tensor v21 = s19.state.tensors[1];
            const Tensor v22 = full({n3}, 0, i32);
            const Tensor v23 = full({}, 2, i32);
            const auto s40 = scan(Scan{
                .spatial_dim = batch0,
                .cond_dims = {n3},
                .initial = State{{v22, v11, v3}, {}},
                .xs = Tensors{v19, v2},
                .cond = [&](const State& s) -> Tensor {
                  const Tensor v35 = s.tensors[0];
                  const Tensor v36 = s.tensors[1];
                  const Tensor v37 = s.tensors[2];
                  const Tensor v38 = mod(v6 * 3, 4);
                  const Tensor v39 = less(v35, v38);
                  return v39;
                },
                .body =
                    [&](const Tensors& x, const State& s) {
                      const Tensor v24 = x[0];
                      const Tensor v25 = x[1];
                      const Dim other4_7 = v25.dim(other4.name());
                      const Tensor v26 = s.tensors[0];
                      const Tensor v27 = s.tensors[1];
                      const Tensor v28 = s.tensors[2];
                      const Tensor v29 = v11 * v28;
                      const Tensor v30 = clip(v29, v29, 1.5);
                      const Tensor v31 = v26 + 1;
                      const Tensor v32 = v27 + v30;
                      const Tensor v33 = tanh(v32);
                      const Tensor v34 = v28 + v30;
                      return std::pair{Tensors{v21}, State{{v31, v33, v34}, {}}};
                    },
                .max_seq_len = v23,
                .checkpoint = kept(Checkpoint().where(by_letter(0))),
            });
            const Tensor v40 = s40.ys[0];
            const Tensor v41 = s40.state.tensors[0];
            const Tensor v42 = s40.state.tensors[1];
            const Tensor v43 = s40.state.tensors[2];
            const Dim batch08 = s40.dim;
            return v11;
          };
          const auto pulled44 = vjp(f44, v3);
          const Tensor v44 =
              fori_loop(0, 2,
                        [&](const Tensor&, const std::pair<Tensor, Tensor>& s) {
                          return std::pair{tanh(s.first), s.second + pulled44.second(s.first)};
                        },
                        std::pair{pulled44.first, pulled44.second(pulled44.first)},
                        {.checkpoint = kept(Checkpoint().where(by_letter(1))),
                         .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))})
                  .second;
          const Tensor v45 = bernoulli(0.5, {batch0, time1});
          const Tensor v46 = v7 * v44;
          const Tensor v47 = tanh(v46);
          const Tensor v48 = transpose(v47, {batch0, other4});
          return State{{v6, v48}, {}};
        });
    const Tensor v49 = s49.tensors[0];
    const Tensor v50 = s49.tensors[1];
    const Tensor v51 = checkpoint_name(v1, "kept");
    const Tensor v52 = v5 && v5;
    const Tensor v53 =
        [&](const auto& made) {
          return made.first.read(-1) + made.first.read(0) * made.second;
        }(fori_loop(
            0, 3,
            [](const Tensor&, const std::pair<TensorArray, Tensor>& s) {
              return std::pair{s.first.push_back(sin(s.second)), s.first.read(0) * 0.5 + s.second};
            },
            std::pair{TensorArray(TensorType{f64, {other4, batch0}}).push_back(v7), v7},
            {.checkpoint = kept(Checkpoint().where(by_letter(2))), .swap_memory = SwapMemory()}));
    const Tensor v54 = v7 + v2;
    const State s70 = checkpointed(
        [&](const State& s) -> State {
          const Tensor v55 = s.tensors[0];
          const Tensor v56 = s.tensors[1];
          const Tensor v57 = full({}, 0, i32);
          const Tensor v58 = mod(v6 * 3, 4);
          const State s68 = while_loop(
              [&](const State& s) -> Tensor {
                const Tensor v65 = s.tensors[0];
                const Tensor v66 = s.tensors[1];
                const Tensor v67 = less(v65, v58);
                return v67;
              },
              [&](const State& s) -> State {
                const Tensor v59 = s.tensors[0];
                const Tensor v60 = s.tensors[1];
                const Tensor v61 = minimum(v49, v59);
                const Tensor v62 = tanh(v53);
                const Tensor v63 = v59 + 1;
                const Tensor v64 = logical_xor(v60, v55);
                return State{{v63, v64}, {}};
              },
              State{{v57, v55}, {}},
              {.checkpoint = kept(Checkpoint::budget(1).where(by_letter(0))),
               .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1}))});
          const Tensor v68 = s68.tensors[0];
          const Tensor v69 = s68.tensors[1];
          return State{{v51}, {}};
        },
        State{{v52, v5}, {}});
    const Tensor v70 = s70.tensors[0];
    const Tensor v71 = v70 * v51;
    const Tensor v72 = softplus(v71);
    const Tensor v73 = sum(0.5 * v50 + sin(v50));
    const Tensor v74 = sum(0.5 * v54 + sin(v54));
    const Tensor v75 = v73 + v74;
    const Tensor v76 = sum(0.5 * v72 + sin(v72));
    const Tensor v77 = v75 + v76;
    return std::pair{v77, Tensors{v77, v50, v54, v72}};
  };
  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(1701);
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
