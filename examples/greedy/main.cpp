// Writes text by greedy decoding with the model that char_rnn has trained: always the likeliest
// next character.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "../char_rnn/stored_model.h"
#include "../training/program.h"

using namespace reel;

namespace {

struct GreedyOptions {
  std::string checkpoint = "char_rnn.safetensors", mode = "traced", prompt;
  int characters = 400, chunk = 16;
};

/// Prints text immediately. Throws UserError if that fails.
void put(const std::string& text) {
  std::cout << text << std::flush;
  if (!std::cout) throw UserError("cannot write to standard output");
}

template <class Cell>
void write(const CharModel<Cell>& model, const Alphabet& alphabet, const GreedyOptions& options) {
  using State = typename CharModel<Cell>::State;
  std::vector<int> prompt = encode_prompt(alphabet, options.prompt);
  Tensor symbol = scalar(prompt.back());
  prompt.pop_back();
  const Dim time("time", static_cast<std::int64_t>(prompt.size()));
  State state = recur(model.network, model.embedding(tensor(prompt, {time}, i32)), time).state;

  // The model does not change: it is captured, and the graph holds it.
  const auto write_chunk = [&](const Tensor& symbol, const State& state) {
    const auto [written, last, dim] = scan(Scan{
        .spatial_dim = Dim("piece", options.chunk),
        .initial = std::pair{symbol, state},
        .body =
            [&](const std::pair<Tensor, State>& s) {
              auto [logits, next] = model(s.first, s.second);
              const Tensor likeliest = argmax(logits, model.readout.out);
              return std::pair{likeliest, std::pair{likeliest, next}};
            },
        .name = "greedy",
    });
    return std::tuple{written, last.first, last.second};
  };
  const auto traced_write = jit(write_chunk, {.name = "writing greedily"});
  const bool is_traced = options.mode == "traced";

  put(options.prompt);
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  int first = 0;  // characters before the clock began: the first piece was recorded
  for (int count = 0; count < options.characters;) {
    Tensor written;
    std::tie(written, symbol, state) =
        is_traced ? traced_write(symbol, state) : write_chunk(symbol, state);
    std::string text;
    for (const int next : written.to_vector<int>()) text += alphabet.decode(next);
    text.resize(std::min<std::size_t>(text.size(), options.characters - count));
    count += static_cast<int>(text.size());
    put(text);
    if (first) continue;
    first = count;
    begin = Clock::now();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  put("\n");
  if (options.characters > first)
    std::fprintf(stderr, "%s: %.0f characters/s\n", options.mode.c_str(),
                 (options.characters - first) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  GreedyOptions options;
  CLI::App app(
      "Writes the likeliest text of the model that char_rnn has trained, character by character.",
      "greedy");
  app.option_defaults()->always_capture_default();
  app.add_option("--checkpoint", options.checkpoint, "file with the model of char_rnn")
      ->type_name("FILE");
  app.add_option("--prompt", options.prompt, "text to continue; empty: the start of a line")
      ->type_name("TEXT");
  app.add_option("--characters", options.characters, "characters to write")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--piece", options.chunk,
                 "characters that one loop writes; larger is faster when traced")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--mode", options.mode, "eager or traced")
      ->check(CLI::IsMember({"eager", "traced"}).description(""))
      ->type_name("MODE");
  add_threads_flag(app);
  return run_program(app, argc, argv, [&] {
    with_stored_model(options.checkpoint, [&](const auto& model, const Alphabet& alphabet) {
      write(model, alphabet, options);
    });
    return 0;
  });
}
