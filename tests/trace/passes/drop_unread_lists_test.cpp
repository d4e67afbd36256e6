// Lists without a reader: graphs before and after the pass.
#include "reel/trace/passes/cleanup/drop_unread_lists.h"

#include <gtest/gtest.h>

#include <functional>

#include "reel/core/graph/graph_builder.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

using Function = std::function<Tensors(const Tensor&)>;

GraphRef recorded(const Function& f) {
  return record_graph("f", {TensorType(f32, {3, 2})}, [&](const Tensors& in) { return f(in[0]); })
      .graph;
}
std::string ops_left(const Function& f) { return ops(*drop_unread_lists(recorded(f))); }

TEST(DropUnreadListsTest, ChainsOfListsWithoutAReaderGo) {
  EXPECT_EQ(ops_left([](const Tensor& x) -> Tensors {
              (void)TensorArray::unstack(x, 0).write(1, x[0]);
              return {sin(x)};
            }),
            "full gather full sin");
}

TEST(DropUnreadListsTest, ListsWithAReaderStay) {
  const Function f = [](const Tensor& x) -> Tensors {
    return {TensorArray::unstack(x, 0).write(1, x[0]).stack()};
  };
  const GraphRef graph = recorded(f);
  EXPECT_EQ(drop_unread_lists(graph).get(), graph.get());
}

/// Reading beyond the end of a list throws, whether or not the element is used.
TEST(DropUnreadListsTest, ElementsThatAreNotReadStayWithTheirLists) {
  const GraphRef graph = recorded([](const Tensor& x) -> Tensors {
    (void)TensorArray::unstack(x, 0)[1];
    return {sin(x)};
  });
  EXPECT_EQ(drop_unread_lists(graph).get(), graph.get());
}

TEST(DropUnreadListsTest, ValuesKeepTheirNumbers) {
  const GraphRef graph = recorded([](const Tensor& x) -> Tensors {
    (void)TensorArray::unstack(x, 0);
    return {sin(x)};
  });
  const GraphRef after = drop_unread_lists(graph);
  EXPECT_EQ(after->records.size(), graph->records.size() - 1);
  EXPECT_EQ(after->outputs, graph->outputs);
  EXPECT_EQ(after->types.size(), graph->types.size());
}

}  // namespace
}  // namespace reel
