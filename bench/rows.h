// bench/rows.h — Rows, the table and the JSON of benchmarks that are not of the harness.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "reel/core/base/str.h"

namespace reel::bench {

/// Prints figures as they come, and writes them to a JSON file at the end.
class Rows {
 public:
  /// json: a file, which stays if there are no figures, or empty for none. does_print: false on all
  /// ranks but one.
  explicit Rows(std::string json, bool does_print = true)
      : json_(std::move(json)), does_print_(does_print) {}
  ~Rows() {
    if (does_print_ && !json_.empty() && !text_.empty())
      std::ofstream(json_) << '[' << text_ << "]\n";
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void add(const std::string& name, const std::string& metric, const std::string& unit,
           double value) {
    if (!does_print_) return;
    std::printf("%-38s %-28s %10.4g %s\n", name.c_str(), metric.c_str(), value, unit.c_str());
    std::fflush(stdout);
    text_ += str(text_.empty() ? "" : ",\n", R"({"case": ")", name, R"(", "metric": ")", metric,
                 R"(", "unit": ")", unit, R"(", "value": )", value, '}');
  }

 private:
  std::string json_, text_;
  bool does_print_;
};

/// Returns the value behind an option such as --json; empty if it is not there.
inline std::string option_of(int argc, char** argv, const std::string& name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name) return argv[i + 1];
  return "";
}

}  // namespace reel::bench
