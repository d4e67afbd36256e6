#include "reel/frontend/files/training_checkpoint.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class CheckpointTest : public InOwnFolder {
 protected:
  CheckpointTest() : InOwnFolder("checkpoint.safetensors") {}
};

/// An optimiser: gradient descent with momentum.
class Momentum {
 public:
  explicit Momentum(const Tensor& parameter) : velocity_(zeros_like(parameter)) {}
  Tensor update(const Tensor& parameter, const Tensor& gradient) {
    velocity_ = velocity_ * 0.9 - gradient * 0.1;
    return parameter + velocity_;
  }
  auto members() { return std::tie(velocity_); }
  static constexpr std::array<std::string_view, 1> member_names() { return {"velocity"}; }

 private:
  Tensor velocity_;
};

struct Training {
  Tensor weight;
  Momentum optimiser;
  Tensor step;

  static Training start() { return {zeros({3}), Momentum(zeros({3})), scalar(0, i64)}; }
  void go(int steps) {
    for (int i = 0; i < steps; ++i) {
      weight = optimiser.update(weight, weight - random_normal({3}));
      step = step + 1;
    }
  }
};

TEST_F(CheckpointTest, ARunGoesOnAsIfItHadNeverStopped) {
  manual_seed(7);
  Training run = Training::start();
  run.go(5);
  save_checkpoint(path, run, {{"data", "page 3"}});
  run.go(5);
  const Tensor after = random_state();

  manual_seed(1);
  Training resumed = Training::start();
  resumed.go(2);
  EXPECT_EQ(load_checkpoint(path, resumed), (Metadata{{"data", "page 3"}}));
  EXPECT_EQ(resumed.step.item<std::int64_t>(), 5);
  resumed.go(5);
  expect_same_bits(resumed.weight, run.weight);
  const Tensor next = random_normal({2});
  set_random_state(after);
  expect_same_bits(next, random_normal({2}));
}

TEST_F(CheckpointTest, PathsAreNamesAndPartsCanBeLoaded) {
  Training run = Training::start();
  run.go(1);
  save_checkpoint(path, run);
  EXPECT_EQ(SafetensorsFile(path).names(),
            (std::vector<std::string>{"optimiser.velocity", "step", "weight"}));
  Tensor weight = zeros({3});
  load_safetensors(path, weight, {.prefix = "weight"});
  expect_same_bits(weight, run.weight);
}

TEST_F(CheckpointTest, AFileThatDoesNotFitChangesNothing) {
  manual_seed(3);
  Training run = Training::start();
  save_checkpoint(path, run);
  Tensor other = ones({2});
  manual_seed(4);
  EXPECT_THROW(load_checkpoint(path, other), IoError);
  expect_values(random_state(), {4, 0});

  save_safetensors(path, run);
  EXPECT_EQ(message_of<IoError>([&] { return load_checkpoint(path, run); }),
            "load_checkpoint: " + path +
                " was not written by save_checkpoint: its metadata have no \"random_state\"; use "
                "load_safetensors");
  for (const char* state : {"", "1", "1 ", "1 x", "1 -1", "1 2 3", "99999999999999999999 0"}) {
    save_safetensors(path, run, {{"random_state", state}});
    EXPECT_EQ(message_of<IoError>([&] { return load_checkpoint(path, run); }),
              "load_checkpoint: " + path + " is damaged: its \"random_state\" is \"" + state +
                  "\", not a seed and a count");
  }
  EXPECT_EQ(message_of<ArgumentError>([&] {
              save_checkpoint(path, run, {{"random_state", ""}});
              return 0;
            }),
            "save_checkpoint: metadata called \"random_state\" are the stream of random numbers; "
            "use another name");
}

// When loading opened the path twice, 2 to 37 % of the loads mixed the tensors of one save with the
// stream of another.
TEST_F(CheckpointTest, BesideAWriterALoadIsOfOneSave) {
  const auto save = [&](int number) {
    manual_seed(number);
    save_checkpoint(path, std::pair{full({64}, number), full({64}, number)},
                    {{"number", std::to_string(number)}});
  };
  save(1);
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 2;; ++number) save(number);
  }
  int mixed = 0;
  for (int load = 0; load < 300; ++load) {
    std::pair tree{zeros({64}), zeros({64})};
    const Metadata metadata = load_checkpoint(path, tree);
    const auto number = static_cast<std::int64_t>(tree.first.to_vector<float>()[0]);
    mixed += random_state().to_vector<std::int64_t>()[0] != number ||
             tree.second.to_vector<float>()[63] != static_cast<float>(number) ||
             metadata.at("number") != std::to_string(number);
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  EXPECT_EQ(mixed, 0);
}

TEST_F(CheckpointTest, AnOpenFileIsOfOneSave) {
  manual_seed(1);
  save_checkpoint(path, ones({2}), {{"save", "first"}});
  const SafetensorsFile file(path);
  manual_seed(2);
  save_checkpoint(path, zeros({2}), {{"save", "second"}});
  Tensor loaded = zeros({2});
  EXPECT_EQ(load_checkpoint(file, loaded), (Metadata{{"save", "first"}}));
  expect_values(loaded, {1, 1});
  expect_values(random_state(), {1, 0});
}

}  // namespace
}  // namespace reel
