// tests/cases/returnn/errors.h — checks of the errors for bad input to loops, in every mode.
#pragma once

#include <string>
#include <utility>

#include "reel/tests/cases/returnn/returnn.h"

namespace reel {

/// A state with named leaves, which error messages should name.
struct Layer {
  Tensor h, c;
};
struct State {
  Tensor step;
  Layer layer;
};

class ReturnnErrors : public ReturnnCase {
 protected:
  const Dim feature{"feature", 2}, other{"feature", 2}, beam{"beam", 2};
  const Tensor s0 = zeros({batch}), x = zeros({batch, time});

  template <class E, class F, class... Args>
  std::string error_of(const F& f, const Args&... args) const {
    return message_of<E>([&] { run(f)(args...); });
  }
  /// Returns the error of a loop "decode" with this body and a condition that stays true.
  template <class E, class S, class Body>
  std::string error_of_body(const Body& body, const S& start) const {
    return error_of<E>(
        [&](const Tensor& x, const S& start) {
          return std::pair{
              while_loop([&](const S&) { return sum(x) < 1; }, body, start, {.name = "decode"}), x};
        },
        scalar(0), start);
  }
  /// Returns the error of a scan "encode" of x along time from s0 with a body that returns this y.
  template <class E, class Ys, class Y>
  std::string error_of_y(const Ys& ys, const Y& y) const {
    return error_of<E>(
        [&](const Tensor& x, const Tensor& s) {
          return scan(Scan{
                          .spatial_dim = x.dim("time"),
                          .initial = s,
                          .xs = x,
                          .ys = ys,
                          .body =
                              [&](const Tensor& x, const Tensor& s) {
                                return std::pair{y(s), s + x};
                              },
                          .name = "encode",
                      })
              .state;
        },
        x, s0);
  }
};

}  // namespace reel
