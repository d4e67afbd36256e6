// tests/frontend/optimisers/each_optimiser.h — for_each_optimiser, for tests that hold for all
// optimisers.
#pragma once

#include "reel/reel.h"

namespace reel {

using Groups = std::vector<ParameterGroup>;

/// Calls f(name, function that makes the optimiser from parameters and groups) for each optimiser.
template <class F>
void for_each_optimiser(const F& f) {
  f("Sgd", [](const auto& p, const Groups& groups) {
    return Sgd(p, {.learning_rate = 0.1, .groups = groups, .clip_norm = 0.7});
  });
  f("Sgd with momentum", [](const auto& p, const Groups& groups) {
    return Sgd(p, {.momentum = 0.9, .nesterov = true, .groups = groups, .clip_norm = 0.7});
  });
  f("Adam", [](const auto& p, const Groups& groups) {
    return Adam(p, {.learning_rate = 0.1, .groups = groups, .clip_norm = 0.7});
  });
  f("AdamW", [](const auto& p, const Groups& groups) {
    return AdamW(p,
                 {.learning_rate = 0.1, .weight_decay = 0.5, .groups = groups, .clip_norm = 0.7});
  });
  f("RmsProp", [](const auto& p, const Groups& groups) {
    return RmsProp(p, {.momentum = 0.9, .centered = true, .groups = groups, .clip_norm = 0.7});
  });
  f("Sgd with decay", [](const auto& p, const Groups& groups) {
    return Sgd(p, {.momentum = 0.9, .weight_decay = 0.5, .groups = groups, .clip_norm = 0.7});
  });
  f("Adagrad", [](const auto& p, const Groups& groups) {
    return Adagrad(p, {.initial_sum = 0.1, .groups = groups, .clip_norm = 0.7});
  });
  f("Lion", [](const auto& p, const Groups& groups) {
    return Lion(p, {.learning_rate = 0.1, .weight_decay = 0.5, .groups = groups, .clip_norm = 0.7});
  });
}

}  // namespace reel
