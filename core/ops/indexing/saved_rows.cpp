#include "reel/core/ops/indexing/saved_rows.h"

#include <cstring>

#include "reel/core/ops/indexing/row_attrs.h"
#include "reel/core/ops/indexing/rows.h"

namespace reel {

SavedRows::SavedRows(const Attrs* attrs, OpInputs in)
    : numbers_(allocate_block(in[1].tensor->type())),
      rows_(allocate_block(in[2].tensor->type())),
      axes_(axes_of_rows(attrs)) {
  std::memcpy(numbers_.data<void>(), in[1].tensor->data<void>(),
              static_cast<std::size_t>(numbers_.type().bytes()));
  copy_rows(*in[0].tensor, numbers_, rows_, axes_);
}

void SavedRows::restore(const Tensor& table) const noexcept {
  overwrite_rows(table, numbers_, rows_, axes_);
}

}  // namespace reel
