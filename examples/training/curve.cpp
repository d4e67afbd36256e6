#include "curve.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "write_file.h"

namespace {

std::string formatted(const char* format, double number) {
  char text[48];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

/// Values in one column of pixels or letters.
struct Column {
  double step, least, most, mean;
};

/// Returns the points as at most `most` columns. A column's mean is over at least `averaged`
/// points, including those before it.
std::vector<Column> columns_of(const std::vector<CurvePoint>& points, std::size_t most,
                               std::size_t averaged) {
  const std::size_t count = std::min(most, points.size());
  std::vector<double> sums{0};
  for (const CurvePoint& point : points) sums.push_back(sums.back() + point.value);
  std::vector<Column> columns;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = points.size() * i / count, end = points.size() * (i + 1) / count;
    const auto [least, largest] = std::minmax_element(
        points.begin() + static_cast<std::ptrdiff_t>(begin),
        points.begin() + static_cast<std::ptrdiff_t>(end),
        [](const CurvePoint& a, const CurvePoint& b) { return a.value < b.value; });
    const std::size_t from = std::min(begin, end - std::min(averaged, end));
    columns.push_back({static_cast<double>(points[end - 1].step), least->value, largest->value,
                       (sums[end] - sums[from]) / static_cast<double>(end - from)});
  }
  return columns;
}

/// Numbers along an axis: multiples of 1, 2 or 5 times a power of ten, about `count` of them.
struct Ticks {
  double step, first, last;
  Ticks(double least, double most, int count) {
    const double span = most > least ? most - least : std::max(std::abs(most), 1e-9);
    const double power = std::pow(10, std::floor(std::log10(span / count)));
    const double rest = span / count / power;
    step = power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
    first = std::floor(least / step) * step;
    last = std::max(std::ceil(most / step) * step, first + step);
  }
};

/// The picture, and the positions of values in it.
class Svg {
 public:
  Svg(const std::vector<CurvePoint>& points, const std::string& unit)
      : points_(points), unit_(unit) {
    averaged_ = std::clamp<std::size_t>(points.size() / 20, 1, 100);
    columns_ = columns_of(points, static_cast<std::size_t>(kRight - kLeft), averaged_);
    const auto [least, most] = std::minmax_element(
        points.begin(), points.end(),
        [](const CurvePoint& a, const CurvePoint& b) { return a.value < b.value; });
    y_ticks_ = Ticks(least->value, most->value, 6);
    first_step_ = static_cast<double>(points.front().step) - 1;
    last_step_ = static_cast<double>(points.back().step);
  }

  std::string draw() {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kWidth << "\" height=\""
         << kHeight << "\" viewBox=\"0 0 " << kWidth << ' ' << kHeight
         << "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    draw_phases();
    draw_axes();
    draw_values();
    draw_legend();
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  static constexpr double kWidth = 860, kHeight = 440, kLeft = 70, kRight = 840, kTop = 40,
                          kBottom = 385;
  static constexpr const char *kEager = "#fbe3c4", *kTraced = "#eaf2fb", *kRange = "#9dbfdf",
                              *kMean = "#1f4e79";

  double x(double step) const {
    return kLeft + (kRight - kLeft) * (step - first_step_) / (last_step_ - first_step_);
  }
  double y(double value) const {
    return kBottom - (kBottom - kTop) * (value - y_ticks_.first) / (y_ticks_.last - y_ticks_.first);
  }
  static std::string number(double value) { return formatted("%.2f", value); }

  void rect(double left, double top, double width, double height, const char* fill) {
    out_ << "<rect x=\"" << number(left) << "\" y=\"" << number(top) << "\" width=\""
         << number(width) << "\" height=\"" << number(height) << "\" fill=\"" << fill << "\"/>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    out_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2)
         << "\" y2=\"" << number(y2) << "\" " << style << "/>\n";
  }
  void text(double left, double base, const char* anchor, const std::string& words) {
    out_ << "<text x=\"" << number(left) << "\" y=\"" << number(base) << "\" text-anchor=\""
         << anchor << "\">" << words << "</text>\n";
  }

  /// Draws a background for each run of steps in one mode, and a line where the next run begins.
  void draw_phases() {
    for (std::size_t begin = 0, end; begin < points_.size(); begin = end) {
      end = begin;
      while (end < points_.size() && points_[end].is_traced == points_[begin].is_traced) ++end;
      const double left = x(static_cast<double>(points_[begin].step) - 1);
      const double right = x(static_cast<double>(points_[end - 1].step));
      rect(left, kTop, right - left, kBottom - kTop, points_[begin].is_traced ? kTraced : kEager);
      if (begin == 0) continue;
      line(left, kTop, left, kBottom, "stroke=\"#b3701e\" stroke-dasharray=\"4 3\"");
      const bool has_room_right = left < kRight - 160;
      text(left + (has_room_right ? 5 : -5), kTop + 16, has_room_right ? "start" : "end",
           std::string(points_[begin].is_traced ? "traced" : "eager") + " from step " +
               std::to_string(points_[begin].step));
    }
  }

  void draw_axes() {
    const int count =
        static_cast<int>(std::lround((y_ticks_.last - y_ticks_.first) / y_ticks_.step));
    for (int i = 0; i <= count; ++i) {
      // Rounded, so that 0.30000000000000004 prints as 0.3, and values near 0 as 0.
      const double value = std::round(y_ticks_.first / y_ticks_.step + i) * y_ticks_.step;
      line(kLeft - 5, y(value), kRight, y(value), "stroke=\"#d5d5d5\"");
      text(kLeft - 9, y(value) + 4.5, "end", formatted("%.6g", value));
    }
    const Ticks ticks(first_step_, last_step_, 8);
    for (double step = ticks.first; step <= last_step_; step += std::max(ticks.step, 1.0)) {
      if (step < first_step_) continue;
      line(x(step), kBottom, x(step), kBottom + 5, "stroke=\"#333\"");
      text(x(step), kBottom + 20, "middle", formatted("%.12g", step));
    }
    line(kLeft, kTop, kLeft, kBottom, "stroke=\"#333\"");
    line(kLeft, kBottom, kRight, kBottom, "stroke=\"#333\"");
    text((kLeft + kRight) / 2, kBottom + 42, "middle", "step");
    text(kLeft - 50, kTop - 16, "start", unit_);
  }

  void draw_values() {
    out_ << "<polygon fill=\"" << kRange << "\" stroke=\"" << kRange << "\" points=\"";
    for (const Column& c : columns_) out_ << number(x(c.step)) << ',' << number(y(c.most)) << ' ';
    for (auto c = columns_.rbegin(); c != columns_.rend(); ++c)
      out_ << number(x(c->step)) << ',' << number(y(c->least)) << ' ';
    out_ << "\"/>\n<polyline fill=\"none\" stroke=\"" << kMean << "\" stroke-width=\"2\" points=\"";
    for (const Column& c : columns_) out_ << number(x(c.step)) << ',' << number(y(c.mean)) << ' ';
    out_ << "\"/>\n";
  }

  void draw_legend() {
    double left = kRight - 500;
    const auto entry = [&](const char* colour, const std::string& words, double width) {
      rect(left, kTop - 27, 14, 14, colour);
      text(left + 20, kTop - 15, "start", words);
      left += width;
    };
    entry(kRange, "single steps", 125);
    entry(kMean, "mean of " + std::to_string(averaged_) + " steps", 160);
    entry(kEager, "eager steps", 110);
    entry(kTraced, "traced steps", 0);
  }

  const std::vector<CurvePoint>& points_;
  const std::string& unit_;
  std::size_t averaged_;
  std::vector<Column> columns_;
  Ticks y_ticks_{0, 1, 1};
  double first_step_, last_step_;
  std::ostringstream out_;
};

/// A field of dots, eight per Braille letter.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows)
      : columns_(columns), letters_(rows, std::vector<unsigned>(columns)) {}

  std::size_t width() const { return 2 * columns_; }
  std::size_t height() const { return 4 * letters_.size(); }
  void set(std::size_t x, std::size_t y) {
    constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    letters_[y / 4][x / 2] |= kDots[y % 4][x % 2];
  }
  std::string row(std::size_t i) const {
    std::string text;
    for (const unsigned dots : letters_[i]) {  // U+2800 and so on, as UTF-8
      text += static_cast<char>(0xe2);
      text += static_cast<char>(0xa0 | dots >> 6);
      text += static_cast<char>(0x80 | (dots & 0x3f));
    }
    return text;
  }

 private:
  std::size_t columns_;
  std::vector<std::vector<unsigned>> letters_;
};

}  // namespace

void save_curve(const std::string& path, const std::vector<CurvePoint>& points,
                const std::string& unit) {
  write_file(path, Svg(points, unit).draw());
}

std::string draw_curve(const std::vector<CurvePoint>& points, const std::string& unit) {
  constexpr std::size_t kColumns = 60, kRows = 8;
  Dots dots(kColumns, kRows);
  const std::vector<Column> columns = columns_of(points, dots.width(), 1);
  double least = columns[0].mean, most = least;
  for (const Column& column : columns) {
    least = std::min(least, column.mean);
    most = std::max(most, column.mean);
  }
  // A line between points: each column begins where the one before it ended.
  const auto height_of = [&](std::size_t i) {
    const double part = most > least ? (most - columns[i].mean) / (most - least) : 0;
    return static_cast<std::size_t>(std::lround(part * static_cast<double>(dots.height() - 1)));
  };
  for (std::size_t i = 0; i < dots.width(); ++i) {
    const std::size_t at = i * columns.size() / dots.width();
    const std::size_t to = height_of(at), from = height_of(at ? at - 1 : 0);
    const bool is_new = at != (i ? (i - 1) * columns.size() / dots.width() : at);
    dots.set(i, to);
    if (is_new)
      for (std::size_t y = std::min(from, to); y < std::max(from, to); ++y) dots.set(i, y);
  }
  std::string text = unit + '\n';
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::string label = i == 0           ? formatted("%8.3g ┤", most)
                              : i == kRows - 1 ? formatted("%8.3g ┤", least)
                                               : "         │";
    text += label + dots.row(i) + '\n';
  }
  text += "         └";
  for (std::size_t i = 0; i < kColumns; ++i) text += "─";
  const std::string first = "step " + std::to_string(points.front().step);
  const std::string last = std::to_string(points.back().step);
  text += "\n          " + first + std::string(kColumns - first.size() - last.size(), ' ') + last;
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].is_traced != points[i - 1].is_traced)
      text += "\n          " + std::string(points[i].is_traced ? "traced" : "eager") +
              " from step " + std::to_string(points[i].step);
  return text;
}
