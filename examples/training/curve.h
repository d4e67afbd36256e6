// examples/training/curve.h — draws measurements of training steps as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct CurvePoint {
  std::int64_t step;
  bool is_traced;
  double value;
};

/// Writes an SVG picture of the values and their mean over the steps, with eager and traced phases
/// marked. Requires at least one point. unit: of the values. Throws UserError, which names path and
/// reason.
void save_curve(const std::string& path, const std::vector<CurvePoint>& points,
                const std::string& unit);

/// Returns a small picture of the same in Unicode letters, without a final newline. Requires at
/// least two points.
std::string draw_curve(const std::vector<CurvePoint>& points, const std::string& unit);
