// The models of the examples, as ONNX models: a classifier of pixels, and a beam search in one
// loop.
#include "reel/examples/beam_search/search.h"
#include "reel/examples/char_rnn/model.h"
#include "reel/examples/training/network.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// As examples/pixel_rnn has it.
struct PixelModel {
  Network<LstmCell> network;
  Linear readout;

  Tensor operator()(const Tensor& pictures) const {
    const Dim time = pictures.dim("time");
    return readout(gather(recur(network, pictures, time).outputs, scalar(-1), time));
  }
};

void add_pixels(std::vector<SavedCase>& cases, int layers) {
  const Dim batch("batch", 2), time("time", 9), in("in", 4), classes("class", 10);
  manual_seed(31);
  const auto network = make_network<LstmCell>(in, 6, layers);
  const PixelModel model{network, Linear::init(network.out_dim(), classes)};
  const Tensor pictures = random_uniform({batch, time, in}), labels = tensor({3, 9}, {batch});
  cases.push_back(saved_case(
      str("pixel_rnn, ", layers, " layers"),
      [](const PixelModel& m, const Tensor& x) { return m(x); }, std::tuple{model, pictures},
      {.arguments = {"", "pictures"}, .results = {"logits"}, .parameters = {0}}));
  cases.push_back(saved_case(str("the gradient of pixel_rnn, ", layers, " layers"),
                             [=](const PixelModel& m, const Tensor& x, const Tensor& labels) {
                               return value_and_grad([&](const PixelModel& m) {
                                 return cross_entropy(m(x), labels, classes);
                               })(m);
                             },
                             std::tuple{model, pictures, labels},
                             {.arguments = {"model", "pictures", "labels"}}));
}

/// A search from the end of ragged prompts: entries finish one by one, hypotheses too.
void add_beam_search(std::vector<SavedCase>& cases) {
  manual_seed(32);
  const auto model = CharModel<GruCell>::random(7, 5, 1);
  const Dim batch("batch", 3), time("time", tensor({4, 1, 2}, {batch}));
  const Tensor text = tensor({1, 2, 3, 4, 5, 0, 0, 0, 6, 1, 0, 0}, {batch, time});
  const BeamSearch how{Dim("beam", 3), 0, 1};
  cases.push_back(saved_case(
      "beam search",
      [=](const CharModel<GruCell>& m, const Tensor& text, const Tensor& last,
          const Tensor& limits) {
        const auto read = recur(m.network, m.embedding(text), text.dim("time"));
        const auto step = [&](const Tensor& symbol, const CharModel<GruCell>::State& state) {
          auto [logits, next] = m(symbol, state);
          return std::pair{log_softmax(logits, m.readout.out), next};
        };
        const Hypotheses found = beam_search(step, last, read.state, limits, how);
        return std::tuple{found.labels, found.log_prob, found.score};
      },
      std::tuple{model, text, tensor({2, 5, 3}, {batch}), tensor({6, 3, 0}, {batch})},
      {.arguments = {"", "text", "last", "limits"}, .parameters = {0}}));
}

}  // namespace

std::vector<SavedCase> example_cases() {
  std::vector<SavedCase> cases;
  add_pixels(cases, 1);
  add_pixels(cases, 2);
  add_beam_search(cases);
  return cases;
}

}  // namespace reel
