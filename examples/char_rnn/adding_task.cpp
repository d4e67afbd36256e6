#include "adding_task.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "network.h"
#include "trainer.h"

using namespace reel;

namespace {

template <class Cell>
struct AddingModel {
  Network<Cell> network;
  Tensor readout, bias;  // {hidden}, {}

  static AddingModel random(const Dim& in, const Options& options) {
    auto network = make_network<Cell>(in, options.hidden, options.layers);
    const Dim hidden = network.out_dim();
    return {std::move(network), glorot_uniform({hidden}, hidden.size(), 1), zeros({})};
  }

  /// x: {batch, time, in} -> {batch}
  Tensor operator()(const Tensor& x, const Dim& time) const {
    const auto [outputs, state] = recur(network, x, time);
    return matmul(gather(outputs, scalar(-1), time), readout, network.out_dim()) + bias;
  }
};

template <class Cell>
struct AddingLoss {
  Dim time;
  std::pair<Tensor, None> operator()(const AddingModel<Cell>& model, None, const Tensor& x,
                                     const Tensor& target) const {
    return {mean(square(model(x, time) - target)), None{}};
  }
};

template <class Cell>
class AddingTask : public Task {
 public:
  explicit AddingTask(const Options& options)
      : settings_(settings_of(options)),
        batch_("batch", options.batch),
        time_("time", options.length),
        trainer_(AddingModel<Cell>::random(in_, options), None{}, AddingLoss<Cell>{time_},
                 options.steps) {}

  double step(bool is_traced) override {
    const auto [x, target] = draw();
    return trainer_.step(x, target, is_traced);
  }
  std::int64_t steps_done() const override { return trainer_.steps_done(); }
  void save(const std::string& path, const Metadata& more) override {
    Metadata metadata = settings_;
    metadata.insert(more.begin(), more.end());
    trainer_.save(path, metadata);
  }
  void load(const std::string& path) override { trainer_.load(path); }
  std::string show() const override {
    constexpr std::size_t kShown = 5;
    const auto [x, target] = draw();
    const std::vector<float> sums = target.template to_vector<float>();
    const std::vector<float> answers = trainer_.model()(x, time_).template to_vector<float>();
    std::ostringstream out;
    out.precision(2);
    out << std::fixed << "what the model answers:\n";
    for (std::size_t i = 0; i < std::min(kShown, sums.size()); ++i)
      out << answers[i] << " where " << sums[i] << " is right\n";
    return out.str();
  }
  std::string unit() const override { return "mean squared error"; }
  std::string item() const override { return "numbers"; }
  double items_per_step() const override {
    return static_cast<double>(batch_.size() * time_.size());
  }

 private:
  /// Sequences of (number in [0, 1), mark), one mark in each half; and the sum of the two marked
  /// numbers. From the library's random numbers, which the checkpoint has the state of.
  std::pair<Tensor, Tensor> draw() const {
    const auto length = static_cast<double>(time_.size()), half = std::floor(length / 2);
    const Tensor numbers = random_uniform({batch_, time_});
    const Tensor first = cast(random_uniform({batch_}, 0, half), i32);
    const Tensor second = cast(random_uniform({batch_}, half, length), i32);
    const Tensor marks = one_hot(first, time_) + one_hot(second, time_);
    return {transpose(stack({numbers, marks}, in_), {batch_, time_, in_}),
            sum(numbers * marks, time_)};
  }

  Metadata settings_;
  Dim batch_, time_, in_{"in", 2};
  Trainer<AddingModel<Cell>, None, AddingLoss<Cell>> trainer_;
};

}  // namespace

std::unique_ptr<Task> make_adding_task(const Options& options) {
  std::unique_ptr<Task> task = make_task<AddingTask>(options);
  if (options.resume) task->load(options.checkpoint);
  return task;
}
