// Mistakes as new users make them, with parameter groups, checkpoints and files of other programs.
// Each error names the function, its arguments, the rule and the repair, and is compared as a
// whole.
#include <filesystem>
#include <fstream>
#include <map>

#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Net {
  Linear a, b;
};
struct RenamedNet {
  Linear a, c;
};

Net a_net() {
  const Dim in("in", 3), hidden("hidden", 4), out("out", 2);
  return {Linear::init(in, hidden), Linear::init(hidden, out)};
}

/// Returns a function that is true for parameters of these names.
std::function<bool(const std::string&, const Tensor&)> below(const std::string& start) {
  return [=](const std::string& path, const Tensor&) { return path.starts_with(start); };
}

std::string in_folder(const std::string& name) {
  return ::testing::TempDir() + "planted_mistakes_" + name + ".safetensors";
}

TEST(PlantedFileMistakes, FrozenGroupOfNothing) {
  const auto mistake = []() -> Tensor {
    const Net net = a_net();
    const Adam<Net> adam(net, {.groups = {{.contains = below("encoder"), .frozen = true}}});
    return adam.learning_rate();
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Adam: group 0 contains no parameter that is not in a group before it; the parameters "
            "are a.weight, a.bias, b.weight, b.bias");
}

TEST(PlantedFileMistakes, FrozenGroupWithARate) {
  const auto mistake = []() -> Tensor {
    const Net net = a_net();
    const Adam<Net> adam(net, {.groups = {{.contains = below("a"), .rate = 0.1, .frozen = true}}});
    return adam.learning_rate();
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Adam: group 0 is frozen and has a rate of 0.1; leave the rate out");
}

TEST(PlantedFileMistakes, GroupOfNoFunction) {
  const auto mistake = []() -> Tensor {
    const Adam<Net> adam(a_net(), {.groups = {{.rate = 0.1}}});
    return adam.learning_rate();
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "Adam: a group needs the function `contains`");
}

TEST(PlantedFileMistakes, DecayOfAGroupOfAdam) {
  const auto mistake = []() -> Tensor {
    const Adam<Net> adam(a_net(), {.groups = {{.contains = below("a"), .weight_decay = 0.1}}});
    return adam.learning_rate();
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Adam: a group has a weight_decay, but Adam has none; use AdamW");
}

TEST(PlantedFileMistakes, ScheduleOfNegativeSteps) {
  const auto mistake = []() -> Tensor { return Schedule::cosine(1e-3, 0, -5)(scalar(3)); };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "Schedule::cosine: steps must be positive, got -5");
}

TEST(PlantedFileMistakes, CheckpointThatIsNotThere) {
  const auto mistake = []() -> Tensor {
    Net net = a_net();
    load_checkpoint(in_folder("none"), net);
    return net.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_checkpoint: cannot open " + in_folder("none") + ": No such file or directory");
}

TEST(PlantedFileMistakes, CheckpointOfOtherNames) {
  const auto mistake = []() -> Tensor {
    save_checkpoint(in_folder("names"), a_net());
    RenamedNet other{a_net().a, a_net().b};
    load_checkpoint(in_folder("names"), other);
    return other.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_checkpoint: " + in_folder("names") +
                " holds another model:\n  c.weight: not in the file, f32[hidden=4,out=2] "
                "expected\n  c.bias: not in the file, f32[out=2] expected\n  b.bias: f32[2] in the "
                "file, not expected\n  b.weight: f32[4,2] in the file, not expected");
}

TEST(PlantedFileMistakes, CheckpointOfTheModelAloneForAWholeTraining) {
  struct Training {
    Net model;
    Tensor step = scalar(0);
  };
  const auto mistake = []() -> Tensor {
    save_checkpoint(in_folder("alone"), a_net());
    Training now{a_net()};
    load_checkpoint(in_folder("alone"), now);
    return now.step;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_checkpoint: " + in_folder("alone") +
                " holds another model:\n  model.a.weight: not in the file, f32[in=3,hidden=4] "
                "expected\n  model.a.bias: not in the file, f32[hidden=4] expected\n  "
                "model.b.weight: not in the file, f32[hidden=4,out=2] expected\n  model.b.bias: "
                "not in the file, f32[out=2] expected\n  step: not in the file, i32[] expected\n  "
                "a.bias: f32[4] in the file, not expected\n  a.weight: f32[3,4] in the file, not "
                "expected\n  b.bias: f32[2] in the file, not expected\n  b.weight: f32[4,2] in "
                "the file, not expected\nThe file has what stands under \"model\" here: load it "
                "into that member alone.");
}

TEST(PlantedFileMistakes, CheckpointOfAnotherSize) {
  const auto mistake = []() -> Tensor {
    save_checkpoint(in_folder("sizes"), a_net());
    const Dim in("in", 3), wide("wide", 8), out("out", 2);
    Net wider{Linear::init(in, wide), Linear::init(wide, out)};
    load_checkpoint(in_folder("sizes"), wider);
    return wider.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_checkpoint: " + in_folder("sizes") +
                " holds another model:\n  a.weight: f32[3,4] in the file, f32[in=3,wide=8] "
                "expected\n  a.bias: f32[4] in the file, f32[wide=8] expected\n  b.weight: "
                "f32[4,2] in the file, f32[wide=8,out=2] expected");
}

TEST(PlantedFileMistakes, CheckpointOfTensorsAlone) {
  const auto mistake = []() -> Tensor {
    Net net = a_net();
    save_safetensors(in_folder("tensors"), net);
    load_checkpoint(in_folder("tensors"), net);
    return net.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake), "load_checkpoint: " + in_folder("tensors") +
                                              " was not written by save_checkpoint: its metadata "
                                              "have no \"random_state\"; use load_safetensors");
}

TEST(PlantedFileMistakes, CheckpointUnderAnotherPrefix) {
  const auto mistake = []() -> Tensor {
    Net net = a_net();
    save_checkpoint(in_folder("prefix"), net);
    load_safetensors(in_folder("prefix"), net, {.prefix = "model"});
    return net.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_safetensors: " + in_folder("prefix") +
                " holds another model:\n  model.a.weight: not in the file, f32[in=3,hidden=4] "
                "expected\n  model.a.bias: not in the file, f32[hidden=4] expected\n  "
                "model.b.weight: not in the file, f32[hidden=4,out=2] expected\n  model.b.bias: "
                "not in the file, f32[out=2] expected\nNothing stands under \"model\" in the file; "
                ".prefix can be one of a, b, or what is below them.");
}

TEST(PlantedFileMistakes, CheckpointThatWasCutOff) {
  const auto mistake = []() -> Tensor {
    Net net = a_net();
    save_checkpoint(in_folder("cut"), net);
    std::filesystem::resize_file(in_folder("cut"),
                                 std::filesystem::file_size(in_folder("cut")) - 10);
    load_checkpoint(in_folder("cut"), net);
    return net.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "load_checkpoint: " + in_folder("cut") +
                " is damaged: tensor \"b.bias\": data_offsets [96, 104] end beyond the 94 bytes of "
                "data in the file; it may be truncated");
}

TEST(PlantedFileMistakes, CheckpointInATrace) {
  const auto mistake = []() -> Tensor {
    const auto save = [](const Tensor& x) {
      save_safetensors(in_folder("trace"), x);
      return x;
    };
    return jit(save)(ones({2}));
  };
  EXPECT_EQ(message_of<TraceError>(mistake),
            "save_safetensors: the value of \"\" f32[2] is not known while tracing; return it from "
            "the traced function");
}

TEST(PlantedFileMistakes, FolderThatIsNotThere) {
  const auto mistake = []() -> Tensor {
    save_checkpoint("/nowhere/model.safetensors", a_net());
    return ones({});
  };
  EXPECT_EQ(message_of<IoError>(mistake),
            "save_checkpoint: cannot write /nowhere/model.safetensors: No such file or directory");
}

TEST(PlantedFileMistakes, ModelThatWasNotMade) {
  const auto mistake = []() -> Tensor {
    save_safetensors(in_folder("empty"), a_net());
    Net net;
    load_safetensors(in_folder("empty"), net);
    return net.a.weight;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "load_safetensors: a.weight is an empty Tensor");
}

TEST(PlantedFileMistakes, TextInPlaceOfTensors) {
  const auto mistake = []() -> Tensor {
    std::ofstream(in_folder("text")) << "root:x:0:0:root\n";
    Net net = a_net();
    load_safetensors(in_folder("text"), net);
    return net.a.weight;
  };
  EXPECT_EQ(message_of<IoError>(mistake), "load_safetensors: " + in_folder("text") +
                                              " is not a safetensors file: it looks like text");
}

TEST(PlantedFileMistakes, SquareWeightsOfPyTorchBesideOthers) {
  const auto mistake = []() -> Tensor {
    const Dim hidden("hidden", 4), next("next", 4), out("out", 2);
    Net net{Linear::init(hidden, next), Linear::init(next, out)};
    save_safetensors(in_folder("square"), std::map<std::string, Tensor>{{"a.weight", ones({4, 4})},
                                                                        {"a.bias", ones({4})},
                                                                        {"b.weight", ones({2, 4})},
                                                                        {"b.bias", ones({2})}});
    load_safetensors(in_folder("square"), net);
    return net.a.weight;
  };
  EXPECT_EQ(
      message_of<IoError>(mistake),
      "load_safetensors: " + in_folder("square") +
          " holds another model:\n  b.weight: f32[2,4] in the file, f32[next=4,out=2] expected; "
          "PyTorch has a Linear's weight as [out, in]: save its transpose\nSquare matrices fit "
          "either way; save the transposes of Linear's weights among them too: a.weight.");
}

TEST(PlantedFileMistakes, ObjectsThatWereMoved) {
  const std::string rest = ": this object was moved; use the one that it was moved to",
                    npy = in_folder("steps"), folder = in_folder("events");
  save_npy(npy, ones({6, 2}));
  Sequence steps(npy);
  Batches<Tensor> batches(std::move(steps), Dim("batch", 2), {.rows = 2});
  const Batches<Tensor> others = std::move(batches);
  EventWriter events(folder);
  const EventWriter kept = std::move(events);
  CsvWriter rows(in_folder("rows"), {"loss"});
  const CsvWriter same = std::move(rows);
  EXPECT_EQ(others.size(), 3);
  for (const auto& mistake : std::vector<std::function<void()>>{
           [&] { steps.steps(); }, [&] { steps.seek(0); }, [&] { steps.next(Dim(1)); },
           [&] { steps.take({0}, Dim(1)); }})
    EXPECT_EQ(message_of<ArgumentError>(mistake), "Sequence" + rest);
  for (const auto& mistake : std::vector<std::function<void()>>{
           [&] { batches.size(); }, [&] { batches.position(); }, [&] { batches.epoch(); },
           [&] { batches.seek({}); }, [&] { batches.begin(); }})
    EXPECT_EQ(message_of<ArgumentError>(mistake), "Batches" + rest);
  for (const auto& mistake : std::vector<std::function<void()>>{
           [&] { events.scalar("loss", 1, 2); }, [&] { events.histogram("h", 1, ones({2})); },
           [&] { events.text("t", 1, "words"); }, [&] { events.path(); }})
    EXPECT_EQ(message_of<ArgumentError>(mistake), "EventWriter" + rest);
  EXPECT_EQ(message_of<ArgumentError>([&] { rows.row({1}); }), "CsvWriter" + rest);
}

}  // namespace
}  // namespace reel
