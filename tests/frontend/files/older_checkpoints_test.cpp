// Checkpoints of version 0.1.0, byte by byte: they load, and training continues from them.
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/ops.h"
#include "reel/frontend/files/training_checkpoint.h"
#include "reel/frontend/optimisers/adam.h"
#include "reel/frontend/optimisers/sgd.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

struct Model {
  Tensor weight, bias;
};
Model start() { return {tensor({0.5, -2.0}), tensor({1.0})}; }
Model gradient() { return {tensor({1.0, -1.0}), tensor({0.5})}; }
constexpr std::array kStart{0.5, -2.0, 1.0}, kGradient{1.0, -1.0, 0.5};

template <class Optimiser>
struct Training {
  Model model;
  Optimiser optimiser;
};

/// The files after two steps at a rate of 0.1: the header's length in 8 bytes, little endian, the
/// header, and the data, widest elements first. Version 0.1.0 saved neither groups nor names of
/// frozen parameters.
constexpr std::string_view kAdamWHeader =
    R"({"__metadata__":{"data":"page 3","random_state":"7 5"},)"
    R"("model.bias":{"data_offsets":[24,28],"dtype":"F32","shape":[1]},)"
    R"("model.weight":{"data_offsets":[16,24],"dtype":"F32","shape":[2]},)"
    R"("optimiser.first_moment.bias":{"data_offsets":[36,40],"dtype":"F32","shape":[1]},)"
    R"("optimiser.first_moment.weight":{"data_offsets":[28,36],"dtype":"F32","shape":[2]},)"
    R"("optimiser.learning_rate":{"data_offsets":[8,16],"dtype":"F64","shape":[]},)"
    R"("optimiser.second_moment.bias":{"data_offsets":[48,52],"dtype":"F32","shape":[1]},)"
    R"("optimiser.second_moment.weight":{"data_offsets":[40,48],"dtype":"F32","shape":[2]},)"
    R"("optimiser.step":{"data_offsets":[0,8],"dtype":"I64","shape":[]}} )";
constexpr std::string_view kAdamWData =
    "02000000000000009a9999999999b93fb323993eace6e5bf59504c3f5c8f423e5c8f42be5c8fc23da801033ba80103"
    "3b"
    "a801033a";
constexpr std::string_view kSgdHeader =
    R"({"__metadata__":{"random_state":"7 5"},)"
    R"("model.bias":{"data_offsets":[24,28],"dtype":"F32","shape":[1]},)"
    R"("model.weight":{"data_offsets":[16,24],"dtype":"F32","shape":[2]},)"
    R"("optimiser.learning_rate":{"data_offsets":[8,16],"dtype":"F64","shape":[]},)"
    R"("optimiser.step":{"data_offsets":[0,8],"dtype":"I64","shape":[]},)"
    R"("optimiser.velocity.bias":{"data_offsets":[36,40],"dtype":"F32","shape":[1]},)"
    R"("optimiser.velocity.weight":{"data_offsets":[28,36],"dtype":"F32","shape":[2]}}       )";
constexpr std::string_view kSgdData =
    "02000000000000009a9999999999b93f3d0a573e48e1dabf48e15a3f3333f33f3333f3bf3333733f";

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

std::string file_of(std::string_view header, std::string_view data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xff);
  bytes[1] = static_cast<char>(header.size() >> 8);
  bytes += header;
  for (std::size_t i = 0; i < data.size(); i += 2)
    bytes += static_cast<char>(digit(data[i]) << 4 | digit(data[i + 1]));
  return bytes;
}

/// Returns the parameters after steps of AdamW with its defaults and a rate of 0.1, as Loshchilov &
/// Hutter (2019), algorithm 2, has them.
std::vector<double> after_adamw(int steps) {
  std::vector<double> result;
  for (std::size_t i = 0; i < kStart.size(); ++i) {
    double p = kStart[i], m = 0, v = 0;
    for (int t = 1; t <= steps; ++t) {
      m = 0.9 * m + 0.1 * kGradient[i];
      v = 0.999 * v + 0.001 * kGradient[i] * kGradient[i];
      p *= 1 - 0.1 * 0.01;
      p -= 0.1 * m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    }
    result.push_back(p);
  }
  return result;
}

std::vector<double> after_momentum(int steps) {
  std::vector<double> result;
  for (std::size_t i = 0; i < kStart.size(); ++i) {
    double p = kStart[i], velocity = 0;
    for (int t = 0; t < steps; ++t) p -= 0.1 * (velocity = 0.9 * velocity + kGradient[i]);
    result.push_back(p);
  }
  return result;
}

void expect_model(const Model& model, const std::vector<double>& values) {
  expect_values(model.weight, {values[0], values[1]}, 1e-6);
  expect_values(model.bias, {values[2]}, 1e-6);
}

class OlderCheckpointsTest : public InOwnFolder {
 protected:
  OlderCheckpointsTest() : InOwnFolder("training.safetensors") {}
};

TEST_F(OlderCheckpointsTest, AdamWContinuesFromAFileOfVersion010) {
  write(path, file_of(kAdamWHeader, kAdamWData));
  Training<AdamW<Model>> training{start(), AdamW(start(), {.learning_rate = 1})};
  EXPECT_EQ(load_checkpoint(path, training), (Metadata{{"data", "page 3"}}));
  expect_values(random_state(), {7, 5});
  EXPECT_EQ(training.optimiser.step().item<std::int64_t>(), 2);
  EXPECT_EQ(training.optimiser.learning_rate().item<double>(), 0.1);
  expect_model(training.model, after_adamw(2));
  training.optimiser.update(training.model, gradient());
  expect_model(training.model, after_adamw(3));
}

TEST_F(OlderCheckpointsTest, ItsParametersMayBeFrozen) {
  write(path, file_of(kAdamWHeader, kAdamWData));
  const auto is_weight = [](const std::string& name, const Tensor&) { return name == "weight"; };
  Training<AdamW<Model>> training{
      start(), AdamW(start(), {.groups = {{.contains = is_weight, .frozen = true}}})};
  load_checkpoint(path, training);
  const Tensor loaded = training.model.weight;
  training.optimiser.update(training.model, gradient());
  expect_same_bits(training.model.weight, loaded);
  expect_values(training.model.bias, {after_adamw(3)[2]}, 1e-6);
}

TEST_F(OlderCheckpointsTest, MomentumContinuesFromAFileOfVersion010) {
  write(path, file_of(kSgdHeader, kSgdData));
  Training<Sgd<Model>> training{start(), Sgd(start(), {.momentum = 0.9})};
  EXPECT_EQ(load_checkpoint(path, training), Metadata());
  expect_model(training.model, after_momentum(2));
  training.optimiser.update(training.model, gradient());
  expect_model(training.model, after_momentum(3));
}

TEST_F(OlderCheckpointsTest, TheFileIsWrittenByteForByteAsThen) {
  const std::string then = file_of(kSgdHeader, kSgdData);
  write(path, then);
  Training<Sgd<Model>> training{start(), Sgd(start(), {.momentum = 0.9})};
  load_checkpoint(path, training);
  save_checkpoint(path, training);
  EXPECT_EQ(bytes_of(path), then);
}

}  // namespace
}  // namespace reel
