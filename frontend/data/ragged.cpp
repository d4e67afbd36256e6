#include "reel/frontend/data/ragged.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"

namespace reel::detail {
namespace {

/// Returns the list at an index as C++ names it: rows[2][0].
std::string name_of(const std::vector<std::int64_t>& index) {
  std::string name = "rows";
  for (const std::int64_t i : index) name += str('[', i, ']');
  return name;
}

/// Lays rows out level by level.
class RowsLayout {
 public:
  RowsLayout(const RowSizes& sizes, const Dims& given) : sizes_(sizes), given_(given) {}

  RowLayout make() {
    if (given_.size() != sizes_.size())
      throw ArgumentError(str("ragged: the rows are nested ", sizes_.size(), " deep, but ",
                              given_.size(), " dims are given, ", given_,
                              "; give one for each level"));
    for (const Dim& dim : given_)
      if (dim.is_symbol())
        throw TraceError(str("ragged: ", dim, " is a dim of a trace, where its size is not known; ",
                             "make the tensor outside of the trace and pass it as an argument"));
    // The index of each list of the level, and its place among all that the extents allow.
    std::vector<std::vector<std::int64_t>> indices{{}};
    std::vector<std::int64_t> places{0};
    std::int64_t extents = 1;
    for (std::size_t level = 0; level < sizes_.size(); ++level) {
      result_.dims.push_back(dim_of(level, indices, places, extents));
      const std::int64_t extent = result_.dims.back().size();
      std::vector<std::vector<std::int64_t>> next;
      std::vector<std::int64_t> next_places;
      const bool is_last = level + 1 == sizes_.size();
      for (std::size_t list = 0; list < indices.size(); ++list)
        for (std::int64_t i = 0; i < sizes_[level][list]; ++i) {
          next_places.push_back(places[list] * extent + i);
          if (is_last) continue;
          next.push_back(indices[list]);
          next.back().push_back(i);
        }
      indices = std::move(next);
      places = std::move(next_places);
      extents *= extent;
    }
    result_.numel = extents;
    result_.places = std::move(places);
    return std::move(result_);
  }

 private:
  Dim dim_of(std::size_t level, const std::vector<std::vector<std::int64_t>>& indices,
             const std::vector<std::int64_t>& places, std::int64_t extents) const {
    const Dim& given = given_[level];
    const std::vector<std::int64_t>& sizes = sizes_[level];
    if (given.is_undefined() && level == 0) return Dim(given.name(), sizes[0]);
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(extents), 0);
    if (given.is_undefined()) {
      for (std::size_t list = 0; list < sizes.size(); ++list)
        lengths[static_cast<std::size_t>(places[list])] = sizes[list];
      return Dim(given.name(), tensor(lengths, result_.dims));
    }
    if (!given.has_size())
      throw ShapeError(str("ragged: ", given, " has neither a name nor a size"));
    if (given.is_ragged())
      lengths = lengths_over_dims(given);
    else
      std::fill(lengths.begin(), lengths.end(), given.size());
    for (std::size_t list = 0; list < sizes.size(); ++list) {
      const std::int64_t wanted = lengths[static_cast<std::size_t>(places[list])];
      if (sizes[list] != wanted)
        throw ShapeError(str("ragged: ", name_of(indices[list]), " has ", sizes[list],
                             sizes[list] == 1 ? " item" : " items", ", but ",
                             given.is_named() ? str(given, " has ", wanted, " there")
                                              : str("the size there is ", wanted)));
    }
    return given;
  }
  /// Returns the lengths of a ragged dim for every place of the levels before it.
  std::vector<std::int64_t> lengths_over_dims(const Dim& dim) const {
    for (const Dim& of : dim.length_dims())
      if (!contains(result_.dims, of))
        throw ShapeError(str("ragged: the lengths of ", dim, " run over ", of,
                             ", which is not among the dims before it, ", result_.dims));
    return expand(cast(dim.lengths(), i64), result_.dims).to_vector<std::int64_t>();
  }

  const RowSizes& sizes_;
  const Dims& given_;
  RowLayout result_;
};

}  // namespace

RowLayout layout_of_rows(const RowSizes& sizes, const Dims& dims) {
  const ModeScope plain({});
  return RowsLayout(sizes, dims).make();
}

template <class Stored>
Tensor tensor_of_rows(const std::vector<Stored>& all, const RowLayout& layout,
                      std::optional<DType> dtype) {
  const ModeScope plain({});
  std::vector<Stored> padded(static_cast<std::size_t>(layout.numel));
  for (std::size_t i = 0; i < all.size(); ++i)
    padded[static_cast<std::size_t>(layout.places[i])] = all[i];
  return as_function("ragged", [&] { return tensor(padded, layout.dims, dtype); });
}
template REEL_API Tensor tensor_of_rows(const std::vector<float>&, const RowLayout&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_rows(const std::vector<double>&, const RowLayout&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_rows(const std::vector<std::int32_t>&, const RowLayout&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_rows(const std::vector<std::int64_t>&, const RowLayout&,
                                        std::optional<DType>);
template REEL_API Tensor tensor_of_rows(const std::vector<bool>&, const RowLayout&,
                                        std::optional<DType>);

RowReader::RowReader(const Tensor& x, int depth, DType stored)
    : data_(x.checked_data(stored, "rows_of")) {
  if (x.rank() != depth)
    throw ShapeError(str("rows_of: rows nested ", depth, " deep have ", depth, " axes, but ",
                         x.type(), " has ", x.rank(),
                         x.rank() < 2 ? "; to_vector returns its elements"
                                      : "; give the type of a row, as in "
                                        "rows_of<std::vector<std::vector<float>>>(x) for three "
                                        "axes"));
  const ModeScope plain({});
  std::int64_t stride = x.numel();
  for (int axis = 0; axis < depth; ++axis) {
    const Dim dim = x.dim(axis);
    stride = dim.size() ? stride / dim.size() : 0;
    Level level{dim.size(), stride, {}, std::vector<std::int64_t>(static_cast<std::size_t>(axis))};
    if (dim.is_ragged()) {
      const Tensor lengths = dim.lengths();
      level.lengths = cast(lengths, i64).to_vector<std::int64_t>();
      std::int64_t of_lengths = lengths.numel();
      for (const Dim& of : lengths.dims()) {
        const int at = find(x.dims(), of);
        if (at < 0 || at >= axis)
          throw ShapeError(str("rows_of: the lengths of ", dim, " run over ", of, ", which does ",
                               "not stand before it in ", x.type(),
                               "; transpose it: transpose(x, {", of.name(), ", ", dim.name(),
                               x.rank() > 2 ? ", ...})" : "})"));
        of_lengths = of.size() ? of_lengths / of.size() : 0;
        level.strides[static_cast<std::size_t>(at)] = of_lengths;
      }
    }
    levels_.push_back(std::move(level));
  }
}

std::int64_t RowReader::size(const std::vector<std::int64_t>& index) const {
  const Level& level = levels_[index.size()];
  if (level.lengths.empty()) return level.extent;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * level.strides[i];
  return level.lengths[static_cast<std::size_t>(at)];
}

std::int64_t RowReader::place(const std::vector<std::int64_t>& index) const {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * levels_[i].stride;
  return at;
}

void refuse_row_element(std::int64_t value, const char* type) {
  throw ArgumentError(str("rows_of: the element ", value, " does not fit ", type));
}

}  // namespace reel::detail
