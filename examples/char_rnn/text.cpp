#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

using namespace reel;

namespace {

/// Returns the rest of a stream. Throws UserError if it exceeds 1 GiB.
std::string read_all(std::FILE* file, const std::string& source) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  std::string text;
  char block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file)) {
    text.append(block, count);
    if (text.size() > kMaxBytes) throw UserError(source + " is larger than 1 GiB");
  }
  if (std::ferror(file)) throw UserError("cannot read " + source + ": " + std::strerror(errno));
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) throw UserError("cannot read " + path + ": " + std::strerror(errno));
  std::string text = read_all(file.get(), path);
  if (text.empty()) throw UserError(path + " is empty");
  if (const std::size_t at = text.find('\0'); at != std::string::npos)
    throw UserError(path + " is no text: byte " + std::to_string(at) + " is NUL");
  return text;
}

std::optional<std::string> read_bible() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      ::popen("bible -l100000 gen1:1-rev22:21 2>/dev/null", "r"), &::pclose);
  if (!pipe) return std::nullopt;
  std::string text = read_all(pipe.get(), "the output of bible");
  // Another program named `bible` would print something else.
  if (text.size() < 1'000'000 || text.find('\0') != std::string::npos) return std::nullopt;
  return text;
}

Alphabet::Alphabet(std::string bytes) : bytes_(std::move(bytes)) {
  symbols_.fill(-1);
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    symbols_[static_cast<unsigned char>(bytes_[i])] = static_cast<int>(i);
}

Alphabet Alphabet::of(const std::string& text) {
  const std::set<unsigned char> bytes(text.begin(), text.end());
  return Alphabet(std::string(bytes.begin(), bytes.end()));
}

std::string Alphabet::hex() const {
  std::string result;
  for (const unsigned char byte : bytes_) {
    result += "0123456789abcdef"[byte / 16];
    result += "0123456789abcdef"[byte % 16];
  }
  return result;
}

Alphabet Alphabet::from_hex(const std::string& hex) {
  std::set<unsigned char> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) break;
    bytes.insert(static_cast<unsigned char>(high * 16 + low));
  }
  Alphabet result(std::string(bytes.begin(), bytes.end()));
  if (bytes.empty() || result.hex() != hex) throw UserError("\"" + hex + "\" is no alphabet");
  return result;
}

std::vector<std::uint8_t> Alphabet::encode(const std::string& text) const {
  std::vector<std::uint8_t> result;
  result.reserve(text.size());
  for (const unsigned char byte : text) result.push_back(static_cast<std::uint8_t>(symbols_[byte]));
  return result;
}

int Alphabet::start() const {
  const int end_of_line = symbols_[static_cast<unsigned char>('\n')];
  return end_of_line < 0 ? 0 : end_of_line;
}

TextReader::TextReader(std::vector<std::uint8_t> symbols, Dim batch, Dim time)
    : symbols_(std::move(symbols)), batch_(std::move(batch)), time_(std::move(time)) {
  const auto length = static_cast<std::size_t>(time_.size());
  if (symbols_.size() <= length)
    throw UserError("the text has " + std::to_string(symbols_.size()) + " bytes, but --length " +
                    std::to_string(length) + " needs at least " + std::to_string(length + 1));
}

std::pair<Tensor, Tensor> TextReader::next() {
  const auto readers = static_cast<std::size_t>(batch_.size());
  const auto length = static_cast<std::size_t>(time_.size());
  std::vector<int> input, target;
  input.reserve(readers * length);
  target.reserve(readers * length);
  for (std::size_t reader = 0; reader < readers; ++reader) {
    const std::size_t start = symbols_.size() * reader / readers + position_;
    for (std::size_t i = start; i < start + length; ++i) {
      input.push_back(symbols_[i % symbols_.size()]);
      target.push_back(symbols_[(i + 1) % symbols_.size()]);
    }
  }
  position_ += length;
  return {tensor(input, {batch_, time_}), tensor(target, {batch_, time_})};
}
