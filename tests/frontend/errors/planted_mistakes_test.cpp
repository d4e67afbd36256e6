// Mistakes as new users make them, in all parts of the library. Each error names the op, its
// arguments, the rule and the repair, and is compared as a whole.
#include "reel/tests/modes.h"

namespace reel {
namespace {

TEST(PlantedMistakes, TwoDimsOfOneName) {
  const auto mistake = []() -> Tensor {
    const Dim a("time", 3), b("time", 3);
    return ones({a}) + ones({b});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "add: dims differ: lhs f32[time=3] lacks time=3, rhs f32[time=3] lacks time=3; each "
            "lacks a dim of the other, but one operand must have all dims of the result: give it "
            "the missing ones with expand; the two called time are not one Dim: use one Dim for "
            "both, as x.dim(\"time\") gives it");
}

TEST(PlantedMistakes, MatmulOfOtherSizes) {
  const auto mistake = []() -> Tensor { return matmul(ones({2, 3}), ones({4, 5})); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "matmul: inner sizes differ: lhs f32[2,3] has 3 columns, rhs f32[4,5] has 4 rows");
}

TEST(PlantedMistakes, DotOverAMissingDim) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), out("out", 2), time("time", 4);
    return matmul(ones({time, in}), ones({in, out}), out);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "matmul: lhs f32[time=4,in=3] has no dim out=2 to contract with rhs f32[in=3,out=2]");
}

TEST(PlantedMistakes, LinearOfAnotherWidth) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), out("out", 2), x("x", 5);
    return Linear::init(in, out)(ones({x}));
  };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "Linear: x f32[x=5] has no dim in=3, which the layer takes; make the layer with a dim of x");
}

TEST(PlantedMistakes, LinearOfIntegers) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), out("out", 2);
    return Linear::init(in, out)(range(in));
  };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "Linear: dtypes differ: x i32[in=3], parameters f32; cast x to f32, or make the layer "
            "with dtype f64");
}

TEST(PlantedMistakes, EmbeddingOfFractions) {
  const auto mistake = []() -> Tensor {
    const Dim vocab("vocab", 5), feature("feature", 2), time("time", 3);
    return Embedding::init(vocab, feature)(ones({time}));
  };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "Embedding: indices must be i32 or i64, got f32[time=3]; cast them");
}

TEST(PlantedMistakes, EmbeddingBeyondTheVocab) {
  const auto mistake = []() -> Tensor {
    const Dim vocab("vocab", 5), feature("feature", 2), time("time", 3);
    return Embedding::init(vocab, feature)(tensor({1, 5, 0}, {time}));
  };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "Embedding: index 5 at [1] of i32[time=3] is out of range for axis vocab=5 of "
            "f32[vocab=5,feature=2], which has size 5");
}

TEST(PlantedMistakes, CrossEntropyOfFractionLabels) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2), vocab("vocab", 3);
    return cross_entropy(ones({batch, vocab}), ones({batch}), vocab);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "cross_entropy: targets must have the dims of logits where they are probabilities: "
            "f32[batch=2,vocab=3], targets f32[batch=2]; numbers of classes are integers: "
            "cast(targets, i32)");
}

TEST(PlantedMistakes, CrossEntropyBeyondTheVocab) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2), vocab("vocab", 3);
    return cross_entropy(ones({batch, vocab}), tensor({1, 3}, {batch}), vocab);
  };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "cross_entropy: index 3 at [1] of i32[batch=2] is out of range for axis vocab=3 of "
            "f32[batch=2,vocab=3], which has size 3");
}

TEST(PlantedMistakes, CellRunAlongItsInput) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), hidden("hidden", 2), time("time", 4);
    return recur(LstmCell::init(in, hidden), ones({time, in}), in).outputs;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "recur: in=3 is the input dim of the cell; run along another dim of f32[time=4,in=3]");
}

TEST(PlantedMistakes, CellOfAnotherInput) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), x("in", 3), hidden("hidden", 2), time("time", 4);
    return recur(LstmCell::init(in, hidden), ones({time, x}), time).outputs;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "recur: xs f32[time=4,in=3] has no dim in=3, which the cell takes; the two called in "
            "are not one Dim: use one Dim for both, as x.dim(\"in\") gives it");
}

TEST(PlantedMistakes, StateOfAnotherCell) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), hidden("hidden", 2), other("other", 5), batch("batch", 2);
    const auto cell = GruCell::init(in, hidden);
    return cell(ones({batch, in}), ones({batch, other})).first;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "GruCell: the state f32[batch=2,other=5] has no dim hidden=2, which the layer takes; "
            "if batch=2 is meant, rename it: rename(x, batch, hidden)");
}

TEST(PlantedMistakes, StackOfAnotherWidth) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), hidden("hidden", 2), wrong("wide", 5), time("time", 4);
    const auto cell = [&](const Dim& from) { return RnnCell::init(from, hidden); };
    const std::vector layers{std::pair{cell(in), cell(in)}, std::pair{cell(wrong), cell(wrong)}};
    return bidirectional_stack(layers, ones({time, in}), time).outputs;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "bidirectional_stack: layer 0: both directions together have 2 + 2 = 4 features, but "
            "in_dim() of layer 1 is wide=5; make it of size 4");
}

TEST(PlantedMistakes, BidirectionalOutOfOneDirection) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), hidden("hidden", 2), time("time", 4);
    const auto cell = RnnCell::init(in, hidden);
    return bidirectional(cell, cell, ones({time, in}), time, {.out = Dim("out", 2)}).outputs;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "bidirectional: both directions together have 2 + 2 = 4 features, but options.out is "
            "out=2; make it of size 4");
}

TEST(PlantedMistakes, CtcOverTheFramesTime) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 1), time("time", tensor({8}, {batch})), vocab("vocab", 3);
    const Dim label_time("label_time", tensor({1}, {batch})), shorter = ceildiv(time, 4);
    return ctc_loss(ones({batch, shorter, vocab}), ones({batch, label_time}, i32),
                    {time, label_time, vocab});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_loss: the logits f32[batch=1,ceildiv(time,4)[batch=1],vocab=3] run over "
            "ceildiv(time,4)[batch=1], not over time[batch=1]: pass ceildiv(time,4)[batch=1] as "
            "dims.time, as the layer that shortened the frames returns it, or as the same "
            "arithmetic on time makes it");
}

TEST(PlantedMistakes, CtcDimsInAnotherOrder) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 1), time("time", tensor({8}, {batch})), vocab("vocab", 3);
    const Dim label_time("label_time", tensor({1}, {batch}));
    return ctc_loss(ones({batch, time, vocab}), ones({batch, label_time}, i32),
                    {time, vocab, label_time});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_loss: the dims are {time, label_time, vocab} in this order, but vocab=3 is a dim "
            "of the logits f32[batch=1,time[batch=1],vocab=3] and label_time[batch=1] one of the "
            "labels i32[batch=1,label_time[batch=1]]: exchange them");
}

TEST(PlantedMistakes, HeadsThatDoNotDivide) {
  const auto mistake = []() -> Tensor {
    return MultiHeadAttention::init(Dim("model", 10), 3).query.weight;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "MultiHeadAttention: 3 heads do not divide model model=10");
}

TEST(PlantedMistakes, ConvOfAnotherChannel) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), out("out", 2), time("time", 4), other("other", 3);
    return CausalConv::init(3, in, out)(ones({time, other}), time);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "CausalConv: x f32[time=4,other=3] has no dim in=3, which the layer takes; if other=3 "
            "is meant, rename it: rename(x, other, in)");
}

TEST(PlantedMistakes, GroupsThatDoNotDivide) {
  const auto mistake = []() -> Tensor { return GroupNorm::init(3, Dim("channel", 8)).scale; };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "GroupNorm: 3 groups do not divide channel channel=8");
}

TEST(PlantedMistakes, NormOverAMissingDim) {
  const auto mistake = []() -> Tensor {
    const Dim feature("feature", 3), other("other", 3);
    return LayerNorm::init(feature)(ones({other}));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "LayerNorm: x f32[other=3] has no dim feature=3, which the layer takes; if other=3 is "
            "meant, rename it: rename(x, other, feature)");
}

TEST(PlantedMistakes, DropoutOfEverything) {
  const auto mistake = []() -> Tensor { return Dropout{.rate = 1.5}(ones({3})); };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "dropout: rate must lie in [0, 1], got 1.5");
}

TEST(PlantedMistakes, SumOverAMissingDim) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2), time("time", 3);
    return sum(ones({batch}), time);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake), "sum: f32[batch=2] has no dim time=3");
}

TEST(PlantedMistakes, AxisBeyondTheRank) {
  const auto mistake = []() -> Tensor { return sum(ones({2, 3}), 2); };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "sum: axis 2 is out of range for f32[2,3], which has 2 axes");
}

TEST(PlantedMistakes, ReshapeOfAnotherNumber) {
  const auto mistake = []() -> Tensor { return reshape(ones({2, 3}), {4, 2}); };
  EXPECT_EQ(message_of<ShapeError>(mistake), "reshape: f32[2,3] has 6 elements, f32[4,2] has 8");
}

TEST(PlantedMistakes, ConcatOfOtherRows) {
  const auto mistake = []() -> Tensor { return concat({ones({2, 3}), ones({2, 4})}, 0); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "concat: dims differ: tensor 0 is f32[2,3], tensor 1 is f32[2,4]; all dims but axis 0 "
            "of f32[2,3] must agree");
}

TEST(PlantedMistakes, StackOfOtherShapes) {
  const auto mistake = []() -> Tensor { return stack({ones({2}), ones({3})}); };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "stack: dims differ: tensor 0 is f32[2], tensor 1 is f32[3]; all must have the same dims");
}

TEST(PlantedMistakes, NumberBeyondTheEnd) {
  const auto mistake = []() -> Tensor { return gather(ones({3}), 5, 0); };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "gather: index 5 is out of range for axis 0 of f32[3], which has size 3");
}

TEST(PlantedMistakes, ElementBeyondTheEnd) {
  const auto mistake = []() -> Tensor { return ones({3})[3]; };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "operator[]: index 3 is out of range for axis 0 of f32[3], which has size 3");
}

TEST(PlantedMistakes, TransposeOfOneAxisTwice) {
  const auto mistake = []() -> Tensor { return transpose(ones({2, 3}), {0, 0}); };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "transpose: axis 0 of f32[2,3] is named twice");
}

TEST(PlantedMistakes, WhereOfNumbers) {
  const auto mistake = []() -> Tensor { return where(ones({3}), 1.0, 0.0); };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "where: the condition must be boolean, but is f32[3]; compare it, e.g. condition != 0");
}

TEST(PlantedMistakes, TopKWithItsArgumentsExchanged) {
  const auto mistake = []() -> Tensor { return top_k(ones({3}), 5, 0).values; };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "top_k: axis 5 is out of range for f32[3], which has 1 axis");
}

TEST(PlantedMistakes, GradientOfAVector) {
  const auto mistake = []() -> Tensor {
    return grad([](const Tensor& x) { return x * 2.0; })(ones({3}));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "grad: the function must return a scalar, got f32[3]; reduce it, with sum or mean");
}

TEST(PlantedMistakes, GradientOfIntegers) {
  const auto mistake = []() -> Tensor {
    return grad([](const Tensor& x) { return sum(x); })(range(3));
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "grad: the first argument has no floating tensor to take the gradient of; a model that "
            "trains has floating parameters");
}

TEST(PlantedMistakes, ItemOfAVector) {
  const auto mistake = []() -> Tensor { return scalar(ones({3}).item<float>()); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "item: a tensor of type f32[3] has 3 elements, not one");
}

TEST(PlantedMistakes, ItemInATrace) {
  const auto mistake = []() -> Tensor {
    return jit([](const Tensor& x) { return x * x.item<float>(); })(scalar(2.0));
  };
  EXPECT_EQ(
      message_of<TraceError>(mistake),
      "item: the value of a tensor of type f32[] is not known while tracing, so it cannot steer "
      "C++; use cond, while_loop, scan or where, or return it from the traced function");
}

TEST(PlantedMistakes, ConditionInATrace) {
  const auto mistake = []() -> Tensor {
    return jit([](const Tensor& x) { return x.item<bool>() ? x : x * 2.0; })(scalar(true));
  };
  EXPECT_EQ(
      message_of<TraceError>(mistake),
      "item: the value of a tensor of type boolean[] is not known while tracing, so it cannot "
      "steer C++; use cond, while_loop, scan or where, or return it from the traced function");
}

TEST(PlantedMistakes, ALeakedPromiseIsRefused) {
  const auto mistake = []() -> Tensor {
    Tensor kept;
    jit([&](const Tensor& x) { return kept = x * 2.0; })(scalar(1.0));
    return kept + 1.0;
  };
  EXPECT_EQ(message_of<TraceError>(mistake),
            "add: a value of type f32[] that mul made in jit \"jit\" is used outside of it; values "
            "leave a body only through its state or outputs, a branch or a traced function only "
            "through its result");
}

TEST(PlantedMistakes, AnEmptyTensorIsRefused) {
  const auto mistake = []() -> Tensor {
    struct Model {
      Tensor w;
    };
    return Model{}.w * 2.0;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "mul: was given an empty Tensor; assign a tensor to it first, and do not use one that "
            "was moved");
}

TEST(PlantedMistakes, WhileOnAVector) {
  const auto mistake = []() -> Tensor {
    return while_loop([](const Tensor& x) { return x < 3.0; },
                      [](const Tensor& x) { return x + 1.0; }, zeros({2}));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "while_loop \"while\": cond must return a boolean scalar, got boolean[2]; reduce it "
            "with any or all, or use scan, whose entries end one by one");
}

TEST(PlantedMistakes, BranchesOfOtherTypes) {
  const auto mistake = []() -> Tensor {
    const auto pick = [](const Tensor& x) {
      return cond(
          x > 0.0, [] { return ones({2}); }, [] { return ones({3}); });
    };
    return jit(pick)(scalar(1.0));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "cond: the branches return different types\n  result: f32[2] if true, f32[3] if false "
            "(dims differ)\nReturn the same type from both.");
}

TEST(PlantedMistakes, XsOfOtherLengths) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 3);
    const auto body = [](const std::pair<Tensor, Tensor>& x, const Tensor& s) {
      return std::pair{None{}, s + x.first + x.second};
    };
    return scan(Scan{.initial = scalar(0.0), .xs = std::pair{ones({3}), ones({4})}, .body = body})
        .state;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "scan \"scan\": xs differ in the size of their first axis\n  xs.0: f32[3]\n  xs.1: "
            "f32[4]\nPlain tensors are scanned along it: cut them to one length.");
}

TEST(PlantedMistakes, ArrayOfAnotherElement) {
  const auto mistake = []() -> Tensor {
    return TensorArray(TensorType(f32, {2})).push_back(ones({3})).stack();
  };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "TensorArray push_back: an element of type f32[3] does not fit an array of f32[2]: dims "
      "differ; give every element the dims of the array's, in which sizes that differ are unknown");
}

TEST(PlantedMistakes, ReadBeyondAnArray) {
  const auto mistake = []() -> Tensor {
    return TensorArray(TensorType(f32, {2}), {.size = 1}).read(1);
  };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "TensorArray read: index 1 is out of range for 1 elements");
}

TEST(PlantedMistakes, ClipOfNothingPositive) {
  const auto mistake = []() -> Tensor { return clip_by_global_norm(ones({3}), -1.0).first; };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "clip_by_global_norm: max_norm must be positive, got -1");
}

TEST(PlantedMistakes, NegativeRateOfAdam) {
  const auto mistake = []() -> Tensor {
    Tensor w = ones({2});
    Adam<Tensor> adam(w, {.learning_rate = -1.0});
    adam.update(w, ones({2}));
    return w;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Adam: learning_rate must be a number that is not negative, got -1");
}

TEST(PlantedMistakes, GradientsOfAnotherModel) {
  const auto mistake = []() -> Tensor {
    Tensor w = ones({2});
    Adam<Tensor> adam(w, {.learning_rate = 0.1});
    adam.update(w, ones({3}));
    return w;
  };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "Adam: types differ from those of the parameters\n  the tensor: f32[2], its gradient f32[3]");
}

TEST(PlantedMistakes, RangeOfANegativeSize) {
  const auto mistake = []() -> Tensor { return range(-3); };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "range: a size must not be negative, got -3; range(n) has the numbers 0 to n - 1");
}

TEST(PlantedMistakes, LengthsBelowZero) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2);
    return ones({batch, Dim("time", tensor({1, -1}, {batch}))});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "Dim time: lengths must not be negative, got -1");
}

TEST(PlantedMistakes, LengthsOfFractions) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2);
    return ones({batch, Dim("time", tensor({1.0, 2.0}, {batch}))});
  };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "Dim time: lengths must be integers, got f32[batch=2]");
}

TEST(PlantedMistakes, OtherFileThanTensors) {
  const auto mistake = []() -> Tensor { return load_npy("/dev/null"); };
  EXPECT_EQ(message_of<IoError>(mistake), "load_npy: /dev/null is no regular file");
}

TEST(PlantedMistakes, ANegativeSizeIsRefused) {
  const auto mistake = []() -> Tensor { return ones({Dim("time", -1)}); };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Dim time: a size must not be negative, got -1; Dim(name) without a size makes a dim "
            "to be defined later");
}

// Three labels do not fit into two frames of the second utterance.
TEST(PlantedMistakes, AnImpossibleUtteranceIsNamedByItsEntry) {
  const Dim batch("batch", 2), time("time", tensor({5, 2}, {batch})), vocab("vocab", 4);
  const Dim label_time("label_time", 3);
  const auto mistake = [&] {
    return check_numerics(
        ctc_log_likelihood(zeros({batch, time, vocab}), ones({batch, label_time}, i32),
                           {time, label_time, vocab}),
        "likelihood");
  };
  EXPECT_EQ(message_of<NumericsError>(mistake),
            "check_numerics \"likelihood\": f32[batch=2] is -inf at [batch=1]");
}

}  // namespace
}  // namespace reel
