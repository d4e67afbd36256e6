// The models of the examples that are one file each, and of examples/speech, with a training step
// of each. Their main() has another name here.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numbers>
#include <random>
#include <string>

#include "reel/examples/char_rnn/model.h"
#include "reel/examples/speech/model.h"
#include "reel/tests/onnx/saved/saved_case.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // only main() may end without a return
#define main example_main
namespace reel::crf_example {
#include "reel/examples/crf_tagger.cpp"
}
namespace reel::ctc_example {
#include "reel/examples/ctc.cpp"
}
namespace reel::explain_example {
#include "reel/examples/explain.cpp"
}
namespace reel::forecaster_example {
#include "reel/examples/forecaster.cpp"
}
namespace reel::import_example {
#include "reel/examples/import_weights.cpp"
}
namespace reel::pictures_example {
#include "reel/examples/pictures.cpp"
}
namespace reel::seq2seq_example {
#include "reel/examples/seq2seq.cpp"
}
namespace reel::training_example {
#include "reel/examples/training.cpp"
}
namespace reel::transformer_example {
#include "reel/examples/transformer.cpp"
}
#undef main
#pragma GCC diagnostic pop

namespace reel {
namespace {

/// Adds a model's results, and its loss and parameters after one step of Adam.
template <class Model, class Data, class Results, class Loss>
void add_program(std::vector<SavedCase>& cases, const std::string& name, const Model& model,
                 const Data& data, const Results& results, const Loss& loss) {
  cases.push_back(saved_case(name, results, std::tuple{model, data},
                             {.arguments = {"", "data"}, .parameters = {0}}));
  const auto step = [&](Model model, Adam<Model> optimiser, const Data& data) {
    const auto [value, gradient] =
        value_and_grad([&](const Model& m) { return loss(m, data); })(model);
    optimiser.update(model, gradient);
    return std::pair{value, model};
  };
  // A small epsilon would enlarge rounding errors of gradients that are 0.
  const Adam<Model> optimiser(model, {.learning_rate = 0.01, .epsilon = 0.01, .clip_norm = 1});
  cases.push_back(saved_case("a step of " + name, step, std::tuple{model, optimiser, data},
                             {.arguments = {"model", "optimiser", "data"}}));
  cases.back().tolerance = 1e-4;
}

void add_single_files(std::vector<SavedCase>& cases) {
  manual_seed(101);
  const Dim batch("batch", 3);
  const crf_example::Tagger tagger;
  add_program(
      cases, "crf_tagger", tagger, crf_example::draw(batch),
      [](const crf_example::Tagger& m, const crf_example::Batch& data) {
        return std::pair{m.scores(data.text), crf_example::best_tags(m, data.text)};
      },
      crf_example::loss_of);
  add_program(
      cases, "ctc", ctc_example::Recogniser(),
      ctc_example::draw(batch, random_normal({ctc_example::vocab, ctc_example::sound})),
      [](const ctc_example::Recogniser& m, const ctc_example::Batch& data) {
        return m(data.frames);
      },
      ctc_example::loss_of);
  add_program(
      cases, "forecaster", forecaster_example::Forecaster(), forecaster_example::draw_series(batch),
      [](const forecaster_example::Forecaster& m, const Tensor& x) { return m(x); },
      [](const forecaster_example::Forecaster& m, const Tensor& x) {
        return forecaster_example::error_of(m(x), x);
      });
  add_program(
      cases, "seq2seq", seq2seq_example::Translator(), seq2seq_example::draw(batch),
      [](const seq2seq_example::Translator& m, const seq2seq_example::Batch& data) {
        return std::pair{seq2seq_example::decode_all(m, data).logits,
                         seq2seq_example::translate(m, data.text)};
      },
      seq2seq_example::loss_of);
  add_program(
      cases, "transformer", transformer_example::Model(),
      transformer_example::batch_of({" the dogs run.", " the cat near the birds sings."}),
      [](const transformer_example::Model& m, const transformer_example::Batch& data) {
        return m(data.text);
      },
      transformer_example::loss_of);
}

void add_small_files(std::vector<SavedCase>& cases) {
  manual_seed(103);
  const Dim batch("batch", 3), time("time", 4), in("in", 3), hidden("hidden", 5), out("out", 2);
  const auto add_loss = [&](const std::string& name, const auto& model, const auto& data,
                            const auto& loss) {
    add_program(cases, name, model, data, loss, loss);
  };
  add_loss("training", training_example::Model(), training_example::draw_data(batch),
           training_example::loss_of);
  const Dim letters("time", tensor({4, 1, 2}, {batch}));
  add_program(
      cases, "import_weights", import_example::Tagger(), random_integers({batch, letters}, 1, 27),
      [](const import_example::Tagger& m, const Tensor& text) { return m(text); },
      import_example::loss_of);
  const LstmCell cell = LstmCell::init(in, hidden);
  const Linear readout = Linear::init(hidden, out);
  const Tensor x = random_normal({time, batch, in});
  add_loss("explain", explain_example::Model{cell, readout}, x, explain_example::loss);
  add_loss("pictures", pictures_example::Model{cell, readout}, x, pictures_example::loss);
  cases.push_back(saved_case("pictures, a loop that counts", pictures_example::count_to_ten,
                             std::tuple{scalar(1, i32), scalar(10, i32)}));
  cases.push_back(saved_case("pictures, two chains", pictures_example::two_chains,
                             std::tuple{random_normal({2, 3}), random_normal({3, 3})}));
}

void add_folders(std::vector<SavedCase>& cases) {
  manual_seed(102);
  const Dim recording("recording", 2), time("time", tensor({40, 23}, {recording})),
      label_time("label_time", tensor({3, 2}, {recording}));
  auto model = Recogniser<LstmCell>::random(5, 2);
  set_training(model, false);  // without dropout and masks, which draw
  add_program(
      cases, "speech", model,
      Recordings{random_normal({recording, time, mel}),
                 tensor({1, 5, 5, 10, 2, 0}, {recording, label_time})},
      [](const Recogniser<LstmCell>& m, const Recordings& data) { return m(data.features); },
      [](const Recogniser<LstmCell>& m, const Recordings& data) {
        const Tensor logits = m(data.features);
        return ctc_loss(logits, data.labels, ctc_dims(logits, data.labels));
      });
  const auto text_model = CharModel<GruCell>::random(6, 4, 2);
  const Dim batch("batch", 2), text_time("time", 5);
  using Texts = std::pair<Tensor, Tensor>;
  const auto loss = [](const CharModel<GruCell>& m, const Texts& data) {
    const auto& [text, target] = data;
    return text_loss(m, m.network.initial_state({text.dim("batch")}), text, target,
                     text.dim("time"))
        .first;
  };
  add_program(
      cases, "char_rnn", text_model,
      Texts{random_integers({batch, text_time}, 0, 6), random_integers({batch, text_time}, 0, 6)},
      loss, loss);
}

}  // namespace

std::vector<SavedCase> program_cases() {
  std::vector<SavedCase> cases;
  add_single_files(cases);
  add_small_files(cases);
  add_folders(cases);
  return cases;
}

}  // namespace reel
