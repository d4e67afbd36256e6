// Rules have the names, domains and versions of ONNX's schemas.
#include "reel/onnx/registry.h"

#include <gtest/gtest.h>

#include "reel/onnx/proto.h"
// Needs the macros of onnx/proto.h.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop

namespace reel::imported {
namespace {

TEST(OnnxRegistryTest, EveryRuleHasASchemaInItsVersions) {
  for (const Rule* rule : all_rules())
    for (const int version : {rule->first, rule->last})
      EXPECT_NE(::onnx::OpSchemaRegistry::Schema(rule->op, version, rule->domain), nullptr)
          << rule->domain << ' ' << rule->op << " in version " << version;
}

TEST(OnnxRegistryTest, EveryVersionOfAnOpHasOneRule) {
  for (const Rule* rule : all_rules())
    for (const Rule* other : all_rules()) {
      const bool is_same = std::string_view(rule->op) == other->op &&
                           std::string_view(rule->domain) == other->domain;
      const bool overlaps = rule->first <= other->last && other->first <= rule->last;
      EXPECT_FALSE(rule != other && is_same && overlaps) << rule->op;
    }
}

}  // namespace
}  // namespace reel::imported
