// Chunked loops whose entries finish one by one.
#include <cmath>
#include <vector>

#include "reel/core/graph/graph_builder.h"
#include "reel/tests/trace/passes/chunk_loops.h"

namespace reel {
namespace {

using ChunkLoopsOfEntriesTest = ChunkLoopsTest;

TEST_F(ChunkLoopsOfEntriesTest, EntriesThatFinishOneByOneFinishInTheLoopInside) {
  const Problem ragged = named_problem(Dim("time", tensor({7, 2}, {batch})));
  EXPECT_EQ(
      ops_in_chunks(3, named_rnn(), ragged),
      "full dim_lengths loop{dot loop{rename dot add tanh} dot mask transpose full where} sum "
      "square mask transpose full where sum add");
  const auto jitted = jit(named_rnn());
  jitted(ragged);
  const Ref<Graph> graph =
      optimise_for_plan(jitted.graph(), {.pack_weights = false, .chunk_steps = 3}).graph;
  const LoopAttrs* outer = nullptr;
  for (const OpRecord& record : graph->records)
    if (record.op == &loop_op) outer = &get<LoopAttrs>(record.attrs.get());
  ASSERT_NE(outer, nullptr);
  EXPECT_TRUE(outer->chunking.over_chunks && !outer->has_entries() && !outer->trips.has_lengths);
  const Graph& body = *outer->body.graph;
  const LoopAttrs* inner = nullptr;
  for (const OpRecord& record : body.records)
    if (record.op == &loop_op) inner = &get<LoopAttrs>(record.attrs.get());
  ASSERT_NE(inner, nullptr);
  EXPECT_TRUE(inner->chunking.within_chunk && inner->trips.has_lengths &&
              inner->entries.dims.size() == 1);
  // The loop gets the lengths of all steps; the lengths within a chunk are in the chunk's dim.
  EXPECT_EQ(str(body.types[body.inputs.back()]), "i32[batch=2]") << str(*graph);
  EXPECT_EQ(str(body.types[body.inputs[2]]), "f64[time[batch=2],batch=2,in=3]") << str(*graph);
}

TEST_F(ChunkLoopsOfEntriesTest, EntriesThatFinishOneByOneHaveTheResultsOfTheWholeLoop) {
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{{7, 2}, {3, 6}, {1, 5}, {0, 4}, {5, 5}})
    for (const int steps : {1, 2, 3, 4, 7})
      for (const bool reverse : {false, true}) {
        SCOPED_TRACE(str("lengths ", lengths[0], ", ", lengths[1], reverse ? ", reverse" : ""));
        Problem ragged = named_problem(Dim("time", tensor(lengths, {batch})));
        ragged.x = mask_padding(ragged.x, NAN);
        const auto f = [&](const Problem& p) {
          auto [value, gradient] = value_and_grad(named_rnn(reverse))(p);
          gradient.x = mask_padding(gradient.x);
          return std::pair{value, gradient};
        };
        expect_same_in_chunks(steps, f, ragged);
      }
}

TEST_F(ChunkLoopsOfEntriesTest, OneTraceForAllLengthsOfEntries) {
  const auto f = [&](const Problem& p) {
    auto [value, gradient] = value_and_grad(named_rnn())(p);
    gradient.x = mask_padding(gradient.x);
    return std::pair{value, gradient};
  };
  const auto over_chunks = jit(f, {.executor = Executor::plan, .passes = {.chunk_steps = 3}}),
             whole = jit(f, {.executor = Executor::plan, .passes = {.chunk_loops = false}});
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           {7, 2}, {2, 7}, {7, 7}, {3, 3}, {0, 0}, {1, 0}, {6, 4}, {4, 8}, {7, 2}}) {
    SCOPED_TRACE(str("lengths ", lengths[0], ", ", lengths[1]));
    const Problem problem = named_problem(Dim("time", tensor(lengths, {batch})));
    expect_close(over_chunks(problem), whole(problem));
  }
  EXPECT_EQ(over_chunks.trace_count(), 1);
}

TEST_F(ChunkLoopsOfEntriesTest, DrawsAreTheSameIfEntriesFinishOneByOne) {
  const Dim time("time", tensor({6, 3}, {batch}));
  const auto noisy = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = h * 0.5 + x + random_uniform({x.dim("batch"), in}, 0., 1., f64);
      return std::pair{square(next), next};
    };
    const Dims state{x.dim("batch"), in};
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros(state, f64),
                     .xs = x,
                     .body = body})
        .ys;
  };
  for (const int steps : {1, 2, 4})
    expect_same_in_chunks(steps, noisy, ones({time, batch, in}, f64));
}

}  // namespace
}  // namespace reel
