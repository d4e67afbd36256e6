#include "reel/frontend/tree/visit.h"

#include "reel/core/base/str.h"
#include "reel/frontend/tree/tree.h"

namespace reel::detail {

void PartName::append_to(std::string& path) const {
  if (text_)
    path.append(text_, number_);
  else
    path += str(number_);
}

std::size_t TreePath::append(PartName part) {
  const std::size_t length = path_.size();
  if (part.is_empty()) return length;
  if (length > 0) path_ += '.';
  part.append_to(path_);
  return length;
}

TreeReader::~TreeReader() = default;
TreeWriter::~TreeWriter() = default;

void TreeReader::visit(PartName name, const Tensor& value) {
  const std::size_t outer = enter(name);
  tensor(value);
  leave(outer);
}
void TreeReader::visit(PartName name, const TensorArray& value) {
  const std::size_t outer = enter(name);
  array(value);
  leave(outer);
}
void TreeReader::visit(PartName name, const Dim& value) {
  const std::size_t outer = enter(name);
  dim(value);
  leave(outer);
}
void TreeReader::visit(PartName name, const None&) {
  const std::size_t outer = enter(name);
  none();
  leave(outer);
}
void TreeReader::visit_fixed(PartName name, const FixedValue& value) {
  const std::size_t outer = enter(name);
  fixed(value);
  leave(outer);
}

void TreeWriter::visit(PartName, Tensor& value) { tensor(value); }
void TreeWriter::visit(PartName, TensorArray& value) { array(value); }
void TreeWriter::visit(PartName, Dim& value) { dim(value); }
void TreeWriter::visit(PartName, None&) { none(); }
void TreeWriter::visit(PartName name, bool& value) {
  const std::size_t outer = enter(name);
  flag(value);
  leave(outer);
}

}  // namespace reel::detail
