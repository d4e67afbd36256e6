#include "confusion.h"

#include <cstdio>
#include <sstream>

#include "../training/write_file.h"

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

double share_of(std::size_t count, std::size_t total) {
  return total ? static_cast<double>(count) / static_cast<double>(total) : 0;
}

/// Returns white for 0 and a dark colour for 1: right answers in blue, wrong ones in red.
std::string colour(double share, bool is_right) {
  const auto mix = [&](int dark) { return static_cast<int>(255 + (dark - 255) * share); };
  char text[32];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(is_right ? 31 : 158),
                mix(is_right ? 78 : 42), mix(is_right ? 121 : 43));
  return text;
}

}  // namespace

std::size_t Confusion::total(std::size_t right) const {
  std::size_t sum = 0;
  for (std::size_t answer = 0; answer < classes_.size(); ++answer) sum += count(right, answer);
  return sum;
}

double Confusion::accuracy() const {
  std::size_t right = 0, all = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    right += count(i, i);
    all += total(i);
  }
  return share_of(right, all);
}

std::string Confusion::print() const {
  std::string text;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    std::size_t most = i;  // the most frequent wrong answer
    for (std::size_t answer = 0; answer < classes_.size(); ++answer)
      if (answer != i && (most == i || count(i, answer) > count(i, most))) most = answer;
    char line[120];
    std::snprintf(line, sizeof line, "  %-12s %7s right", classes_[i].c_str(),
                  percent(share_of(count(i, i), total(i))).c_str());
    text += line;
    if (most != i && count(i, most))
      text += ", " + percent(share_of(count(i, most), total(i))) + " taken for " + classes_[most];
    text += '\n';
  }
  return text;
}

void Confusion::save(const std::string& path) const {
  constexpr int kCell = 56, kLeft = 130, kTop = 120;
  const int side = kCell * static_cast<int>(classes_.size());
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kLeft + side + 30 << "\" height=\""
      << kTop + side + 30 << "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"20\" y=\"28\" font-size=\"15\">" << percent(accuracy())
      << " right; rows: what it is, columns: the answer</text>\n";
  const auto text = [&](int x, int y, const std::string& style, const std::string& words) {
    out << "<text x=\"" << x << "\" y=\"" << y << "\" " << style << '>' << words << "</text>\n";
  };
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const int at = kCell * static_cast<int>(i) + kCell / 2;
    text(kLeft - 10, kTop + at + 5, "text-anchor=\"end\"", classes_[i]);
    const std::string turned = "transform=\"rotate(-45 " + std::to_string(kLeft + at) + ' ' +
                               std::to_string(kTop - 8) + ")\"";
    text(kLeft + at, kTop - 8, turned, classes_[i]);
    for (std::size_t answer = 0; answer < classes_.size(); ++answer) {
      const int x = kLeft + kCell * static_cast<int>(answer), y = kTop + at - kCell / 2;
      const double share = share_of(count(i, answer), total(i));
      out << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << kCell << "\" height=\""
          << kCell << "\" stroke=\"#d5d5d5\" fill=\"" << colour(share, i == answer) << "\"/>\n";
      if (count(i, answer))
        text(x + kCell / 2, y + kCell / 2 + 5,
             share > 0.5 ? "text-anchor=\"middle\" fill=\"white\"" : "text-anchor=\"middle\"",
             std::to_string(count(i, answer)));
    }
  }
  out << "</svg>\n";
  write_file(path, out.str());
}
