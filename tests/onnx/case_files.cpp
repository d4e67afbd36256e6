#include "reel/tests/onnx/case_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "reel/core/base/str.h"
#include "reel/onnx/read_tensor.h"
// Needs the macros of onnx/proto.h.
#include <onnx/onnx-data_pb.h>

namespace reel {
namespace {

namespace fs = std::filesystem;

template <class Proto>
Proto parsed(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  Proto proto;
  if (!stream || !proto.ParseFromIstream(&stream)) throw IoError(str(path, " cannot be read"));
  return proto;
}

Tensor tensor_of(const ::onnx::TensorProto& proto) {
  return imported::read_tensor(proto, {"case", ""}).tensor;
}
std::vector<Tensor> tensors_of(const ::onnx::SequenceProto& proto) {
  std::vector<Tensor> tensors;
  for (const auto& element : proto.tensor_values()) tensors.push_back(tensor_of(element));
  return tensors;
}

OnnxValue value_in(const std::string& path, const ::onnx::TypeProto& type) {
  if (type.has_sequence_type()) return {{}, tensors_of(parsed<::onnx::SequenceProto>(path))};
  if (!type.has_optional_type()) {
    auto tensor = parsed<::onnx::TensorProto>(path);
    // The files have the bits of a bfloat16 as uint16.
    if (type.tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16)
      tensor.set_data_type(::onnx::TensorProto::BFLOAT16);
    return {tensor_of(tensor), {}};
  }
  const auto proto = parsed<::onnx::OptionalProto>(path);
  if (proto.has_tensor_value()) return {tensor_of(proto.tensor_value()), {}};
  if (proto.has_sequence_value()) return {{}, tensors_of(proto.sequence_value())};
  return {};
}

template <class Infos>
std::map<std::string, OnnxValue> values_in(const std::string& folder, const char* kind,
                                           const Infos& infos) {
  std::map<std::string, OnnxValue> values;
  for (int i = 0; i < infos.size(); ++i) {
    const std::string path = str(folder, '/', kind, '_', i, ".pb");
    if (fs::exists(path)) values[infos[i].name()] = value_in(path, infos[i].type());
  }
  return values;
}

}  // namespace

std::vector<CaseFiles> case_files(const std::string& data, const std::string& set) {
  std::vector<CaseFiles> cases;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(data) / set, error)) {
    const std::string folder = entry.path().string();
    if (!fs::exists(folder + "/model.onnx")) continue;
    CaseFiles files{folder, {}, {}, 0};
    const auto model = parsed<::onnx::ModelProto>(folder + "/model.onnx");
    for (const auto& node : model.graph().node()) files.ops.push_back(node.op_type());
    for (const auto& import : model.opset_import())
      if (import.domain().empty()) files.op_set = import.version();
    if (files.ops.size() == 1) files.op = files.ops[0];
    cases.push_back(std::move(files));
  }
  std::sort(cases.begin(), cases.end(),
            [](const CaseFiles& a, const CaseFiles& b) { return a.folder < b.folder; });
  return cases;
}

std::vector<CaseData> case_data(const CaseFiles& files) {
  const auto model = parsed<::onnx::ModelProto>(files.folder + "/model.onnx");
  std::vector<CaseData> runs;
  for (int i = 0;; ++i) {
    const std::string folder = str(files.folder, "/test_data_set_", i);
    if (!fs::exists(folder)) return runs;
    runs.push_back({values_in(folder, "input", model.graph().input()),
                    values_in(folder, "output", model.graph().output())});
  }
}

bool may_give_sizes(const std::string& name, const OnnxValue& value) {
  if (name == "scales" || name == "roi") return true;
  if (value.sequence) return value.sequence->empty() || !is_float(value.sequence->front().dtype());
  return value.tensor && (!is_float(value.tensor->dtype()) || value.tensor->numel() == 1);
}

}  // namespace reel
