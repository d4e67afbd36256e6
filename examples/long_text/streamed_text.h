// streamed_text.h — a text that is read from a file, for those that are longer than memory.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// A text as several readers read it at once (TextReader in char_rnn/text.h), from a file of i32
/// {position, reader}: no more than two pieces of it are in memory. Behind the last whole piece
/// comes the beginning.
class StreamedText {
 public:
  /// Makes the file, an .npy, for so many readers. What is there is overwritten.
  static void write(const std::string& path, const std::vector<std::uint8_t>& symbols,
                    std::int64_t readers);
  /// batch: one entry per reader; time: as many symbols as each reads at once. Throws UserError
  /// when the file has fewer.
  StreamedText(const std::string& path, reel::Dim batch, reel::Dim time);

  /// The next symbols, and those that follow them, both {time, batch}.
  std::pair<reel::Tensor, reel::Tensor> next();

 private:
  reel::Sequence symbols_;
  reel::Dim time_, one_;
  reel::Tensor last_;  ///< symbol of the piece before, {1, batch}
};
