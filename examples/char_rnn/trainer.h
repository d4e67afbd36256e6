// trainer.h — Trainer: a model, its optimiser, and the function that makes a step of both.
#pragma once

#include <reel/reel.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// loss: (Model, State, x, target) -> std::pair{scalar, State}; the state goes on from step to
/// step.
template <class Model, class State, class Loss>
class Trainer {
 public:
  /// steps: of the whole training; the learning rate falls until then. batch: a dim of x, target
  /// and all of the state; losses are means over it. threads: so many equal parts of it are
  /// computed at once.
  Trainer(Model model, State state, Loss loss, int steps, const reel::Dim& batch, int threads)
      : stored_{{model, reel::Adam<Model>(model)}, std::move(state), reel::random_state()},
        batch_(batch),
        part_(batch.name(), batch.size() / threads),
        step_{loss, {schedule(steps)}},
        traced_step_(reel::jit(step_, {.name = "training step"})),
        gradient_{loss},
        learn_from_parts_{{schedule(steps)}},
        traced_learn_from_parts_(reel::jit(learn_from_parts_, {.name = "learning from parts"})) {
    // A jitted function is for one thread at a time.
    if (threads > 1)
      for (int i = 0; i < threads; ++i)
        traced_gradients_.push_back(reel::jit(gradient_, {.name = "gradient of a part"}));
  }

  double step(const reel::Tensor& x, const reel::Tensor& target, bool is_traced) {
    if (!traced_gradients_.empty()) return step_in_parts(x, target, is_traced);
    auto [learnt, state, loss] =
        is_traced ? traced_step_(std::move(stored_.learnt), std::move(stored_.state), x, target)
                  : step_(std::move(stored_.learnt), std::move(stored_.state), x, target);
    stored_.learnt = std::move(learnt);
    stored_.state = std::move(state);
    return loss.template item<float>();
  }

  const Model& model() const { return stored_.learnt.model; }
  std::int64_t steps_done() const {
    return stored_.learnt.optimiser.step().template item<std::int64_t>();
  }

  /// All that the next step depends on, the data aside: random numbers too.
  void save(const std::string& path, const reel::Metadata& metadata) {
    stored_.random_state = reel::random_state();
    reel::save_safetensors(path, stored_, metadata);
  }
  void load(const std::string& path) {
    reel::load_safetensors(path, stored_);
    reel::set_random_state(stored_.random_state);
  }

 private:
  // What these trees are made of is said here rather than found out, which takes compilers long
  // where a member has no default value.
  struct Learnt {
    Model model;
    reel::Adam<Model> optimiser;
    auto members() { return std::tie(model, optimiser); }
    static constexpr std::array<std::string_view, 2> member_names() {
      return {"model", "optimiser"};
    }
  };
  struct Stored {
    Learnt learnt;
    State state;
    reel::Tensor random_state;
    auto members() { return std::tie(learnt.model, learnt.optimiser, state, random_state); }
    static constexpr std::array<std::string_view, 4> member_names() {
      return {"model", "optimiser", "state", "random_state"};
    }
  };

  /// Clipping, the learning rate, Adam.
  struct Learn {
    reel::Schedule schedule;
    void operator()(Learnt& learnt, const Model& gradient) const {
      auto [clipped, norm] = reel::clip_by_global_norm(gradient, 1.0);
      learnt.optimiser.set_learning_rate(schedule(learnt.optimiser.step()));
      learnt.optimiser.update(learnt.model, clipped);
    }
  };

  /// A whole step: loss and gradient, and what is learnt from it. Traced, it is one graph with two
  /// loops in it.
  struct Step {
    Loss loss;
    Learn learn;
    auto operator()(Learnt learnt, const State& state, const reel::Tensor& x,
                    const reel::Tensor& target) const {
      auto [loss_and_state, gradient] = reel::value_and_grad(loss)(learnt.model, state, x, target);
      learn(learnt, gradient);
      return std::tuple{learnt, loss_and_state.second, loss_and_state.first};
    }
  };

  /// What a step in parts computes of each of them.
  struct Part {
    reel::Tensor loss;
    State state;
    Model gradient;
    auto members() { return std::tie(loss, state, gradient); }
  };
  struct Gradient {
    Loss loss;
    Part operator()(const Model& model, const State& state, const reel::Tensor& x,
                    const reel::Tensor& target) const {
      auto [loss_and_state, gradient] = reel::value_and_grad(loss)(model, state, x, target);
      return {loss_and_state.first, loss_and_state.second, gradient};
    }
  };
  /// The rest of that step, where they come together in their order.
  struct LearnFromParts {
    Learn learn;
    auto operator()(Learnt learnt, const std::vector<reel::Tensor>& losses,
                    const std::vector<Model>& gradients) const {
      const auto count = static_cast<double>(losses.size());
      reel::Tensor loss = losses[0];
      Model gradient = gradients[0];
      for (std::size_t i = 1; i < losses.size(); ++i) {
        loss = loss + losses[i];
        gradient = reel::tree_map([](const auto& a, const auto& b) { return a + b; }, gradient,
                                  gradients[i]);
      }
      learn(learnt, reel::tree_map([&](const auto& sum) { return sum / count; }, gradient));
      return std::tuple{learnt, loss / count};
    }
  };

  double step_in_parts(const reel::Tensor& x, const reel::Tensor& target, bool is_traced) {
    std::vector<std::optional<Part>> parts(traced_gradients_.size());
    reel::parallel_for(static_cast<int>(parts.size()), [&](int i) {
      const auto cut = [&](const reel::Tensor& whole) {
        return reel::slice(whole, batch_, i * part_.size(), (i + 1) * part_.size(), part_);
      };
      const auto at = static_cast<std::size_t>(i);
      const Model& model = stored_.learnt.model;
      const State state = reel::tree_map(cut, stored_.state);
      parts[at] = is_traced ? traced_gradients_[at](model, state, cut(x), cut(target))
                            : gradient_(model, state, cut(x), cut(target));
    });
    std::vector<reel::Tensor> losses;
    std::vector<Model> gradients;
    std::vector<State> states;
    for (std::optional<Part>& part : parts) {
      losses.push_back(std::move(part->loss));
      gradients.push_back(std::move(part->gradient));
      states.push_back(std::move(part->state));
    }
    auto [learnt, loss] =
        is_traced ? traced_learn_from_parts_(std::move(stored_.learnt), losses, gradients)
                  : learn_from_parts_(std::move(stored_.learnt), losses, gradients);
    stored_.learnt = std::move(learnt);
    stored_.state = join(states);
    return loss.template item<float>();
  }

  State join(const std::vector<State>& states) const {
    std::vector<reel::Tensors> tensors;
    for (const State& state : states) tensors.push_back(reel::tensors_of(reel::flatten(state)));
    std::size_t leaf = 0;
    const auto join_leaf = [&](const reel::Tensor&) {
      reel::Tensors pieces;
      for (const reel::Tensors& of_part : tensors) pieces.push_back(of_part[leaf]);
      ++leaf;
      return reel::concat(pieces, part_, batch_);
    };
    return reel::tree_map(join_leaf, states[0]);
  }

  /// High at first, then down along half a cosine, to a twentieth.
  static reel::Schedule schedule(int steps) {
    constexpr double kLearningRate = 0.004;
    return reel::Schedule::cosine(kLearningRate, kLearningRate / 20, std::max(steps, 1));
  }

  Stored stored_;
  reel::Dim batch_, part_;
  Step step_;
  reel::Jitted<Step> traced_step_;
  Gradient gradient_;
  std::vector<reel::Jitted<Gradient>> traced_gradients_;
  LearnFromParts learn_from_parts_;
  reel::Jitted<LearnFromParts> traced_learn_from_parts_;
};
