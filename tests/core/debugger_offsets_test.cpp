// The offsets that debuggers read, compared with the offsets of this compilation.
#include "reel/core/debugger/offsets.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

#include "reel/core/functions/creation.h"
#include "reel/core/graph/graph.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/types/block.h"
#include "reel/core/types/dim_expression.h"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace reel {
namespace {

std::map<std::string, std::size_t> offsets() {
  std::map<std::string, std::size_t> result;
  for (const DebuggerOffset* at = reel_debugger_offsets; at->name[0]; ++at)
    result[at->name] = static_cast<std::size_t>(at->value);
  return result;
}

TEST(DebuggerOffsetsTest, MembersLieAtTheExportedOffsets) {
  auto at = offsets();
  EXPECT_EQ(at["TensorBlock.refs"], offsetof(TensorBlock, refs));
  EXPECT_EQ(at["TensorBlock.kind"], offsetof(TensorBlock, kind));
  EXPECT_EQ(at["TensorBlock.type"], offsetof(TensorBlock, type));
  EXPECT_EQ(at["TensorBlock.data"], offsetof(TensorBlock, data));
  EXPECT_EQ(at["TensorBlock.attachment"], offsetof(TensorBlock, attachment));
  EXPECT_EQ(at["Recording.place"], offsetof(Recording, place));
  EXPECT_EQ(at["TypeNode.dtype"], offsetof(TypeNode, dtype));
  EXPECT_EQ(at["TypeNode.is_list"], offsetof(TypeNode, is_list));
  EXPECT_EQ(at["TypeNode.is_unranked"], offsetof(TypeNode, is_unranked));
  EXPECT_EQ(at["TypeNode.dims"], offsetof(TypeNode, dims));
  EXPECT_EQ(at["TypeNode.sizes"], offsetof(TypeNode, sizes));
  EXPECT_EQ(at["TypeNode.numel"], offsetof(TypeNode, numel));
  EXPECT_EQ(at["Dim"], sizeof(Dim));
  EXPECT_EQ(at["DimNode.name"], offsetof(DimNode, name));
  EXPECT_EQ(at["DimNode.kind"], offsetof(DimNode, kind));
  EXPECT_EQ(at["DimNode.lengths"], offsetof(DimNode, lengths));
  EXPECT_EQ(at["DimNode.length_dims"], offsetof(DimNode, length_dims));
  EXPECT_EQ(at["DimNode.is_full"], offsetof(DimNode, is_full));
  EXPECT_EQ(at["DimNode.expression"], offsetof(DimNode, expression));
  EXPECT_EQ(at["DimExpression.operation"], offsetof(DimExpression, operation));
  EXPECT_EQ(at["DimExpression.operands"], offsetof(DimExpression, operands));
  EXPECT_EQ(at["DimExpression.number"], offsetof(DimExpression, number));
  EXPECT_EQ(at["ListData.items"], offsetof(ListData, items));
  EXPECT_EQ(at["Op.name"], offsetof(Op, name));
  EXPECT_EQ(at["OpRecord"], sizeof(OpRecord));
  EXPECT_EQ(at["OpRecord.op"], offsetof(OpRecord, op));
  EXPECT_EQ(at["OpRecord.first"], offsetof(OpRecord, first));
  EXPECT_EQ(at["OpRecord.input_count"], offsetof(OpRecord, input_count));
  EXPECT_EQ(at["OpRecord.output_count"], offsetof(OpRecord, output_count));
  EXPECT_EQ(at["Graph.records"], offsetof(Graph, records));
  EXPECT_EQ(at["Graph.operands"], offsetof(Graph, operands));
  EXPECT_EQ(at["Graph.name"], offsetof(Graph, name));
  EXPECT_EQ(at["Graph.types"], offsetof(Graph, types));
  EXPECT_EQ(at["Graph.inputs"], offsetof(Graph, inputs));
  EXPECT_EQ(at["Graph.formal_count"], offsetof(Graph, formal_count));
  EXPECT_EQ(at["Graph.outputs"], offsetof(Graph, outputs));
}

TEST(DebuggerOffsetsTest, EveryEntryIsCompared) { EXPECT_EQ(offsets().size(), 36u + 5u); }

TEST(DebuggerOffsetsTest, SizeOfAListLiesAtItsPrivateOffset) {
  auto at = offsets();
  PersistentList list;
  list.set(40, scalar(1.0));
  const char* const bytes = reinterpret_cast<const char*>(&list);
  EXPECT_EQ(*reinterpret_cast<const std::int64_t*>(bytes + at["PersistentList.size"]), 41);
  EXPECT_EQ(*reinterpret_cast<const int*>(bytes + at["PersistentList.height"]), 2);
  EXPECT_EQ(at["PersistentList.root"], 0u);
}

TEST(DebuggerOffsetsTest, HandlesAreTheirPointers) {
  const Tensor x = scalar(1.0);
  EXPECT_EQ(*reinterpret_cast<TensorBlock* const*>(&x), x.block());
  const Dim time("time", 3);
  EXPECT_EQ(*reinterpret_cast<const DimNode* const*>(&time), time.node());
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(&time)[1], 3);
}

}  // namespace
}  // namespace reel
