// onnx/registry.h — Rule, how an op of ONNX is computed, and the list of all rules.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "reel/onnx/call.h"

namespace reel::imported {

inline constexpr const char* kTraining = "ai.onnx.preview.training";
inline constexpr const char* kMachineLearning = "ai.onnx.ml";
inline constexpr const char* kPreview = "ai.onnx.preview";
inline constexpr int kLatestVersion = 27;  ///< of the op set of ONNX itself

/// An op in all its versions. A rule reads Call::version() where versions differ.
struct Rule {
  const char* op;
  Values (*run)(const Call&);
  const char* domain = "";
  int first = 1, last = kLatestVersion;  ///< versions of the op set in which the op exists
  /// Equal inputs give equal results, and no graph of the node reads other values.
  bool is_pure = true;
  /// Inputs that the rule reads as sizes, positions or scales: bit i for input i. Constants there
  /// are no parameters.
  std::uint32_t numbers = 0;
};

/// Returns the rule with the inputs that it reads as sizes, positions or scales.
constexpr Rule with_numbers(std::initializer_list<int> inputs, Rule rule) {
  for (const int input : inputs) rule.numbers |= std::uint32_t{1} << input;
  return rule;
}

/// Returns the rule of an op in a version of its op set, or null.
const Rule* find_rule(std::string_view domain, std::string_view op, std::int64_t version);
/// Returns all rules.
std::vector<const Rule*> all_rules();

// The rules of each subject, in ops/.
std::span<const Rule> arithmetic_rules();
std::span<const Rule> activation_rules();
std::span<const Rule> comparison_rules();
std::span<const Rule> constant_rules();
std::span<const Rule> pad_rules();
std::span<const Rule> slice_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> indexing_rules();
std::span<const Rule> ngram_rules();
std::span<const Rule> product_rules();
std::span<const Rule> norm_rules();
std::span<const Rule> control_rules();
std::span<const Rule> scan_rules();
std::span<const Rule> sequence_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> training_rules();
std::span<const Rule> random_rules();
std::span<const Rule> window_rules();
std::span<const Rule> signal_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> linear_attention_rules();
std::span<const Rule> bit_rules();
std::span<const Rule> box_rules();
std::span<const Rule> lp_pool_rules();
std::span<const Rule> quantized_rules();
std::span<const Rule> resize_rules();
std::span<const Rule> sampling_rules();
std::span<const Rule> tree_rules();

}  // namespace reel::imported
