// examples/training/trainer.h — Trainer: a model, its optimiser, and the function that trains them.
#pragma once

#include <reel/reel.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// The gradient of a loss on one process.
struct PlainGradient {
  template <class Loss>
  auto operator()(const Loss& loss) const {
    return reel::value_and_grad(loss);
  }
};

/// Trains a model by gradient steps. loss: (Model, State, x, target) -> std::pair{scalar, State};
/// the state is passed from step to step. Gradient: loss -> a function with its arguments, which
/// returns std::pair{result of loss, gradient with respect to the model}.
template <class Model, class State, class Loss, class Gradient = PlainGradient>
class Trainer {
 public:
  /// steps: of the whole training; the learning rate falls until then.
  Trainer(Model model, State state, Loss loss, int steps, Gradient gradient = {})
      : stored_{{model, reel::Adam<Model>(model, {.clip_norm = 1})},
                std::move(state),
                reel::random_state()},
        step_{std::move(loss), schedule(steps), std::move(gradient)},
        traced_step_(reel::jit(step_, {.name = "training step"})) {}

  /// Runs one training step and returns its loss.
  double step(const reel::Tensor& x, const reel::Tensor& target, bool is_traced) {
    auto [learnt, state, loss] =
        is_traced ? traced_step_(std::move(stored_.learnt), std::move(stored_.state), x, target)
                  : step_(std::move(stored_.learnt), std::move(stored_.state), x, target);
    stored_.learnt = std::move(learnt);
    stored_.state = std::move(state);
    return loss.template item<float>();
  }

  const Model& model() const { return stored_.learnt.model; }
  const State& state() const { return stored_.state; }
  std::int64_t steps_done() const {
    return stored_.learnt.optimiser.step().template item<std::int64_t>();
  }

  void write_events(reel::EventWriter& events) {
    const reel::TreeLeaves leaves = reel::flatten(model());
    const std::vector<std::string> paths = reel::leaf_paths(model());
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].kind == reel::TreeLeaf::Kind::tensor && leaves[i].tensor.is_defined())
        events.histogram(paths[i], steps_done(), leaves[i].tensor);
    if (traced_step_.trace_count() && !has_written_graph_) events.graph(traced_step_.graph());
    has_written_graph_ = traced_step_.trace_count() > 0;
  }

  /// Saves or loads everything that the next step depends on, including random numbers, except the
  /// data.
  void save(const std::string& path, const reel::Metadata& metadata) {
    stored_.random_state = reel::random_state();
    reel::save_safetensors(path, stored_, metadata);
  }
  void load(const reel::SafetensorsFile& file) {
    reel::load_safetensors(file, stored_);
    reel::set_random_state(stored_.random_state);
  }

 private:
  // Members are named here instead of being found by reflection, which takes compilers long for
  // members without default values.
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

  /// A whole step: loss and gradient, clipping, the learning rate, Adam. Traced, it is one graph
  /// with two loops.
  struct Step {
    Loss loss;
    reel::Schedule schedule;
    Gradient gradient_of;
    auto operator()(Learnt learnt, const State& state, const reel::Tensor& x,
                    const reel::Tensor& target) const {
      auto [loss_and_state, gradient] = gradient_of(loss)(learnt.model, state, x, target);
      learnt.optimiser.set_learning_rate(schedule(learnt.optimiser.step()));
      learnt.optimiser.update(learnt.model, gradient);
      return std::tuple{learnt, loss_and_state.second, loss_and_state.first};
    }
  };

  /// Returns a rate that falls along half a cosine to a twentieth.
  static reel::Schedule schedule(int steps) {
    constexpr double kLearningRate = 0.004;
    return reel::Schedule::cosine(kLearningRate, kLearningRate / 20, std::max(steps, 1));
  }

  Stored stored_;
  Step step_;
  reel::Jitted<Step> traced_step_;
  bool has_written_graph_ = false;
};
