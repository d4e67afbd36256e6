#include "adding_task.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "../training/network.h"
#include "../training/trainer.h"

using namespace reel;

namespace {

template <class Cell>
struct AddingModel {
  Network<Cell> network;
  Tensor readout, bias;  // {hidden}, {}

  static AddingModel random(const Dim& in, const TrainingOptions& options) {
    auto network = make_network<Cell>(in, options.hidden, options.layers);
    const Dim hidden = network.out_dim();
    return {std::move(network), glorot_uniform({hidden}, hidden.size(), 1), zeros({})};
  }

  /// x: {batch, time, in}. Returns {batch}.
  Tensor operator()(const Tensor& x) const {
    const Dim time = x.dim("time");
    const Tensor outputs = recur(network, x, time).outputs;
    // The output of each sequence at its own last step.
    return matmul(gather(outputs, scalar(-1), time), readout, network.out_dim()) + bias;
  }
};

template <class Cell>
struct AddingLoss {
  std::pair<Tensor, None> operator()(const AddingModel<Cell>& model, None, const Tensor& x,
                                     const Tensor& target) const {
    return {mean_squared_error(model(x), target), None{}};
  }
};

template <class Cell>
class AddingTask : public Task {
 public:
  AddingTask(const TrainingOptions& options, const AddingProblem& problem, const Metadata& settings)
      : settings_(settings),
        problem_(problem),
        batch_("batch", options.batch),
        trainer_(AddingModel<Cell>::random(in_, options), None{}, AddingLoss<Cell>{},
                 options.steps) {}

  Measured step(bool is_traced) override {
    const auto [x, target] = draw();
    return {trainer_.step(x, target, is_traced)};
  }
  std::int64_t steps_done() const override { return trainer_.steps_done(); }
  void save(const std::string& path, const Metadata& more) override {
    Metadata metadata = settings_;
    metadata.insert(more.begin(), more.end());
    trainer_.save(path, metadata);
  }
  void load(const SafetensorsFile& file) override { trainer_.load(file); }
  void write_events(EventWriter& events) override { trainer_.write_events(events); }
  std::string show() const override {
    constexpr std::size_t kShown = 5;
    const auto [x, target] = draw();
    const std::vector<float> sums = target.template to_vector<float>();
    const std::vector<float> answers = trainer_.model()(x).template to_vector<float>();
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
    const double length =
        problem_.is_ragged ? (shortest() + problem_.length) / 2.0 : problem_.length;
    return length * static_cast<double>(batch_.size());
  }

 private:
  /// Returns sequences of (number in [0, 1), mark), one mark in each half, and the sums of the two
  /// marked numbers. They come from the library's random numbers; the checkpoint stores their
  /// state.
  std::pair<Tensor, Tensor> draw() const {
    const Tensor lengths = problem_.is_ragged ? shortest() + draw_below(full({batch_}, span(), i32))
                                              : full({batch_}, problem_.length, i32);
    const Dim time = problem_.is_ragged ? Dim("time", lengths) : Dim("time", problem_.length);
    const Tensor numbers = random_uniform({batch_, time}), half = floor_divide(lengths, 2);
    const Tensor first = draw_below(half), second = half + draw_below(lengths - half);
    const Tensor marks = one_hot(first, time) + one_hot(second, time);
    return {transpose(stack({numbers, marks}, in_), {batch_, time, in_}),
            sum(numbers * marks, time)};
  }
  /// Returns integers from 0 on, all equally likely. In f64, the product with a number below 1 is
  /// never rounded up to the limit.
  static Tensor draw_below(const Tensor& limits) {
    return cast(random_uniform(limits.dims(), 0, 1, f64) * cast(limits, f64), i32);
  }
  int shortest() const { return std::max(2, problem_.length / 10); }
  int span() const { return problem_.length - shortest() + 1; }

  Metadata settings_;
  AddingProblem problem_;
  Dim batch_, in_{"in", 2};
  Trainer<AddingModel<Cell>, None, AddingLoss<Cell>> trainer_;
};

}  // namespace

std::unique_ptr<Task> make_adding_task(const TrainingOptions& options, const AddingProblem& problem,
                                       const Metadata& settings,
                                       const std::optional<SafetensorsFile>& resumed) {
  std::unique_ptr<Task> task = make_task<AddingTask>(options, options, problem, settings);
  if (resumed) task->load(*resumed);
  return task;
}
