#include "reel/onnx/registry.h"

#include <map>

namespace reel::imported {
namespace {

std::map<std::string, std::vector<const Rule*>, std::less<>> make_table() {
  std::map<std::string, std::vector<const Rule*>, std::less<>> table;
  for (const auto rules : {arithmetic_rules(), activation_rules(),
                           comparison_rules(), constant_rules(),
                           shape_rules(),      pad_rules(),
                           slice_rules(),      reduction_rules(),
                           indexing_rules(),   ngram_rules(),
                           product_rules(),    norm_rules(),
                           control_rules(),    scan_rules(),
                           sequence_rules(),   recurrent_rules(),
                           training_rules(),   random_rules(),
                           window_rules(),     signal_rules(),
                           attention_rules(),  linear_attention_rules(),
                           bit_rules(),        box_rules(),
                           lp_pool_rules(),    quantized_rules(),
                           resize_rules(),     sampling_rules(),
                           tree_rules()})
    for (const Rule& rule : rules) table[rule.op].push_back(&rule);
  return table;
}

const auto& table() {
  static const auto& table = *new auto(make_table());  // never destroyed: models may be global
  return table;
}

}  // namespace

const Rule* find_rule(std::string_view domain, std::string_view op, std::int64_t version) {
  const auto found = table().find(op);
  if (found == table().end()) return nullptr;
  for (const Rule* rule : found->second)
    if (rule->domain == domain && rule->first <= version && version <= rule->last) return rule;
  return nullptr;
}

std::vector<const Rule*> all_rules() {
  std::vector<const Rule*> all;
  for (const auto& [name, rules] : table()) all.insert(all.end(), rules.begin(), rules.end());
  return all;
}

}  // namespace reel::imported
