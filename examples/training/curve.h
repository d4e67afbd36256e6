// curve.h — what was measured in the steps of a training, as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct CurvePoint {
  std::int64_t step;
  bool is_traced;
  double value;
};

/// Writes an SVG picture: values and their mean over step, the eager and the traced phases marked.
/// points: one at least; unit: of the values. Throws UserError, which names path and reason.
void save_curve(const std::string& path, const std::vector<CurvePoint>& points,
                const std::string& unit);

/// The same, small, in letters of Unicode; without a line's end behind it. points: two at least.
std::string draw_curve(const std::vector<CurvePoint>& points, const std::string& unit);
