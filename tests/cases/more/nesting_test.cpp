// Loops, branches and gradients nested three deep in every order: values and derivatives, compared
// with the same programs written as C++ loops over plain ops.
#include <array>
#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

/// An iteration of a program, which computes the next s. i counts the iterations of the loop around
/// it; w is a parameter from outside.
using Step = std::function<Tensor(const Tensor& i, const Tensor& s, const Tensor& w)>;

enum class Kind { fori, grows, until, scanned, branch, slope, slope_of_w, tangent };
constexpr int kKinds = 8;
const char* const kNames[kKinds] = {"fori",   "grows", "until",      "scanned",
                                    "branch", "slope", "slope_of_w", "tangent"};

Tensor leaf(const Tensor& i, const Tensor& s, const Tensor& w) {
  return tanh(s * w + cast(i, f64) * 0.1) + s * 0.3;
}

/// Returns the step with the library's loops and branches.
Step nested(Kind kind, const Step& inner) {
  switch (kind) {
    case Kind::fori:
      return [=](const Tensor&, const Tensor& s, const Tensor& w) {
        return fori_loop(
            0, 3, [&](const Tensor& k, const Tensor& s) { return inner(k, s, w); }, s);
      };
    case Kind::grows:  // as many iterations as the outer loop has begun
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return std::get<1>(while_loop([&](const Tensor& k, const Tensor&) { return k <= i; },
                                      [&](const Tensor& k, const Tensor& s) {
                                        return std::tuple{k + 1, inner(k, s, w)};
                                      },
                                      std::tuple{zeros_like(i), s}));
      };
    case Kind::until:  // until the state is large enough
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return while_loop([](const Tensor& s) { return abs(s) < 1.0; },
                          [&](const Tensor& s) { return s * 1.9 + 0.1 * inner(i, s, w); }, s,
                          {.maximum_iterations = 3});
      };
    case Kind::scanned:
      return [=](const Tensor&, const Tensor& s, const Tensor& w) {
        const auto [ys, last, dim] =
            scan(Scan{.initial = s,
                      .xs = std::pair{range(3), w * tensor({.5, 1., 1.5}, {}, f64)},
                      .body =
                          [&](const std::pair<Tensor, Tensor>& x, const Tensor& s) {
                            const Tensor next = inner(x.first, s, x.second);
                            return std::pair{next * w, next};
                          },
                      .reverse = true});
        return last + 0.2 * sum(ys);
      };
    case Kind::branch:
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return cond(
            i % 2 == 0, [&] { return inner(i, s, w); }, [&] { return s * w + 0.1 * w; });
      };
    case Kind::slope:
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return s * 0.7 + 0.3 * grad([&](const Tensor& s) { return inner(i, s, w) * s; })(s);
      };
    case Kind::slope_of_w:
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return s * 0.7 + 0.3 * grad([&](const Tensor& w) { return inner(i, s, w) * s; })(w);
      };
    case Kind::tangent:
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        const auto [y, slope] = jvp([&](const Tensor& s) { return inner(i, s, w); }, s, w * 0.5);
        return y * 0.6 + slope * 0.4;
      };
  }
  return {};
}

/// Returns the step with C++ loops and branches, in eager mode.
Step by_hand(Kind kind, const Step& inner) {
  const auto number = [](int k) { return scalar(k); };
  switch (kind) {
    case Kind::fori:
      return [=](const Tensor&, Tensor s, const Tensor& w) {
        for (int k = 0; k < 3; ++k) s = inner(number(k), s, w);
        return s;
      };
    case Kind::grows:
      return [=](const Tensor& i, Tensor s, const Tensor& w) {
        for (int k = 0; k <= i.item<int>(); ++k) s = inner(number(k), s, w);
        return s;
      };
    case Kind::until:
      return [=](const Tensor& i, Tensor s, const Tensor& w) {
        for (int k = 0; k < 3 && std::abs(s.item<double>()) < 1; ++k)
          s = s * 1.9 + 0.1 * inner(i, s, w);
        return s;
      };
    case Kind::scanned:
      return [=](const Tensor&, Tensor s, const Tensor& w) {
        Tensor total = zeros_like(s);
        for (int k = 2; k >= 0; --k) {
          s = inner(number(k), s, w * (0.5 + 0.5 * k));
          total = total + s * w;
        }
        return s + 0.2 * total;
      };
    case Kind::branch:
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        return i.item<int>() % 2 == 0 ? inner(i, s, w) : s * w + 0.1 * w;
      };
    case Kind::tangent:  // in reverse mode: of one number, both give the derivative
      return [=](const Tensor& i, const Tensor& s, const Tensor& w) {
        const Tensor slope = grad([&](const Tensor& s) { return inner(i, s, w); })(s);
        return inner(i, s, w) * 0.6 + slope * (w * 0.5) * 0.4;
      };
    default:
      return nested(kind, inner);
  }
}

using In = std::pair<Tensor, Tensor>;

/// A program of three kinds in a counting loop, so that the outermost one gets an i, too.
template <class Wrap>
auto program(const std::array<Kind, 3>& kinds, Wrap wrap) {
  Step step = leaf;
  for (const Kind kind : {kinds[2], kinds[1], kinds[0]}) step = wrap(kind, step);
  return [step = wrap(Kind::fori, step)](const In& in) {
    return step(scalar(0), in.first, in.second);
  };
}

class MoreNesting : public InEveryMode {
 protected:
  /// Returns the sine of the gradient's elements. Its gradient needs all second derivatives.
  template <class F>
  static auto next_order(const F& f) {
    return [f](const In& in) {
      const In g = grad(f)(in);
      return sin(g.first) + sin(g.second * 0.7);
    };
  }
  template <class F, class G>
  void expect_same(const F& f, const G& expected, double tolerance) {
    const In in{scalar(0.4, f64), scalar(0.8, f64)};
    const auto [value, gradient] = run(value_and_grad(f))(in);
    const auto [by_hand, gradient_by_hand] = value_and_grad(expected)(in);
    expect_all_close(value, by_hand, tolerance);
    expect_all_close(gradient.first, gradient_by_hand.first, tolerance);
    expect_all_close(gradient.second, gradient_by_hand.second, tolerance);
  }
};
REEL_IN_EVERY_MODE(MoreNesting);

TEST_P(MoreNesting, EveryOrderOfThree) {
  for (int a = 0; a < kKinds; ++a)
    for (int b = 0; b < kKinds; ++b)
      for (int c = 0; c < kKinds; ++c) {
        SCOPED_TRACE(str(kNames[a], " of ", kNames[b], " of ", kNames[c]));
        const std::array kinds{Kind(a), Kind(b), Kind(c)};
        expect_same(program(kinds, nested), program(kinds, by_hand), 1e-10);
        if (HasFailure()) return;
      }
}

TEST_P(MoreNesting, HigherDerivativesOfEveryPair) {
  for (int a = 0; a < kKinds; ++a)
    for (int b = 0; b < kKinds; ++b) {
      SCOPED_TRACE(str(kNames[a], " of ", kNames[b]));
      const std::array kinds{Kind(a), Kind(b), Kind::branch};
      const auto f = program(kinds, nested), expected = program(kinds, by_hand);
      expect_same(next_order(f), next_order(expected), 1e-9);
      const bool is_costly = a >= int(Kind::slope) || b >= int(Kind::slope);
      if (!is_costly)
        expect_same(next_order(next_order(f)), next_order(next_order(expected)), 1e-8);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace reel
