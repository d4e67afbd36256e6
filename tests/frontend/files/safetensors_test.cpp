#include "reel/frontend/files/safetensors.h"

#include <cstring>

#include "reel/core/ops.h"
#include "reel/frontend/files/training_checkpoint.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/optimisers/adam.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

class SafetensorsTest : public InOwnFolder {
 protected:
  SafetensorsTest() : InOwnFolder("model.safetensors") {}
};

struct Cell {
  Tensor weight, bias;
};
struct Everything {
  Cell cell;
  std::vector<Tensor> layers;
  std::map<std::string, Tensor> named;
  Tensor f64s, i32s, i64s, booleans, scalar_value, empty;
  Dim dim;
  int size = 3;
};

Everything everything(bool is_filled) {
  const Dim in("in", 2), out("out", 3), time("time", tensor({3, 1}, {in}));
  Everything tree{
      .cell = {tensor({{1.5, -2.0, 0.0}, {1e-38, INFINITY, 3.0}}, {in, out}), zeros({in, time})},
      .layers = {ones({1}), full({2, 1}, 2.0)},
      .named = {{"alpha", tensor({1.0})}, {"beta/γ \"quoted\"", tensor({2.0})}},
      .f64s = tensor({0.1, -1e300}, {}, f64),
      .i32s = tensor({-5, 2147483647}),
      .i64s = tensor({std::int64_t{1} << 40}, {}, i64),
      .booleans = tensor({true, false, true}),
      .scalar_value = scalar(2.5),
      .empty = zeros({0, 4}),
      .dim = in,
  };
  if (is_filled) return tree;
  return tree_map([](const Tensor& x) { return zeros_like(x); }, tree);
}

TEST_F(SafetensorsTest, EveryDtypeAndContainerComesBackToTheBitWithTheTreesOwnDims) {
  const Everything saved = everything(true);
  Everything loaded = everything(false);
  save_safetensors(path, saved);
  load_safetensors(path, loaded);
  const Tensors expected = tensors_of(flatten(saved)), actual = tensors_of(flatten(loaded));
  ASSERT_EQ(actual.size(), 12u);
  for (std::size_t i = 0; i < actual.size(); ++i) expect_same_bits(actual[i], expected[i]);
  EXPECT_TRUE(loaded.cell.weight.dims() == (Dims{loaded.dim, loaded.cell.weight.dims()[1]}));
  EXPECT_TRUE(loaded.cell.bias.dims()[1].is_ragged());
}

TEST_F(SafetensorsTest, TheFileIsAsTheFormatSays) {
  save_safetensors(path, Cell{tensor({1.0, 2.0}), tensor({3.0}, {}, f64)}, {{"made by", "a test"}});
  const std::string bytes = bytes_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  std::string header = bytes.substr(8, length);
  header.resize(header.find_last_not_of(' ') + 1);
  // The widest elements come first, so that all are aligned.
  EXPECT_EQ(header, R"({"__metadata__":{"made by":"a test"},)"
                    R"("bias":{"data_offsets":[0,8],"dtype":"F64","shape":[1]},)"
                    R"("weight":{"data_offsets":[8,16],"dtype":"F32","shape":[2]}})");
  ASSERT_EQ(bytes.size(), 8 + length + 16);
  float second = 0;
  std::memcpy(&second, bytes.data() + 8 + length + 12, 4);
  EXPECT_EQ(second, 2.0f);
}

TEST_F(SafetensorsTest, MetadataCanBeReadAlone) {
  const Metadata metadata{{"alphabet", "ab\n\"\\ü"}, {"", "empty key"}};
  save_safetensors(path, Cell{ones({2}), ones({1})}, metadata);
  EXPECT_EQ(read_safetensors_metadata(path), metadata);
  save_safetensors(path, Cell{ones({2}), ones({1})});
  EXPECT_TRUE(read_safetensors_metadata(path).empty());
}

TEST_F(SafetensorsTest, AnOptimiserIsATreeToo) {
  Tensor p = ones({2});
  Adam adam(p, {.learning_rate = 0.1});
  adam.update(p, ones({2}));
  save_safetensors(path, std::pair{p, adam});
  std::pair loaded{zeros({2}), Adam(zeros({2}), {.learning_rate = 0.5})};
  load_safetensors(path, loaded);
  EXPECT_EQ(loaded.second.step().item<std::int64_t>(), 1);
  EXPECT_EQ(loaded.second.learning_rate().item<double>(), 0.1);
  adam.update(p, ones({2}));
  loaded.second.update(loaded.first, ones({2}));
  expect_same_bits(loaded.first, p);
}

TEST_F(SafetensorsTest, AnotherModelListsEverythingThatDiffers) {
  save_safetensors(path, std::map<std::string, Tensor>{
                             {"a", ones({2})}, {"b", ones({2, 3})}, {"d", zeros({1}, i32)}});
  std::map<std::string, Tensor> tree{
      {"a", ones({2}, f64)}, {"b", ones({Dim("in", 3), Dim("out", 2)})}, {"c", ones({4})}};
  EXPECT_EQ(message_of<IoError>([&] {
              load_safetensors(path, tree);
              return 0;
            }),
            "load_safetensors: " + path +
                " holds another model:\n"
                "  a: f32[2] in the file, f64[2] expected\n"
                "  b: f32[2,3] in the file, f32[in=3,out=2] expected\n"
                "  c: not in the file, f32[4] expected\n"
                "  d: i32[1] in the file, not expected");
}

struct Training {
  Cell encoder, decoder;
  Tensor step;
};

TEST_F(SafetensorsTest, AFileGivesTheTensorsThatAreAskedFor) {
  save_safetensors(
      path, std::map<std::string, Tensor>{{"b", tensor({{1.0, 2.0}})}, {"a", tensor({5}, {}, i64)}},
      {{"key", "value"}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(file.contains("a"));
  EXPECT_FALSE(file.contains("c"));
  EXPECT_EQ(file.metadata(), (Metadata{{"key", "value"}}));
  EXPECT_EQ(file.type("a"), TensorType(i64, {1}));
  EXPECT_EQ(file.type("b"), TensorType(f32, {1, 2}));
  const Tensor b = file.tensor("b", {Dim("batch"), Dim("feature")});
  EXPECT_EQ(str(b.type()), "f32[batch=1,feature=2]");
  expect_values(b, {1, 2});
  const SafetensorsFile copy = file;
  fs::remove(path);
  expect_values(copy.tensor("a"), {5});
}

TEST_F(SafetensorsTest, ErrorsNameMissingTensorsAndTheirTypes) {
  save_safetensors(path, std::map<std::string, Tensor>{{"a", ones({2, 3})}});
  const SafetensorsFile file(path);
  const std::string start = "SafetensorsFile: " + path;
  EXPECT_EQ(message_of<IoError>([&] { return file.tensor("b"); }),
            start + " has no tensor \"b\" among its 1; names() lists them");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return file.tensor("a", {Dim("x", 2), Dim("y", 4)});
            }),
            start +
                ": tensor \"a\" has f32[2,3], which the dims [x=2,y=4] do not fit; give a Dim of "
                "the same size for each axis, or no dims");
  EXPECT_EQ(message_of<ShapeError>([&] { return file.tensor("a", {Dim("x")}); }),
            start +
                ": tensor \"a\" has f32[2,3], which the dims [x] do not fit; give a Dim of the "
                "same size for each axis, or no dims");
}

TEST_F(SafetensorsTest, NarrowElementsBecomeOursExactly) {
  const auto element = [&](const std::string& dtype, const std::string& bytes) {
    const std::string header = R"({"x":{"dtype":")" + dtype +
                               R"(","shape":[2],"data_offsets":[0,)" +
                               std::to_string(bytes.size()) + "]}}";
    const std::uint64_t length = header.size();
    write(path, std::string(reinterpret_cast<const char*>(&length), 8) + header + bytes);
    return SafetensorsFile(path).tensor("x");
  };
  using std::string_literals::operator""s;
  const auto expect = [](const Tensor& x, DType dtype, const std::vector<double>& values) {
    EXPECT_EQ(x.dtype(), dtype);
    expect_values(x, values, 0);
  };
  expect(element("U8", "\x01\xff"), i32, {1, 255});
  expect(element("I8", "\x01\xff"), i32, {1, -1});
  expect(element("U16", "\x00\x01\xff\xff"s), i32, {256, 65535});
  expect(element("I16", "\x00\x01\xff\xff"s), i32, {256, -1});
  expect(element("U32", "\x01\0\0\0\xff\xff\xff\xff"s), i64, {1, 4294967295.0});
  expect(element("F16", "\x00\x3c\x01\x80"s), f32, {1, -0x1p-24});
  expect(element("F16", "\x00\xfc\xff\x7b"s), f32, {-INFINITY, 65504});
  expect(element("BF16", "\x80\x3f\xc0\xc0"s), f32, {1, -6});
  EXPECT_TRUE(std::isnan(element("F16", "\x00\x7e\x00\x00"s).to_vector<float>()[0]));
  EXPECT_EQ(message_of<DTypeError>([&] { return element("U64", std::string(16, '\0')); }),
            "SafetensorsFile: " + path +
                ": tensor \"x\" has elements of type u64, whose values none of f32, f64, i32, i64 "
                "and boolean holds");
  element("BF16", "\x80\x3f\xc0\xc0"s);
  std::map<std::string, Tensor> tree{{"x", zeros({2})}};
  load_safetensors(path, tree);
  expect_values(tree["x"], {1, -6});
}

TEST_F(SafetensorsTest, APrefixLoadsASubTree) {
  const Cell encoder{ones({2}), full({1}, 2.0)}, decoder{full({2}, 3.0), full({1}, 4.0)};
  save_safetensors(path, Training{encoder, decoder, scalar(7)});
  Cell cell{zeros({2}), zeros({1})};
  load_safetensors(path, cell, {.prefix = "decoder"});
  expect_values(cell.weight, {3, 3});
  expect_values(cell.bias, {4});
  Tensor step = scalar(0);
  load_safetensors(path, step, {.prefix = "step"});
  expect_values(step, {7});
  EXPECT_EQ(message_of<IoError>([&] {
              load_safetensors(path, cell, {.prefix = "dec"});
              return 0;
            }),
            "load_safetensors: " + path +
                " holds another model:\n"
                "  dec.weight: not in the file, f32[2] expected\n"
                "  dec.bias: not in the file, f32[1] expected\n"
                "Nothing stands under \"dec\" in the file; .prefix can be one of decoder, encoder, "
                "step, or what is below them.");
}

TEST_F(SafetensorsTest, AForgottenPrefixIsTheRepair) {
  Cell cell{zeros({2}), zeros({1})};
  save_safetensors(path, std::map<std::string, Cell>{{"model", cell}});
  EXPECT_EQ(message_of<IoError>([&] {
              load_safetensors(path, cell);
              return 0;
            }),
            "load_safetensors: " + path +
                " holds another model:\n"
                "  weight: not in the file, f32[2] expected\n"
                "  bias: not in the file, f32[1] expected\n"
                "  model.bias: f32[1] in the file, not expected\n"
                "  model.weight: f32[2] in the file, not expected\n"
                "Such names stand under \"model\" in the file; use load_safetensors with {.prefix "
                "= \"model\"}.");
}

TEST_F(SafetensorsTest, AllMembersThatTheFileFitsAreNamed) {
  struct Networks {
    Cell target, online;
    Tensor step;
  };
  const Cell cell{zeros({2}), zeros({1})};
  save_safetensors(path, cell);
  Networks networks{cell, cell, scalar(0)};
  const std::string message = message_of<IoError>([&] {
    load_safetensors(path, networks);
    return 0;
  });
  EXPECT_TRUE(message.ends_with(
      "\nThe file has what stands under each of \"online\", \"target\" here: load it into one of "
      "these members."))
      << message;
}

TEST_F(SafetensorsTest, AnotherModelListsTenDifferencesAndCountsTheOthers) {
  std::map<std::string, Tensor> saved;
  for (int i = 0; i < 30; ++i) saved[str("layer", i)] = ones({1});
  save_safetensors(path, saved);
  Cell cell{zeros({2}), zeros({1})};
  const std::string message = message_of<IoError>([&] {
    load_safetensors(path, cell);
    return 0;
  });
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 11);
  EXPECT_TRUE(message.ends_with("\n  and 22 more differences")) << message;
}

TEST_F(SafetensorsTest, AWeightInTheLayoutOfPyTorchIsNamed) {
  save_safetensors(path,
                   std::map<std::string, Tensor>{{"weight", ones({3, 2})}, {"bias", ones({3})}});
  Cell cell{zeros({2, 3}), zeros({3})};
  EXPECT_EQ(message_of<IoError>([&] {
              load_safetensors(path, cell);
              return 0;
            }),
            "load_safetensors: " + path +
                " holds another model:\n"
                "  weight: f32[3,2] in the file, f32[2,3] expected; PyTorch has a Linear's weight "
                "as [out, in]: save its transpose");
}

// A square matrix fits whether it is transposed or not.
TEST_F(SafetensorsTest, SquareWeightsOfPyTorchGetAHint) {
  using Named = std::map<std::string, Tensor>;
  int files = 0;
  const auto loaded = [&](Named tree) {
    ::testing::internal::CaptureStderr();
    load_safetensors(path + std::to_string(files), tree);
    return ::testing::internal::GetCapturedStderr();
  };
  const auto printed = [&](const Named& tensors, const Metadata& metadata) {
    save_safetensors(path + std::to_string(++files), tensors, metadata);
    return loaded(tensors);
  };
  const auto hint = [&](const std::string& names) {
    return "reel: load_safetensors: " + path + std::to_string(files) +
           " seems to be PyTorch's, which has a Linear's weight as [out, in], Reel as [in, out]; "
           "square ones fit either way, so see that they are transposed: " +
           names + "\n";
  };
  const Named square{{"fc.weight", ones({2, 2})}, {"fc.bias", ones({2})}};
  EXPECT_EQ(printed(square, {}), "");  // a file of Reel
  std::string text = printed(square, {{"format", "pt"}});
  EXPECT_EQ(text, hint("fc.weight"));
  EXPECT_EQ(loaded(square), "");  // once
  text = printed({{"rnn.weight_hh_l0", ones({3, 3})}, {"rnn.weight_ih_l0", ones({3, 2})}}, {});
  EXPECT_EQ(text, hint("rnn.weight_hh_l0"));
  EXPECT_EQ(printed({{"rnn.weight_ih_l0", ones({3, 2})}}, {{"format", "pt"}}), "");
  EXPECT_EQ(printed({{"embedding.weight", ones({3, 3})}}, {{"format", "pt"}}), "");
  EXPECT_EQ(printed({{"block.out_proj_weight", ones({3, 3})}}, {}), "");
}

TEST_F(SafetensorsTest, CheckpointsOfReelGetNoHint) {
  const std::map<std::string, Tensor> tensors{{"attention.in_proj_weight", ones({3, 3})}};
  save_checkpoint(path, tensors);
  auto tree = tensors;
  ::testing::internal::CaptureStderr();
  load_safetensors(path, tree);
  load_checkpoint(path, tree);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(SafetensorsTest, MissingAndExtraTensorsCanBeAllowed) {
  using Named = std::map<std::string, Tensor>;
  save_safetensors(path, Named{{"a", ones({2})}, {"b", ones({1})}});
  Named tree{{"a", zeros({2})}, {"c", zeros({3})}};
  const auto error = [&](const LoadOptions& options) {
    return message_of<IoError>([&] {
      load_safetensors(path, tree, options);
      return 0;
    });
  };
  const std::string start = "load_safetensors: " + path + " holds another model:\n";
  EXPECT_EQ(error({.allow_missing = true}), start + "  b: f32[1] in the file, not expected");
  EXPECT_EQ(error({.allow_extra = true}), start + "  c: not in the file, f32[3] expected");
  expect_values(tree["a"], {0, 0});
  load_safetensors(path, tree, {.allow_missing = true, .allow_extra = true});
  expect_values(tree["a"], {1, 1});
  expect_values(tree["c"], {0, 0, 0});
}

// An open file keeps giving the save that it was opened with, even after the path is replaced.
TEST_F(SafetensorsTest, AnOpenFileGivesOneSave) {
  save_safetensors(path, Cell{ones({2}), ones({1})}, {{"save", "first"}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.path(), path);
  save_safetensors(path, Cell{zeros({2}), zeros({1})}, {{"save", "second"}});
  Cell cell{zeros({2}), zeros({1})};
  load_safetensors(file, cell);
  expect_values(cell.weight, {1, 1});
  EXPECT_EQ(file.metadata(), (Metadata{{"save", "first"}}));
  Tensor bias = zeros({1});
  load_safetensors(file, bias, {.prefix = "bias"});
  expect_values(bias, {1});
}

TEST_F(SafetensorsTest, LeavesThatCannotBeStoredAreNamed) {
  const auto save = [&](const auto& tree) {
    save_safetensors(path, tree);
    return 0;
  };
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return save(Cell{ones({2}), Tensor()});
            }),
            "save_safetensors: bias is an empty Tensor");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return save(std::pair{ones({2}), TensorArray(TensorType(f32, {2}))});
            }),
            "save_safetensors: 1 is a TensorArray, which the format does not know; stack it");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return save(std::map<std::string, Tensor>{{"\xff", ones({2})}});
            }),
            "save_safetensors: names and metadata must be UTF-8");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return save(std::map<std::string, Tensor>{{"__metadata__", ones({2})}});
            }),
            "save_safetensors: two keys of the file would be called \"__metadata__\"");
  EXPECT_EQ(message_of<TraceError>([&] {
              jit([&](const Tensor& x) {
                save_safetensors(path, std::pair{x, x});
                return x;
              })(ones({2}));
              return 0;
            }),
            "save_safetensors: the value of 0 f32[2] is not known while tracing; return it from "
            "the traced function");
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace reel
