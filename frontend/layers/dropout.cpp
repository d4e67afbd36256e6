#include "reel/frontend/layers/dropout.h"

#include "reel/core/functions/random.h"

namespace reel {
namespace {

struct SetTraining : detail::TreeWriter {
  bool training;
  explicit SetTraining(bool to) : TreeWriter(""), training(to) {}
  void flag(bool& value) override {
    if (path().substr(path().rfind('.') + 1) == "training") value = training;
  }
};

}  // namespace

void detail::set_training(const TreeSlot& model, bool training) {
  SetTraining set(training);
  model.write(set);
}

Tensor Dropout::operator()(const Tensor& x) const { return training ? dropout(x, rate) : x; }

}  // namespace reel
