// Short forms of loops, searches, and functions on whole states, as models.
#include <cmath>
#include <limits>

#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

Tensor vector() { return tensor({0.5, -1., 2.}); }

void add_folds(std::vector<SavedCase>& cases) {
  manual_seed(42);
  const Dim batch("batch", 3), time("time", tensor({4, 0, 2}, {batch}));
  const Tensor even = random_normal({5, 3}), ragged = random_normal({batch, time});
  cases.push_back(saved_case(
      "map, foldl and foldr",
      [](const Tensor& xs) {
        const auto f = [](const Tensor& s, const Tensor& x) { return tanh(s * 0.5 + x); };
        return std::tuple{map(
                              [](const Tensor& x) {
                                return std::pair{sum(x), x * 2};
                              },
                              xs),
                          foldl(f, xs, zeros({3})), foldr(f, xs, zeros({3})), foldl(f, xs),
                          foldr(f, xs)};
      },
      even));
  cases.push_back(saved_case(
      "map, foldl and foldr along a ragged dim",
      [](const Tensor& xs) {
        const Dim time = xs.dim("time"), batch = xs.dim("batch");
        const auto f = [](const Tensor& s, const Tensor& x) { return tanh(s * 0.5 + x); };
        const FoldOptions along{.spatial_dim = time};
        return std::tuple{map([](const Tensor& x) { return x * x; }, xs, along),
                          foldl(f, xs, ones({batch}), along), foldr(f, xs, ones({batch}), along)};
      },
      ragged));
  for (const bool reverse : {false, true})
    cases.push_back(saved_case(
        str("associative_scan, reverse: ", reverse),
        [=](const Tensor& xs) {
          const auto f = [=](const Tensor& xs) {
            return associative_scan([](const Tensor& a, const Tensor& b) { return a * b + a + b; },
                                    xs, 0, {.reverse = reverse});
          };
          return std::pair{f(xs), grad([&](const Tensor& xs) { return sum(square(f(xs))); })(xs)};
        },
        even));
  for (const int index : {-1, 0, 1, 2, 9})
    cases.push_back(saved_case(
        str("switch_case ", index),
        [](const Tensor& index, const Tensor& x) {
          return switch_case(
              index, [&] { return x; }, [&] { return sin(x); }, [&] { return x * sum(x); });
        },
        std::tuple{scalar(index), vector()}));
}

/// Orders along a ragged dim, and along the dim that its lengths run over.
void add_ragged_orders(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), time("time", tensor({4, 0, 2}, {batch}));
  const double kLowest = -std::numeric_limits<double>::infinity(), kNan = std::nan("");
  const Tensor x =
      tensor({0.5, kLowest, 2., -1., kNan, kNan, kNan, kNan, kLowest, 1., 9., kNan}, {batch, time});
  cases.push_back(saved_case(
      "orders along ragged dims",
      [](const Tensor& x) {
        const Dim batch = x.dim("batch"), time = x.dim("time"), best("best", 3);
        const TopK along_time = top_k(x, time, best), over_batch = top_k(x, batch, Dim("b", 2));
        const TopKOverAxes of_all = top_k(x, {batch, time}, Dim("all", 9));
        return std::tuple{sort(x, time),      sort(x, time, true),    sort(x, batch),
                          along_time.values,  along_time.indices,     over_batch.values,
                          over_batch.indices, argsort(x, time, true), of_all.values,
                          of_all.indices};
      },
      x));
}

void add_searches(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 2), steps("steps", 3), beam("beam", 2), k("k", 3);
  const Tensor labels = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {steps, batch, beam}),
               from = tensor({0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1}, {steps, batch, beam});
  cases.push_back(saved_case(
      "backtrack",
      [=](const Tensor& labels, const Tensor& from) {
        return backtrack(labels, from, steps, beam);
      },
      std::tuple{labels, from}));
  manual_seed(43);
  const Dim classes("classes", 4);
  cases.push_back(saved_case(
      "the largest over two dims",
      [=](const Tensor& x) {
        const TopKOverAxes best = top_k(x, {beam, classes}, k);
        return std::pair{best.values, best.indices};
      },
      random_normal({batch, beam, classes})));
  cases.push_back(saved_case(
      "sorted elements and their gradient",
      [](const Tensor& x) {
        const auto f = [](const Tensor& x) {
          return sum(sort(x, 0) * tensor({1., 2., 3.})) + sum(sort(x, 0, true) * 0.5);
        };
        return value_and_grad(f)(x);
      },
      vector()));
}

struct History {
  Tensor score, frames;
  Dim hist;
};

void add_states(std::vector<SavedCase>& cases) {
  manual_seed(44);
  const Dim batch("batch", 3), hist("hist", tensor({2, 1, 3}, {batch})),
      other("hist", tensor({1, 3, 0}, {batch}));
  const Tensor a = random_normal({batch, hist}), b = random_normal({batch, other});
  cases.push_back(saved_case(
      "states that are selected and moved",
      [=](const Tensor& mask, const Tensor& a, const Tensor& b) {
        const Dim batch = mask.dims()[0];
        const History first{sum(a, a.dims()[1]), a, a.dims()[1]},
            second{sum(b, b.dims()[1]), b, b.dims()[1]};
        const History chosen = where_nested(mask, first, second);
        const History moved = gather_nested(first, tensor({2, 0, 1}, {batch}), batch);
        return std::tuple{chosen.score, chosen.frames, moved.score, moved.frames};
      },
      std::tuple{tensor({true, false, true}, {batch}), a, b}));
  cases.push_back(saved_case(
      "states that are packed",
      [=](const Tensor& mask, const Tensor& x) {
        const auto [packed, dim] = pack_nested(std::pair{x, x * 2}, mask);
        return std::pair{packed, unpack_nested(packed, dim, mask)};
      },
      std::tuple{tensor({true, false, true}, {batch}), random_normal({batch, Dim("feature", 2)})}));
}

void add_places(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "elements that are replaced",
      [](const Tensor& x, const Tensor& begin) {
        return std::tuple{set_slice(x, 1, ones({2})), set_slice(x, begin, ones({2})),
                          set_at(x, begin, 5), x.at(begin), x.at(-1)};
      },
      std::tuple{tensor({1., 2., 3., 4.}), scalar(2)}));
  const Dim row_of("batch", 2), place("place", 2), any("any", scalar(4));
  cases.push_back(saved_case(
      "elements of each entry that are replaced, and gradients",
      [=](const Tensor& x, const Tensor& at, const Tensor& value) {
        const Dim any = x.dim("any");
        const auto f = [&](const std::pair<Tensor, Tensor>& in) {
          return sum(square(set_at(in.first, at, in.second, any)));
        };
        return std::pair{set_at(x, at, value, any), grad(f)(std::pair{x, value})};
      },
      std::tuple{ones({row_of, any}), tensor({{1, -1}, {2, 2}}, {row_of, place}),
                 tensor({{5., 6.}, {7., 8.}}, {row_of, place})}));
  const Dim time("time", scalar(5)), batch("batch", 2), length("length", tensor({4, 2}, {batch}));
  cases.push_back(saved_case(
      "arithmetic of dims",
      [](const Tensor& x, const Tensor& y, const Tensor& z) {
        const Dim time = x.dim("time"), length = y.dim("length"), steps = z.dim("steps");
        return std::tuple{zeros({time + 2}),
                          zeros({time - 1}),
                          zeros({time * 2}),
                          zeros({ceildiv(time, 2)}),
                          zeros({time - steps}),
                          zeros({time * steps * 2}),
                          zeros({time * 4 / (steps * 2)}),
                          mask(length - steps),
                          mask(length * steps),
                          pad(x, time, 1, 1, 0, time + 2),
                          slice(y, length, 1, {}, length - 1),
                          pad(y, length, 0, 1, 9, length + 1),
                          shift(y, length, 1),
                          concat({y, y}, length),
                          reverse(y, length)};
      },
      std::tuple{ones({time}), tensor({1., 2., 3., 4., 5., 6., 0., 0.}, {batch, length}),
                 ones({Dim("steps", scalar(2))})}));
  const Dim row("row", 2), column("column", 6), part("part", 3), half("half", 2), one("one", 1);
  cases.push_back(saved_case(
      "merged and split dims",
      [=](const Tensor& x) {
        return std::tuple{merge_dims(x, {row, column}), split_dim(x, column, {part, half}),
                          squeeze(expand(x, one), one), rename(x, row, Dim("line", 2))};
      },
      reshape(range(12, f32), {row, column})));
  cases.push_back(saved_case(
      "padding that counts",
      [=](const Tensor& x) {
        const Dim length = x.dim("length");
        const auto pooled = [=](const Tensor& x) {
          return max(split_dim(x, length, {Dim("pair"), half}, {.fill = -9}), half);
        };
        return std::tuple{merge_dims(x, {batch, length}, {.counts_padding = true}),
                          split_dim(x, length, {Dim("pair"), half}, {.fill = 7}), reshape(x, {-1}),
                          pooled(x),
                          grad([=](const Tensor& x) { return sum(square(pooled(x))); })(x)};
      },
      tensor({-1., -2., -3., -5., -6., 9.}, {batch, Dim("length", tensor({3, 2}, {batch}))})));
}

}  // namespace

std::vector<SavedCase> short_form_cases() {
  std::vector<SavedCase> cases;
  add_folds(cases);
  add_ragged_orders(cases);
  add_searches(cases);
  add_states(cases);
  add_places(cases);
  return cases;
}

}  // namespace reel
