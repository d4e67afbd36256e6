// Requirements on the writers of all ops, tested with the samples of the ops.
#include <gtest/gtest.h>

#include "reel/core/op/bind.h"
#include "reel/onnx.h"
#include "reel/onnx/writer_registry.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

TEST(OnnxWritersTest, EveryOpHasAWriterOrAReason) {
  for (const Op* op : all_ops()) {
    const bool is_written = exported::find_writer(op->name) != nullptr;
    EXPECT_NE(is_written, !exported::reason_against(op->name).empty())
        << op->name << ": give it a writer in onnx/writers/, or a reason in kRefused of "
        << "onnx/writer_registry.cpp; not both";
  }
}

TEST(OnnxWritersTest, EveryWriterIsOfAnOp) {
  for (const exported::Writer* writer : exported::all_writers()) {
    if (writer->op == "plain_dims") continue;  // an op of reel::onnx itself
    const auto has_name = [&](const Op* op) { return op->name == writer->op; };
    EXPECT_TRUE(std::any_of(all_ops().begin(), all_ops().end(), has_name)) << writer->op;
  }
}

/// Ops with results that their inputs do not determine, and ops on keys.
bool is_random(std::string_view op) {
  return op.starts_with("random_") || op == "truncated_normal" || op == "fold_key";
}

/// A trace has other dims in place of ragged ones, which the attributes of a sample name.
bool has_ragged_dims(const OpSample& sample, const Tensors& results) {
  const auto is_ragged = [](const Tensor& x) { return x.type().is_ragged(); };
  for (const SampleInput& input : sample.inputs)
    if (input.type.is_ragged()) return true;
  return std::any_of(results.begin(), results.end(), is_ragged);
}

class EveryWriter : public ::testing::TestWithParam<const exported::Writer*> {};

std::string name_of_writer(const ::testing::TestParamInfo<const exported::Writer*>& info) {
  return std::string(info.param->op);
}
const auto& some_writers() {
  static const auto& writers = *new std::vector<const exported::Writer*>(exported::all_writers());
  return writers;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryWriter, ::testing::ValuesIn(some_writers()), name_of_writer);

/// The inputs are initializers of the model: samples of an op name dims in its attributes.
TEST_P(EveryWriter, SavesTheValuesOfTheSamples) {
  const auto has_name = [&](const Op* op) { return op->name == GetParam()->op; };
  const auto found = std::find_if(all_ops().begin(), all_ops().end(), has_name);
  if (found == all_ops().end() || !(*found)->samples || is_random(GetParam()->op)) return;
  const Op& op = **found;
  int number = 0;
  for (const OpSample& sample : op.samples()) {
    SCOPED_TRACE(str("sample ", number++));
    const Tensors inputs = draw_sample(sample, false);
    const auto f = [&] { return bind_all(op, inputs, sample.attrs); };
    const Tensors expected = f();
    if (has_ragged_dims(sample, expected)) continue;
    if (std::any_of(expected.begin(), expected.end(), [](const Tensor& x) {
          return x.rank() == 2 && x.type().sizes()[0] == 0 && x.dtype() == boolean &&
                 x.type().is_named();
        }))
      continue;  // a token, which has no elements
    const OnnxModel model = load_onnx_bytes(onnx_bytes(f, std::tuple{}));
    const auto outputs = model({});
    const std::vector<std::string> names = model.output_names();
    ASSERT_EQ(names.size(), expected.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Tensor& actual = outputs.at(names[i]);
      EXPECT_EQ(actual.dtype(), expected[i].dtype());
      EXPECT_EQ(actual.type().sizes(), expected[i].type().sizes());
      const std::vector<double> values = values_of(actual), wanted = values_of(expected[i]);
      ASSERT_EQ(values.size(), wanted.size());
      for (std::size_t k = 0; k < values.size(); ++k)
        EXPECT_TRUE(is_close(values[k], wanted[k], 2e-6))
            << "element " << k << " is " << values[k] << " instead of " << wanted[k];
    }
  }
}

}  // namespace
}  // namespace reel
