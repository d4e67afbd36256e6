// bench/models/libtorch_models.h — the models in libtorch, as its users write them.
#pragma once

#include "char_lstm.h"
#include "convolution.h"
#include "crf.h"
#include "forecaster.h"
#include "seq2seq.h"
#include "state_space.h"
#include "transformer.h"

namespace reel::bench {

/// Steps begin with the given parameters, named by the paths of our models' leaves.
class LibtorchModels {
 public:
  virtual ~LibtorchModels() = default;
  virtual void set_threads(int count) const = 0;
  virtual Step forecaster(const ForecasterSizes& sizes, const Numbers& parameters,
                          const Numbers& data) const = 0;
  virtual Step char_lstm(const CharLstmSizes& sizes, const Numbers& parameters,
                         const Numbers& data) const = 0;
  virtual Step seq2seq(const Seq2SeqSizes& sizes, const Numbers& parameters,
                       const Numbers& data) const = 0;
  virtual Step transformer(const TransformerSizes& sizes, const Numbers& parameters,
                           const Numbers& data) const = 0;
  virtual Step crf(const CrfSizes& sizes, const Numbers& parameters, const Numbers& data) const = 0;
  virtual Step convolution(const ConvolutionSizes& sizes, const Numbers& arguments) const = 0;
  virtual Step state_space(const StateSpaceSizes& sizes, const Numbers& arguments) const = 0;
};

/// Returns null in a build without libtorch.
const LibtorchModels* libtorch_models();

}  // namespace reel::bench
