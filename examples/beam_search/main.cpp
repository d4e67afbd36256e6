// Continues beginnings of verses by beam search in the model that char_rnn has trained.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "../char_rnn/stored_model.h"
#include "../training/program.h"
#include "search.h"

using namespace reel;

namespace {

struct SearchOptions {
  std::string checkpoint = "char_rnn.safetensors", mode = "both", end = "\n";
  std::vector<std::string> prompts{"  1 In the beginning", "  2 And the LORD said unto",
                                   "  3 Blessed"};
  std::vector<int> limits{100};
  int beam = 8, best = 1;
  double length_exponent = 1;
};

/// Prompts of any lengths, as one batch.
struct Prompts {
  Tensor text;    ///< i32 {batch, time}: all characters but the last
  Tensor last;    ///< i32 {batch}
  Tensor limits;  ///< i32 {batch}
};

Prompts make_prompts(const SearchOptions& options, const Alphabet& alphabet) {
  const auto count = static_cast<std::int64_t>(options.prompts.size());
  if (options.limits.size() != 1 && options.limits.size() != options.prompts.size())
    throw UserError("there are " + std::to_string(count) + " prompts, and --limit has " +
                    std::to_string(options.limits.size()) + " numbers; give one, or one for each");
  std::vector<std::vector<int>> texts;
  std::vector<int> last;
  for (const std::string& prompt : options.prompts) {
    texts.push_back(encode_prompt(alphabet, prompt));
    last.push_back(texts.back().back());
    texts.back().pop_back();
  }
  std::vector<int> limits = options.limits;
  limits.resize(texts.size(), options.limits[0]);
  const Dim batch("batch", count);
  return {ragged(texts, {batch, Dim("time")}), tensor(last, {batch}), tensor(limits, {batch})};
}

/// Reads the prompts, and searches from their states.
template <class Cell>
Hypotheses search(const CharModel<Cell>& model, const Prompts& prompts, const BeamSearch& options) {
  const auto read = recur(model.network, model.embedding(prompts.text), prompts.text.dim("time"));
  const auto step = [&](const Tensor& symbol, const typename CharModel<Cell>::State& state) {
    auto [logits, next] = model(symbol, state);
    return std::pair{log_softmax(logits, model.readout.out), next};
  };
  return beam_search(step, prompts.last, read.state, prompts.limits, options);
}

std::string shown(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\n' ? std::string("\\n") : std::string(1, c);
  return result;
}

void print_hypotheses(const Hypotheses& found, const SearchOptions& options,
                      const Alphabet& alphabet) {
  const auto labels = rows_of<std::vector<std::vector<int>>>(found.labels);
  const auto log_probs = rows_of<float>(found.log_prob), scores = rows_of<float>(found.score);
  for (std::size_t i = 0; i < options.prompts.size(); ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(options.best); ++k) {
      if (!std::isfinite(log_probs[i][k])) continue;  // fewer hypotheses than the beam
      std::string text;
      for (const int label : labels[i][k]) text += alphabet.decode(label);
      char numbers[80];
      std::snprintf(numbers, sizeof numbers, "%9.3f %4zu  ", static_cast<double>(scores[i][k]),
                    text.size());
      std::cout << numbers << options.prompts[i] << '|' << shown(text) << '\n';
    }
  }
}

/// Returns characters per second over all entries, measured for at least half a second. The first
/// call must have run.
template <class Search>
double speed(const Search& search) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double characters = 0, seconds = 0;
  while (seconds < 0.5) {
    characters += sum(search().steps.lengths()).template item<int>();
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return characters / seconds;
}

bool are_same(const Hypotheses& a, const Hypotheses& b) {
  return a.labels.to_vector<int>() == b.labels.to_vector<int>() &&
         a.length.lengths().to_vector<int>() == b.length.lengths().to_vector<int>();
}

template <class Cell>
void search_and_show(const CharModel<Cell>& model, const Alphabet& alphabet,
                     const SearchOptions& options) {
  if (options.end.size() != 1 || !alphabet.contains(options.end[0]))
    throw UserError("--end must be one character that the model has seen");
  const Prompts prompts = make_prompts(options, alphabet);
  const BeamSearch how{Dim("beam", options.beam), alphabet.encode(options.end)[0],
                       options.length_exponent};
  const auto eager = [&](const CharModel<Cell>& model, const Prompts& prompts) {
    return search(model, prompts, how);
  };
  const auto traced = jit(eager, {.name = "searching"});
  const bool is_traced = options.mode != "eager", is_eager = options.mode != "traced";

  const Hypotheses found = is_traced ? traced(model, prompts) : eager(model, prompts);
  std::cout << "    score long  prompt|continuation\n";
  print_hypotheses(found, options, alphabet);
  std::cout << std::flush;
  const auto show_speed = [&](const char* mode, const auto& function) {
    std::printf("%s: %.0f characters/s, %d hypotheses each\n", mode,
                speed([&] { return function(model, prompts); }), options.beam);
    std::fflush(stdout);
  };
  if (is_eager && is_traced && !are_same(found, eager(model, prompts)))
    std::cout << "eagerly another text is found: two are equally likely, but for rounding\n";
  if (is_eager) show_speed("eager", eager);
  if (is_traced) show_speed("traced", traced);
  if (!std::cout) throw UserError("cannot write to standard output");
}

}  // namespace

int main(int argc, char** argv) {
  SearchOptions options;
  CLI::App app(
      "Continues beginnings of lines, by beam search in the model that char_rnn has trained.",
      "beam_search");
  app.option_defaults()->always_capture_default();
  app.add_option("--checkpoint", options.checkpoint, "file with the model of char_rnn")
      ->type_name("FILE");
  app.add_option("--prompt", options.prompts,
                 "text to continue; several texts are searched in parallel")
      ->type_name("TEXT");
  app.add_option("--limit", options.limits,
                 "largest number of characters: one number, or one for each prompt")
      ->check(CLI::Range(0, 100'000));
  app.add_option("--beam", options.beam, "hypotheses per prompt")->check(CLI::Range(1, 10'000));
  app.add_option("--best", options.best, "number of hypotheses to show")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--length-exponent", options.length_exponent,
                 "hypotheses are compared by log p / length^exponent; 0 favours short ones")
      ->check(CLI::Range(0.0, 10.0))
      ->check(CLI::Number)
      ->check([](const std::string& text) {
        return std::isnan(std::stod(text)) ? "nan is no exponent" : "";
      });
  app.add_option("--end", options.end, "the character that ends a text")
      ->type_name("CHARACTER")
      ->default_str("the end of a line");
  app.add_option("--mode", options.mode, "eager, traced, or both: with the speed of each")
      ->check(CLI::IsMember({"eager", "traced", "both"}).description(""))
      ->type_name("MODE");
  add_threads_flag(app);
  return run_program(app, argc, argv, [&] {
    options.best = std::min(options.best, options.beam);
    with_stored_model(options.checkpoint, [&](const auto& model, const Alphabet& alphabet) {
      search_and_show(model, alphabet, options);
    });
    return 0;
  });
}
