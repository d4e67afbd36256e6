// text.h — the text that the model learns, as symbols of an alphabet.
#pragma once

#include <reel/reel.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../training/user_error.h"

/// The whole file. Throws UserError when it cannot be read, is empty, or is no text (has a NUL
/// byte).
std::string read_text(const std::string& path);
/// The King James Bible as the program `bible` prints it; nothing where that is not installed.
std::optional<std::string> read_bible();

/// The bytes that a text is made of, in order; a symbol is a position among them. Letters outside
/// ASCII are several symbols, as they are several bytes in UTF-8.
class Alphabet {
 public:
  /// The set of bytes that occur in the text.
  static Alphabet of(const std::string& text);
  /// What hex() gave. Throws UserError for anything else.
  static Alphabet from_hex(const std::string& hex);
  std::string hex() const;

  int size() const { return static_cast<int>(bytes_.size()); }
  bool contains(char c) const { return symbols_[static_cast<unsigned char>(c)] >= 0; }
  /// The symbols of a text of this alphabet.
  std::vector<std::uint8_t> encode(const std::string& text) const;
  char decode(int symbol) const { return bytes_.at(static_cast<std::size_t>(symbol)); }
  /// A symbol to start a text with: the end of a line, if there is one.
  int start() const;

 private:
  explicit Alphabet(std::string bytes);

  std::string bytes_;
  std::array<int, 256> symbols_;  // by byte; -1 for others
};

/// A text read by several readers at once, who start at places of equal distance and go on where
/// they stopped; behind the end comes the beginning.
class TextReader {
 public:
  /// batch: one entry per reader; time: as many symbols as each reads at once. Throws UserError
  /// when the text is shorter than that.
  TextReader(std::vector<std::uint8_t> symbols, reel::Dim batch, reel::Dim time);

  /// The next symbols, and those that follow them: what the model reads, and what it shall predict.
  /// Both {batch, time}.
  std::pair<reel::Tensor, reel::Tensor> next();

  /// How many symbols each reader has read: where it goes on.
  std::size_t position() const { return position_; }
  void set_position(std::size_t position) { position_ = position; }

 private:
  std::vector<std::uint8_t> symbols_;
  reel::Dim batch_, time_;
  std::size_t position_ = 0;
};
