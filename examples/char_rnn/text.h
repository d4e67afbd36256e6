// examples/char_rnn/text.h — the text that the model learns, as symbols of an alphabet.
#pragma once

#include <reel/reel.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../training/user_error.h"

/// Returns the whole file. Throws UserError if it cannot be read, is empty, or is no text (has a
/// NUL byte).
std::string read_text(const std::string& path);
/// Returns the King James Bible as the program `bible` prints it; nothing if the program is not
/// installed.
std::optional<std::string> read_bible();

/// The bytes that occur in a text, in order; a symbol is an index into them. Letters outside ASCII
/// are several symbols, as they are several bytes in UTF-8.
class Alphabet {
 public:
  /// Returns the set of bytes that occur in the text.
  static Alphabet of(const std::string& text);
  /// Returns the alphabet from the result of hex(). Throws UserError for other strings.
  static Alphabet from_hex(const std::string& hex);
  std::string hex() const;

  int size() const { return static_cast<int>(bytes_.size()); }
  bool contains(char c) const { return symbols_[static_cast<unsigned char>(c)] >= 0; }
  /// Returns the symbols of a text. Requires that the alphabet contains its characters.
  std::vector<std::uint8_t> encode(const std::string& text) const;
  char decode(int symbol) const { return bytes_.at(static_cast<std::size_t>(symbol)); }
  /// Returns a symbol to start a text with: the end of a line, if the alphabet has one.
  int start() const;

 private:
  explicit Alphabet(std::string bytes);

  std::string bytes_;
  std::array<int, 256> symbols_;  // by byte; -1 for others
};

/// Reads a text with several readers at once. They start at equal distances and continue where they
/// stopped; the beginning follows the end.
class TextReader {
 public:
  /// batch: one entry per reader. time: number of symbols that each reads at once. Throws UserError
  /// if the text is shorter than that.
  TextReader(std::vector<std::uint8_t> symbols, reel::Dim batch, reel::Dim time);

  /// Returns the next symbols and the symbols that follow them: the model's input, and its targets.
  /// Both {batch, time}.
  std::pair<reel::Tensor, reel::Tensor> next();

  /// Returns how many symbols each reader has read.
  std::size_t position() const { return position_; }
  void set_position(std::size_t position) { position_ = position; }

 private:
  std::vector<std::uint8_t> symbols_;
  reel::Dim batch_, time_;
  std::size_t position_ = 0;
};
