// Writes the model in a checkpoint of speech in the format of ONNX: from features to logits.
#include <reel/onnx.h>

#include "../training/program.h"
#include "stored_model.h"

namespace {

void export_model(const std::string& checkpoint, const std::string& path) {
  with_stored_model(checkpoint, [&](const auto& model) {
    using Model = std::decay_t<decltype(model)>;
    const reel::Dim time("time", reel::scalar(200));  // a dynamic dim: the model takes any length
    reel::save_onnx(path, [](const Model& m, const reel::Tensor& features) { return m(features); },
                    std::tuple{model, reel::zeros({time, mel})},
                    {.arguments = {"", "features"},
                     .results = {"logits"},
                     .parameters = {0},
                     .name = "speech"});
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string checkpoint = Options().checkpoint, path;
  CLI::App app(
      "Writes the model in a checkpoint of speech in the format of ONNX: from features, {time, "
      "mel}, to logits, {time, symbol}.",
      "speech_export");
  app.add_option("--checkpoint", checkpoint, "file that speech wrote")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("file", path, "file for the model")->type_name("FILE")->required();
  return run_program(app, argc, argv, [&] {
    export_model(checkpoint, path);
    return 0;
  });
}
