#include "reel/onnx/newer_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include "reel/core/base/str.h"
#include "reel/onnx/onnx_error.h"

namespace reel::imported {
namespace {

// Numbers of the fields in onnx.proto.
constexpr int kOverloadOfNode = 8, kOverloadOfFunction = 13, kDefaultsOfFunction = 11;

/// Returns the bytes of all occurrences of a field of strings or messages. The library of ONNX
/// knows the field, or protobuf has it among the unknown fields.
std::vector<std::string> bytes_of(const google::protobuf::Message& message, int number) {
  std::vector<std::string> all;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const auto* field = message.GetDescriptor()->FindFieldByNumber(number);
  if (field && field->is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      all.push_back(reflection.GetRepeatedMessage(message, field, i).SerializeAsString());
  } else if (field) {
    all.push_back(reflection.GetString(message, field));
  } else {
    const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count(); ++i)
      if (unknown.field(i).number() == number &&
          unknown.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        all.push_back(unknown.field(i).length_delimited());
  }
  return all;
}

std::string last_of(const std::vector<std::string>& texts) {
  return texts.empty() ? std::string() : texts.back();
}

}  // namespace

std::string overload_of(const ::onnx::NodeProto& node) {
  return last_of(bytes_of(node, kOverloadOfNode));
}
std::string overload_of(const ::onnx::FunctionProto& function) {
  return last_of(bytes_of(function, kOverloadOfFunction));
}

std::vector<::onnx::AttributeProto> defaults_of(const ::onnx::FunctionProto& function) {
  std::vector<::onnx::AttributeProto> attributes;
  for (const std::string& bytes : bytes_of(function, kDefaultsOfFunction))
    if (!attributes.emplace_back().ParseFromString(bytes))
      throw OnnxError(str("function ", function.name(), " has a damaged attribute"));
  return attributes;
}

}  // namespace reel::imported
