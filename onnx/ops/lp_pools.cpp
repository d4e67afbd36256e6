// Pools by norms, and Col2Im, which adds windows up.
#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/windows.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// Returns the attribute p, a number before version 2.
double exponent_of(const Call& call) {
  return call.version() < 2 ? call.number("p", 2) : static_cast<double>(call.integer("p", 2));
}
Tensor norm_over(const Tensor& x, const Axes& axes, double p, Keep keep) {
  if (p == 1) return sum(abs(x), axes, keep);
  if (p == 2) return sqrt(sum(square(x), axes, keep));
  return pow(sum(pow(abs(x), p), axes, keep), 1 / p);
}

Values run_lp_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"));
  return {call.like(0, norm_over(unfolded(call, x, windows, 0), Axes(kernel_axes(windows.size())),
                                 exponent_of(call), Keep::no))};
}
Values run_global_lp_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<Axis> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.emplace_back(axis);
  return {call.like(0, norm_over(x, Axes(axes), exponent_of(call), Keep::yes))};
}

/// Adds the columns of windows up to an image: the transposed map of reading windows.
/// x: [N, C k1 k2 ..., o1 o2 ...].
Values run_col2im(const Call& call) {
  using Sizes = std::vector<std::int64_t>;
  const Tensor& x = call.tensor(0);
  const Sizes image = call.known_integers(1), kernel = call.known_integers(2);
  Sizes shape = x.shape(), sizes{shape.at(0), 1};
  sizes.insert(sizes.end(), image.begin(), image.end());
  const Windows windows = windows_of(call, zeros(Dims(sizes.begin(), sizes.end())), kernel);
  std::int64_t elements = 1, places = 1;
  for (const AxisWindow& at : windows) elements *= at.kernel, places *= at.count;
  if (shape.size() != 3 || shape[1] % elements || shape[2] != places)
    call.refuse(str(x.type(), " does not fit an image with ", elements, " elements at ", places,
                    " places"));
  // [N, C, o1, k1, o2, k2, ...]
  Sizes apart{shape[0], shape[1] / elements};
  for (const AxisWindow& at : windows) apart.push_back(at.kernel);
  for (const AxisWindow& at : windows) apart.push_back(at.count);
  std::vector<Axis> order{0, 1};
  for (std::size_t i = 0; i < windows.size(); ++i) {
    order.emplace_back(static_cast<int>(2 + windows.size() + i));
    order.emplace_back(static_cast<int>(2 + i));
  }
  Tensor y = transpose(reshape(x, apart), Axes(order));
  for (std::size_t i = windows.size(); i-- > 0;) {
    const AxisWindow& at = windows[i];
    Sizes joined = y.shape();
    const std::size_t first = 2 * i + 2;  // axes before still are pairs
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    joined[first] = at.count * at.kernel;
    const Tensor updates = reshape(y, joined);
    joined[first] = at.size + at.before + at.after;
    const Tensor padded =
        scatter_add(zeros(Dims(joined.begin(), joined.end()), x.dtype()),
                    tensor(positions_of(call, at)), updates, static_cast<int>(first));
    y = slice(padded, static_cast<int>(first), at.before, at.before + at.size);
  }
  return {call.like(0, y)};
}

const Rule kRules[] = {
    with_numbers({1, 2}, {"Col2Im", run_col2im, "", 18}),
    {"GlobalLpPool", run_global_lp_pool},
    {"LpPool", run_lp_pool},
};

}  // namespace

std::span<const Rule> lp_pool_rules() { return kRules; }

}  // namespace reel::imported
