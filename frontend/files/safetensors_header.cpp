#include "reel/frontend/files/safetensors_header.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/file_kind.h"
#include "reel/frontend/files/json_writer.h"

namespace reel {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr struct {
  std::string_view name;
  StoredDType dtype;
} kDTypes[] = {
    {"BOOL", StoredDType::boolean}, {"U8", StoredDType::u8},      {"I8", StoredDType::i8},
    {"F8_E5M2", StoredDType::f8},   {"F8_E4M3", StoredDType::f8}, {"I16", StoredDType::i16},
    {"U16", StoredDType::u16},      {"F16", StoredDType::f16},    {"BF16", StoredDType::bf16},
    {"I32", StoredDType::i32},      {"U32", StoredDType::u32},    {"F32", StoredDType::f32},
    {"F64", StoredDType::f64},      {"I64", StoredDType::i64},    {"U64", StoredDType::u64}};
constexpr std::uint64_t kLengthBytes = 8;  // the length of the header, in front of it
constexpr std::size_t kMaxAxes = 64;       // of a tensor
constexpr int kMaxDepth = 8;  // {"name": {"shape": [...]}} has 3; other values are ignored

/// Returns the number if the text is a 64-bit number without sign, fraction and exponent.
std::optional<std::uint64_t> size_in(std::string_view text) {
  std::uint64_t result = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, result);
  if (error != std::errc() || at != end) return std::nullopt;
  return result;
}

/// Calls fn(size) for each item of an array of sizes. Requires that the text was checked.
template <class Fn>
void for_each_size(std::string_view array, const Fn& fn) {
  const JsonReader::Fail fail = [](const std::string& reason) { throw InternalError(reason); };
  JsonReader json(array, 1, fail);
  json.array([&] { fn(size_in(json.value()).value()); });
}

/// Checks one header; every error names the file.
class HeaderReader {
 public:
  HeaderReader(std::uint64_t data_bytes, const StoredFile& file, SafetensorsHeader& header)
      : data_bytes_(data_bytes),
        file_(file),
        header_(header),
        json_(header.text, kMaxDepth, fail_) {}

  void read() {
    bool has_metadata = false;
    json_.object([&](const JsonString& key) {
      if (key.has_escapes ? key.text() == kMetadataKey : key.raw == kMetadataKey) {
        if (std::exchange(has_metadata, true)) twice(kMetadataKey);
        metadata();
      } else {
        tensor(name_of(key));
      }
    });
    json_.end();
    header_.work += json_.position();
    sort_by_name();
    check_layout();
  }

 private:
  [[noreturn]] void damaged(const std::string& reason) const { file_.damaged(reason); }
  [[noreturn]] void wrong(std::string_view tensor, const std::string& reason) const {
    damaged(str("tensor \"", tensor, "\": ", reason));
  }
  [[noreturn]] void twice(std::string_view key) const {
    damaged(str("the header has the key \"", key, "\" twice"));
  }

  std::string_view name_of(const JsonString& key) {
    if (!key.has_escapes) return key.raw;
    return header_.names.emplace_back(key.text());
  }

  /// Reads the metadata. A value of null means that there are none.
  void metadata() {
    if (json_.peek() != '{') {
      if (json_.value() != "null") damaged(str(kMetadataKey, " is no object"));
      return;
    }
    const std::size_t begin = json_.position();
    std::deque<JsonString> keys;
    json_.object([&](const JsonString& key) {
      keys.push_back(key);
      if (json_.peek() != '"')
        damaged(str(kMetadataKey, " has a value that is no string, under \"", key.raw, '"'));
      json_.string();
    });
    header_.metadata_text = std::string_view(header_.text).substr(begin, json_.position() - begin);
    check_keys(keys);
  }

  void check_keys(std::deque<JsonString>& keys) {
    const auto compare = [&](const JsonString& a, const JsonString& b) {
      ++header_.work;
      return a.has_escapes || b.has_escapes ? a.text().compare(b.text()) : a.raw.compare(b.raw);
    };
    std::sort(keys.begin(), keys.end(),
              [&](const auto& a, const auto& b) { return compare(a, b) < 0; });
    const auto equal = std::adjacent_find(
        keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return compare(a, b) == 0; });
    if (equal != keys.end()) twice(equal->raw);
  }

  void tensor(std::string_view name) {
    if (json_.peek() != '{') {
      json_.value();
      wrong(name, "is no object");
    }
    struct Field {
      std::string_view key, text = {};
    } fields[] = {{"dtype"}, {"shape"}, {"data_offsets"}};
    json_.object([&](const JsonString& key) {
      const std::string decoded = key.has_escapes ? key.text() : std::string();
      const std::string_view text = key.has_escapes ? decoded : key.raw;
      const std::string_view value = json_.value();
      for (Field& field : fields) {
        if (field.key != text) continue;
        if (!field.text.empty()) twice(text);
        field.text = value;
      }
    });
    for (const Field& field : fields)
      if (field.text.empty()) wrong(name, str("has no ", field.key));
    StoredTensor& result = header_.tensors.emplace_back();
    result.name = name;
    set_dtype(result, fields[0].text);
    set_shape(result, fields[1].text);
    set_offsets(result, fields[2].text);
    check_bytes(result);
  }

  void set_dtype(StoredTensor& tensor, std::string_view text) {
    if (text.front() != '"') wrong(tensor.name, "its dtype is no string");
    tensor.dtype_name = name_of(JsonReader(text, 0, fail_).string());
    for (const auto& known : kDTypes)
      if (tensor.dtype_name == known.name) tensor.dtype = known.dtype;
  }

  void set_shape(StoredTensor& tensor, std::string_view text) const {
    const std::size_t axes = check_sizes(tensor.name, "shape", text);
    if (axes > kMaxAxes)
      wrong(tensor.name, str("its shape has ", axes, " axes, more than ", kMaxAxes));
    tensor.shape = text;
  }

  void set_offsets(StoredTensor& tensor, std::string_view text) const {
    check_sizes(tensor.name, "data_offsets", text);
    std::size_t count = 0;
    for_each_size(text, [&](std::uint64_t offset) {
      if (count < 2) (count ? tensor.end : tensor.begin) = offset;
      ++count;
    });
    if (count != 2) wrong(tensor.name, "data_offsets are not two numbers");
    const auto refuse = [&](const std::string& reason) {
      wrong(tensor.name, str("data_offsets [", tensor.begin, ", ", tensor.end, "] end ", reason));
    };
    if (tensor.begin > tensor.end) refuse("before they begin");
    if (tensor.end > data_bytes_)
      refuse(str("beyond the ", data_bytes_, " bytes of data in the file; it may be truncated"));
  }

  /// Returns the number of sizes.
  std::size_t check_sizes(std::string_view tensor, std::string_view key,
                          std::string_view text) const {
    if (text.front() != '[') wrong(tensor, str("its ", key, " is no list"));
    JsonReader items(text, kMaxDepth, fail_);
    std::size_t count = 0;
    items.array([&] {
      ++count;
      const std::string_view item = items.value();
      if (!size_in(item)) wrong(tensor, str("its ", key, " has ", item, ", which is no size"));
    });
    return count;
  }

  void check_bytes(const StoredTensor& tensor) const {
    if (!tensor.dtype) return;
    ByteCount count(*tensor.dtype);
    for_each_size(tensor.shape, [&](std::uint64_t size) { count.multiply_by(size); });
    const std::optional<std::uint64_t> bytes = count.result();
    if (!bytes) wrong(tensor.name, "its sizes multiply to more bytes than 63 bits hold");
    if (tensor.end - tensor.begin != *bytes)
      wrong(tensor.name, str("its dtype and shape take ", *bytes, " bytes, its data_offsets ",
                             tensor.end - tensor.begin));
  }

  void sort_by_name() {
    std::deque<StoredTensor>& tensors = header_.tensors;
    std::sort(tensors.begin(), tensors.end(), [&](const StoredTensor& a, const StoredTensor& b) {
      ++header_.work;
      return a.name < b.name;
    });
    const auto equal = std::adjacent_find(
        tensors.begin(), tensors.end(),
        [](const StoredTensor& a, const StoredTensor& b) { return a.name == b.name; });
    if (equal != tensors.end()) twice(equal->name);
  }

  void check_layout() const {
    std::vector<const StoredTensor*> order;
    order.reserve(header_.tensors.size());
    for (const StoredTensor& tensor : header_.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [&](const StoredTensor* a, const StoredTensor* b) {
      ++header_.work;
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    std::uint64_t end = 0;
    for (const StoredTensor* tensor : order) {
      if (tensor->begin < end)
        damaged(str("the data of tensor \"", tensor->name, "\" overlap those of another one"));
      if (tensor->begin > end)
        damaged(str("bytes ", end, " to ", tensor->begin, " of the data belong to no tensor"));
      end = tensor->end;
    }
    if (end != data_bytes_)
      damaged(str("its tensors take ", end, " bytes, but it has ", data_bytes_, " bytes of data"));
  }

  std::uint64_t data_bytes_;
  const StoredFile& file_;
  SafetensorsHeader& header_;
  JsonReader::Fail fail_ = [this](const std::string& reason) {
    damaged("the header is no JSON: " + reason);
  };
  JsonReader json_;
};

/// Throws IoError for a file of another kind, or one that ends before its header does. Returns the
/// length of the header.
std::uint64_t check_front(const StoredFile& file) {
  const std::uint64_t size = file.size();
  const std::string front = file.front();
  std::uint64_t length = 0;
  if (size >= kLengthBytes)
    std::copy_n(front.data(), kLengthBytes, reinterpret_cast<char*>(&length));
  const bool has_brace = size > kLengthBytes && front[kLengthBytes] == '{';
  constexpr const char *kExpected = "a safetensors file",
                       *kNoBrace = "its header does not begin with {";
  if ((!has_brace || length >> 32) && !kind_of_file(front).empty())
    file.is_not(kExpected, kNoBrace);
  if (size < kLengthBytes)
    file.damaged(
        str("it has ", size, " bytes, and the length of the header alone takes ", kLengthBytes));
  if (size > kLengthBytes && !has_brace) file.is_not(kExpected, kNoBrace);
  if (length > kMaxHeaderBytes)
    file.damaged(str("its header would have ", length, " bytes, more than the ", kMaxHeaderBytes,
                     " that are allowed"));
  if (length > size - kLengthBytes)
    file.damaged(str("its header would have ", length, " bytes, but the file has ", size,
                     "; it may be truncated"));
  if (length == 0) file.damaged("its header has no bytes");
  return length;
}

std::string quoted_key(std::string_view text) {
  std::optional<std::string> result = json_string(text);
  if (!result) throw ArgumentError("save_safetensors: names and metadata must be UTF-8");
  return *std::move(result);
}

std::string printed(const std::map<std::string, std::string>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata)
    text += (text.empty() ? '{' : ',') + quoted_key(key) + ':' + quoted_key(value);
  return text + '}';
}

}  // namespace

std::vector<std::int64_t> StoredTensor::sizes() const {
  std::vector<std::int64_t> result;
  for_each_size(shape,
                [&](std::uint64_t size) { result.push_back(static_cast<std::int64_t>(size)); });
  return result;
}

const StoredTensor* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

std::map<std::string, std::string> SafetensorsHeader::metadata() const {
  std::map<std::string, std::string> result;
  if (metadata_text.empty()) return result;
  const JsonReader::Fail fail = [](const std::string& reason) { throw InternalError(reason); };
  JsonReader json(metadata_text, kMaxDepth, fail);
  json.object([&](const JsonString& key) { result[key.text()] = json.string().text(); });
  return result;
}

void read_safetensors_header(const StoredFile& file, SafetensorsHeader& header) {
  const std::uint64_t length = check_front(file);
  header.text.resize(length);
  file.read(header.text.data(), kLengthBytes, length);
  header.data_begin = kLengthBytes + length;
  HeaderReader(file.size() - header.data_begin, file, header).read();
}

std::string print_safetensors_header(const std::vector<TensorToStore>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToStore*> order;
  for (const TensorToStore& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const TensorToStore* a, const TensorToStore* b) { return a->name < b->name; });
  const auto refuse_twice = [](std::string_view key) {
    throw ArgumentError(str("save_safetensors: two keys of the file would be called \"", key, '"'));
  };
  std::string text(kLengthBytes, '\0');
  char before = '{';
  const auto add = [&](std::string_view key, const std::string& value) {
    text += before;
    text += quoted_key(key) + ':' + value;
    before = ',';
  };
  bool has_metadata = metadata.empty();
  const auto add_metadata = [&] {
    if (!std::exchange(has_metadata, true)) add(kMetadataKey, printed(metadata));
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorToStore& tensor = *order[i];
    if (tensor.name > kMetadataKey) add_metadata();
    if (tensor.name == kMetadataKey || (i && tensor.name == order[i - 1]->name))
      refuse_twice(tensor.name);
    const auto* known =
        std::find_if(std::begin(kDTypes), std::end(kDTypes),
                     [&](const auto& entry) { return entry.dtype == tensor.dtype; });
    add(tensor.name, str("{\"data_offsets\":[", tensor.begin, ',', tensor.end, "],\"dtype\":\"",
                         known->name, "\",\"shape\":[", join(tensor.sizes, ","), "]}"));
  }
  add_metadata();
  text += before == '{' ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size() - kLengthBytes;
  if (length > kMaxHeaderBytes)
    throw ArgumentError(
        str("save_safetensors: names and metadata take more than ", kMaxHeaderBytes, " bytes"));
  std::copy_n(reinterpret_cast<const char*>(&length), kLengthBytes, text.data());
  return text;
}

}  // namespace reel
