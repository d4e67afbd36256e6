// Scans that permute and forward carries (J28), and random bodies (J45), compared with the same
// programs without loops.
#include <random>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using In = std::vector<Tensor>;

/// Random numbers that are the same on every platform; std::uniform_int_distribution need not be.
class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}
  int below(std::size_t n) { return static_cast<int>(engine_() % n); }

 private:
  std::mt19937 engine_;
};

/// A random body. Its values are constants, carries, slices, and results of nodes.
struct Body {
  struct Node {
    int op, a, b;
  };
  int constants, carries, slices;
  std::vector<Node> nodes;
  std::vector<int> next, ys;  ///< indices of the values that become carries and ys

  static Body drawn(Draws& draws) {
    Body body{draws.below(3), draws.below(4), draws.below(3), {}, {}, {}};
    if (!body.constants && !body.carries && !body.slices) body.carries = 1;
    std::size_t values = body.constants + body.carries + body.slices;
    for (int n = draws.below(5); n > 0; --n, ++values)
      body.nodes.push_back({draws.below(5), draws.below(values), draws.below(values)});
    for (int i = 0; i < body.carries; ++i) body.next.push_back(draws.below(values));
    const int ys = draws.below(4) + (body.carries == 0);
    for (int i = 0; i < ys; ++i) body.ys.push_back(draws.below(values));
    return body;
  }

  /// Returns {next carries, ys}.
  std::pair<In, In> operator()(const In& constants, const In& s, const In& x) const {
    In values = constants;
    values.insert(values.end(), s.begin(), s.end());
    values.insert(values.end(), x.begin(), x.end());
    for (const Node& node : nodes) {
      const Tensor a = values[node.a], b = values[node.b];
      switch (node.op) {
        case 0:
          values.push_back(tanh(a * b + 0.3));
          break;
        case 1:
          values.push_back(a + b * 0.5);
          break;
        case 2:
          values.push_back(sin(a) * b);
          break;
        case 3:
          values.push_back(a * 0.9);
          break;
        default:
          values.push_back(tanh(a) - b * b * 0.1);
      }
    }
    const auto chosen = [&](const std::vector<int>& which) {
      In result;
      for (const int i : which) result.push_back(values[i]);
      return result;
    };
    return {chosen(next), chosen(ys)};
  }
};

Tensor weighted(const Tensor& x, double& seed) { return sum(x * std::sin(seed += 1.9)); }

/// The parts of an argument: constants, initial carries, xs.
struct Parts {
  In constants, initial, xs;
  Parts(const Body& body, const In& in)
      : constants(in.begin(), in.begin() + body.constants),
        initial(in.begin() + body.constants, in.begin() + body.constants + body.carries),
        xs(in.begin() + body.constants + body.carries, in.end()) {}
};

Tensor by_scan(const Body& body, const In& in, const Dim& dim, bool backwards) {
  const Parts parts(body, in);
  const auto [ys, last, unused] = scan(Scan{.spatial_dim = dim,
                                            .initial = parts.initial,
                                            .xs = parts.xs,
                                            .body =
                                                [&](const In& x, const In& s) {
                                                  const auto [next, y] =
                                                      body(parts.constants, s, x);
                                                  return std::pair{y, next};
                                                },
                                            .reverse = backwards});
  Tensor loss = scalar(0.0, f64);
  double seed = 0.5;
  for (const Tensor& s : last) loss = loss + weighted(s, seed);
  // Weights each element of each y differently.
  for (const Tensor& y : ys)
    loss = loss + weighted(y * sin(cast(range(y.dims()[0]), f64) + 1.0 + seed), seed);
  return loss;
}

/// Computes the same without a loop, for every entry alone, over plain tensors.
Tensor by_hand(const Body& body, const In& in, const std::vector<int>& lengths, bool backwards) {
  const bool has_entries = !in.empty() && in[0].type().is_named();
  Tensor loss = scalar(0.0, f64);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Parts parts(body, in);
    const auto entry = [&](In& tensors) {
      if (has_entries)
        for (Tensor& t : tensors) t = gather(t, scalar(static_cast<int>(b)), 0);
    };
    entry(parts.constants), entry(parts.initial), entry(parts.xs);
    In state = parts.initial;
    std::vector<In> terms(static_cast<std::size_t>(lengths[b]));
    for (int k = 0; k < lengths[b]; ++k) {
      const int t = backwards ? lengths[b] - 1 - k : k;
      In x;
      for (const Tensor& all : parts.xs) x.push_back(gather(all, scalar(t), 0));
      std::tie(state, terms[static_cast<std::size_t>(t)]) = body(parts.constants, state, x);
    }
    double seed = 0.5;
    for (const Tensor& s : state) loss = loss + weighted(s, seed);
    for (std::size_t y = 0; y < body.ys.size(); ++y) {
      const double before = seed;
      seed += 1.9;
      for (std::size_t t = 0; t < terms.size(); ++t)
        loss = loss + terms[t][y] * (std::sin(t + 1.0 + before) * std::sin(seed));
    }
  }
  return loss;
}

class MoreRandomBodies : public InEveryMode {
 protected:
  /// Expects the value, the gradient, and the gradient of a function of the gradient of the form by
  /// hand. Except in a plan, value and gradient must have the bits of eager mode.
  template <class F, class G>
  void expect_same(const F& f, const G& by_hand, const In& in, bool with_second) {
    const auto [value, gradient] = run(value_and_grad(f))(in);
    const auto [expected, expected_gradient] = value_and_grad(by_hand)(in);
    const auto [eager_value, eager_gradient] = value_and_grad(f)(in);
    expect_all_close(value, expected, 1e-12);
    const bool same = is_exact();
    if (same) expect_same_bits(value, eager_value);
    for (std::size_t i = 0; i < in.size(); ++i) {
      expect_all_close(mask_padding(gradient[i]), mask_padding(expected_gradient[i]), 1e-12);
      // A cotangent of zeros may be absent in one mode, so the sign of zeros is not compared.
      if (same)
        expect_same_bits(mask_padding(gradient[i]) + 0.0, mask_padding(eager_gradient[i]) + 0.0);
    }
    if (!with_second) return;
    const Tensor tangent = run([f](const In& in) { return jvp(f, in, in).second; })(in);
    Tensor along = scalar(0.0, f64);
    for (std::size_t i = 0; i < in.size(); ++i)
      along = along + sum(mask_padding(expected_gradient[i]) * mask_padding(in[i]));
    expect_all_close(tangent, along, 1e-11);
    const auto once_more = [](const auto& f) {
      return grad([f](const In& in) {
        Tensor total = scalar(0.0, f64);
        for (const Tensor& g : grad(f)(in)) total = total + sum(sin(mask_padding(g)));
        return total;
      });
    };
    const In second = run(once_more(f))(in), expected_second = once_more(by_hand)(in);
    for (std::size_t i = 0; i < in.size(); ++i)
      expect_all_close(mask_padding(second[i]), mask_padding(expected_second[i]), 1e-11);
  }
};
REEL_IN_EVERY_MODE(MoreRandomBodies);

TEST_P(MoreRandomBodies, J28_PermutedAndForwardedCarries) {
  // Each of five carries is computed, stays in place, or moves to another slot.
  Draws draws(7);
  for (int combination = 0; combination < 243; ++combination) {
    SCOPED_TRACE(str("combination ", combination));
    std::array<int, 5> kind, from;
    for (int i = 0, rest = combination; i < 5; ++i, rest /= 3) {
      kind[i] = rest % 3;
      from[i] = draws.below(5);
    }
    const auto step = [=](const In& s) {
      In next;
      for (int i = 0; i < 5; ++i) {
        const Tensor& other = s[from[i]];
        next.push_back(kind[i] == 0 ? s[i] * 0.5 + sin(other) : kind[i] == 1 ? s[i] : other);
      }
      return next;
    };
    const auto weigh = [](const In& s) {
      Tensor loss = scalar(0.0, f64);
      double seed = 0.5;
      for (const Tensor& member : s) loss = loss + weighted(member, seed);
      return loss;
    };
    const auto looped = [=](const In& s) {
      return weigh(fori_loop(
          0, 2, [&](const Tensor&, const In& s) { return step(s); }, s));
    };
    const auto twice = [=](const In& s) { return weigh(step(step(s))); };
    In start;
    for (int i = 0; i < 5; ++i) start.push_back(scalar(0.3 * i - 0.5, f64));
    expect_same(looped, twice, start, combination % 27 == 5);
  }
}

TEST_P(MoreRandomBodies, J45_DrawnBodiesOnPlainTensorsAgreeWithALoopInCpp) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Draws draws(seed);
    const Body body = Body::drawn(draws);
    const int length = draws.below(5);
    const bool backwards = draws.below(2);
    In in;
    double number = seed;
    for (int i = 0; i < body.constants + body.carries; ++i)
      in.push_back(scalar(std::sin(number += 1.3), f64));
    for (int i = 0; i < body.slices; ++i) {
      std::vector<double> values;
      for (int t = 0; t < length; ++t) values.push_back(std::sin(number += 1.3));
      in.push_back(tensor(values, Dims{length}, f64));
    }
    expect_same([=](const In& in) { return by_scan(body, in, Dim(length), backwards); },
                [=](const In& in) { return by_hand(body, in, {length}, backwards); }, in,
                seed % 4 == 0);
    if (HasFailure()) break;
  }
}

TEST_P(MoreRandomBodies, J45_EntriesOfTheirOwnLength) {
  for (unsigned seed = 1000; seed < 1500; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Draws draws(seed);
    const Body body = Body::drawn(draws);
    const bool backwards = draws.below(2);
    std::vector<int> lengths;
    for (int b = 0; b < 3; ++b) lengths.push_back(draws.below(5));
    const Dim batch("batch", 3), time("time", tensor(lengths, {batch}));
    In in;
    double number = seed;
    for (int i = 0; i < body.constants + body.carries + body.slices; ++i) {
      const bool is_slice = i >= body.constants + body.carries;
      const Dims dims = is_slice ? Dims{batch, time} : Dims{batch};
      std::vector<double> values;
      for (int b = 0; b < 3; ++b)
        for (int t = 0; t < (is_slice ? time.size() : 1); ++t)
          values.push_back(t < lengths[b] || !is_slice ? std::sin(number += 1.3) : std::nan(""));
      in.push_back(tensor(values, dims, f64));
    }
    expect_same([=](const In& in) { return by_scan(body, in, time, backwards); },
                [=](const In& in) { return by_hand(body, in, lengths, backwards); }, in,
                seed % 4 == 0);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace reel
