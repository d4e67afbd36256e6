// Shapes: ops that read sizes, and ops that move elements to other axes.
#include <algorithm>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/dims.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/convert.h"
#include "reel/onnx/ops/reshape.h"
#include "reel/onnx/ops/rows.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {

Tensor expand_plain(const Tensor& x, const Dims& sizes) {
  Dims dims = sizes;
  if (static_cast<int>(dims.size()) < x.rank())
    dims.insert(dims.begin(), x.dims().begin(), x.dims().end() - static_cast<int>(dims.size()));
  for (std::size_t i = 0; i < x.dims().size(); ++i) {
    Dim& dim = dims[dims.size() - 1 - i];
    if (dim == Dim(1)) dim = x.dims()[x.dims().size() - 1 - i];
  }
  return broadcast_to(x, dims);
}

namespace {

/// Returns the axes that an attribute or, from version 13 on, an input names, in ascending order.
std::vector<int> axes_of(const Call& call, int rank) {
  std::vector<std::int64_t> given = call.integers("axes");
  if (call.version() >= 13 && call.has(1)) given = call.known_integers(1);
  std::vector<int> axes;
  for (const std::int64_t axis : given) axes.push_back(call.axis_in(axis, rank));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    call.refuse("an axis occurs twice");
  return axes;
}

Values run_shape(const Call& call) {
  const Dims& dims = call.tensor(0).dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto position = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank);
  };
  const std::int64_t begin = position(call.integer("start", 0)),
                     end = std::max(begin, position(call.integer("end", rank)));
  if (begin == end) return {Value::integers({})};
  return {value_of_sizes(Dims(dims.begin() + begin, dims.begin() + end))};
}

Values run_size(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (is_known(x.dims())) return {Value::integer(x.numel())};
  Tensor product = scalar(1, i64);
  for (const Dim& dim : x.dims()) product = product * value_of_size(dim).tensor;
  return {Value::of(product)};
}

Values run_flatten(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t given = call.integer("axis", 1);
  const std::int64_t axis = given == x.rank() ? given : call.axis_in(given, std::max(x.rank(), 1));
  std::int64_t rows = 1, columns = 1;
  bool known_rows = true, known_columns = true;
  for (std::int64_t i = 0; i < x.rank(); ++i) {
    const Dim& dim = x.dims()[static_cast<std::size_t>(i)];
    (i < axis ? known_rows : known_columns) &= dim.has_size();
    if (dim.has_size()) (i < axis ? rows : columns) *= dim.size();
  }
  if (!known_rows && !known_columns) call.refuse("both parts have sizes that only a run knows");
  return {call.like(0, reshape(x, {known_rows ? rows : -1, known_columns ? columns : -1}))};
}

Values run_transpose(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<Axis> order;
  if (call.has_attribute("perm"))
    for (const std::int64_t axis : call.integers("perm"))
      order.emplace_back(call.axis_in(axis, x.rank()));
  else
    for (int axis = x.rank() - 1; axis >= 0; --axis) order.emplace_back(axis);
  return {call.like(0, transpose(x, Axes(order)))};
}

/// Vectors of sizes stay sizes.
Values run_concat(const Call& call) {
  Tensors tensors;
  Dims sizes;
  bool are_sizes = false, is_numbers = true;
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    tensors.push_back(call.tensor(i));
    are_sizes = are_sizes || call.in(i).sizes;
    is_numbers = is_numbers && (call.in(i).sizes || (is_integer(call.type(i)) && call.is_known(i)));
  }
  const std::int64_t axis = call.version() < 4 ? call.integer("axis", 1) : call.integer("axis", 0);
  Value result = call.like(0, concat(tensors, call.axis_in(axis, call.tensor(0).rank())));
  if (!are_sizes || !is_numbers || result.tensor.rank() != 1) return {result};
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    if (!call.in(i).sizes)  // -1 and 0 have a meaning of their own for Reshape
      for (const std::int64_t number : call.known_integers(i))
        if (number <= 0) return {result};
    for (const Dim& size : call.known_sizes(i)) sizes.push_back(size);
  }
  result.sizes = sizes;
  return {result};
}

Values run_split(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(0);
  const auto parts = static_cast<std::int64_t>(call.output_count());
  std::vector<std::int64_t> lengths = call.integers("split");
  if (call.has(1)) lengths = call.known_integers(1);
  if (lengths.empty()) {
    const std::int64_t size = x.dim(axis).size(), length = (size + parts - 1) / parts;
    for (std::int64_t at = 0; static_cast<std::int64_t>(lengths.size()) < parts; at += length)
      lengths.push_back(std::clamp(size - at, std::int64_t{0}, length));
  }
  if (static_cast<std::int64_t>(lengths.size()) != parts)
    call.refuse(str(lengths.size(), " lengths for ", parts, " outputs"));
  Values results;
  std::int64_t at = 0;
  constexpr std::int64_t kMaxLength = std::int64_t{1} << 58;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > kMaxLength - at) call.refuse(str("a part has the length ", length));
    results.push_back(call.like(0, slice(x, axis, at, at + length)));
    at += length;
  }
  if (x.dim(axis).has_size() && at != x.dim(axis).size())
    call.refuse(str("the lengths make ", at, ", but the axis has ", x.dim(axis).size()));
  return results;
}

/// Returns x without axes of size 1. If only a run knows the size, the run throws AssertionError
/// for another one.
Tensor squeezed(Tensor x, const std::vector<int>& ascending) {
  for (auto axis = ascending.rbegin(); axis != ascending.rend(); ++axis) {
    const Dim size = x.dim(*axis);
    if (!size.has_size())
      assert_that(equal(value_of_size(size).tensor, 1), "Squeeze: the axis has size 1");
    x = size.has_size() ? squeeze(x, *axis) : gather(x, Value::integer(0).tensor, *axis);
  }
  return x;
}

Values run_squeeze(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<int> axes = axes_of(call, x.rank());
  if (axes.empty() && !call.has_attribute("axes") && !call.has(1))
    for (int i = 0; i < x.rank(); ++i)
      if (x.dim(i) == Dim(1)) axes.push_back(i);
  Value result = call.like(0, squeezed(x, axes));
  result.sizes = call.in(0).sizes;
  return {result};
}

Values run_unsqueeze(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::size_t count =
      call.version() >= 13 ? call.known_integers(1).size() : call.integers("axes").size();
  Dims dims = x.dims();
  check_rank(call.node(), dims.size() + count);
  for (const int axis : axes_of(call, x.rank() + static_cast<int>(count)))
    dims.insert(dims.begin() + axis, Dim(1));
  Value result = call.like(0, reshape_to(x, dims));
  result.sizes = call.in(0).sizes;
  return {result};
}

/// Returns the sizes of Expand if a trace knows only some of them. An axis of x keeps its size
/// unless it is 1: the run throws AssertionError for a size other than 1 and the axis's size.
Dims sizes_to_expand_to(const Call& call) {
  const Dims& dims = call.tensor(0).dims();
  const std::vector<Number> numbers = elements_of(call, 1);
  Dims sizes;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Number& number = numbers[i];
    const std::size_t missing = numbers.size() - i;  // behind this axis, with this axis
    const Dim own = missing <= dims.size() ? dims[dims.size() - missing] : Dim(1);
    if (number.known) {
      sizes.emplace_back(*number.known);
    } else if (own == Dim(1)) {
      sizes.push_back(size_of_a_run(number.traced));
    } else {
      const Tensor is_own = equal(number.traced, value_of_size(own).tensor);
      assert_that(logical_or(is_own, equal(number.traced, 1)),
                  "Expand: a size is 1 or the size of the input's axis", number.traced);
      sizes.push_back(own);
    }
  }
  return sizes;
}

Values run_expand(const Call& call) {
  const Dims sizes = holds_known_sizes(call, 1) ? call.known_sizes(1) : sizes_to_expand_to(call);
  return {call.like(0, expand_plain(call.tensor(0), sizes))};
}

Values run_tile(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<std::int64_t> repeats = call.known_integers(1);
  if (static_cast<int>(repeats.size()) != x.rank())
    call.refuse(str(repeats.size(), " repeats for rank ", x.rank()));
  Dims apart, wide, together;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) call.refuse("a repeat is negative");
    const Dim& dim = x.dims()[i];
    apart.insert(apart.end(), {Dim(1), dim});
    wide.insert(wide.end(), {Dim(repeats[i]), dim});
    together.push_back(dim * repeats[i]);
  }
  return {call.like(0, reshape_to(broadcast_to(reshape_to(x, apart), wide), together))};
}

// ---- Blocks of pixels, sequences, triangles ---------------------------------------------------

constexpr std::int64_t kMaxBlock = 1 << 20;  // pixels of a side; its square fits i64

Values run_depth_to_space(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t block = call.integer("blocksize", 1);
  const auto s = x.shape();
  if (s.size() != 4 || block < 1 || block > kMaxBlock || s[1] % (block * block))
    call.refuse(str("does not fit ", x.type()));
  const std::int64_t depth = s[1] / (block * block);
  const bool is_crd = call.text("mode", "DCR") == "CRD";
  const Tensor apart = is_crd ? reshape(x, {s[0], depth, block, block, s[2], s[3]})
                              : reshape(x, {s[0], block, block, depth, s[2], s[3]});
  const Tensor moved =
      is_crd ? transpose(apart, {0, 1, 4, 2, 5, 3}) : transpose(apart, {0, 3, 4, 1, 5, 2});
  return {call.like(0, reshape(moved, {s[0], depth, s[2] * block, s[3] * block}))};
}

Values run_space_to_depth(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t block = call.integer("blocksize", 1);
  const auto s = x.shape();
  if (s.size() != 4 || block < 1 || block > kMaxBlock || s[2] % block || s[3] % block)
    call.refuse(str("does not fit ", x.type()));
  const Tensor apart = reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  return {call.like(0, reshape(transpose(apart, {0, 3, 5, 1, 2, 4}),
                               {s[0], s[1] * block * block, s[2] / block, s[3] / block}))};
}

/// Returns x with the first elements along the time axis reversed: as many of each entry as its
/// length says.
Values run_reverse_sequence(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int time = call.axis(0, "time_axis"), batch = call.axis(1, "batch_axis");
  if (time + batch != 1) call.refuse("time_axis and batch_axis must be 0 and 1");
  const Tensor rows = time == 0 ? transpose_first_two(x) : x;
  const Tensor reversed = gather(rows, reversed_positions(rows.dim(1), cast(call.tensor(1), i64)),
                                 1, {.batch_dims = 1});
  return {call.like(0, time == 0 ? transpose_first_two(reversed) : reversed)};
}

/// Cuts or pads axes to given sizes, at both ends alike.
Values run_center_crop_pad(const Call& call) {
  Tensor x = call.tensor(0);
  const std::vector<std::int64_t> sizes = call.known_integers(1);
  std::vector<std::int64_t> axes = call.integers("axes");
  if (!call.has_attribute("axes"))
    for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  if (axes.size() != sizes.size())
    call.refuse(str(sizes.size(), " sizes for ", axes.size(), " axes"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = call.axis_in(axes[i], x.rank());
    if (sizes[i] < 0) call.refuse(str("a size is ", sizes[i]));
    const std::int64_t size = x.dim(axis).size(), more = sizes[i] - size;
    if (more < 0) x = slice(x, axis, -more / 2, -more / 2 + sizes[i]);
    if (more > 0) x = pad(x, axis, more / 2, more - more / 2);
  }
  return {call.like(0, x)};
}

Values run_trilu(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() < 2) call.refuse(str("takes matrices, got ", x.type()));
  const Tensor k = call.has(1) ? scalar_of(call.tensor(1)) : scalar(0, i64);
  const Dim rows = x.dim(-2), columns = x.dim(-1);
  const Tensor distance = range(columns, i64) - reshape_to(range(rows, i64), Dims{rows, Dim(1)});
  const Tensor stays = call.flag("upper", true) ? distance >= k : distance <= k;
  return {call.like(0, where(stays, x, zeros_like(x)))};
}

const Rule kRules[] = {
    with_numbers({1}, {"CenterCropPad", run_center_crop_pad, "", 18}),
    {"Concat", run_concat},
    {"DepthToSpace", run_depth_to_space},
    with_numbers({1}, {"Expand", run_expand, "", 8}),
    {"Flatten", run_flatten},
    with_numbers({1}, {"Reshape", run_reshape}),
    {"ReverseSequence", run_reverse_sequence, "", 10},
    {"Shape", run_shape},
    {"Size", run_size},
    {"SpaceToDepth", run_space_to_depth},
    with_numbers({1}, {"Split", run_split, "", 2}),
    with_numbers({1}, {"Squeeze", run_squeeze}),
    with_numbers({1}, {"Tile", run_tile, "", 6}),
    {"Transpose", run_transpose},
    {"Trilu", run_trilu, "", 14},
    with_numbers({1}, {"Unsqueeze", run_unsqueeze}),
};

}  // namespace

std::span<const Rule> shape_rules() { return kRules; }

}  // namespace reel::imported
