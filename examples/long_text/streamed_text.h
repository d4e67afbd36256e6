// examples/long_text/streamed_text.h — reads a text from a file, for texts larger than memory.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Throws UserError if pieces are at least as long as each reader's share of a text: an update
/// would read a part of it twice. text: its name.
void check_windows(const std::string& text, std::int64_t symbols, std::int64_t length);

/// A text read by several readers at once (TextReader in examples/char_rnn/text.h), from a file of
/// i32 {position, reader}. At most three pieces are in memory. Each reader continues where the next
/// one began, and the last one with the beginning.
class StreamedText {
 public:
  /// Writes the file, an .npy, for `readers` readers; overwrites an existing one. Requires that the
  /// symbols divide evenly among readers.
  static void write(const std::string& path, const std::vector<std::uint8_t>& symbols,
                    std::int64_t readers);
  /// batch: one entry per reader. time: number of symbols that each reads at once. Throws UserError
  /// if the file has fewer.
  StreamedText(const std::string& path, reel::Dim batch, reel::Dim time);

  /// Returns the next symbols and the symbols that follow them, both {time, batch}.
  std::pair<reel::Tensor, reel::Tensor> next();

 private:
  reel::Tensor read(const reel::Dim& time);
  reel::Tensor read_on(const reel::Dim& time);

  reel::Sequence symbols_;
  int passes_ = 0;  ///< number of times that the end of the file was reached
  reel::Dim time_, one_;
  reel::Tensor last_;  ///< symbols of the piece before, {1, batch}
};
