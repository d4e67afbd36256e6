#include "reel/frontend/safetensors.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "reel/frontend/replace_file.h"
#include "reel/frontend/safetensors_header.h"
#include "reel/frontend/stored_type.h"

namespace reel {

// ---- Reading ------------------------------------------------------------------------

struct SafetensorsContents {
  SafetensorsContents(const std::string& path, const char* what)
      : file(path, what), header(read_safetensors_header(file)) {
    for (const StoredTensor& tensor : header.tensors) by_name[tensor.name] = &tensor;
  }
  SafetensorsContents(const SafetensorsContents&) = delete;

  const StoredTensor* find(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
  const StoredTensor& at(const std::string& name) const {
    if (const StoredTensor* found = find(name)) return *found;
    throw IoError(str(file.name(), " has no tensor \"", name, "\" among its ",
                      header.tensors.size(), "; names() lists them"));
  }
  TensorType type(const StoredTensor& stored, const Dims& dims) const {
    return stored_type(stored.dtype, stored.sizes, dims,
                       str(file.name(), ": ", subject_of(stored)));
  }
  Tensor read(const StoredTensor& stored, const TensorType& type) const {
    const Tensor result(allocate_block(type));
    read_elements(file, header.data_begin + stored.begin, static_cast<std::uint64_t>(type.numel()),
                  {stored.dtype}, result.data<void>(), subject_of(stored));
    return result;
  }
  static std::string subject_of(const StoredTensor& stored) {
    return str("tensor \"", stored.name, '"');
  }

  StoredFile file;
  SafetensorsHeader header;
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
};

SafetensorsFile::SafetensorsFile(const std::string& path)
    : contents_(std::make_shared<SafetensorsContents>(path, "SafetensorsFile")) {}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const StoredTensor& tensor : contents_->header.tensors) result.push_back(tensor.name);
  return result;
}

bool SafetensorsFile::contains(const std::string& name) const { return contents_->find(name); }

TensorType SafetensorsFile::type(const std::string& name) const {
  return contents_->type(contents_->at(name), {});
}

Tensor SafetensorsFile::tensor(const std::string& name, const Dims& dims) const {
  const StoredTensor& stored = contents_->at(name);
  return contents_->read(stored, contents_->type(stored, dims));
}

const Metadata& SafetensorsFile::metadata() const { return contents_->header.metadata; }

namespace {

std::string quoted(const std::string& name) { return name.empty() ? "\"\"" : name; }

bool is_below(const std::string& name, const std::string& prefix) {
  return prefix.empty() || name == prefix ||
         (name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] == '.');
}

/// What the file has and the tree has not, and the other way round; empty if they fit.
std::string differences(const SafetensorsContents& contents, const std::vector<std::string>& names,
                        const Tensors& like, const LoadOptions& options) {
  auto extra = contents.by_name;
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorType& type = like[i].type();
    const StoredTensor* stored = contents.find(names[i]);
    if (!stored) {
      if (!options.allow_missing)
        result += str("\n  ", quoted(names[i]), ": not in the file, ", type, " expected");
      continue;
    }
    if (counterpart(stored->dtype) != type.dtype() || stored->sizes != type.sizes())
      result += str("\n  ", quoted(names[i]), ": ", print_stored(stored->dtype, stored->sizes),
                    " in the file, ", type, " expected");
    extra.erase(names[i]);
  }
  if (options.allow_extra) return result;
  for (const StoredTensor& stored : contents.header.tensors)
    if (extra.contains(stored.name) && is_below(stored.name, options.prefix))
      result += str("\n  ", quoted(stored.name), ": ", print_stored(stored.dtype, stored.sizes),
                    " in the file, not expected");
  return result;
}

/// Where the tree's names may stand in the file instead; empty if that cannot be said.
std::string place_in_file(const SafetensorsContents& contents,
                          const std::vector<std::string>& names, const std::string& prefix) {
  std::set<std::string> roots, fitting;
  for (const StoredTensor& stored : contents.header.tensors) {
    if (is_below(stored.name, prefix) && !prefix.empty()) return {};
    roots.insert(stored.name.substr(0, stored.name.find('.')));
  }
  if (!prefix.empty())
    return str("\nNothing stands under \"", prefix, "\" in the file; .prefix can be one of ",
               join(roots), ", or what is below them.");
  for (const std::string& name : names) {
    if (contents.find(name)) return {};
    for (const std::string& root : roots)
      if (contents.find(str(root, '.', name))) fitting.insert(root);
  }
  if (fitting.size() != 1) return {};
  return str("\nSuch names stand under \"", *fitting.begin(),
             "\" in the file; use load_safetensors with {.prefix = \"", *fitting.begin(), "\"}.");
}

// ---- Both ways ----------------------------------------------------------------------

void check_tensors(const char* what, const std::vector<std::string>& names,
                   const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.is_defined())
      throw ArgumentError(str(what, ": ", quoted(names[i]), " is an empty Tensor"));
    if (tensor.type().is_list())
      throw ArgumentError(str(what, ": ", quoted(names[i]),
                              " is a TensorArray, which the format does not know; stack it"));
    if (tensor.is_traced())
      throw TraceError(str(what, ": the value of ", quoted(names[i]), ' ', tensor.type(),
                           " is not known while tracing; return it from the traced function"));
  }
}

}  // namespace

namespace detail {

void save_tensors(const std::string& path, const std::vector<std::string>& names,
                  const Tensors& tensors, const Metadata& metadata, const char* function) {
  check_tensors(function, names, tensors);
  // The widest elements first, so that all are aligned.
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].dtype()) > size_of(tensors[b].dtype());
  });

  SafetensorsHeader header{{}, metadata};
  std::vector<std::string_view> data;
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const TensorType& type = tensors[i].type();
    const std::uint64_t begin = std::exchange(end, end + static_cast<std::uint64_t>(type.bytes()));
    header.tensors.push_back({names[i], stored_as(type.dtype()), type.sizes(), begin, end});
    data.emplace_back(tensors[i].data<char>(), end - begin);
  }
  const std::string front = print_safetensors_header(header);
  std::vector<std::string_view> parts{front};
  parts.insert(parts.end(), data.begin(), data.end());
  replace_file(path, parts, function);
}

Tensors load_tensors(const std::string& path, const std::vector<std::string>& names,
                     const Tensors& like, const LoadOptions& options, const char* function) {
  check_tensors(function, names, like);
  const SafetensorsContents contents(path, function);
  const std::string wrong = differences(contents, names, like, options);
  if (!wrong.empty())
    throw IoError(str(function, ": ", path, " holds another model:", wrong,
                      place_in_file(contents, names, options.prefix)));

  Tensors result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const StoredTensor* stored = contents.find(names[i]);
    result.push_back(stored ? contents.read(*stored, like[i].type()) : like[i]);
  }
  return result;
}

Metadata read_metadata(const std::string& path, const char* function) {
  return SafetensorsContents(path, function).header.metadata;
}

}  // namespace detail

Metadata read_safetensors_metadata(const std::string& path) {
  return detail::read_metadata(path, "read_safetensors_metadata");
}

}  // namespace reel
