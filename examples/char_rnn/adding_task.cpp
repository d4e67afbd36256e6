#include "adding_task.h"

#include <random>
#include <sstream>
#include <vector>

#include "lstm.h"

using namespace reel;

namespace {

struct AddingModel {
  Lstm cell;
  Tensor readout, bias;
};

struct AddingDims {
  Dim batch, time, in{"in", 2}, hidden, gate;
};

Tensor predict(const AddingModel& model, const Tensor& x, const AddingDims& dims) {
  const auto result = scan(Scan{
      .spatial_dim = dims.time,
      .initial = LstmState{zeros({dims.batch, dims.hidden}), zeros({dims.batch, dims.hidden})},
      .xs = x,
      .body =
          [&](const Tensor& x_t, const LstmState& s) {
            return std::pair{None{}, model.cell.step(x_t, s, dims.in, dims.hidden, dims.gate)};
          },
  });
  return matmul(result.state.h, model.readout, dims.hidden) + model.bias;
}

struct AddingLoss {
  AddingDims dims;
  std::pair<Tensor, None> operator()(const AddingModel& model, None, const Tensor& x,
                                     const Tensor& target) const {
    return {mean(square(predict(model, x, dims) - target)), None{}};
  }
};

class AddingTask : public Task {
 public:
  explicit AddingTask(const Options& options)
      : dims_{Dim("batch", options.batch), Dim("time", options.length), Dim("in", 2),
              Dim("hidden", options.hidden), Dim("gate", 4 * options.hidden)},
        random_(options.seed),
        trainer_(random_model(dims_), None{}, AddingLoss{dims_}) {}

  double step(bool is_traced, double learning_rate) override {
    const auto [x, target] = next();
    return trainer_.step(x, target, is_traced, learning_rate);
  }
  void save(const std::string& path) const override { trainer_.save(path, {}); }
  void load(const std::string& path) override { trainer_.load(path); }
  std::string show() const override {
    constexpr std::size_t kShown = 5;
    const auto [x, target] = next();
    const std::vector<float> sums = target.to_vector<float>();
    const std::vector<float> answers = predict(trainer_.model(), x, dims_).to_vector<float>();
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
    return static_cast<double>(dims_.batch.size() * dims_.time.size());
  }

 private:
  static AddingModel random_model(const AddingDims& dims) {
    return {
        .cell = Lstm::random(dims.in, dims.hidden, dims.gate),
        .readout =
            random_normal({dims.hidden}) / std::sqrt(static_cast<double>(dims.hidden.size())),
        .bias = zeros({}),
    };
  }

  /// Sequences of (number in [0, 1), mark), one mark in each half; and the sum of the two marked
  /// numbers.
  std::pair<Tensor, Tensor> next() const {
    const auto length = static_cast<std::size_t>(dims_.time.size());
    std::uniform_real_distribution<float> number(0, 1);
    std::uniform_int_distribution<std::size_t> first(0, length / 2 - 1),
        second(length / 2, length - 1);
    std::vector<float> x, sums;
    for (std::int64_t entry = 0; entry < dims_.batch.size(); ++entry) {
      const std::size_t marks[] = {first(random_), second(random_)};
      float sum = 0;
      for (std::size_t t = 0; t < length; ++t) {
        const bool is_marked = t == marks[0] || t == marks[1];
        x.push_back(number(random_));
        x.push_back(is_marked);
        if (is_marked) sum += x[x.size() - 2];
      }
      sums.push_back(sum);
    }
    return {tensor(x, {dims_.batch, dims_.time, dims_.in}), tensor(sums, {dims_.batch})};
  }

  AddingDims dims_;
  mutable std::mt19937_64 random_;
  Trainer<AddingModel, None, AddingLoss> trainer_;
};

}  // namespace

std::unique_ptr<Task> make_adding_task(const Options& options) {
  auto task = std::make_unique<AddingTask>(options);
  if (options.resume) task->load(options.checkpoint);
  return task;
}
