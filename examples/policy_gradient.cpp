// REINFORCE: a policy learns to balance a pole on a cart. An episode is a scan that ends when the
// pole falls, and the gradient goes through the policy in all of its steps.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

const Dim observation("observation", 4), hidden("hidden", 32), action("action", 2);

struct Policy {
  Linear first = Linear::init(observation, hidden), last = Linear::init(hidden, action);
  Tensor operator()(const Tensor& at) const { return last(tanh(first(at))); }
};

/// Returns the cart and the pole 0.02 s after a push of 10 N, to the right if `right` is 1.
/// at: {batch, observation}, that is place, speed, angle and its speed. Source: Barto, Sutton &
/// Anderson (1983).
Tensor push(const Tensor& at, const Tensor& right) {
  const Tensors now = unstack(at, observation);
  const Tensor &x = now[0], &v = now[1], &angle = now[2], &w = now[3];
  const Tensor force = cast(right, f32) * 20 - 10;
  const Tensor t = (force + 0.05 * square(w) * sin(angle)) / 1.1;
  const Tensor dw =
      (9.8 * sin(angle) - cos(angle) * t) / (0.5 * (4 / 3. - square(cos(angle)) / 11));
  const Tensor dv = t - 0.05 * dw * cos(angle) / 1.1;
  return stack({x + 0.02 * v, v + 0.02 * dv, angle + 0.02 * w, w + 0.02 * dw}, observation);
}

struct Episodes {
  Tensor log_prob;  // {batch, time}: of the actions
  Dim time;         // the steps until the pole fell, at most 200
};

Episodes play(const Policy& policy, const Dim& batch) {
  const auto stands = [&](const Tensor& at) {
    return abs(at.at(observation, 0)) < 2.4 && abs(at.at(observation, 2)) < 0.21;
  };
  const auto body = [&](const Tensor& at) {
    const Tensor logits = policy(at);
    const Tensor chosen = categorical(stop_gradient(logits), action);
    const Tensor log_prob = gather(log_softmax(logits, action), chosen, action);
    return std::pair{log_prob, push(at, chosen)};
  };
  const auto [log_prob, last, time] =
      scan(Scan{.spatial_dim = Dim("time"),
                .cond_dims = {batch},
                .initial = random_uniform({batch, observation}, -0.05, 0.05),
                .cond = stands,
                .body = body,
                .max_seq_len = 200});
  return {log_prob, time};
}

/// Returns a loss, with minus the gradient of the expected return, and the mean length.
/// Source: Williams (1992), with the mean return as baseline.
std::pair<Tensor, Tensor> loss_of(const Policy& policy, const Dim& batch) {
  const auto [log_prob, time] = play(policy, batch);
  // A reward of 1 for each step; those behind a step, with a discount.
  const Tensor returns =
      linear_scan(scalar(0.98), expand(scalar(1.0), log_prob.dims()), time, {.reverse = true});
  const Tensor advantage = (returns - mean(returns)) / sqrt(variance(returns));
  return {-mean(log_prob * stop_gradient(advantage)), mean(cast(time.lengths(), f32))};
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 150;
  manual_seed(1);
  const auto step = jit([](Policy policy, Adam<Policy> optimiser, const Dim& batch) {
    const auto [loss, gradient] = value_and_grad(loss_of)(policy, batch);
    optimiser.update(policy, gradient);
    return std::tuple{policy, optimiser, loss.second};
  });
  const Dim batch("batch", 32);
  Policy policy;
  Adam<Policy> optimiser(policy, {.learning_rate = 0.01});
  for (int i = 0; i <= steps; ++i) {
    Tensor length;
    std::tie(policy, optimiser, length) = step(std::move(policy), std::move(optimiser), batch);
    if (i % (steps / 3) == 0)
      std::cout << "update " << i << ": the pole stands " << length.item<float>() << " steps\n";
  }
}
