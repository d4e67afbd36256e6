#include "reel/onnx/writer_registry.h"

#include <map>

namespace reel::exported {
namespace {

constexpr const char* kUnderPolicy =
    "residuals are computed again; leave checkpoint and swap_memory out for ONNX";
constexpr const char* kUneven = "a TensorArray with elements of different sizes";
constexpr const char* kUnranked = "a state of a loop that changes its rank";
constexpr const char* kAlignments = "losses are saved as scans";
constexpr const char* kWindows = "the gradient of max_pool";
constexpr const char* kOfPlans = "made by passes of plans only";

const Refused kRefused[] = {
    {"recompute", kUnderPolicy},
    {"list_resize", kUneven},
    {"as_unranked", kUnranked},
    {"ranked_like", kUnranked},
    {"ensure_shape_unranked", kUnranked},
    {"stack_unranked", kUnranked},
    {"slice_unranked", kUnranked},
    {"ctc", kAlignments},
    {"ctc_grad", kAlignments},
    {"transducer", kAlignments},
    {"transducer_grad", kAlignments},
    {"window_put", kWindows},
    {"window_take", kWindows},
    {"fused", kOfPlans},
    {"sum_blocks", kOfPlans},
    {"draw_rows", kOfPlans},
    {"unpadded_dot", kOfPlans},
    {"pack", kOfPlans},
    {"pack_turned", kOfPlans},
    {"packed_dot", kOfPlans},
    {"packed_turned_dot", kOfPlans},
};

std::map<std::string_view, const Writer*> make_table() {
  std::map<std::string_view, const Writer*> table;
  for (const auto writers :
       {elementwise_writers(), reduction_writers(), product_writers(), shape_writers(),
        join_writers(), creation_writers(), indexing_writers(), order_writers(), dim_writers(),
        identity_writers(), control_writers(), entry_writers(), random_writers(), list_writers(),
        scan_writers(), row_writers(), convolution_writers(), transform_writers(),
        function_writers()})
    for (const Writer& writer : writers) table.emplace(writer.op, &writer);
  return table;
}

const auto& table() {
  static const auto& table = *new auto(make_table());  // never destroyed: see registry.cpp
  return table;
}

}  // namespace

const Writer* find_writer(std::string_view op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second;
}

std::string_view reason_against(std::string_view op) {
  for (const Refused& refused : kRefused)
    if (refused.op == op) return refused.reason;
  return "";
}

std::vector<const Writer*> all_writers() {
  std::vector<const Writer*> all;
  for (const auto& [name, writer] : table()) all.push_back(writer);
  return all;
}

}  // namespace reel::exported
