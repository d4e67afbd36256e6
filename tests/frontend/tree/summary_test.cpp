// summary and parameter_count.
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Network {
  LstmCell cell;
  Linear readout;
  Tensor steps;  // no parameter: integers
  SparseEmbedding words;
};

Network network() {
  const Dim in("in", 3), hidden("hidden", 2), out("out", 10), vocab("vocab", 7);
  return {LstmCell::init(in, hidden), Linear::init(hidden, out, {.dtype = f64}), zeros({4}, i64),
          SparseEmbedding::init(vocab, in)};
}

TEST(SummaryTest, PrintsATableOfTheParameters) {
  EXPECT_EQ(str(summary(network())),
            "name                   type                  count\n"
            "cell.input_weight      f32[in=3,gate=8]         24\n"
            "cell.recurrent_weight  f32[hidden=2,gate=8]     16\n"
            "cell.bias              f32[gate=8]               8\n"
            "readout.weight         f64[hidden=2,out=10]     20\n"
            "readout.bias           f64[out=10]              10\n"
            "words.weight           f32[vocab=7,in=3]        21\n"
            "total                                           99\n");
}

TEST(SummaryTest, ListsNamesTypesAndCounts) {
  const Network model = network();
  const Summary table = summary(model);
  ASSERT_EQ(table.parameters.size(), 6u);
  EXPECT_EQ(table.parameters[3].name, "readout.weight");
  EXPECT_EQ(table.parameters[3].type, model.readout.weight.type());
  EXPECT_EQ(table.parameters[3].count, 20);
  EXPECT_EQ(table.count, 99);
}

TEST(SummaryTest, ParametersAreCounted) {
  EXPECT_EQ(parameter_count(network()), 99);
  EXPECT_EQ(parameter_count(zeros({3, 4})), 12);
  EXPECT_EQ(parameter_count(std::vector<Linear>{}), 0);
  EXPECT_EQ(parameter_count(zeros({5, 0})), 0);
  EXPECT_EQ(str(summary(std::vector<Linear>{})), "name   type  count\ntotal            0\n");
}

}  // namespace
}  // namespace reel
