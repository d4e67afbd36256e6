// Mistakes as new users make them, with dims of layers, losses, signals and arrays: wrong ones, in
// another order, or plain sizes. Each error names the function, its arguments, the rule and the
// repair, and is compared as a whole.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class PlantedDimMistakes : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, time{"time", 3}, channel{"channel", 4}, other{"other", 3};
  const Dim labels{"labels", 2}, vocab{"vocab", 5}, taps{"taps", 3};
  const Tensor x = zeros({batch, time, channel});
};

TEST_F(PlantedDimMistakes, BatchNormOverItsChannel) {
  const auto mistake = [&] {
    const BatchNorm norm = BatchNorm::init(channel);
    return norm(x, norm.initial_state(), {batch, time, channel}).first;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "BatchNorm: over has channel=4, whose elements are normalised alone; list the other "
            "dims of x f32[batch=2,time=3,channel=4], or none");
}

TEST_F(PlantedDimMistakes, ConvolutionOverItsChannels) {
  const auto mistake = [&] {
    return conv(x, zeros({taps, channel, other}), channel, {.taps = {taps}, .in = {channel}});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "conv: windows run over channel=4, which is in `in`, too; let them run over another dim"
            " of x f32[batch=2,time=3,channel=4], such as time");
}

TEST_F(PlantedDimMistakes, ConvolutionToADimOfAnotherSize) {
  const auto mistake = [&] {
    return conv(x, zeros({taps, channel, other}), time,
                {.taps = {taps}, .in = {channel}, .to = {Dim("frames", 9)}});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "conv: dim frames=9 has size 9, but the axis of windows of 3 over axis time=3 of "
            "f32[batch=2,time=3,channel=4] has size 1");
}

TEST_F(PlantedDimMistakes, TransposedConvolutionToADimOfAnotherSize) {
  const auto mistake = [&] {
    return conv(x, zeros({taps, channel, other}), time,
                {.taps = {taps},
                 .in = {channel},
                 .stride = 2,
                 .transposed = true,
                 .to = {Dim("frames", 20)}});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "conv: transposed, f32[batch=2,time=3,channel=4] has windows along time=3, but the dim "
            "frames=20 of the result has 9 windows; leave `to` out, or give the dim that was "
            "convolved");
}

TEST_F(PlantedDimMistakes, StepOfAConvolutionWithASequence) {
  const auto mistake = [&] {
    const CausalConv layer = CausalConv::init(3, channel, other);
    return layer(x, layer.initial_state({batch})).first;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "CausalConv: the state lacks the dim time=3: x f32[batch=2,time=3,channel=4], state "
            "f32[batch=2,past=2,channel=4]; make the state with initial_state, of the dims of x "
            "without channel=4; for a whole sequence, call layer(x, time, state)");
}

TEST_F(PlantedDimMistakes, ConvolutionWithAStateWithoutBatch) {
  const auto mistake = [&] {
    const CausalConv layer = CausalConv::init(3, channel, other);
    return layer(x, time, layer.initial_state({})).first;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "CausalConv: the state lacks the dim batch=2: x f32[batch=2,time=3,channel=4], state "
            "f32[past=2,channel=4]; make the state with initial_state, of the dims of x without "
            "channel=4 and time=3");
}

TEST_F(PlantedDimMistakes, MemoryWithOtherFeatures) {
  const auto mistake = [&] {
    const MultiHeadAttention layer = MultiHeadAttention::init(channel, 2);
    return layer(x, layer.of(zeros({batch, labels, other}), labels));
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "MultiHeadAttention: the memory f32[batch=2,labels=2,other=3] has no dim channel=4, the"
            " features of x; for a memory with other features, give init the option memory, their "
            "dim");
}

TEST_F(PlantedDimMistakes, FramesAndLabelsOfCtcExchanged) {
  const auto mistake = [&] {
    return ctc_loss(zeros({batch, time, vocab}), ones({batch, labels}, i32), {labels, time, vocab});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_loss: the dims are {time, label_time, vocab} in this order, but time=3 is a dim of"
            " the logits f32[batch=2,time=3,vocab=5] and labels=2 one of the labels "
            "i32[batch=2,labels=2]: exchange them");
}

TEST_F(PlantedDimMistakes, PlainLogitsOfCtc) {
  const auto mistake = [&] {
    return ctc_loss(zeros({2, 3, 5}), ones({batch, labels}, i32), {time, labels, vocab});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_loss: logits must have named dims [..., time=3,vocab=5], and labels the same but "
            "with labels=2 in the place of these two: logits f32[2,3,5], labels "
            "i32[batch=2,labels=2]; name the dims of both, as in reshape(x, {dim, ...})");
}

TEST_F(PlantedDimMistakes, PlainLogitsOfATransducer) {
  const auto mistake = [&] {
    return transducer_loss(zeros({2, 3, 3, 5}), ones({batch, labels}, i32),
                           {time, labels, labels + 1, vocab});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "transducer_loss: logits must have named dims [..., time=3,labels+1=3,vocab=5], and "
            "labels the same but with labels=2 in the place of these three: logits f32[2,3,3,5], "
            "labels i32[batch=2,labels=2]; name the dims of both, as in reshape(x, {dim, ...})");
}

TEST_F(PlantedDimMistakes, OneDimForBothSequencesOfAnEditDistance) {
  const auto mistake = [&] {
    const Tensor symbols = ones({batch, labels}, i32);
    return edit_distance(symbols, symbols, {labels, labels});
  };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "edit_distance: time and reference_time are both labels=2; rename the dim of the "
            "references: rename(references, labels, Dim(\"reference\"))");
}

TEST_F(PlantedDimMistakes, DimsOfAnEditDistanceExchanged) {
  const auto mistake = [&] {
    return edit_distance(ones({batch, labels}, i32), ones({batch, time}, i32), {time, labels});
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "edit_distance: hypotheses must have time=3, references labels=2 and otherwise only "
            "dims of the hypotheses, got i32[batch=2,labels=2] and i32[batch=2,time=3]; exchange "
            "the dims: they are {time, reference_time}");
}

TEST_F(PlantedDimMistakes, ScorerOfPlainSizes) {
  const auto mistake = [&] {
    const auto scorer = [](const Tensor& state, const Tensor&) {
      return std::pair{zeros({2, 2, 5}), state};
    };
    return ctc_beam_search(zeros({batch, time, vocab}), {time, vocab, Dim("beam", 2)}, scalar(0),
                           scorer)
        .score;
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "ctc_beam_search: the scorer must return floating log p over vocab=5, got f32[2,2,5]; "
            "name its dims, as in reshape(x, {dim, ...})");
}

TEST_F(PlantedDimMistakes, PaddingWithValuesAlongTheAxis) {
  const auto along = [&] { return pad(x, time, 1, 1, zeros({batch, time})); };
  const auto foreign = [&] { return pad(x, time, 1, 1, zeros({other})); };
  EXPECT_EQ(message_of<ShapeError>(along),
            "pad: the value f32[batch=2,time=3] has the dim time=3, along which x is padded: x "
            "f32[batch=2,time=3,channel=4]; give a scalar, or a value over other dims of x");
  EXPECT_EQ(message_of<ShapeError>(foreign),
            "pad: the value f32[other=3] has the dim other=3, which x lacks: x "
            "f32[batch=2,time=3,channel=4]; give a scalar, or a value over other dims of x");
}

TEST_F(PlantedDimMistakes, SearchesForAnotherType) {
  const auto mistake = [&] { return search_sorted(zeros({other}), zeros({vocab}, i32), other); };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "search_sorted: dtypes differ, or are boolean: f32[other=3] and i32[vocab=5]; cast them"
            " to one dtype of numbers");
}

TEST_F(PlantedDimMistakes, FactorOverAnotherDim) {
  const auto mistake = [&] { return scale_gradient(x, zeros({other})); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "scale_gradient: the factor f32[other=3] has the dim other=3, which x lacks: x "
            "f32[batch=2,time=3,channel=4]; give a number, or a factor over dims of x");
}

TEST_F(PlantedDimMistakes, BoundsOverAnotherDim) {
  const auto mistake = [&] { return random_integers({batch}, zeros({time}, i32), 5); };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "random_integers: low i32[time=3] has the dim time=3, which the dims of the result "
            "lack: [batch=2]; give a number, or a bound over dims of the result");
}

TEST_F(PlantedDimMistakes, PlainSizesOfFeatures) {
  const auto plain_mel = [&] {
    return log_mel(zeros({batch, time}), time, 4, {.stft = {.size = 2, .hop = 1}});
  };
  const auto named_mel = [&] {
    return log_mel(zeros({2, 8}), 1, channel, {.stft = {.size = 2, .hop = 1}});
  };
  const auto plain_mfcc = [&] { return mfcc(x, channel, 3); };
  EXPECT_EQ(message_of<ArgumentError>(plain_mel),
            "log_mel: mel is 4, a plain size, but x f32[batch=2,time=3] has named dims; give it a "
            "name, as in Dim(\"mel\", 4)");
  EXPECT_EQ(message_of<ArgumentError>(named_mel),
            "log_mel: mel is channel=4, a named dim, but x f32[2,8] has plain ones; give the size, "
            "4");
  EXPECT_EQ(message_of<ArgumentError>(plain_mfcc),
            "mfcc: coefficient is 3, a plain size, but x f32[batch=2,time=3,channel=4] has named "
            "dims; give it a name, as in Dim(\"coefficient\", 3)");
}

TEST_F(PlantedDimMistakes, PlateauWithoutAState) {
  const auto mistake = [] { return Plateau{}(1., {}).first; };
  EXPECT_EQ(message_of<ArgumentError>(mistake),
            "Plateau: state.rate is an empty Tensor; make the state with initial_state, and do not "
            "use one that was moved");
}

}  // namespace
}  // namespace reel
