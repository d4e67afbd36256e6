// Functions on ragged and dynamic dims, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

struct Batch {
  Dim batch{"batch", 3}, time{"time", tensor({3, 1, 2}, {batch})}, feature{"feature", 2};
  Tensor xs() const {
    manual_seed(5);
    return random_normal({batch, time, feature});
  }
};

Tensor time_sum(const Tensor& xs) {
  auto [ys, state, dim] = scan(Scan{.spatial_dim = xs.dim("time"),
                                    .initial = zeros({xs.dim("batch"), xs.dim("feature")}),
                                    .xs = xs,
                                    .body = [](const Tensor& x, const Tensor& s) {
                                      const Tensor next = tanh(s * 0.5 + x);
                                      return std::pair{next * x, next};
                                    }});
  return sum(ys) + sum(square(state));
}

/// Attention to all frames so far: the Dim of the history grows in each iteration.
struct History {
  Tensor frames;
  Dim hist;
};

/// none: the dim of the history before the first iteration.
Tensor attention_so_far(const Tensor& xs, const Dim& none) {
  const Dim time = xs.dim("time"), feature = xs.dim("feature");
  auto [ys, last, dim] =
      scan(Scan{.spatial_dim = time,
                .initial = History{zeros({xs.dim("batch"), none, feature}), none},
                .xs = xs,
                .body = [&](const Tensor& x, const History& s) {
                  auto [frames, hist] = cum_concat(x, s.frames, s.hist);
                  const Tensor weights = softmax(matmul(frames, x, feature), hist);
                  return std::pair{matmul(weights, frames, hist), History{frames, hist}};
                }});
  return ys;
}

/// ys with a dim of another size in every iteration, their lengths, and the last state.
/// none: the dim of the history before the first iteration.
auto histories(const Tensor& x, const Dim& none) {
  const auto [ys, last, dim] =
      scan(Scan{.spatial_dim = x.dim("time"),
                .initial = History{zeros({x.dim("batch"), none}), none},
                .xs = x,
                .body = [](const Tensor& x, const History& s) {
                  const auto [frames, hist] = cum_concat(x, s.frames, s.hist);
                  return std::pair{frames * cast(hist.lengths(), f32), History{frames, hist}};
                }});
  return std::tuple{ys, ys.dim("hist").lengths(), last.frames};
}

void add_varying_ys(std::vector<SavedCase>& cases, const Batch& in) {
  manual_seed(13);
  const Dim batch = in.batch, steps("time", 4);
  const auto plain = [](const Tensor& x) { return histories(x, Dim("hist", 0)); };
  const auto with_lengths = [=](const Tensor& x) {
    return histories(x, Dim("hist", zeros({batch}, i32)));
  };
  const auto packed = [](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .xs = x,
                     .body = [](const Tensor& x) { return pack(x, x > 0) * 10; }})
        .ys;
  };
  const Tensor x = random_normal({batch, steps}), ragged = random_normal({batch, in.time});
  cases.push_back(saved_case("all states of a history", plain, x));
  // A finished entry has a running entry's values in the last state.
  cases.push_back(saved_case(
      "all states of a history of ragged entries",
      [=](const Tensor& x) { return std::get<0>(plain(x)); }, ragged));
  cases.push_back(
      saved_case("all states of a history with lengths for each entry", with_lengths, ragged));
  cases.push_back(saved_case("packed elements of each slice", packed, x));
  cases.push_back(saved_case("packed elements of slices without elements", packed, x * 0));
  cases.push_back(saved_case(
      "elements of an array joined along their first axis",
      [](const Tensor& x) {
        return TensorArray::unstack(x, 0).push_back(gather(x, 0, 0)).concat();
      },
      random_normal({2, 3, 2})));
  cases.push_back(saved_case(
      "maps to vectors of different sizes",
      [](const Tensor& counts, const Tensor& w) {
        return map([&](const Tensor& n) { return cast(range(Dim("place", n)), f32) * w + 1; },
                   counts, {.spatial_dim = counts.dim("time")});
      },
      std::tuple{tensor({2, 0, 3, 1}, {steps}), scalar(2.f)}));
}

/// Doubles a state of the sentences while any of their words runs. The condition is true in
/// padding, which is no word.
Tensor doubled_while_words_run(const Tensor& state, const Tensor& x) {
  const Dim words = x.dim("words");
  return scan(Scan{.spatial_dim = Dim("steps"),
                   .cond_dims = {x.dim("batch"), words},
                   .initial = state,
                   .xs = None{},
                   .cond = [&](const Tensor&) { return x > -1.; },
                   .body =
                       [](const None&, const Tensor& s) {
                         return std::pair{None{}, s * 2.};
                       },
                   .max_seq_len = 2})
      .state;
}

}  // namespace

std::vector<SavedCase> ragged_cases() {
  std::vector<SavedCase> cases;
  const Batch in;
  const Tensor xs = in.xs();
  add_varying_ys(cases, in);
  const Dim words("words", tensor({0, 1, 2}, {in.batch}));
  cases.push_back(saved_case(
      "a loop over the words of sentences, one of which has none", doubled_while_words_run,
      std::tuple{tensor({1.f, 10.f, 100.f}, {in.batch}), ones({in.batch, words})}));
  cases.push_back(saved_case(
      "reductions over a ragged dim",
      [](const Tensor& xs) {
        const Dim time = xs.dim("time");
        return std::tuple{sum(xs, time),       mean(xs, time), max(xs, time),   softmax(xs, time),
                          logsumexp(xs, time), mean(xs),       cumsum(xs, time)};
      },
      xs));
  cases.push_back(saved_case(
      "lengths and masks",
      [](const Tensor& xs) {
        const Dim time = xs.dim("time");
        return std::tuple{time.lengths(), mask(time), mask_padding(xs, -1)};
      },
      xs));
  cases.push_back(saved_case(
      "scan over a ragged dim",
      [](const Tensor& xs) {
        auto [ys, state, dim] = scan(Scan{.spatial_dim = xs.dim("time"),
                                          .initial = zeros({xs.dim("batch"), xs.dim("feature")}),
                                          .xs = xs,
                                          .body = [](const Tensor& x, const Tensor& s) {
                                            return std::pair{s * x, s * 0.5 + x};
                                          }});
        return std::pair{ys, state};
      },
      xs));
  cases.push_back(saved_case(
      "the gradient over a ragged dim",
      [](const Tensor& xs) { return value_and_grad(time_sum)(xs); }, xs));
  cases.push_back(saved_case(
      "entries that end by a condition",
      [](const Tensor& x) {
        const Dim batch = x.dim("batch");
        auto [ys, state, dim] = scan(Scan{.cond_dims = {batch},
                                          .initial = x,
                                          .cond = [](const Tensor& s) { return s < 20; },
                                          .body =
                                              [](const Tensor& s) {
                                                return std::pair{s, s * 2};
                                              }});
        return std::tuple{ys, state, dim};
      },
      tensor({1., 7., 30.}, {in.batch})));
  cases.push_back(saved_case(
      "packed entries",
      [=](const Tensor& xs) {
        const Tensor packed = pack(xs, {in.batch, xs.dim("time")});
        return std::pair{sum(packed), mean(square(packed))};
      },
      xs));
  cases.push_back(saved_case(
      "packed elements of each entry",
      [](const Tensor& xs) {
        const Tensor x = sum(xs, xs.dim("feature"));
        return pack(x, x > 0, {xs.dim("time")});
      },
      xs));
  cases.push_back(saved_case(
      "the gradient of packed entries, and unpacked ones",
      [=](const Tensor& xs) {
        const Dim time = xs.dim("time");
        const auto squares = [&](const Tensor& xs) {
          return sum(square(pack(xs, {in.batch, time})));
        };
        const Tensor packed = pack(xs, {in.batch, time});
        return std::pair{grad(squares)(xs), unpack(tanh(packed), 0, Dims{in.batch, time})};
      },
      xs));
  const Dim other("other", tensor({2, 3, 0}, {in.batch}));
  const Tensor captured = random_uniform({in.batch, other}, 0.5, 1.5), same = xs * 0.5;
  cases.push_back(saved_case(
      "captured tensors with ragged dims",
      [=](const Tensor& xs) {
        return std::tuple{cumprod(captured, other), sum(xs) + sum(captured, other),
                          cumsum(xs + same, xs.dim("time"))};
      },
      xs));
  manual_seed(12);
  const Dim steps("time", 4);
  const auto without_lengths = [](const Tensor& xs) {
    return attention_so_far(xs, Dim("hist", 0));
  };
  const auto with_lengths = [=](const Tensor& xs) {
    return attention_so_far(xs, Dim("hist", zeros({in.batch}, i32)));
  };
  cases.push_back(saved_case("a history in the state", without_lengths,
                             random_normal({in.batch, steps, in.feature})));
  cases.push_back(saved_case("a history of ragged entries", without_lengths,
                             random_normal({in.batch, in.time, in.feature})));
  cases.push_back(saved_case("a history with a length for each entry", with_lengths,
                             random_normal({in.batch, in.time, in.feature})));
  cases.push_back(saved_case("a history with a length for each entry, over a time of one size",
                             with_lengths, random_normal({in.batch, steps, in.feature})));
  cases.push_back(saved_case(
      "a history that its condition reads, until each entry has enough",
      [=](const Tensor& x) {
        const Dim batch = x.dim("batch"), none("hist", zeros({batch}, i32));
        const auto [ys, last, dim] =
            scan(Scan{.cond_dims = {batch},
                      .initial = History{zeros({batch, none}), none},
                      .cond = [](const History& s) { return sum(s.frames, s.hist) < 6; },
                      .body =
                          [&](const History& s) {
                            auto [frames, hist] = cum_concat(x, s.frames, s.hist);
                            return std::pair{sum(frames, hist), History{frames, hist}};
                          }});
        return std::tuple{ys, last.frames, last.hist};
      },
      tensor({1., 7., 3.}, {in.batch})));
  cases.push_back(saved_case(
      "the gradient of a scan that a condition ends early",
      [](const Tensor& xs) {
        return grad([](const Tensor& xs) {
          const Dim feature = xs.dim("feature");
          auto [ys, state, dim] = scan(Scan{.spatial_dim = feature,
                                            .cond_dims = {},
                                            .initial = scalar(1.),
                                            .xs = xs,
                                            .cond = [](const Tensor& s) { return s < 2; },
                                            .body =
                                                [](const Tensor& x, const Tensor& s) {
                                                  return std::pair{x * s, s + 2};
                                                }});
          return sum(ys);
        })(xs);
      },
      random_normal({in.batch, in.feature})));
  const Dim empty("time", tensor({2, 0, 1}, {in.batch}));
  cases.push_back(saved_case(
      "positions in entries without elements",
      [](const Tensor& xs) {
        const Dim time = xs.dim("time");
        return std::tuple{gather(xs, scalar(1), time, {.clip = true}), reverse(xs, time)};
      },
      tensor({1., 2., 3., 4., 5., 6.}, {in.batch, empty})));
  const Dim none("none", scalar(0)), nobody("nobody", 0), length("length", zeros({nobody}, i32));
  cases.push_back(saved_case(
      "reductions without elements",
      [](const Tensor& x, const Tensor& y) {
        const Dim none = x.dim("none"), length = y.dim("length");
        return std::tuple{max(x, none),
                          min(x, none),
                          prod(x, none),
                          logsumexp(x, none),
                          max(cast(x, i32), none),
                          max(y, length),
                          zeros({length})};
      },
      std::tuple{zeros({none, in.feature}), zeros({nobody, length})}));
  const Dim any("any", scalar(4));
  manual_seed(6);
  cases.push_back(saved_case(
      "a dim of any size",
      [](const Tensor& x) {
        const Dim any = x.dim("any");
        return std::tuple{x + range(any, f32), mean(x), zeros({any}), cumsum(x, any)};
      },
      random_normal({any})));
  cases.push_back(saved_case("any number of rows",
                             [](const Tensor& x) {
                               return std::tuple{mean(x, {0}), x - max(x, {0}, Keep::yes),
                                                 matmul(x, transpose(x, {1, 0}))};
                             },
                             random_normal({4, 2}), {.any_length = {0}}));
  return cases;
}

}  // namespace reel
