// tests/trace/plan/recorded_models.h — functions with a given number of outputs, parameters,
// carries or loops: recording_work_test counts their allocations, bench/recording_bench times them.
#pragma once

#include <utility>
#include <vector>

#include "reel/reel.h"

namespace reel::recorded {

using List = std::vector<Tensor>;

/// Returns n values that do not depend on each other.
inline List scalars(int n) {
  List result;
  for (int i = 0; i < n; ++i) result.push_back(scalar(0.5 * i));
  return result;
}

// Each calls call(f, args...) with a function of its kind, of size n, and its arguments.

template <class Call>
void scalar_outputs(int n, const Call& call) {
  call(
      [n](const Tensor& x) {
        List result;
        for (int i = 0; i < n; ++i) result.push_back(x * double(i) + 1.);
        return result;
      },
      scalar(1.));
}

template <class Call>
void adam_over_scalars(int n, const Call& call) {
  const List parameters = scalars(n);
  call(
      [](List parameters, Adam<List> adam, const List& gradient) {
        adam.update(parameters, gradient);
        return std::pair{parameters, adam};
      },
      parameters, Adam<List>(parameters), parameters);
}

template <class Call>
void one_chain(int n, const Call& call) {
  call(
      [n](Tensor x) {
        for (int i = 0; i < n; ++i) x = x * 1.01 + double(i);
        return x;
      },
      scalar(1.));
}

template <class Call>
void captures(int n, const Call& call) {
  const List captured = scalars(n);
  call(
      [&](Tensor x) {
        for (const Tensor& y : captured) x = x + y;
        return x;
      },
      scalar(1.));
}

template <class Call>
void loops(int n, const Call& call) {
  call(
      [n](const Tensor& xs) {
        List result;
        for (int i = 0; i < n; ++i)
          result.push_back(scan(Scan{.initial = zeros({2}) + double(i),
                                     .xs = xs,
                                     .body =
                                         [](const Tensor& x, const Tensor& h) {
                                           return std::pair{None{}, tanh(h + x)};
                                         }})
                               .state);
        return result;
      },
      ones({5, 2}));
}

/// Each loop begins with the state of the one before it.
template <class Call>
void loops_in_a_row(int n, const Call& call) {
  call(
      [n](const Tensor& xs) {
        Tensor state = zeros({2});
        for (int i = 0; i < n; ++i)
          state = scan(Scan{.initial = state,
                            .xs = xs,
                            .body =
                                [](const Tensor& x, const Tensor& h) {
                                  return std::pair{None{}, tanh(h + x)};
                                }})
                      .state;
        return state;
      },
      ones({5, 2}));
}

/// A loop that reads many tensors from outside.
template <class Call>
void captures_of_a_loop(int n, const Call& call) {
  call(
      [](const Tensor& x, const List& captured) {
        const auto body = [&](const Tensor&, const Tensor& s) {
          Tensor result = s;
          for (const Tensor& y : captured) result = result * 0.5 + y;
          return result;
        };
        return fori_loop(0, 3, body, x);
      },
      scalar(1.), scalars(n));
}

/// A loop with n carries. Each depends on the carry before, and only the last one is a result.
template <class Call>
void chain_of_carries(int n, const Call& call) {
  call(
      [](const List& initial) {
        const auto body = [](const Tensor&, const List& state) {
          List next{tanh(state[0])};
          for (std::size_t i = 1; i < state.size(); ++i)
            next.push_back(state[i - 1] + state[i] * 0.5);
          return next;
        };
        return fori_loop(0, 3, body, initial).back();
      },
      scalars(n));
}

/// As chain_of_carries, but each carry passes through a loop inside.
template <class Call>
void chain_through_loops_inside(int n, const Call& call) {
  call(
      [](const List& initial) {
        const auto inside = [](const Tensor&, const List& state) {
          List next;
          for (const Tensor& x : state) next.push_back(tanh(x));
          return next;
        };
        const auto body = [&](const Tensor&, const List& state) {
          const List made = fori_loop(0, 2, inside, state);
          List next{made[0]};
          for (std::size_t i = 1; i < made.size(); ++i) next.push_back(made[i - 1] + 1.);
          return next;
        };
        return fori_loop(0, 3, body, initial).back();
      },
      scalars(n));
}

}  // namespace reel::recorded
