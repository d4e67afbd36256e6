// Writes the model in a checkpoint of char_rnn in the format of ONNX.
#include <reel/onnx.h>

#include "../training/program.h"
#include "stored_model.h"

namespace {

void export_model(const std::string& checkpoint, const std::string& path) {
  with_stored_model(checkpoint, [&](const auto& model, const Alphabet&) {
    using Model = std::decay_t<decltype(model)>;
    using State = typename Model::State;
    const auto predict = [](const Model& m, const reel::Tensor& text, const State& state) {
      auto [outputs, last] =
          reel::recur(m.network, m.embedding(text), text.dim("time"), {.initial = state});
      return std::pair{m.readout(outputs), last};
    };
    const reel::Dim time("time", reel::scalar(2));  // a dynamic dim: the model takes any length
    reel::save_onnx(
        path, predict,
        std::tuple{model, reel::zeros({time}, reel::i32), model.network.initial_state({})},
        {.arguments = {"", "text", "state"},
         .results = {"logits", "next_state"},
         .parameters = {0},
         .name = "char_rnn"});
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string checkpoint = Options().checkpoint, path;
  CLI::App app("Writes the model in a checkpoint of char_rnn in the format of ONNX.",
               "char_rnn_export");
  app.add_option("--checkpoint", checkpoint, "file that char_rnn wrote")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("file", path, "file for the model")->type_name("FILE")->required();
  return run_program(app, argc, argv, [&] {
    export_model(checkpoint, path);
    return 0;
  });
}
