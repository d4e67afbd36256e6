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
    const Tensor v7 = arctan(v0);
    const Tensor v8 = full({batch0}, 0, i32);
    const Tensor v9 = mod(v8 * 3, 4);
    const auto s26 = scan(Scan{
        .spatial_dim = Dim("steps3"),
        .cond_dims = {batch0},
        .cond_before_body = false,
        .initial = State{{v8, v6, v0}, {}},
        .xs = Tensors{},
        .cond = [&](const State& s) -> Tensor {
          const Tensor v19 = s.tensors[0];
          const Tensor v20 = s.tensors[1];
          const Tensor v21 = s.tensors[2];
          const Tensor v22 = mod(v8 * 3, 4);
          const Tensor v23 = less(v19, v22);
          const Tensor v24 = v2 <= 1.625;
          const Tensor v25 = v23 && v24;
          return v25;
        },
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v10 = s.tensors[0];
              const Tensor v11 = s.tensors[1];
              const Tensor v12 = s.tensors[2];
              const Tensor v13 = round(v12);
              const Tensor v14 =
                  [&](const auto& made) {
                    return made.first.read(-1) + made.first.read(0) * made.second;
                  }(fori_loop(0, 0,
                              [](const Tensor&, const std::pair<TensorArray, Tensor>& s) {
                                return std::pair{s.first.push_back(sin(s.second)),
                                                 s.first.read(0) * 0.5 + s.second};
                              },
                              std::pair{TensorArray(TensorType{f64, {n2}}).push_back(v13), v13},
                              {.checkpoint = kept(Checkpoint::every(2).where(by_letter(0))),
                               .swap_memory = SwapMemory()}));
              const Tensor v15 = sum(v2);
              const Tensor v16 = v10 + 1;
              const Tensor v17 = v12 + v15;
              const Tensor v18 = tanh(v17);
              return std::pair{Tensors{v11}, State{{v16, v5, v18}, {}}};
            },
        .max_seq_len = v9,
        .swap_memory = kept(SwapMemory(Spill{.bytes_in_memory = 1})),
    });
    const Tensor v26 = s26.ys[0];
    const Tensor v27 = s26.state.tensors[0];
    const Tensor v28 = s26.state.tensors[1];
    const Tensor v29 = s26.state.tensors[2];
    const Dim steps3 = s26.dim;
    const Tensor v30 = [&](const auto& made) {
      return sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim});
    }([&](const Dim& none) {
      Dims all = {n2};
      all.erase(all.begin());
      all.push_back(none);
      return scan(Scan{.spatial_dim = n2,
                       .initial = std::pair{zeros(all, f64), none},
                       .xs = v7,
                       .body =
                           [](const Tensor& t, const std::pair<Tensor, Dim>& s) {
                             const auto longer = cum_concat(t, tanh(s.first), s.second);
                             return std::pair{sum(longer.first, {longer.second}), longer};
                           },
                       .checkpoint = kept(Checkpoint::every(3)),
                       .swap_memory = SwapMemory()});
    }(Dim("hist", zeros(n2.is_ragged() ? n2.length_dims() : Dims{}, i32))));
    const Tensor v31 = arctan(v29);
    const Tensor v32 = full({}, 0, i32);
    const Tensor v33 = mod(v32 * 3, 4);
    const State s53 = while_loop(
        [&](const State& s) -> Tensor {
          const Tensor v48 = s.tensors[0];
          const Tensor v49 = s.tensors[1];
          const Tensor v50 = s.tensors[2];
          const Tensor v51 = s.tensors[3];
          const Tensor v52 = less(v48, v33);
          return v52;
        },
        [&](const State& s) -> State {
          const Tensor v34 = s.tensors[0];
          const Tensor v35 = s.tensors[1];
          const Tensor v36 = s.tensors[2];
          const Tensor v37 = s.tensors[3];
          const Tensor v38 = log1p(square(v36));
          const Tensor v39 = mean_absolute_error(v31, v37);
          const Tensor v40 = [&] {
            const Dim taps("taps", 3);
            const Tensor filter = tensor({0.5, -1.0, 0.25}, {taps}, f64);
            return conv(tanh(v37), filter * sin(mean(tanh(v37))), {n2},
                        {.taps = {taps}, .padding = WindowPadding::same});
          }();
          const Tensor v41 = sum(v31) + sum(full({(in1 + in1) / 3}, 1.625, f64));
          const Tensor v42 = v34 + 1;
          const Tensor v43 = logical_xor(v35, v6);
          const Tensor v44 = v36 + v30;
          const Tensor v45 = tanh(v44);
          const Tensor v46 = v37 + v45;
          const Tensor v47 = tanh(v46);
          return State{{v42, v43, v45, v47}, {}};
        },
        State{{v32, v26, v30, v7}, {}}, {.checkpoint = kept(Checkpoint::every(2))});
    const Tensor v53 = s53.tensors[0];
    const Tensor v54 = s53.tensors[1];
    const Tensor v55 = s53.tensors[2];
    const Tensor v56 = s53.tensors[3];
    const Tensor v57 =
        scan(Scan{.spatial_dim = n2,
                  .initial = [](const Tensor& last) { return 0.5 * last; },
                  .xs = v56,
                  .body =
                      [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                        return std::pair{state - cast(i, slice.dtype()), sin(state) * slice};
                      },
                  .reverse = true})
            .ys;
    const auto f63 = [&](const Tensor& x63) -> Tensor {
      const Tensor v58 = x63;
      const Tensor v59 = custom_vjp(
          [](Tensor t) {
            return std::pair{square(t), t};
          },
          [](Tensor u, Tensor dy) { return 2.0 * u * dy; })(v55);
      const Tensor v60 = [&] {
        const auto [y, slope] =
            value_and_grad([](const Tensor& t) { return sum(sin(t) * t); })(v59);
        return y * slope;
      }();
      const Tensor v61 = cumprod(v56, n2, {.exclusive = true});
      const Tensor v62 = logsumexp(v56, {n2});
      return v31;
    };
    const Tensor v63 = jvp(f63, v55, sin(v55)).second;
    const Tensor v64 = full({in1}, 0, i32);
    const Tensor v65 = mod(v33 * 3, 4);
    const auto s101 = scan(Scan{
        .spatial_dim = Dim("steps4"),
        .cond_dims = {in1},
        .initial = State{{v64, v26, v33}, {}},
        .xs = Tensors{},
        .cond = [&](const State& s) -> Tensor {
          const Tensor v96 = s.tensors[0];
          const Tensor v97 = s.tensors[1];
          const Tensor v98 = s.tensors[2];
          const Tensor v99 = mod(v98 * 3, 4);
          const Tensor v100 = less(v96, v99);
          return v100;
        },
        .body =
            [&](const Tensors& x, const State& s) {
              const Tensor v66 = s.tensors[0];
              const Tensor v67 = s.tensors[1];
              const Tensor v68 = s.tensors[2];
              const Tensor v69 =
                  associative_scan([](const Tensor& l, const Tensor& r) { return l + r + l * r; },
                                   0.5 * sin(v7), n2, {.reverse = true});
              const Tensor v70 =
                  associative_scan(
                      [](const std::pair<Tensor, Tensor>& l, const std::pair<Tensor, Tensor>& r) {
                        return std::pair{l.first * r.first, r.first * l.second + r.second};
                      },
                      std::pair{sigmoid(v31), tanh(v31)}, n2)
                      .second;
              const auto f91 = [&](const Tensors& rows91) -> Tensor {
                const Tensor v71 = rows91[0];
                const Tensor v72 = tanh(v70);
                const Tensor v73 = full({}, 0, i32);
                const Tensor v74 = mod(v73 * 3, 4);
                const State s87 = while_loop(
                    [&](const State& s) -> Tensor {
                      const Tensor v83 = s.tensors[0];
                      const Tensor v84 = s.tensors[1];
                      const Tensor v85 = s.tensors[2];
                      const Tensor v86 = less(v83, v74);
                      return v86;
                    },
                    [&](const State& s) -> State {
                      const Tensor v75 = s.tensors[0];
                      const Tensor v76 = s.tensors[1];
                      const Tensor v77 = s.tensors[2];
                      const Tensor v78 =
                          categorical(clip(where(isnan(v76), zeros_like(v76), v76), -3, 3), n2);
                      const Tensor v79 = dropout(v56, 0.25);
                      const Tensor v80 = v75 + 1;
                      const Tensor v81 = v77 + v63;
                      const Tensor v82 = tanh(v81);
                      return State{{v80, v63, v82}, {}};
                    },
                    State{{v73, v56, v69}, {}},
                    {.checkpoint = kept(Checkpoint::budget(800).where(by_letter(3)))});
                const Tensor v87 = s87.tensors[0];
                const Tensor v88 = s87.tensors[1];
                const Tensor v89 = s87.tensors[2];
                const Tensor v90 = cumprod(v29, n2);
                return v55;
              };
              const Tensor v91 = vmap(f91, n2)(Tensors{v29});
              const Tensor v92 = v66 * v64 % 7;
              const Tensor v93 = log(1.5 + sin(v57));
              const Tensor v94 = v66 + 1;
              const Tensor v95 = logical_xor(v67, v28);
              return std::pair{Tensors{v69}, State{{v94, v95, v53}, {}}};
            },
        .max_seq_len = v65,
        .checkpoint = kept(Checkpoint::every(3)),
    });
    const Tensor v101 = s101.ys[0];
    const Tensor v102 = s101.state.tensors[0];
    const Tensor v103 = s101.state.tensors[1];
    const Tensor v104 = s101.state.tensors[2];
    const Dim steps4 = s101.dim;
    const Tensor v105 = sum(0.5 * v101 + sin(v101));
    return std::pair{v105, Tensors{v105, v27, v54, v101, v102, v103, v104}};
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
