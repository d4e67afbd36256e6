// frontend/tree/visit.h — TreeReader and TreeWriter, which visit the leaves of trees of any type.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "reel/core/base/visibility.h"
#include "reel/core/types/fixed_value.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/tree/tensor_array.h"

REEL_API_BEGIN
namespace reel {

class EmbeddingTable;  // frontend/sparse/embedding_table.h
struct IndexedSlices;  // frontend/sparse/indexed_slices.h
struct SparseTensor;   // frontend/sparse/sparse_tensor.h
struct None;           // frontend/tree/tree.h

namespace detail {

template <class T>
concept Fixed = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;

/// The name of a part within its whole: a text, or a position. An empty text leaves paths as they
/// are.
class PartName {
 public:
  PartName() = default;
  explicit PartName(std::string_view text) : text_(text.data()), number_(text.size()) {}
  explicit PartName(std::size_t position) : text_(nullptr), number_(position) {}

  bool is_empty() const { return text_ && number_ == 0; }
  void append_to(std::string& path) const;

 private:
  const char* text_ = "";   // null for a position
  std::size_t number_ = 0;  // the size of the text, or the position
};

/// The path of the part that a visitor has reached. It costs nothing unless a root was given.
class TreePath {
 public:
  TreePath() = default;
  explicit TreePath(const std::string& root) : path_(root), is_wanted_(true) {}

  /// Appends the name of a part. Returns the length for leave().
  std::size_t enter(PartName part) { return is_wanted_ ? append(part) : 0; }
  /// Removes what enter() has appended.
  void leave(std::size_t length) {
    if (is_wanted_) path_.resize(length);
  }
  const std::string& path() const { return path_; }

 private:
  std::size_t append(PartName part);

  std::string path_;
  bool is_wanted_ = false;
};

/// Reads the leaves of a tree in the order of its fields. walk() calls it.
///
/// One instance of walk() for each type of trees serves all readers. Therefore their functions are
/// virtual, and templates of the library pass a TreeRef to ordinary functions.
class TreeReader : public TreePath {
 public:
  using TreePath::TreePath;
  virtual ~TreeReader();

  // For walk(): visits a leaf of this name.
  void visit(PartName name, const Tensor& tensor);
  void visit(PartName name, const TensorArray& array);
  void visit(PartName name, const Dim& dim);
  void visit(PartName name, const None& none);
  template <Fixed T>
  void visit(PartName name, const T& value) {
    visit_fixed(name, FixedValue(value));
  }

  // A reader overrides the functions for the leaves that it treats alike, leaf(), or one by one.
  // Sizes and keys of containers come before their elements, and part() before the members of one.
  virtual void leaf() {}
  virtual void tensor(const Tensor&) { leaf(); }
  virtual void array(const TensorArray&) { leaf(); }
  virtual void dim(const Dim&) { leaf(); }
  virtual void none() { leaf(); }
  virtual void fixed(const FixedValue&) { leaf(); }
  virtual void size(std::size_t) { leaf(); }
  virtual void key(const std::string&) { leaf(); }
  virtual void part(const EmbeddingTable&) {}
  virtual void part(const IndexedSlices&) {}
  virtual void part(const SparseTensor&) {}

 private:
  void visit_fixed(PartName name, const FixedValue& value);
};

/// Changes the leaves of a tree in the order of its fields, otherwise as TreeReader. The structure
/// of the tree stays.
class TreeWriter : public TreePath {
 public:
  using TreePath::TreePath;
  virtual ~TreeWriter();

  // For walk():
  void visit(PartName name, Tensor& tensor);
  void visit(PartName name, TensorArray& array);
  void visit(PartName name, Dim& dim);
  void visit(PartName name, None& none);
  void visit(PartName name, bool& value);
  template <Fixed T>
  void visit(PartName, T&) {
    leaf();
  }

  virtual void leaf() {}
  virtual void tensor(Tensor&) { leaf(); }
  virtual void array(TensorArray&) { leaf(); }
  virtual void dim(Dim&) { leaf(); }
  virtual void none() { leaf(); }
  virtual void flag(bool&) { leaf(); }
  virtual void size(std::size_t) { leaf(); }
  virtual void key(const std::string&) { leaf(); }
  virtual void part(EmbeddingTable&) {}
  virtual void part(IndexedSlices&) {}
  virtual void part(SparseTensor&) {}
};

}  // namespace detail
}  // namespace reel
REEL_API_END
