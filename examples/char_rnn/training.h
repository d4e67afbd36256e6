// training.h — training a model step by step, eagerly and traced, until it is done or interrupted.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <string>
#include <utility>

enum class Mode { eager, traced, both };

struct Options {
  std::string data;
  int steps = 7500, length = 64, batch = 32, hidden = 128;
  Mode mode = Mode::both;
  std::uint64_t seed = 1;
  std::string checkpoint = "char_rnn.safetensors", losses = "char_rnn.csv";
  bool resume = false;
};

/// Something that can be trained, as train() sees it.
class Task {
 public:
  virtual ~Task() = default;
  /// One step of training -> its loss in unit().
  virtual double step(bool is_traced, double learning_rate) = 0;
  /// Model and optimiser, to and from a file. Throw IoError, and UserError for a file of something
  /// else.
  virtual void save(const std::string& path) const = 0;
  virtual void load(const std::string& path) = 0;
  /// What has been learnt, as text.
  virtual std::string show() const = 0;

  virtual std::string unit() const = 0;  ///< "bits per character"
  virtual std::string item() const = 0;  ///< "characters", of which a step takes
  virtual double items_per_step() const = 0;
};

/// Takes options.steps steps, shows how it goes, writes the losses and at the end the checkpoint.
/// Ctrl-C ends it early; a second one ends the program. -> whether it was interrupted. Throws
/// UserError for a file that cannot be written and a loss that is no number, IoError for the
/// checkpoint.
bool train(Task& task, const Options& options);

/// A model, its optimiser, and the function that makes a step of both, eager and traced.
///
/// loss: (Model, State, x, target) -> std::pair{scalar, State}; the state goes on from step to
/// step.
template <class Model, class State, class Loss>
class Trainer {
 public:
  Trainer(Model model, State state, Loss loss)
      : progress_{model, reel::Adam<Model>(model)},
        state_(std::move(state)),
        step_{std::move(loss)},
        traced_step_(reel::jit(step_, {.name = "training step"})) {}

  double step(const reel::Tensor& x, const reel::Tensor& target, bool is_traced,
              double learning_rate) {
    progress_.optimiser.set_learning_rate(learning_rate);
    auto [progress, state, loss] =
        is_traced ? traced_step_(std::move(progress_), std::move(state_), x, target)
                  : step_(std::move(progress_), std::move(state_), x, target);
    progress_ = std::move(progress);
    state_ = std::move(state);
    return loss.template item<float>();
  }

  const Model& model() const { return progress_.model; }
  void save(const std::string& path, const reel::Metadata& metadata) const {
    reel::save_safetensors(path, progress_, metadata);
  }
  void load(const std::string& path) { reel::load_safetensors(path, progress_); }

 private:
  struct Progress {
    Model model;
    reel::Adam<Model> optimiser;
  };

  /// A whole step: loss and gradient, clipping, Adam. Traced, it is one graph with two loops in it.
  struct Step {
    Loss loss;
    auto operator()(Progress progress, const State& state, const reel::Tensor& x,
                    const reel::Tensor& target) const {
      auto [loss_and_state, gradient] =
          reel::value_and_grad(loss)(progress.model, state, x, target);
      auto [clipped, norm] = reel::clip_by_global_norm(gradient, 1.0);
      progress.optimiser.update(progress.model, clipped);
      return std::tuple{progress, loss_and_state.second, loss_and_state.first};
    }
  };

  Progress progress_;
  State state_;
  Step step_;
  reel::Jitted<Step> traced_step_;
};
