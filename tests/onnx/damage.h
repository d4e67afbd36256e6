// tests/onnx/damage.h — ModelDamage, which damages the bytes of ONNX models at random.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace onnx {
class GraphProto;
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace reel {

/// Draws damages from a seed. Half of them change bytes, half change the protobuf: ops, names,
/// attributes, sizes, elements of tensors, graphs in graphs, functions that call themselves.
class ModelDamage {
 public:
  explicit ModelDamage(std::uint64_t seed) : random_(seed) {}

  /// Returns a number in [0, limit). Requires: limit > 0.
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  /// Returns the bytes of a damaged model. other: a model from which nodes are taken.
  std::string damaged(std::string bytes, const std::string& other);
  /// Returns the model with some changes of its protobuf. Returns the bytes unchanged if they are
  /// no model.
  std::string with_changed_model(const std::string& bytes, const std::string& other);

 private:
  void change_bytes(std::string& bytes);
  std::int64_t any_number();
  /// Changes an element of a tensor that lies in its raw data or fields.
  void change_element(::onnx::TensorProto& tensor);
  void change(::onnx::ModelProto& model, ::onnx::GraphProto& graph,
              const ::onnx::ModelProto& other);

  std::mt19937_64 random_;
};

}  // namespace reel
