// The models of examples with loops that end by themselves: a policy that draws its actions, and an
// adaptive solver.
#include <iostream>

#include "reel/tests/onnx/saved/saved_case.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // only main() may end without a return
#define main example_main
namespace reel::policy_example {
#include "reel/examples/policy_gradient.cpp"
}
namespace reel::ode_example {
#include "reel/examples/adaptive_ode.cpp"
}
#undef main
#pragma GCC diagnostic pop

namespace reel {
namespace {

using policy_example::Policy;

/// The random numbers of one call: the first observations, and numbers for the actions, {step,
/// batch, action}.
struct Draws {
  Tensor start, units;
};

/// As policy_example::loss_of, with given draws.
std::pair<Tensor, Tensor> loss_with(const Policy& policy, const Draws& draws) {
  const Dim &batch = draws.start.dims()[0], &action = policy_example::action;
  struct State {
    Tensor i, at;
  };
  const auto stands = [&](const State& s) {
    return abs(s.at.at(policy_example::observation, 0)) < 2.4 &&
           abs(s.at.at(policy_example::observation, 2)) < 0.21;
  };
  const auto body = [&](const State& s) {
    const Tensor logits = policy(s.at), unit = gather(draws.units, s.i, 0);
    const Tensor chosen = argmax(stop_gradient(logits) - log(-log(unit)), action);
    const Tensor log_prob = gather(log_softmax(logits, action), chosen, action);
    return std::pair{log_prob, State{s.i + 1, policy_example::push(s.at, chosen)}};
  };
  const auto [log_prob, last, time] = scan(Scan{.spatial_dim = Dim("time"),
                                                .cond_dims = {batch},
                                                .initial = State{scalar(0), draws.start},
                                                .cond = stands,
                                                .body = body,
                                                .max_seq_len = 200});
  const Tensor returns =
      linear_scan(scalar(0.98), expand(scalar(1.0), log_prob.dims()), time, {.reverse = true});
  const Tensor advantage = (returns - mean(returns)) / sqrt(variance(returns));
  return {-mean(log_prob * stop_gradient(advantage)), mean(cast(time.lengths(), f32))};
}

template <class Loss>
auto step_of(const Loss& loss) {
  return [=](Policy policy, Adam<Policy> optimiser, const auto& data) {
    const auto [value, gradient] = value_and_grad(loss)(policy, data);
    optimiser.update(policy, gradient);
    return std::tuple{value.first, value.second, policy};
  };
}

/// The draws of the example are inputs of the model.
void add_policy(std::vector<SavedCase>& cases) {
  manual_seed(111);
  const Dim batch("batch", 4);
  const Policy policy;
  const Adam<Policy> optimiser(policy, {.learning_rate = 0.01, .epsilon = 0.01});
  cases.push_back(saved_case(
      "policy_gradient", [](const Policy& m, const Tensor& at) { return m(at); },
      std::tuple{policy, random_uniform({batch, policy_example::observation}, -0.05, 0.05)},
      {.arguments = {"", "at"}, .parameters = {0}}));
  const Draws draws{random_uniform({batch, policy_example::observation}, -0.05, 0.05),
                    random_uniform({Dim("step", 200), batch, policy_example::action}, 1e-6, 1)};
  const std::string name = "a step of policy_gradient";
  const SaveOnnxOptions options{.arguments = {"policy", "optimiser"}, .draws = OnnxDraws::inputs};
  try {
    const std::string bytes =
        onnx_bytes(step_of(policy_example::loss_of), std::tuple{policy, optimiser, batch}, options);
    const auto result = step_of(loss_with)(policy, optimiser, draws);
    const TreeLeaves arguments = flatten(std::tuple{policy, optimiser, draws});
    cases.push_back(saved_case_detail::make_case(name, bytes, arguments,
                                                 std::vector<std::size_t>(arguments.size()),
                                                 flatten(result), options));
    cases.back().tolerance = 1e-4;
  } catch (const std::exception& error) {
    cases.push_back(saved_case_detail::failed_case(name, error.what()));
  }
}

}  // namespace

std::vector<SavedCase> policy_cases() {
  std::vector<SavedCase> cases;
  add_policy(cases);
  const Dim times("times", 8);
  cases.push_back(saved_case(
      "adaptive_ode", [=](const Tensor& rates) { return ode_example::observe(rates, times); },
      tensor({1.5, 1., 3., 1.}, {ode_example::rate})));
  const Dim few("times", 2);
  const auto step = [=](Tensor rates, Adam<Tensor> optimiser, const Tensor& data) {
    const auto [value, gradient] = value_and_grad([&](const Tensor& rates) {
      return mean_squared_error(ode_example::observe(rates, few), data);
    })(rates);
    optimiser.update(rates, gradient);
    return std::tuple{rates, value};
  };
  const Tensor rates = tensor({1., 0.8, 2.5, 0.8}, {ode_example::rate});
  cases.push_back(saved_case("a step of adaptive_ode", step,
                             std::tuple{rates, Adam<Tensor>(rates, {.learning_rate = 0.02}),
                                        ones({few, ode_example::species})},
                             {.arguments = {"rates", "optimiser", "data"}}));
  cases.back().tolerance = 1e-4;
  return cases;
}

}  // namespace reel
