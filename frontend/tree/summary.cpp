#include "reel/frontend/tree/summary.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "reel/core/base/str.h"
#include "reel/frontend/tree/leaves.h"

namespace reel {
namespace {

using Row = std::array<std::string, 3>;

/// Returns the number of characters of a text in UTF-8: names of dims may have others than ASCII.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string spaces(std::size_t width, const std::string& text) {
  return std::string(width - width_of(text), ' ');
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  std::vector<Row> rows{{"name", "type", "count"}};
  for (const ParameterSummary& parameter : summary.parameters)
    rows.push_back({parameter.name, str(parameter.type), str(parameter.count)});
  rows.push_back({"total", "", str(summary.count)});
  std::array<std::size_t, 3> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  for (const auto& [name, type, count] : rows)
    out << name << spaces(widths[0], name) << "  " << type << spaces(widths[1], type) << "  "
        << spaces(widths[2], count) << count << '\n';
  return out;
}

namespace detail {

Summary summary_of(const TreeRef& model) {
  Summary result;
  const TreeLeaves leaves = flatten_tree(model);
  const std::vector<std::string> paths = leaf_paths_of(model, {});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!is_floating(leaves[i])) continue;
    const TensorType& type = leaves[i].tensor.type();
    result.parameters.push_back({paths[i], type, type.numel()});
    result.count += type.numel();
  }
  return result;
}

}  // namespace detail
}  // namespace reel
