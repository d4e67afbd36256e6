// frontend/schedule.h — Schedule, a learning rate as a function of the step.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/tensor.h"

namespace reel {

/// A number that follows the steps of training: pieces, one after another. The last piece's last
/// value holds for ever.
///
/// Of a plain number of steps it gives a number, of a tensor a tensor, inside a trace too, so that
/// a training step needs no learning rate from outside; the two agree to a rounding.
///
///   const auto schedule = Schedule::warm_up(0.01, 500).then(Schedule::cosine(0.01, 0.0001, 9500));
///   adam.set_learning_rate(schedule(adam.step()));
///
/// Steps count from 0: the value at 0 is that of the first update. Steps below 0 count as 0.
class Schedule {
 public:
  /// A line that ends at `peak`: peak · (t + 1) / steps. Source: Goyal et al. (2017), section 2.2.
  /// Throws ArgumentError unless steps is positive and peak finite, as the others do.
  static Schedule warm_up(double peak, std::int64_t steps);
  /// Half a cosine: to + (from - to) (1 + cos(π t / steps)) / 2. Source: Loshchilov & Hutter
  /// (2017), eq. 5, without restarts.
  static Schedule cosine(double from, double to, std::int64_t steps);
  /// from · factor^(t / steps), without an end. Throws ArgumentError unless factor is positive.
  static Schedule exponential(double from, double factor, std::int64_t steps);

  /// This one until it ends, and then the next, whose steps count from there. Throws ArgumentError
  /// when this one has no end.
  Schedule then(const Schedule& next) const;

  double operator()(std::int64_t step) const;
  /// step: an integer scalar -> an f64 scalar. Throws DTypeError or ShapeError for another.
  Tensor operator()(const Tensor& step) const;

 private:
  struct Piece {
    enum class Kind { line, cosine, exponential } kind;
    double from, to;  ///< of an exponential, `to` is its factor
    std::int64_t steps;
    template <class T>
    T at(const T& step) const;
  };
  explicit Schedule(const char* name, const Piece& piece);
  template <class T>
  T at(const T& step) const;

  std::vector<Piece> pieces_;
};

}  // namespace reel
