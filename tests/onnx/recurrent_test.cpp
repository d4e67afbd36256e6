// Loops that are RNN, GRU or LSTM nodes in a saved model, and loops that are not.
// recurrent_cases.cpp has their values.
#include "reel/onnx/proto.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

void add_ops(const ::onnx::GraphProto& graph, std::map<std::string, int>& counts) {
  for (const auto& node : graph.node()) {
    ++counts[node.op_type()];
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) add_ops(attribute.g(), counts);
  }
}
/// Returns the number of nodes of each op, those in bodies included.
std::map<std::string, int> ops_of(const std::string& bytes) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  std::map<std::string, int> counts;
  add_ops(model.graph(), counts);
  return counts;
}

/// Returns "RNN", "GRU" or "LSTM" if the model has one node of these, and no Loop; otherwise
/// "Loop".
std::string recurrent_op_of(const std::string& bytes) {
  std::map<std::string, int> ops = ops_of(bytes);
  std::string found;
  for (const char* const op : {"RNN", "GRU", "LSTM", "Loop"})
    for (int i = 0; i < ops[op]; ++i) found += op;
  return found;
}

TEST(RecurrentNodesTest, LoopsOfStandardCellsAreNodes) {
  for (const SavedCase& saved : recurrent_cases()) {
    ASSERT_EQ(saved.failure, "") << saved.name;
    const std::string wanted = saved.name.substr(std::string("a node ").size());
    EXPECT_EQ(recurrent_op_of(saved.bytes), wanted.substr(0, wanted.find_first_of(" ,")))
        << saved.name;
  }
}

TEST(RecurrentNodesTest, ALoadedNodeIsSavedAsANode) {
  for (const SavedCase& saved : recurrent_cases()) {
    const OnnxModel model = load_onnx_bytes(saved.bytes);
    const auto f = [&](const std::map<std::string, Tensor>& inputs) { return model(inputs); };
    const std::string again = onnx_bytes(f, std::tuple{saved.inputs}, {.arguments = {""}});
    EXPECT_EQ(recurrent_op_of(again), recurrent_op_of(saved.bytes)) << saved.name;
  }
}

// ---- Loops that no node computes ----------------------------------------------------------------

struct Weights {
  Tensor w, u, b;
};
Weights some_weights(DType dtype = f32) {
  manual_seed(24);
  return {random_normal({2, 3}, dtype), random_normal({3, 3}, dtype), random_normal({3}, dtype)};
}
Tensor some_xs(DType dtype = f32) { return random_normal({4, 2, 2}, dtype); }

/// Returns the op of a scan with this body: (weights, x, h) -> (y, next h).
template <class Body>
std::string op_of_scan(const Body& body, DType dtype = f32, const SaveOnnxOptions& options = {}) {
  const auto f = [&](const Weights& m, const Tensor& xs) {
    auto [ys, state, dim] = scan(Scan{
        .initial = zeros({2, 3}, dtype), .xs = xs, .body = [&](const Tensor& x, const Tensor& h) {
          return body(m, x, h);
        }});
    return std::pair{ys, state};
  };
  return recurrent_op_of(onnx_bytes(f, std::tuple{some_weights(dtype), some_xs(dtype)}, options));
}

Tensor sum_of(const Weights& m, const Tensor& x, const Tensor& h) {
  return matmul(x, m.w) + matmul(h, m.u) + m.b;
}
const auto kTanh = [](const Weights& m, const Tensor& x, const Tensor& h) {
  const Tensor next = tanh(sum_of(m, x, h));
  return std::pair{next, next};
};

TEST(RecurrentNodesTest, AnOptionSaysNo) {
  EXPECT_EQ(op_of_scan(kTanh), "RNN");
  EXPECT_EQ(op_of_scan(kTanh, f32, {.recurrent_nodes = false}), "Loop");
}

TEST(RecurrentNodesTest, OtherCellsAreLoops) {
  using Pair = std::pair<Tensor, Tensor>;
  const auto op_of = [](Tensor (*next)(const Weights&, const Tensor&, const Tensor&)) {
    return op_of_scan([=](const Weights& m, const Tensor& x, const Tensor& h) {
      const Tensor y = next(m, x, h);
      return Pair{y, y};
    });
  };
  EXPECT_EQ(op_of([](const Weights& m, const Tensor& x, const Tensor& h) {
              return tanh(sum_of(m, x, h)) + h;  // a residual connection
            }),
            "Loop");
  EXPECT_EQ(op_of([](const Weights& m, const Tensor& x, const Tensor& h) {
              return sin(sum_of(m, x, h));
            }),
            "Loop");
  EXPECT_EQ(op_of([](const Weights& m, const Tensor& x, const Tensor& h) {
              return tanh(sum_of(m, x, h) * 2);
            }),
            "Loop");
  EXPECT_EQ(op_of([](const Weights& m, const Tensor& x, const Tensor& h) {
              return tanh(matmul(x, m.w) + matmul(tanh(h), m.u));
            }),
            "Loop");
  EXPECT_EQ(op_of([](const Weights& m, const Tensor&, const Tensor& h) {
              return tanh(matmul(h, m.u) + m.b);  // reads no x
            }),
            "Loop");
  EXPECT_EQ(op_of([](const Weights& m, const Tensor& x, const Tensor& h) {
              return tanh(matmul(x, m.w) + matmul(h, m.u) + matmul(h, m.u));
            }),
            "Loop");
}

TEST(RecurrentNodesTest, OtherOutputsAreLoops) {
  EXPECT_EQ(op_of_scan([](const Weights& m, const Tensor& x, const Tensor& h) {
              const Tensor next = tanh(sum_of(m, x, h));
              return std::pair{h, next};  // the state before the step
            }),
            "Loop");
}

TEST(RecurrentNodesTest, AnLstmWithSwappedGatesIsALoop) {
  const Dim batch("batch", 2), in("in", 2), hidden("hidden", 3), time("time", 4);
  struct Swapped : LstmCell {
    std::pair<Tensor, State> operator()(const Tensor& x, const State& s) const {
      const Tensor gates = matmul(x, input_weight, in) + matmul(s.h, recurrent_weight, hidden);
      const auto [i, f, g, o] = split<4>(gates, gate, hidden);
      const Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
      const Tensor h = sigmoid(o) * tanh(s.c);  // of the old c
      return {h, {h, c}};
    }
  };
  const Swapped cell{LstmCell::init(in, hidden)};
  const auto f = [&](const Tensor& xs) { return recur(cell, xs, time).outputs; };
  EXPECT_EQ(recurrent_op_of(onnx_bytes(f, random_normal({batch, time, in}))), "Loop");
}

TEST(RecurrentNodesTest, F64IsALoop) { EXPECT_EQ(op_of_scan(kTanh, f64), "Loop"); }

TEST(RecurrentNodesTest, AForwardPassWithResidualsIsALoop) {
  const auto f = [](const Weights& m, const Tensor& xs) {
    return grad([&](const Weights& m) {
      auto [ys, state, dim] = scan(
          Scan{.initial = zeros({2, 3}), .xs = xs, .body = [&](const Tensor& x, const Tensor& h) {
                 return kTanh(m, x, h);
               }});
      return sum(ys);
    })(m);
  };
  EXPECT_EQ(recurrent_op_of(onnx_bytes(f, std::tuple{some_weights(), some_xs()})), "LoopLoop");
}

}  // namespace
}  // namespace reel
