#include "reel/frontend/files/npy.h"

#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/files/npy_header.h"
#include "reel/frontend/files/replace_file.h"
#include "reel/frontend/files/stored_type.h"

namespace reel {
namespace {

/// Returns x in row-major order, given elements in the reverse order of its axes.
Tensor from_fortran_order(const Tensor& x) {
  Dims reversed(x.dims().rbegin(), x.dims().rend());
  std::vector<Axis> order;
  for (int axis = x.rank(); axis-- > 0;) order.emplace_back(axis);
  const TensorType type(x.dtype(), reversed);
  return transpose(Tensor(allocate_view(type, x.ref(), x.data<void>())), order);
}

}  // namespace

void save_npy(const std::string& path, const Tensor& tensor) {
  constexpr const char* kWhat = "save_npy";
  if (!tensor.is_defined()) throw ArgumentError(str(kWhat, ": ", kGivenEmptyTensor));
  const TensorType& type = tensor.type();
  const auto* data = static_cast<const char*>(tensor.checked_data(type.dtype(), kWhat));
  if (type.sizes().size() > kMaxNpyAxes)
    throw ArgumentError(str(kWhat, ": a tensor of ", type.rank(), " axes; NumPy's arrays have ",
                            kMaxNpyAxes, " at most"));
  const std::string header = print_npy_header(stored_as(type.dtype()), type.sizes());
  const std::string_view parts[] = {header, {data, static_cast<std::size_t>(type.bytes())}};
  replace_file(path, parts, kWhat);
}

Tensor load_npy(const std::string& path, const Dims& dims) {
  ModeScope plain({});  // file contents belong to no trace
  const StoredFile file(path, "load_npy");
  const NpyHeader header = read_npy_header(file);
  const Tensor result(
      allocate_block(stored_type(header.format.dtype, header.sizes, dims, file.name())));
  read_elements(file, header.data_begin, static_cast<std::uint64_t>(result.numel()), header.format,
                result.data<void>(), "it");
  return header.is_fortran_order && result.rank() > 1 ? from_fortran_order(result) : result;
}

}  // namespace reel
