#include "reel/distributed/call.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// FNV-1a: equal in all processes, unlike std::hash.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  void add(std::int64_t number) {
    for (int i = 0; i < 64; i += 8) add_byte(static_cast<unsigned char>(number >> i));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

/// Returns the lengths of a ragged dim, in the order of its entries.
std::vector<std::int32_t> lengths_of(const Dim& dim) {
  return dim.lengths().to_vector<std::int32_t>();
}

std::string before_place(const std::string& line) { return line.substr(0, line.find(" at ")); }

}  // namespace

std::uint64_t Call::hash() const {
  Hash hash;
  hash.add(name);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (paths && !paths->empty()) hash.add((*paths)[i]);
    const TensorType& type = *types[i];
    hash.add(static_cast<std::int64_t>(type.dtype()));
    hash.add(static_cast<std::int64_t>(type.rank()));
    for (const Dim& dim : type.dims()) {
      hash.add(dim.has_size() ? dim.size() : -1);
      if (dim.is_named()) hash.add(dim.name());
      if (dim.is_ragged())
        for (const std::int32_t length : lengths_of(dim)) hash.add(std::int64_t{length});
    }
  }
  return hash.value();
}

std::vector<std::string> Call::operands() const {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string path = paths && !paths->empty() ? (*paths)[i] : "";
    std::string text = path.empty() ? str(*types[i]) : str(path, ": ", *types[i]);
    for (const Dim& dim : types[i]->dims()) {
      if (!dim.is_ragged()) continue;
      text += str(" with ", dim.name());
      for (const std::int32_t length : lengths_of(dim)) text += str(' ', length);
    }
    result.push_back(std::move(text));
  }
  return result;
}

std::string text_of(std::string_view name, SourceId source) {
  const std::string place = place_text(source);
  if (!place.empty()) return str(name, " at ", place);
  const std::string function = first_line(source_text(source));
  return function.empty() ? std::string(name) : str(name, " at ", function);
}

std::string pack(const Call& call) {
  std::string text = text_of(call.name, call.source);
  for (const std::string& operand : call.operands()) text += '\n' + operand;
  return text;
}

std::string compare(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> calls;
  for (const std::string& text : texts) calls.push_back(lines_of(text));
  const bool is_one_name = std::all_of(calls.begin(), calls.end(), [&](const auto& call) {
    return before_place(call[0]) == before_place(calls[0][0]);
  });
  const auto differs = [&](std::size_t line) {
    return std::any_of(calls.begin(), calls.end(), [&](const auto& call) {
      return call.size() <= line || calls[0].size() <= line || call[line] != calls[0][line];
    });
  };
  std::string result;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    result += str("\n  rank ", rank, ": ", calls[rank][0]);
    const char* before = " of ";
    for (std::size_t line = 1; line < calls[rank].size(); ++line) {
      if (!is_one_name && calls[rank].size() > 2) {
        result += str(" of ", calls[rank].size() - 1, " tensors");
        break;
      }
      if (is_one_name && !differs(line)) continue;
      result += before + calls[rank][line];
      before = ", ";
    }
  }
  return result;
}

}  // namespace reel
