#include "curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "../training/write_file.h"

namespace {

constexpr double kWidth = 720, kHeight = 420, kLeft = 60, kRight = 170, kTop = 20, kBottom = 50;
constexpr std::array<const char*, 6> kColours{"#1f77b4", "#d62728", "#2ca02c",
                                              "#9467bd", "#ff7f0e", "#555555"};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

}  // namespace

void save_curves(const std::string& path, const std::vector<Curve>& curves,
                 const std::string& x_label, const std::string& y_label) {
  Range x, y;
  for (const Curve& curve : curves)
    for (const auto& [at, value] : curve.points) {
      x.add(std::log10(at));
      y.add(value);
    }
  y.low = std::floor(y.low);
  y.high = std::ceil(y.high);
  const double wide = std::max(x.high - x.low, 1e-9), tall = std::max(y.high - y.low, 1e-9);
  const auto place_x = [&](double log) {
    return kLeft + (log - x.low) / wide * (kWidth - kLeft - kRight);
  };
  const auto place_y = [&](double value) {
    return kHeight - kBottom - (value - y.low) / tall * (kHeight - kTop - kBottom);
  };
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << ' ' << kHeight
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
        << "\" stroke=\"#ddd\"/>\n";
  };
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& what,
                        const char* colour = "black") {
    out << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor
        << "\" fill=\"" << colour << "\">" << what << "</text>\n";
  };
  for (double value = y.low; value <= y.high + 1e-9; value += 1) {
    line(kLeft, place_y(value), kWidth - kRight, place_y(value));
    std::ostringstream number;
    number << value;
    text(kLeft - 8, place_y(value) + 4, "end", number.str());
  }
  for (double log = std::ceil(x.low); log <= x.high; ++log) {
    line(place_x(log), kTop, place_x(log), kHeight - kBottom);
    std::ostringstream number;
    number << std::llround(std::pow(10, log));
    text(place_x(log), kHeight - kBottom + 18, "middle", number.str());
  }
  text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", x_label);
  text(kLeft + 6, kTop + 14, "start", y_label);
  double name_at = kTop + 12;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    out << "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" << colour << "\" points=\"";
    for (const auto& [at, value] : curves[i].points)
      out << place_x(std::log10(at)) << ',' << place_y(value) << ' ';
    out << "\"/>\n";
    for (const auto& [at, value] : curves[i].points)
      if (curves[i].points.size() < 60)
        out << "<circle r=\"2.5\" fill=\"" << colour << "\" cx=\"" << place_x(std::log10(at))
            << "\" cy=\"" << place_y(value) << "\"/>\n";
    text(kWidth - kRight + 12, name_at, "start", curves[i].name, colour);
    name_at += 18;
  }
  out << "</svg>\n";
  write_file(path, out.str());
}
