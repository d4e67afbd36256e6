#include "reel/frontend/files/safetensors.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "reel/frontend/files/replace_file.h"
#include "reel/frontend/files/safetensors_header.h"
#include "reel/frontend/files/stored_type.h"

namespace reel {

// ---- Reading ------------------------------------------------------------------------

struct SafetensorsContents {
  SafetensorsContents(const std::string& path, const char* what) : file(path, what) {
    read_safetensors_header(file, header);
  }
  SafetensorsContents(const SafetensorsContents&) = delete;

  const StoredTensor& at(const std::string& name) const {
    if (const StoredTensor* found = header.find(name)) return *found;
    throw IoError(str(file.name(), " has no tensor \"", name, "\" among its ",
                      header.tensors.size(), "; names() lists them"));
  }
  TensorType type(const StoredTensor& stored, const Dims& dims) const {
    const std::string subject = str(file.name(), ": ", subject_of(stored));
    if (!stored.dtype)
      throw DTypeError(str(subject, " has elements of type ", stored.dtype_name,
                           ", which this library does not know"));
    return stored_type(*stored.dtype, stored.sizes(), dims, subject);
  }
  /// Requires the type from type(), or another type with its dtype and sizes.
  Tensor read(const StoredTensor& stored, const TensorType& type) const {
    const Tensor result(allocate_block(type));
    read_elements(file, header.data_begin + stored.begin, static_cast<std::uint64_t>(type.numel()),
                  {*stored.dtype}, result.data<void>(), subject_of(stored));
    return result;
  }
  const Metadata& metadata() const {
    std::call_once(has_metadata_, [&] { metadata_ = header.metadata(); });
    return metadata_;
  }
  static std::string subject_of(const StoredTensor& stored) {
    return str("tensor \"", stored.name, '"');
  }

  StoredFile file;
  SafetensorsHeader header;

 private:
  // Computed on request: a map takes several times the memory of the text, and most readers ignore
  // it.
  mutable std::once_flag has_metadata_;
  mutable Metadata metadata_;
};

SafetensorsFile::SafetensorsFile(const std::string& path)
    : SafetensorsFile(path, "SafetensorsFile") {}
SafetensorsFile::SafetensorsFile(const std::string& path, const char* function)
    : contents_(std::make_shared<SafetensorsContents>(path, function)) {}

const std::string& SafetensorsFile::path() const { return contents_->file.path(); }

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  result.reserve(contents_->header.tensors.size());
  for (const StoredTensor& tensor : contents_->header.tensors) result.emplace_back(tensor.name);
  return result;
}

bool SafetensorsFile::contains(const std::string& name) const {
  return contents_->header.find(name);
}

TensorType SafetensorsFile::type(const std::string& name) const {
  return contents_->type(contents_->at(name), {});
}

Tensor SafetensorsFile::tensor(const std::string& name, const Dims& dims) const {
  const StoredTensor& stored = contents_->at(name);
  return contents_->read(stored, contents_->type(stored, dims));
}

const Metadata& SafetensorsFile::metadata() const { return contents_->metadata(); }

namespace {

/// Not `quoted`: a call with a std::string would find std::quoted, where <iomanip> is included.
std::string name_or_quotes(std::string_view name) {
  return name.empty() ? "\"\"" : std::string(name);
}

bool is_below(std::string_view name, std::string_view prefix) {
  return prefix.empty() || name == prefix ||
         (name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] == '.');
}

std::string print_in_file(const StoredTensor& stored) {
  if (!stored.dtype) return str(stored.dtype_name, stored.shape);
  return print_stored(*stored.dtype, stored.sizes());
}

bool fits(const StoredTensor& stored, const TensorType& type) {
  return stored.dtype && counterpart(*stored.dtype) == type.dtype() &&
         stored.sizes() == type.sizes();
}

/// The lines of differences: the first ten, and the number of the others.
class ListedDifferences {
 public:
  void add(std::string line) {
    if (++count_ <= kMaxLines) text_ += std::move(line);
  }
  std::string text() const {
    if (count_ <= kMaxLines) return text_;
    return str(text_, "\n  and ", count_ - kMaxLines, " more differences");
  }

 private:
  static constexpr int kMaxLines = 10;
  std::string text_;
  int count_ = 0;
};

/// PyTorch's Linear has weights [out, in], Reel's [in, out].
constexpr std::string_view kTransposed =
    "; PyTorch has a Linear's weight as [out, in]: save its transpose";
bool is_transposed(const StoredTensor& stored, const TensorType& type) {
  const std::vector<std::int64_t> sizes = stored.sizes();
  return sizes.size() == 2 && type.rank() == 2 && sizes[0] == type.sizes()[1] &&
         sizes[1] == type.sizes()[0] && std::string_view(stored.name).ends_with("weight");
}

bool is_square(const TensorType& type) {
  return type.rank() == 2 && type.sizes()[0] == type.sizes()[1] && type.sizes()[0] > 1;
}

/// Returns true for weights of PyTorch's RNNs and attention, which no other library names so:
/// weight_ih_l0, in_proj_weight. Other names of projections are not PyTorch's alone.
bool is_name_of_pytorch(std::string_view name) {
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  return leaf.starts_with("weight_ih_l") || leaf.starts_with("weight_hh_l") ||
         leaf == "in_proj_weight" || leaf == "q_proj_weight" || leaf == "k_proj_weight" ||
         leaf == "v_proj_weight";
}
/// Returns true for a tensor that may be a matrix of PyTorch, by its name alone. Tables of
/// embeddings lie as here.
bool may_be_transposed(std::string_view name) {
  if (name.find("embed") != std::string_view::npos) return false;
  return name.ends_with("weight") || is_name_of_pytorch(name);
}

/// Returns the names of square matrices, which fit whether they are transposed or not.
std::vector<std::string> square_weights(const std::vector<std::string>& names,
                                        const std::vector<const StoredTensor*>& found,
                                        const Tensors& like) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (found[i] && fits(*found[i], like[i].type()) && is_square(like[i].type()) &&
        may_be_transposed(names[i]))
      result.push_back(names[i]);
  return result;
}

/// Returns a line about square matrices if others are transposed.
std::string line_about_squares(const std::vector<std::string>& names,
                               const std::vector<const StoredTensor*>& found, const Tensors& like) {
  bool has_transposed = false;
  for (std::size_t i = 0; i < names.size(); ++i)
    has_transposed |=
        found[i] && !fits(*found[i], like[i].type()) && is_transposed(*found[i], like[i].type());
  const std::vector<std::string> squares =
      has_transposed ? square_weights(names, found, like) : std::vector<std::string>{};
  return squares.empty() ? ""
                         : str("\nSquare matrices fit either way; save the transposes of Linear's "
                               "weights among them too: ",
                               join(squares), '.');
}

/// Returns true for the first call with this path. Thread-safe.
bool is_first_of_path(const std::string& path) {
  static auto& known = *new std::pair<std::mutex, std::set<std::string>>;  // never destroyed
  const std::lock_guard lock(known.first);
  return known.second.insert(path).second;
}

/// Prints a hint if a file of PyTorch has square matrices: they fit, and may be transposed. Prints
/// it once for a path: programs load a file again and again, after they have transposed, too.
void warn_about_squares(const SafetensorsContents& contents, const char* function,
                        const std::vector<std::string>& names,
                        const std::vector<const StoredTensor*>& found, const Tensors& like) {
  const std::vector<std::string> squares = square_weights(names, found, like);
  if (squares.empty() || contents.metadata().contains("random_state")) return;  // save_checkpoint's
  const auto format = contents.metadata().find("format");  // transformers writes it
  if ((format == contents.metadata().end() || format->second != "pt") &&
      std::none_of(names.begin(), names.end(), is_name_of_pytorch))
    return;
  if (!is_first_of_path(contents.file.path())) return;
  std::cerr << str("reel: ", function, ": ", contents.file.path(),
                   " seems to be PyTorch's, which has a Linear's weight as [out, in], Reel as ",
                   "[in, out]; square ones fit either way, so see that they are transposed: ",
                   join(squares), '\n');
}

/// Returns the tensors that only the file or only the tree has; empty if they fit. found: the
/// tensors of the file by the place of their names, null if there is none.
std::string differences(const SafetensorsHeader& header, const std::vector<std::string>& names,
                        const std::vector<const StoredTensor*>& found, const Tensors& like,
                        const LoadOptions& options) {
  std::unordered_set<const StoredTensor*> expected;
  ListedDifferences result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorType& type = like[i].type();
    if (!found[i]) {
      if (!options.allow_missing)
        result.add(str("\n  ", name_or_quotes(names[i]), ": not in the file, ", type, " expected"));
      continue;
    }
    if (!fits(*found[i], type))
      result.add(str("\n  ", name_or_quotes(names[i]), ": ", print_in_file(*found[i]),
                     " in the file, ", type, " expected",
                     is_transposed(*found[i], type) ? kTransposed : std::string_view{}));
    expected.insert(found[i]);
  }
  if (options.allow_extra) return result.text();
  for (const StoredTensor& stored : header.tensors)
    if (!expected.contains(&stored) && is_below(stored.name, options.prefix))
      result.add(str("\n  ", name_or_quotes(stored.name), ": ", print_in_file(stored),
                     " in the file, not expected"));
  return result.text();
}

std::string_view root_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// Returns a line about the contents of the file if it has no tensors below the prefix.
std::string roots_in_file(const SafetensorsHeader& header, const std::string& prefix) {
  std::set<std::string_view> roots;
  for (const StoredTensor& stored : header.tensors) {
    if (is_below(stored.name, prefix)) return {};
    roots.insert(root_of(stored.name));
  }
  return str("\nNothing stands under \"", prefix, "\" in the file; .prefix can be one of ",
             join(roots), ", or what is below them.");
}

/// Returns a line about the prefix to use if the file has the tree's names below one root only.
std::string root_in_file(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  std::set<std::string_view> fitting;
  for (const StoredTensor& stored : header.tensors) {
    const std::string_view root = root_of(stored.name);
    if (wanted.contains(stored.name)) return {};
    if (root.size() < stored.name.size() && wanted.contains(stored.name.substr(root.size() + 1)))
      fitting.insert(root);
  }
  if (fitting.size() != 1) return {};
  return str("\nSuch names stand under \"", *fitting.begin(),
             "\" in the file; use load_safetensors with {.prefix = \"", *fitting.begin(), "\"}.");
}

/// Returns a line about the members to load into if the file has the tensors of one member only.
std::string member_in_file(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  std::map<std::string_view, std::size_t> below;  // by member: how many tensors of the file it has
  for (const std::string& name : names) {
    const std::string_view root = root_of(name);
    if (header.find(name)) return {};
    if (root.size() < name.size() && header.find(name.substr(root.size() + 1))) ++below[root];
  }
  std::vector<std::string> fitting;
  for (const auto& [member, count] : below)
    if (count == header.tensors.size()) fitting.push_back(str('"', member, '"'));
  if (fitting.empty()) return {};
  if (fitting.size() > 1)
    return str("\nThe file has what stands under each of ", join(fitting),
               " here: load it into one of these members.");
  return str("\nThe file has what stands under ", fitting[0],
             " here: load it into that member alone.");
}

// ---- Both ways ----------------------------------------------------------------------

void check_tensors(const char* what, const std::vector<std::string>& names,
                   const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.is_defined())
      throw ArgumentError(str(what, ": ", name_or_quotes(names[i]), " is an empty Tensor"));
    if (tensor.type().is_list())
      throw ArgumentError(str(what, ": ", name_or_quotes(names[i]),
                              " is a TensorArray, which the format does not know; stack it"));
    if (tensor.is_traced())
      throw TraceError(str(what, ": the value of ", name_or_quotes(names[i]), ' ', tensor.type(),
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

  std::vector<TensorToStore> stored;
  std::vector<std::string_view> data;
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const TensorType& type = tensors[i].type();
    const std::uint64_t begin = std::exchange(end, end + static_cast<std::uint64_t>(type.bytes()));
    stored.push_back({names[i], stored_as(type.dtype()), type.sizes(), begin, end});
    data.emplace_back(tensors[i].data<char>(), end - begin);
  }
  const std::string front = print_safetensors_header(stored, metadata);
  std::vector<std::string_view> parts{front};
  parts.insert(parts.end(), data.begin(), data.end());
  replace_file(path, parts, function);
}

SafetensorsFile open_file(const std::string& path, const char* function) {
  return SafetensorsFile(path, function);
}

Tensors load_tensors(const SafetensorsFile& file, const std::vector<std::string>& names,
                     const Tensors& like, const LoadOptions& options, const char* function) {
  check_tensors(function, names, like);
  const SafetensorsContents& contents = *file.contents_;
  const SafetensorsHeader& header = contents.header;
  std::vector<const StoredTensor*> found;
  for (const std::string& name : names) found.push_back(header.find(name));
  const std::string wrong = differences(header, names, found, like, options);
  if (!wrong.empty())
    throw IoError(str(function, ": ", file.path(), " holds another model:", wrong,
                      line_about_squares(names, found, like),
                      options.prefix.empty()
                          ? root_in_file(header, names) + member_in_file(header, names)
                          : roots_in_file(header, options.prefix)));
  warn_about_squares(contents, function, names, found, like);

  Tensors result;
  for (std::size_t i = 0; i < names.size(); ++i)
    result.push_back(found[i] ? contents.read(*found[i], like[i].type()) : like[i]);
  return result;
}

void save_tree(const std::string& path, const TreeRef& tree, const Metadata& metadata,
               const char* function) {
  save_tensors(path, tree_paths_of(tree, {}), tensors_of(flatten_tree(tree)), metadata, function);
}

void load_tree(const SafetensorsFile& file, const TreeSlot& tree, const LoadOptions& options,
               const char* function) {
  const TreeLeaves leaves = flatten_tree(tree);
  const Tensors loaded = load_tensors(file, tree_paths_of(tree, options.prefix), tensors_of(leaves),
                                      options, function);
  fill_tree(tree, with_tensors(leaves, loaded));
}

}  // namespace detail

Metadata read_safetensors_metadata(const std::string& path) {
  return detail::open_file(path, "read_safetensors_metadata").metadata();
}

}  // namespace reel
