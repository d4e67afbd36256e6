// examples/speech/model.h — Recogniser, which writes down the digits that a voice speaks, and its
// loss.
#pragma once

#include <reel/reel.h>

#include <utility>
#include <vector>

/// The features of a frame of ten milliseconds, and the symbols: blank, then the digits 0 to 9.
inline const reel::Dim mel("mel", 40), symbol("symbol", 11);

/// Two convolutions, which each halve the number of frames, and layers of two cells, one for each
/// direction. Cell: reel::LstmCell, reel::GruCell or reel::RnnCell.
template <class Cell>
struct Recogniser {
  reel::Conv first, second;
  std::vector<std::pair<Cell, Cell>> layers;  ///< the lowest first
  reel::Linear readout;
  reel::Dropout dropout{.rate = 0.2};

  static Recogniser random(int hidden_size, int layer_count) {
    const reel::Dim channel("channel", hidden_size), hidden("hidden", hidden_size);
    const reel::Dim both("both", 2 * hidden_size);
    const reel::ConvOptions half{
        .stride = 2, .padding = reel::WindowPadding::same, .filter = reel::he_normal};
    std::vector<std::pair<Cell, Cell>> layers;
    for (int i = 0; i < layer_count; ++i) {
      auto forward = Cell::init(i ? both : channel, hidden);
      layers.emplace_back(std::move(forward), Cell::init(i ? both : channel, hidden));
    }
    auto first = reel::Conv::init({5}, mel, channel, half);
    auto second = reel::Conv::init({5}, channel, channel, half);
    return {std::move(first), std::move(second), std::move(layers),
            reel::Linear::init(both, symbol)};
  }

  /// features: {..., time, mel}. Returns logits over a quarter of the frames: {..., time, symbol}.
  reel::Tensor operator()(const reel::Tensor& features) const {
    const reel::Dim quarter("time");  // only a name: the convolution gives the size
    reel::Tensor x = relu(first(features, features.dim("time"), {quarter}));
    x = dropout(relu(second(x, x.dim("time"), {quarter})));
    const auto both = reel::bidirectional_stack(layers, x, x.dim("time"),
                                                {.out = readout.in, .between = dropout});
    reel::Dims dims = x.dims();
    dims.back() = symbol;
    return transpose(readout(dropout(both.outputs)), dims);
  }
};

/// Recordings of different lengths.
struct Recordings {
  reel::Tensor features;  ///< {recording, time, mel}
  reel::Tensor labels;    ///< i32 {recording, label_time}: the digits that are spoken, plus one
};

/// Returns the dims of the loss and of alignments.
inline reel::CtcDims ctc_dims(const reel::Tensor& logits, const reel::Tensor& labels) {
  return {logits.dim("time"), labels.dim("label_time"), symbol};
}

/// The loss in training: parts of the features are masked at random.
struct RecogniserLoss {
  template <class Cell>
  reel::Tensor operator()(const Recogniser<Cell>& model, const Recordings& data) const {
    const reel::Tensor masked = spec_augment(
        data.features, data.features.dim("time"), mel,
        {.frequency_masks = 1, .time_width = 15, .frequency_width = 8, .time_part = 0.2});
    const reel::Tensor logits = model(masked);
    return ctc_loss(logits, data.labels, ctc_dims(logits, data.labels));
  }
};

/// Returns the labels of the likeliest alignment: without repetitions and blanks. logits: {...,
/// time, symbol}.
inline reel::Tensor recognise(const reel::Tensor& logits) {
  const reel::Dim time = logits.dim("time");
  const reel::Tensor best = argmax(logits, symbol);
  return pack(best, best != 0 && best != shift(best, time, 1), {time});
}
