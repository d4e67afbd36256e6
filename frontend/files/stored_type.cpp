#include "reel/frontend/files/stored_type.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/mode.h"

namespace reel {

std::string print_stored(StoredDType stored, const std::vector<std::int64_t>& sizes) {
  return str(stored, '[', join(sizes, ","), ']');
}

TensorType stored_type(StoredDType stored, const std::vector<std::int64_t>& sizes, const Dims& dims,
                       const std::string& name) {
  ModeScope plain({});  // file contents belong to no trace
  const auto dtype = counterpart(stored);
  if (!dtype)
    throw DTypeError(str(name, " has elements of type ", stored,
                         ", whose values none of f32, f64, i32, i64 and boolean holds"));
  if (dims.empty()) return TensorType(*dtype, Dims(sizes.begin(), sizes.end()));
  bool fits = dims.size() == sizes.size();
  Dims sized;
  for (std::size_t i = 0; fits && i < dims.size(); ++i) {
    sized.push_back(dims[i].is_undefined() ? Dim(dims[i].name(), sizes[i]) : dims[i]);
    fits = sized.back().raw_size() == sizes[i];
  }
  if (!fits)
    throw ShapeError(str(name, " has ", print_stored(stored, sizes), ", which the dims ", dims,
                         " do not fit; give a Dim of the same size for each axis, or no dims"));
  return TensorType(*dtype, sized);
}

}  // namespace reel
