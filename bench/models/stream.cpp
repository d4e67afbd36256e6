#include "stream.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace reel::bench {
namespace {

/// Returns the numbers of words, or of letters, of all sentences of a text on every Debian system.
std::vector<int> sentences(bool in_letters) {
  const char* const path = "/usr/share/common-licenses/GPL-3";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(str("the bench reads ", path, ", which is not there"));
  std::vector<int> result;
  int words = 0, letters = 0;
  for (std::string word; file >> word;) {
    ++words;
    letters += static_cast<int>(word.size()) + 1;
    if (word.back() != '.' || words < 3) continue;
    result.push_back(in_letters ? letters : words);
    words = letters = 0;
  }
  return result;
}

}  // namespace

std::vector<Lengths> lengths_of_text(std::size_t count, int rows, bool is_sorted, bool in_letters) {
  const std::vector<int> all = sentences(in_letters);
  Batches batches(all, [](const std::vector<int>& lengths) { return lengths; },
                  {.rows = rows,
                   .shuffle = 1,
                   .bucket = is_sorted ? 8 * rows : 0,
                   .drop_last = true,
                   .epochs = 1'000'000,
                   .lengths = std::vector<std::int64_t>(all.begin(), all.end())});
  std::vector<Lengths> result;
  for (const Lengths& lengths : batches) {
    result.push_back(lengths);
    if (result.size() == count) break;
  }
  return result;
}

Dim sequences(const std::string& name, const Dim& batch, const Lengths& lengths) {
  return Dim(name, tensor(lengths, {batch}));
}

std::vector<Text> random_texts(const std::vector<Lengths>& lengths, int symbols) {
  std::vector<Text> result;
  for (const Lengths& of : lengths) {
    const Dim batch("batch", std::ssize(of));
    result.push_back(random_text({batch, sequences("time", batch, of)}, symbols));
  }
  return result;
}

}  // namespace reel::bench
