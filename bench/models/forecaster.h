// bench/models/forecaster.h — a forecaster of time series: two layers of GRUs.
#pragma once

#include "model.h"

namespace reel::bench {

struct ForecasterSizes {
  int batch = 64, steps = 48, in = 8, hidden = 64;
};

/// Returns a model that predicts the next value in each step.
Model forecaster(const ForecasterSizes& sizes = {});
/// Returns the forecaster without gradients.
Model forecaster_forward(const ForecasterSizes& sizes = {});

}  // namespace reel::bench
