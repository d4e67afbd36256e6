#include "alignment.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "../training/write_file.h"
#include "model.h"
#include "recordings.h"

using namespace reel;

namespace {

constexpr int kLeft = 60, kTop = 50, kFrame = 16, kCell = 4, kRow = 14, kGap = 14;

/// A colour from white, for 0, to a dark blue, for 1.
std::string shade(double value) {
  const auto mix = [&](int dark) {
    return static_cast<int>(255 + (dark - 255) * std::clamp(value, 0.0, 1.0));
  };
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(12), mix(44), mix(92));
  return text;
}

class Drawing {
 public:
  Drawing(int width, int height, const std::string& title) {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\""
         << height << "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    text(kLeft, 28, "font-size=\"15\"", title);
  }
  void text(int x, int y, const std::string& style, const std::string& words) {
    out_ << "<text x=\"" << x << "\" y=\"" << y << "\" " << style << '>';
    for (const char c : words) out_ << (c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c));
    out_ << "</text>\n";
  }
  void box(int x, int y, int width, int height, const std::string& fill) {
    out_ << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << width << "\" height=\""
         << height << "\" fill=\"" << fill << "\"/>\n";
  }
  /// Draws values of a matrix with `columns` columns: a row of boxes for each column, the first one
  /// at the bottom.
  void heat(int y, int width, int height, const std::vector<float>& values, int columns, double low,
            double high) {
    const int frames = static_cast<int>(values.size()) / columns;
    for (int t = 0; t < frames; ++t)
      for (int i = 0; i < columns; ++i) {
        const double value = values[static_cast<std::size_t>(t * columns + i)];
        if (const double dark = (value - low) / (high - low); dark > 0.02)
          box(kLeft + t * width, y + (columns - 1 - i) * height, width, height, shade(dark));
      }
  }
  std::string end() {
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  std::ostringstream out_;
};

}  // namespace

std::vector<Span> spans_of(const Tensor& logits, const Tensor& labels) {
  const auto places =
      ctc_alignment(logits, labels, ctc_dims(logits, labels)).places.to_vector<int>();
  const auto symbols = labels.to_vector<int>();
  std::vector<Span> spans;
  for (int t = 0; t < static_cast<int>(places.size()); ++t) {
    const int place = places[static_cast<std::size_t>(t)];
    if (place < 0) continue;
    if (static_cast<std::size_t>(place) == spans.size())
      spans.push_back({symbols[spans.size()] - 1, t, t});
    spans.back().end = t + 1;
  }
  return spans;
}

void save_alignment(const std::string& path, const std::string& title, const Tensor& features,
                    const Tensor& logits, const Tensor& labels) {
  const Dim time = features.dim("time"), frames = logits.dim("time");
  const auto heights = transpose(features, {time, mel}).to_vector<float>();
  const auto shares = transpose(softmax(logits, symbol), {frames, symbol}).to_vector<float>();
  const int mels = static_cast<int>(mel.size()), symbols = static_cast<int>(symbol.size());
  const int count = static_cast<int>(shares.size()) / symbols;
  const int probabilities = kTop + mels * kCell + kGap;
  const int spans = probabilities + symbols * kRow + kGap, bottom = spans + 24;

  Drawing drawing(std::max(kLeft + count * kFrame + 20, 420), bottom + 40, title);
  const auto [low, high] = std::minmax_element(heights.begin(), heights.end());
  if (!heights.empty()) drawing.heat(kTop, kFrame / 4, kCell, heights, mels, *low, *high);
  drawing.heat(probabilities, kFrame, kRow, shares, symbols, 0, 1);
  for (int i = 0; i < symbols; ++i)
    drawing.text(kLeft - 8, probabilities + (symbols - i) * kRow - 2, "text-anchor=\"end\"",
                 i ? std::to_string(i - 1) : "blank");
  drawing.text(kLeft - 8, kTop + mels * kCell / 2, "text-anchor=\"end\"", "mel");
  for (const Span& span : spans_of(logits, labels)) {
    const int x = kLeft + span.begin * kFrame, width = (span.end - span.begin) * kFrame;
    drawing.box(x, spans, width, 20, "#d9822b");
    drawing.text(x + width / 2, spans + 15, "text-anchor=\"middle\"", std::to_string(span.digit));
  }
  for (int t = 0; t <= count; t += 25) {  // a second
    char text[16];
    std::snprintf(text, sizeof text, "%.0f s", t * kFrameSeconds);
    drawing.text(kLeft + t * kFrame, bottom + 16, "text-anchor=\"middle\"", text);
  }
  write_file(path, drawing.end());
}
