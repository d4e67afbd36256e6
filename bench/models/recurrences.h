// bench/models/recurrences.h — models whose time is in element-wise ops: selective scans, minGRU, a
// neural ODE, and a softmax over a vocabulary.
#pragma once

#include "model.h"

namespace reel::bench {

/// The selective scan of a Mamba block without its projections, and all its gradients for a loss of
/// mean y². Its other form is a loop in C++, written by hand. by_scan: as a scan over time, instead
/// of by linear_scan. Source: Gu and Dao (2023), "Mamba: linear-time sequence modeling with
/// selective state spaces", equation 2.
Model selective_scan(bool by_scan);
/// A minGRU layer with its gradients; its other form is a scan. Source: Feng et al. (2024), "Were
/// RNNs all we needed?", section 3.1.
Model mingru();
/// A neural ODE of two states and 16 hidden units, 10,000 steps of RK4. Its other form is a loop in
/// C++, written by hand.
Model neural_ode(bool has_gradient);
/// Cross entropy of a readout over 30,000 words for 512 positions, with its gradients.
Model vocabulary();

}  // namespace reel::bench
