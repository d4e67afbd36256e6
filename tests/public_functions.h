// tests/public_functions.h — the public functions on tensors, as headers declare them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace reel {

/// Folders and files of functions that take or return tensors.
inline constexpr const char* kFunctionHeaders[] = {
    "core/functions",  "frontend/layers",     "frontend/loops",
    "frontend/losses", "frontend/optimisers", "frontend/signals",
    "frontend/sparse", "frontend/transforms", "frontend/tree/state_select.h"};
/// Headers there that are no part of the interface (docs/site/subjects.toml).
inline constexpr const char* kInternalHeaders[] = {"unranked.h",
                                                   "branch_cost.h",
                                                   "loop_leaves.h",
                                                   "loop_recording.h",
                                                   "loop_policy.h",
                                                   "scan_index.h",
                                                   "scan_leaves.h",
                                                   "scan_slices.h",
                                                   "row_batch.h",
                                                   "row_scan.h",
                                                   "optimiser_leaves.h",
                                                   "stack_pushed_arrays.h",
                                                   "trace_subcomputation.h",
                                                   "attention_stream.h",
                                                   "ctc_lattice.h",
                                                   "alignment_scans.h",
                                                   "varying_ys.h",
                                                   "whole_function.h",
                                                   "rotate.h",
                                                   "along.h"};

/// Returns the functions that a header declares outside of namespace detail.
inline std::set<std::string> functions_of(const std::filesystem::path& header) {
  static const std::regex declaration(
      R"((?:\[\[nodiscard\]\] )?[A-Za-z_][\w:<>,&* ]*[ &*]([a-z][a-z_0-9]*)\(.*)");
  std::ifstream file(header);
  std::set<std::string> names;
  bool is_detail = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("namespace detail") || line.starts_with("inline namespace detail"))
      is_detail = true;
    if (line.starts_with("}  // namespace detail")) is_detail = false;
    std::smatch match;
    if (!is_detail && std::regex_match(line, match, declaration) && match[1] != "requires")
      names.insert(match[1]);
  }
  return names;
}

/// Returns the names of the public functions. source: the folder of the project.
inline std::set<std::string> public_functions(const std::filesystem::path& source) {
  const auto is_internal = [](const std::filesystem::path& header) {
    return header.extension() != ".h" ||
           std::any_of(std::begin(kInternalHeaders), std::end(kInternalHeaders),
                       [&](const char* name) { return header.filename() == name; });
  };
  std::set<std::string> names;
  for (const char* const place : kFunctionHeaders) {
    const std::filesystem::path path = source / place;
    if (!std::filesystem::is_directory(path)) {
      names.merge(functions_of(path));
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (!is_internal(entry.path())) names.merge(functions_of(entry.path()));
  }
  return names;
}

}  // namespace reel
