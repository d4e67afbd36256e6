// A TensorArray in the place of an op's tensor: bind refuses it, eagerly and in traces, unless the
// op takes lists there.
#include "reel/core/op/list_operands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

class ListOperands : public ::testing::TestWithParam<const Op*> {
 protected:
  const Op& op() const { return *GetParam(); }
  OpSamples samples() const { return op().samples ? op().samples() : OpSamples{}; }

  /// Calls visit(inputs, operand) with a list of the sample's tensor for each operand in turn.
  template <class Visit>
  void each_list(const OpSample& sample, const Visit& visit) const {
    const Tensors inputs = draw_sample(sample, false);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensors with_list = inputs;
      with_list[i] = make_list(inputs[i].type(), {inputs[i], inputs[i]});
      visit(with_list, i);
    }
  }

  Tensors recorded(const OpSample& sample, const Tensors& inputs) const {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    return record_graph("lists", types,
                        [&](const Tensors& in) { return bind_all(op(), in, sample.attrs); })
        .captured;
  }
};

INSTANTIATE_TEST_SUITE_P(Ops, ListOperands, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(ListOperands, AreRefusedUnlessTheOpTakesThem) {
  for (const OpSample& sample : samples())
    each_list(sample, [&](const Tensors& inputs, std::size_t operand) {
      if (takes_list(op(), operand)) {
        EXPECT_NO_THROW(bind_all(op(), inputs, sample.attrs)) << "operand " << operand;
        EXPECT_NO_THROW(recorded(sample, inputs)) << "operand " << operand;
        return;
      }
      const std::string expected =
          str(op().name, ": operand ", operand, " is a TensorArray (", inputs[operand].type(),
              "), but the op takes a tensor; pass its stack()");
      EXPECT_EQ(message_of<StructureError>([&] { bind_all(op(), inputs, sample.attrs); }),
                expected);
      EXPECT_EQ(message_of<StructureError>([&] { recorded(sample, inputs); }), expected);
    });
}

TEST(ListOperandsTest, FunctionsOfOneTensorNameTheArray) {
  const Tensor list = make_list(TensorType(f32), {scalar(1.f), scalar(2.f)});
  EXPECT_EQ(message_of<StructureError>([&] { list + list; }),
            "add: operand 0 is a TensorArray (list of f32[]), but the op takes a tensor; pass its "
            "stack()");
  EXPECT_EQ(message_of<StructureError>([&] {
              stack({scalar(1.f), list});
            }),
            "stack: operand 1 is a TensorArray (list of f32[]), but the op takes a tensor; pass "
            "its stack()");
}

TEST(ListOperandsTest, IndicesOfArraysAreTensors) {
  const Tensor list = make_list(TensorType(i32), {scalar(1), scalar(2)});
  EXPECT_EQ(message_of<StructureError>([&] { list_index(list, list); }),
            "list_index: operand 1 is a TensorArray (list of i32[]), but the op takes a tensor; "
            "pass its stack()");
  EXPECT_EQ(message_of<StructureError>([&] { list_drop(list, list); }),
            "list_drop: operand 1 is a TensorArray (list of i32[]), but the op takes a tensor; "
            "pass its stack()");
}

}  // namespace
}  // namespace reel
