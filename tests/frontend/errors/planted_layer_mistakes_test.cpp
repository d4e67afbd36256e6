// Mistakes as new users make them, with attention, convolutions, signals and losses over
// alignments. Each error names the op, its arguments, the rule and the repair, and is compared as a
// whole.
#include "reel/tests/modes.h"

namespace reel {
namespace {

TEST(PlantedLayerMistakes, StepOfALayerThatSeesTheFuture) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), batch("batch", 2);
    const auto layer = MultiHeadAttention::init(model, 2);
    return layer(ones({batch, model}), layer.initial_state({batch}, Dim("past", 3))).first;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "MultiHeadAttention: steps need a causal layer; give init is_causal = true");
}

TEST(PlantedLayerMistakes, StepBeyondTheCache) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), batch("batch", 2);
    const auto layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
    const auto state = layer.initial_state({batch}, Dim("past", 1));
    const auto next = layer(ones({batch, model}), state).second;
    return layer(ones({batch, model}), next).first;
  };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "MultiHeadAttention: index 1 at [0] of i32[batch=2] is out of range for axis past=1 of "
            "f32[batch=2,past=1,key_heads=2,features=2], which has size 1\nThe state has no place "
            "behind past=1; make it with a larger dim: initial_state(dims, positions).");
}

TEST(PlantedLayerMistakes, CacheOfAnUnknownSize) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), time("time", 3);
    const auto layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
    return recur(layer, ones({time, model}), time).outputs;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "MultiHeadAttention: the number of positions in the state is not known; give init the "
            "option capacity, or initial_state a Dim");
}

TEST(PlantedLayerMistakes, CacheOfAnotherBatch) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), batch("batch", 2);
    const auto layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
    const auto state = layer.initial_state({Dim("batch", 3)}, Dim("past", 3));
    return layer(ones({batch, model}), state).first;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "MultiHeadAttention: x has the dim batch=2, which the state lacks: state.keys "
            "f32[batch=3,past=3,key_heads=2,features=2]; make the state with initial_state and the "
            "dims of x; the two called batch are not one Dim: use one Dim for both, as "
            "x.dim(\"batch\") gives it");
}

TEST(PlantedLayerMistakes, CacheWithoutABatch) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), batch("batch", 2);
    const auto layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
    return layer(ones({batch, model}), layer.initial_state({}, Dim("past", 3))).first;
  };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "MultiHeadAttention: x has the dim batch=2, which the state lacks: state.keys "
      "f32[past=3,key_heads=2,features=2]; make the state with initial_state and the dims of x");
}

TEST(PlantedLayerMistakes, CacheThatWasNotMade) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4);
    const auto layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
    return layer(ones({model}), MultiHeadAttention::State()).first;
  };
  EXPECT_EQ(
      message_of<ArgumentError>(mistake),
      "MultiHeadAttention: state.keys is an empty Tensor; assign a tensor to it first, and do "
      "not use one that was moved");
}

TEST(PlantedLayerMistakes, LayerThatWasNotMade) {
  struct Net {
    Linear first, second;
  };
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3), hidden("hidden", 4);
    const Net net{Linear::init(in, hidden), {}};
    return net.second(net.first(ones({in})));
  };
  EXPECT_EQ(
      message_of<ArgumentError>(mistake),
      "Linear: its parameter weight is an empty Tensor; make it with Linear::init, and do not "
      "call a layer that was moved");
}

template <class Cell>
void expect_state_names(const std::string& layer) {
  const std::string message = message_of<ArgumentError>([] { Cell().initial_state({}); });
  EXPECT_TRUE(message.starts_with(layer + ": its parameter ")) << message;
}

TEST(PlantedLayerMistakes, StateOfACellThatWasNotMade) {
  expect_state_names<RnnCell>("RnnCell");
  expect_state_names<GruCell>("GruCell");
  expect_state_names<LstmCell>("LstmCell");
  expect_state_names<ProjectedLstmCell>("ProjectedLstmCell");
  expect_state_names<LayerNormLstmCell>("LayerNormLstmCell");
  expect_state_names<SLstmCell>("SLstmCell");
  expect_state_names<MinGruCell>("MinGruCell");
}

TEST(PlantedLayerMistakes, LayerThatAStepHasTaken) {
  const auto mistake = []() -> Tensor {
    const Dim in("in", 3);
    RmsNorm norm = RmsNorm::init(in);
    const auto step = jit([](const RmsNorm& norm, const Tensor& x) {
      return std::pair{norm, norm(x)};
    });
    RmsNorm next = step(std::move(norm), ones({in})).first;
    return step(std::move(norm), ones({in})).second;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "RmsNorm: its parameter scale is an empty Tensor; make it with RmsNorm::init, and do "
            "not call a layer that was moved");
}

TEST(PlantedLayerMistakes, CellThatWasNotMade) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 3), in("in", 2);
    return recur(LstmCell(), ones({time, in}), time).outputs;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "recur: the cell has no input dim; make it with init");
}

TEST(PlantedLayerMistakes, AttentionWithoutASequence) {
  const auto mistake = []() -> Tensor {
    const Dim model("model", 4), batch("batch", 2), time("time", 3);
    return MultiHeadAttention::init(model, 2)(ones({batch, model}), time);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "MultiHeadAttention: x f32[batch=2,model=4] has no dim time=3 to attend along; for one "
            "time step, call layer(x, state)");
}

TEST(PlantedLayerMistakes, MaskOfNumbers) {
  const auto mistake = []() -> Tensor {
    const Dim query("query", 2), key("key", 3), model("model", 4);
    return attention(ones({query, model}), ones({key, model}), ones({key}), key, model,
                     {.mask = ones({query, key})});
  };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "attention: mask must be boolean, got f32[query=2,key=3]; a mask of 0 and "
            "1: mask != 0; numbers to add, as 0 and -inf: option bias");
}

TEST(PlantedLayerMistakes, RotaryOfAnOddSize) {
  const auto mistake = []() -> Tensor {
    return MultiHeadAttention::init(Dim("model", 6), 2, {.positions = PositionEncoding::rotary})
        .query.weight;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "MultiHeadAttention: rotary positions need an even number of features for each head, "
            "got 3: 6 over 2 heads");
}

TEST(PlantedLayerMistakes, FilterWithoutNames) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), in("in", 3), out("out", 2), taps("taps", 3);
    return conv(ones({time, in}), ones({taps, in, out}), time);
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "conv: the option taps has 0 dims of the filter f32[taps=3,in=3,out=2], but windows "
            "run over 1 axis of x f32[time=5,in=3]; give a dim of the filter for each: {.taps = "
            "{taps}, .in = {in}}");
}

TEST(PlantedLayerMistakes, ConvInTheLayoutOfPyTorch) {
  const auto mistake = []() -> Tensor { return conv(ones({2, 3, 10}), ones({4, 3, 5}), 2); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "conv: x f32[2,3,10] and filter f32[4,3,5] over 1 axis: plain operands are x [..., in] "
            "and filter [taps..., in, out]; transpose PyTorch's, which are [batch, in, ...] and "
            "[out, in, taps...]");
}

TEST(PlantedLayerMistakes, ConvOfOtherGroups) {
  const auto mistake = []() -> Tensor {
    return conv(ones({2, 10, 3}), ones({5, 3, 4}), 1, {.groups = 2});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "conv: x f32[2,10,3] has 3 input channels, but filter f32[5,3,4] has 3 for each of 2 "
            "groups, 6 together");
}

TEST(PlantedLayerMistakes, ConvAlongAnotherTime) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), in("in", 3), out("out", 2);
    return Conv::init({3}, in, out)(ones({time, in}), Dim("time", 5));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "conv: f32[time=5,in=3] has no dim time=5; the two called time are not one Dim: use "
            "one Dim for both, as x.dim(\"time\") gives it");
}

TEST(PlantedLayerMistakes, StrideOfZero) {
  const auto mistake = []() -> Tensor {
    return conv(ones({2, 10, 3}), ones({5, 3, 4}), 1, {.stride = 0});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake), "conv: stride 0; it must be positive");
}

TEST(PlantedLayerMistakes, ResidualAroundAShorterConv) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), taps("taps", 3);
    const Tensor x = ones({time});
    return x + conv(x, ones({taps}), time, {.taps = {taps}});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "add: dims differ: lhs f32[time=5] lacks time-2=3, rhs f32[time-2=3] lacks time=5; "
            "each lacks a dim of the other, but one operand must have all dims of the result: give "
            "it the missing ones with expand; time-2=3 is computed from time=5: pad or slice one "
            "tensor to the dim of the other");
}

TEST(PlantedLayerMistakes, PoolOfIntegers) {
  const auto mistake = []() -> Tensor { return mean_pool(ones({2, 9}, i32), 1, {.size = 2}); };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "mean_pool: takes floats, got i32[2,9]; cast it to f32 or f64");
}

TEST(PlantedLayerMistakes, LogitsOverTheLabels) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), label_time("label_time", 3), vocab("vocab", 4);
    return transducer_loss(zeros({time, label_time, vocab}), ones({label_time}, i32),
                           {time, label_time, label_time + 1, vocab});
  };
  EXPECT_EQ(
      message_of<ShapeError>(mistake),
      "transducer_loss: the logits f32[time=5,label_time=3,vocab=4] run over label_time=3, the dim "
      "of the labels; they need dims.prefix, which has one element more: label_time + 1");
}

TEST(PlantedLayerMistakes, TransducerDimsInAnotherOrder) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), label_time("label_time", 3), vocab("vocab", 4);
    const Dim prefix = label_time + 1;
    return transducer_loss(zeros({time, prefix, vocab}), ones({label_time}, i32),
                           {time, prefix, label_time, vocab});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "transducer_loss: the dims are {time, label_time, prefix, vocab} in this order, but "
            "label_time+1=4 is a dim of the logits f32[time=5,label_time+1=4,vocab=4] and "
            "label_time=3 one of the labels i32[label_time=3]: exchange them");
}

TEST(PlantedLayerMistakes, LabelThatIsTheBlank) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), label_time("label_time", 3), vocab("vocab", 4);
    const Dim prefix = label_time + 1;
    return transducer_loss(zeros({time, prefix, vocab}), zeros({label_time}, i32),
                           {time, label_time, prefix, vocab});
  };
  EXPECT_EQ(message_of<IndexError>(mistake),
            "transducer_loss: label 0 at [0] of i32[label_time=3] is the blank; labels are other "
            "positions along vocab=4");
}

TEST(PlantedLayerMistakes, UtteranceWithoutFrames) {
  const auto mistake = []() -> Tensor {
    const Dim batch("batch", 2), time("time", tensor({5, 0}, {batch})), vocab("vocab", 4);
    const Dim label_time("label_time", 3), prefix = label_time + 1;
    return transducer_loss(zeros({batch, time, prefix, vocab}), ones({batch, label_time}, i32),
                           {time, label_time, prefix, vocab});
  };
  EXPECT_EQ(message_of<AssertionError>(mistake),
            "assert_that: transducer_loss: the entry has an alignment; one without frames has none "
            "(zero_infinity leaves it out)\nfalse at [batch=1]");
}

TEST(PlantedLayerMistakes, BeamsOfPlainLogits) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), vocab("vocab", 4), beam("beam", 3);
    return ctc_beam_search(zeros({5, 4}), {time, vocab, beam}).score;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_beam_search: logits must have named dims [..., time=5,vocab=4] without beam=3, "
            "got f32[5,4]; name its dims, as in reshape(x, {dim, ...})");
}

TEST(PlantedLayerMistakes, BeamDimsInAnotherOrder) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), vocab("vocab", 4), beam("beam", 3);
    return ctc_beam_search(zeros({time, vocab}), {beam, vocab, time}).score;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_beam_search: logits must have named dims [..., beam=3,vocab=4] without time=5, "
            "got f32[time=5,vocab=4]; the dims are {time, vocab, beam} in this order");
}

TEST(PlantedLayerMistakes, ScorerOfSymbols) {
  const auto mistake = []() -> Tensor {
    const Dim time("time", 5), vocab("vocab", 4), beam("beam", 3);
    const auto scorer = [](const Tensor& state, const Tensor& symbol) {
      return std::pair{symbol, state};
    };
    return ctc_beam_search(zeros({time, vocab}), {time, vocab, beam}, zeros({}), scorer).score;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_beam_search: the scorer must return floating log p over vocab=4, got i32[beam=3]");
}

TEST(PlantedLayerMistakes, SpectrumOfIntegers) {
  const auto mistake = []() -> Tensor { return stft(ones({800}, i32), 0).re; };
  EXPECT_EQ(message_of<DTypeError>(mistake), "stft: x must be f32 or f64, got i32[800]; cast it");
}

TEST(PlantedLayerMistakes, WindowLongerThanAFrame) {
  const auto mistake = []() -> Tensor {
    return stft(ones({800}), 0, {.size = 100, .window = ones({200})}).re;
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "stft: the window is f32[200]; it has one axis of at most 100 elements");
}

TEST(PlantedLayerMistakes, SignalOfAnotherSpectrum) {
  const auto mistake = []() -> Tensor {
    return istft(stft(ones({800}), 0, {.size = 100}), 0, Dim(800), {.size = 200});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "istft: x f32[33,51] has 51 frequencies behind the frames, but a transform of size 200 "
            "has 101; pass the options that stft had");
}

TEST(PlantedLayerMistakes, FiltersAboveHalfOfTheRate) {
  const auto mistake = []() -> Tensor {
    return log_mel(ones({800}), 0, Dim(40), {.mel = {.rate = 16000, .high = 9000}});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "mel_filters: low 0 and high 9000 must be between 0 and half of the rate 16000");
}

TEST(PlantedLayerMistakes, HalfOfAnOddSize) {
  const auto mistake = []() -> Tensor { return ones({Dim("a", 7) / Dim("b", 2)}); };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Dim a/b: 7 is no multiple of 2; to round, divide by a number");
}

TEST(PlantedLayerMistakes, StackOfOtherLengths) {
  const Tensors rows{ones({Dim("time", 2)}), ones({Dim("time", 3)})};
  const Dim batch("batch", 2), time("time", tensor({2, 3}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([&] { return stack(rows, batch); }),
            "stack: dims differ: tensor 0 is f32[time=2], tensor 1 is f32[time=3]; all must have "
            "the same dims; rows of different lengths make one ragged tensor: unpack(concat(rows, "
            "0), 0, {batch, time})");
  EXPECT_EQ(str(unpack(concat(rows, 0), 0, {batch, time}).type()), "f32[batch=2,time[batch=2]]");
}

TEST(PlantedLayerMistakes, StackOfOtherDims) {
  const auto mistake = []() -> Tensor {
    return stack({ones({Dim("time", 2)}), ones({Dim("feature", 3)})}, Dim("batch", 2));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "stack: dims differ: tensor 0 is f32[time=2], tensor 1 is f32[feature=3]; all must "
            "have the same dims");
}

TEST(PlantedLayerMistakes, RowsForAnotherBatch) {
  const auto mistake = []() -> Tensor {
    const std::vector<std::vector<float>> rows{{1, 2}, {3}};
    return ragged(rows, {Dim("batch", 3), Dim("time")});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake), "ragged: rows has 2 items, but batch=3 has 3 there");
}

TEST(PlantedLayerMistakes, RowsWithoutADimOfTheirElements) {
  const auto mistake = []() -> Tensor {
    const std::vector<std::vector<float>> rows{{1, 2}, {3}};
    return ragged(rows, {Dim("batch", 2)});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "ragged: the rows are nested 2 deep, but 1 dims are given, [batch=2]; give one for "
            "each level");
}

TEST(PlantedLayerMistakes, LengthsWithoutABatch) {
  const auto mistake = []() -> Tensor { return ones({Dim("time", tensor({1, 2}))}); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "Dim time: lengths i32[2] have plain sizes; give them named dims, as in tensor({3, 1}, "
            "{batch})");
}

}  // namespace
}  // namespace reel
