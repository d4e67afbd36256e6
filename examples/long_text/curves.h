// examples/long_text/curves.h — draws several curves in one picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y
};

/// Writes an SVG picture of the curves over a logarithmic axis that begins at the smallest x.
/// Throws UserError if it cannot be written.
void save_curves(const std::string& path, const std::vector<Curve>& curves,
                 const std::string& x_label, const std::string& y_label);
