// Rules have the names, domains and versions of ONNX's ops, and the table of forms equals the
// schemas in the library of ONNX.
#include "reel/onnx/registry.h"

#include <gtest/gtest.h>

#include "reel/onnx/op_forms.h"
#include "reel/onnx/proto.h"
// Needs the macros of onnx/proto.h.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop

namespace reel::imported {
namespace {

using ::onnx::OpSchema;

TEST(OnnxRegistryTest, EveryRuleHasAFormInItsVersions) {
  for (const Rule* rule : all_rules())
    for (const int version : {rule->first, rule->last}) {
      const OpForm* form = find_form(rule->domain, rule->op, version);
      EXPECT_TRUE(form && !form->is_removed)
          << rule->domain << ' ' << rule->op << " in version " << version;
    }
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

void expect_values(const ValueForms& form, const std::vector<OpSchema::FormalParameter>& schema,
                   int fewest, int most) {
  EXPECT_EQ(static_cast<int>(form.fewest), fewest);
  EXPECT_EQ(form.any_number, most == std::numeric_limits<int>::max());
  ASSERT_EQ(form.is_required.size() + form.any_number, schema.size());
  for (std::size_t i = 0; i < form.is_required.size(); ++i)
    EXPECT_EQ(form.is_required[i], schema[i].GetOption() == OpSchema::Single) << i;
}

TEST(OnnxRegistryTest, FormsAreThoseOfTheLibrarysSchemas) {
  const std::map<::onnx::AttributeProto::AttributeType, char> letters{
      {::onnx::AttributeProto::FLOAT, 'f'},      {::onnx::AttributeProto::INT, 'i'},
      {::onnx::AttributeProto::STRING, 's'},     {::onnx::AttributeProto::TENSOR, 't'},
      {::onnx::AttributeProto::GRAPH, 'g'},      {::onnx::AttributeProto::SPARSE_TENSOR, 'p'},
      {::onnx::AttributeProto::TYPE_PROTO, 'y'}, {::onnx::AttributeProto::FLOATS, 'F'},
      {::onnx::AttributeProto::INTS, 'I'},       {::onnx::AttributeProto::STRINGS, 'S'}};
  int count = 0;
  for (const OpSchema& schema : ::onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const bool is_known = find_form(schema.domain(), schema.Name(), schema.SinceVersion());
    if (schema.domain() == kMachineLearning && !is_known) continue;  // most have no rules
    SCOPED_TRACE(schema.Name() + "-" + std::to_string(schema.SinceVersion()));
    const OpForm* form = find_form(schema.domain(), schema.Name(), schema.SinceVersion());
    ASSERT_TRUE(form);
    ++count;
    EXPECT_EQ(form->since, schema.SinceVersion());
    EXPECT_EQ(form->is_removed, schema.Deprecated());
    if (schema.Deprecated()) continue;
    expect_values(form->inputs, schema.inputs(), schema.min_input(), schema.max_input());
    expect_values(form->outputs, schema.outputs(), schema.min_output(), schema.max_output());
    EXPECT_EQ(form->attributes.size(), schema.attributes().size());
    for (const auto& [name, attribute] : schema.attributes()) {
      const auto found = form->attributes.find(name);
      ASSERT_NE(found, form->attributes.end()) << name;
      EXPECT_EQ(found->second.type, letters.at(attribute.type)) << name;
      EXPECT_EQ(found->second.is_required, attribute.required) << name;
    }
  }
  EXPECT_GT(count, 400);
}

}  // namespace
}  // namespace reel::imported
