// streamed_text.h — a text that is read from a file, for those that are longer than memory.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Throws UserError where pieces are as long as what each reader has of a text, or longer: an
/// update would read some of it twice. text: what it is called.
void check_pieces(const std::string& text, std::int64_t symbols, std::int64_t length);

/// A text as several readers read it at once (TextReader in char_rnn/text.h), from a file of i32
/// {position, reader}: no more than three pieces of it are in memory. Each reader goes on where the
/// next one began, and the last one with the beginning.
class StreamedText {
 public:
  /// Makes the file, an .npy, for so many readers. What is there is overwritten. symbols: as many
  /// for each reader.
  static void write(const std::string& path, const std::vector<std::uint8_t>& symbols,
                    std::int64_t readers);
  /// batch: one entry per reader; time: as many symbols as each reads at once. Throws UserError
  /// when the file has fewer.
  StreamedText(const std::string& path, reel::Dim batch, reel::Dim time);

  /// The next symbols, and those that follow them, both {time, batch}.
  std::pair<reel::Tensor, reel::Tensor> next();

 private:
  reel::Tensor read(const reel::Dim& time);
  reel::Tensor read_on(const reel::Dim& time);

  reel::Sequence symbols_;
  int passes_ = 0;  ///< how often the end of the file was reached
  reel::Dim time_, one_;
  reel::Tensor last_;  ///< symbol of the piece before, {1, batch}
};
