// Fuzz target: reads any bytes as an ONNX model, and runs it. They give values, or an Error.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "reel/tests/onnx/damage.h"
#include "reel/tests/onnx/run_damaged.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reel::run_damaged({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Half of the mutations are libFuzzer's, of bytes. The others keep the protobuf whole: most
/// changes of bytes end in the parser.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  if (seed % 2) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string model = reel::ModelDamage(seed).with_changed_model(bytes, bytes);
  if (model == bytes || model.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, model.data(), model.size());
  return model.size();
}
