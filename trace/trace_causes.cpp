#include "reel/trace/trace_causes.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"

namespace reel {
namespace {

// A function may have any number of traces.
constexpr std::size_t kMaxGroups = 64, kMaxValues = 1000, kMaxLines = 8;

constexpr const char* kSizeOfAxis = "the size of axis ";

/// Returns the "0" of "argument 0.cell.w"; "argument" if the name has no position.
std::string position_of_argument(const std::string& name) {
  const std::size_t first = name.find_first_of("0123456789");
  if (first == std::string::npos) return "argument";
  return name.substr(first, name.find_first_not_of("0123456789", first) - first);
}

std::string one_trace_with(const std::string& option) {
  return str("One trace serves all sizes with JitOptions{", option, "}.");
}

std::string repair_of(const FixedValue& value) {
  switch (value.kind()) {
    case FixedValue::Kind::integer:
    case FixedValue::Kind::natural:
    case FixedValue::Kind::number:
    case FixedValue::Kind::long_number:
      return "Pass what changes from call to call as a Tensor: scalar(x).";
    case FixedValue::Kind::size:
      return "Stack the elements into one Tensor.";
    default:
      return "Each value needs a trace; JitOptions::max_traces bounds how many are kept.";
  }
}

/// Returns a value as a part of a line.
std::string shown_value(std::string value) {
  constexpr std::size_t kMaxBytes = 40;
  std::replace(value.begin(), value.end(), '\n', ' ');
  return value.size() > kMaxBytes ? value.substr(0, kMaxBytes) + "..." : value;
}

bool have_one_structure(const TracedArguments& a, const TracedArguments& b) {
  return a.type == b.type && a.fixed_names == b.fixed_names && a.tensor_names == b.tensor_names &&
         a.sizes.is_like(b.sizes);
}

/// Returns the properties that differ between arguments of one structure.
std::vector<ArgumentDifference> differences_of(const TracedArguments& first,
                                               const TracedArguments& now) {
  std::vector<ArgumentDifference> result;
  for (std::size_t i = 0; i < now.fixed.size(); ++i)
    if (now.fixed[i] != first.fixed[i])
      result.push_back({now.fixed_names[i], first.fixed[i].text(), now.fixed[i].text(),
                        repair_of(now.fixed[i])});
  for (std::size_t i = 0; i < now.sizes.named.size(); ++i)
    if (const auto& [dim, size] = now.sizes.named[i]; size != first.sizes.named[i].second)
      result.push_back({str("the size of dim ", dim), str(first.sizes.named[i].second), str(size),
                        one_trace_with(str(".dynamic = {Dim(\"", dim, "\")}"))});
  for (std::size_t i = 0; i < now.sizes.plain.size(); ++i) {
    const StaticSizes::Axis& at = now.sizes.plain[i];
    if (at.size == first.sizes.plain[i].size) continue;
    const std::string& argument = now.tensor_names[at.tensor];
    result.push_back({str(kSizeOfAxis, at.axis, " of ", argument), str(first.sizes.plain[i].size),
                      str(at.size),
                      one_trace_with(str(".any_length = {{", position_of_argument(argument), ", ",
                                         at.axis, "}}"))});
  }
  for (std::size_t i = 0; i < now.dtypes.size(); ++i)
    if (now.dtypes[i] != first.dtypes[i])
      result.push_back({str("the dtype of ", now.tensor_names[i]), str(first.dtypes[i]),
                        str(now.dtypes[i]), "Cast it before the call."});
  return result;
}

}  // namespace

TracedArguments::TracedArguments(std::type_index of_type, const TreeLeaves& leaves,
                                 const std::vector<std::string>& paths, const Dims& dims,
                                 const DynamicSizes& dynamic)
    : type(of_type), sizes(leaves, dims, dynamic) {
  const auto name_of = [&](std::size_t i) {
    return i >= paths.size() || paths[i].empty() ? "argument" : "argument " + paths[i];
  };
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const TreeLeaf& leaf = leaves[i];
    if (leaf.kind == TreeLeaf::Kind::fixed) {
      fixed.push_back(leaf.fixed);
      fixed_names.push_back(name_of(i));
    } else if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined()) {
      dtypes.push_back(leaf.tensor.dtype());
      tensor_names.push_back(name_of(i));
    }
  }
}

void TraceCauses::note(std::vector<Property>& properties, const ArgumentDifference& found) {
  auto property = std::find_if(properties.begin(), properties.end(),
                               [&](const Property& p) { return p.name == found.name; });
  if (property == properties.end())
    property = properties.insert(property, {found.name, found.repair, {}});
  std::vector<std::string>& values = property->values;
  for (const std::string& value : {found.first, found.now})
    if (values.size() < kMaxValues && !std::count(values.begin(), values.end(), value))
      values.push_back(value);
}

void TraceCauses::add(TracedArguments arguments) {
  ++count_;
  for (Group& group : groups_)
    if (have_one_structure(group.first, arguments)) {
      ++group.traces;
      for (const ArgumentDifference& at : differences_of(group.first, arguments))
        note(group.properties, at);
      return;
    }
  if (groups_.size() < kMaxGroups) groups_.push_back({std::move(arguments), 1, {}});
}

std::vector<ArgumentDifference> TraceCauses::since_first(const TracedArguments& arguments) const {
  if (groups_.empty() || !have_one_structure(groups_[0].first, arguments)) return {};
  std::vector<ArgumentDifference> result;
  for (ArgumentDifference& found : differences_of(groups_[0].first, arguments)) {
    const bool is_told = found.name.starts_with(kSizeOfAxis) &&
                         std::any_of(result.begin(), result.end(), [&](const auto& other) {
                           return other.name.starts_with(kSizeOfAxis) &&
                                  other.first == found.first && other.now == found.now;
                         });
    if (!is_told) result.push_back(std::move(found));
  }
  return result;
}

/// Returns the sizes and keys of containers that differ between groups of one C++ type.
std::vector<TraceCauses::Property> TraceCauses::containers_that_differ() const {
  std::vector<Property> result;
  for (const Group& group : groups_) {
    const auto like = std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) {
      return other.first.type == group.first.type;
    });
    const TracedArguments &first = like->first, &now = group.first;
    for (std::size_t i = 0; i < std::min(first.fixed.size(), now.fixed.size()); ++i) {
      if (first.fixed_names[i] != now.fixed_names[i]) break;  // behind a container of another size
      if (now.fixed[i].is_of_container() && first.fixed[i] != now.fixed[i])
        note(result, {now.fixed_names[i], first.fixed[i].text(), now.fixed[i].text(),
                      repair_of(now.fixed[i])});
    }
  }
  return result;
}

std::string TraceCauses::text() const {
  std::vector<std::string> lines;
  const auto add_line = [&](const Property& property, std::size_t traces) {
    const std::vector<std::string>& values = property.values;
    const std::size_t count = values.size(), shown = count > 4 ? 3 : count - 1;
    std::string list;
    for (std::size_t i = 0; i < shown; ++i) list += shown_value(values[i]) + ", ";
    if (shown + 1 < count) list += "..., ";
    lines.push_back(str("traces: ", property.name, " had ", count == kMaxValues ? "at least " : "",
                        count, " values in ", traces, " traces (", list, shown_value(values.back()),
                        "). ", property.repair, '\n'));
  };
  for (const Group& group : groups_)
    for (const Property& property : group.properties) add_line(property, group.traces);
  const std::vector<Property> containers = containers_that_differ();
  for (const Property& property : containers) add_line(property, count_);
  if (groups_.size() > 1 && containers.empty())
    lines.push_back(str("traces: the arguments had ", groups_.size(),
                        " structures: C++ types, ranks, or names and sharing of dims\n"));
  std::string result;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) result += lines[i];
  if (lines.size() > kMaxLines)
    result += str("traces: ", lines.size() - kMaxLines, " more properties differ\n");
  return result;
}

}  // namespace reel
