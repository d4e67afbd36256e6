// NonMaxSuppression: the best boxes that do not overlap.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/pack.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/loops/fold.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// Boxes as two corners: low and high numbers of y and x, each [rows, boxes].
struct Corners {
  Tensor low_y, low_x, high_y, high_x;
};

Corners corners_of(const Tensor& boxes, bool is_centred) {
  const auto part = [&](int i) { return gather(boxes, scalar(i), -1); };
  if (is_centred) {  // x, y, width, height
    const Tensor half_x = part(2) / 2., half_y = part(3) / 2.;
    return {part(1) - half_y, part(0) - half_x, part(1) + half_y, part(0) + half_x};
  }
  return {minimum(part(0), part(2)), minimum(part(1), part(3)), maximum(part(0), part(2)),
          maximum(part(1), part(3))};
}
Tensor areas_of(const Corners& c) { return (c.high_y - c.low_y) * (c.high_x - c.low_x); }

/// Returns the ratio of common area and area of both, of the box `i` of each row with all boxes.
Tensor overlaps_with(const Corners& all, const Tensor& areas, const Tensor& i) {
  const auto of = [&](const Tensor& x) {
    return reshape_to(gather(x, i, 1), Dims{x.dim(0), Dim(1)});
  };
  const Tensor height = minimum(all.high_y, of(all.high_y)) - maximum(all.low_y, of(all.low_y)),
               width = minimum(all.high_x, of(all.high_x)) - maximum(all.low_x, of(all.low_x));
  const Tensor common = maximum(height, 0.) * maximum(width, 0.);
  const Tensor united = areas + of(areas) - common;
  return where(united > 0, common / where(united > 0, united, 1.), 0.);
}

/// Takes boxes of each entry and class in the order of their scores, unless one that was taken
/// overlaps. Returns rows of entry, class and box.
Values run_non_max_suppression(const Call& call) {
  const Tensor &boxes = call.tensor(0), &scores = call.tensor(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != Dim(4))
    call.refuse(str("boxes ", boxes.type(), " and scores ", scores.type(), " do not fit"));
  const std::vector<std::int64_t> sizes = scores.shape();
  const std::int64_t entries = sizes[0], classes = sizes[1], count = sizes[2],
                     rows = entries * classes;
  const auto number = [&](std::size_t i, double otherwise, DType dtype) {
    return call.has(i) ? cast(scalar_of(call.tensor(i)), dtype) : full({}, otherwise, dtype);
  };
  const Tensor most = number(2, 0, i64), most_overlap = number(3, 0, f32);

  const Tensor by_row = reshape(scores, {rows, count});
  const Tensor order = argsort(by_row, 1, true);
  const Tensor of_rows =
      reshape(broadcast_to(reshape(boxes, {entries, 1, count, 4}), {entries, classes, count, 4}),
              {rows, count, 4});
  const Corners all = corners_of(gather(of_rows, order, 1, {.batch_dims = 1}),
                                 call.flag("center_point_box", false));
  const Tensor areas = areas_of(all), places = range(count, i64);
  Tensor is_taken = logical_not(zeros({Dim(rows), Dim(count)}, boolean));
  if (call.has(4)) {
    const Tensor sorted = gather(by_row, order, 1, {.batch_dims = 1});
    is_taken = sorted > number(4, 0, sorted.dtype());
  }
  is_taken = fori_loop(
      0, count,
      [&](const Tensor& i, const Tensor& taken) {
        const Tensor is_here = reshape_to(gather(taken, i, 1), Dims{taken.dim(0), Dim(1)});
        const Tensor overlaps = overlaps_with(all, areas, i) > most_overlap;
        return taken && !(is_here && overlaps && places > cast(i, i64));
      },
      is_taken);
  is_taken = is_taken && cumsum(cast(is_taken, i64), 1) <= most;
  const Tensor row = reshape(range(rows, i64), {rows, 1}) + zeros({Dim(rows), Dim(count)}, i64);
  const std::int64_t of_class = std::max<std::int64_t>(classes, 1);
  const Tensor chosen = stack({reshape(floor_divide(row, of_class), {-1}),
                               reshape(mod(row, of_class), {-1}), reshape(cast(order, i64), {-1})},
                              1);
  return {Value::of(pack(chosen, reshape(is_taken, {-1})))};
}

const Rule kRules[] = {with_numbers({2}, {"NonMaxSuppression", run_non_max_suppression, "", 10})};

}  // namespace

std::span<const Rule> box_rules() { return kRules; }

}  // namespace reel::imported
