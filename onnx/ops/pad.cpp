// Pad.
#include <algorithm>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

constexpr std::int64_t kMaxPad = std::int64_t{1} << 31;  // elements at one end

/// Returns the positions of x that the positions of the padded axis show: mirrored at the ends
/// (reflect), from the other end (wrap), or the outermost (edge).
Tensor padded_positions(std::int64_t size, std::int64_t before, std::int64_t after,
                        const std::string& mode) {
  const bool reflects = mode == "reflect";
  std::vector<std::int64_t> positions;
  for (std::int64_t i = -before; i < size + after; ++i) {
    std::int64_t at = reflects ? i : std::clamp(i, std::int64_t{0}, size - 1);
    if (mode == "wrap") {
      at = (i % size + size) % size;
    } else if (reflects && size > 1) {
      const std::int64_t period = 2 * (size - 1);
      at = (at % period + period) % period;
      at = std::min(at, period - at);
    } else if (reflects) {
      at = 0;
    }
    positions.push_back(at);
  }
  return tensor(positions);
}

struct PadSpec {
  std::string mode;
  std::vector<std::int64_t> pads;  ///< all beginnings, then all ends; negative ones cut off
  double value = 0;
  Tensor traced_value;  ///< a scalar that replaces `value`, or empty
};

Tensor padded(const Call& call, Tensor x, const PadSpec& spec) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (spec.pads.size() != 2 * rank) call.refuse(str(spec.pads.size(), " pads for rank ", rank));
  const bool is_constant = spec.mode == "constant";
  const bool is_traced = is_constant && spec.traced_value.is_defined();
  Tensor inside = is_traced ? ones(x.dims(), i32) : Tensor();
  for (std::size_t i = 0; i < rank; ++i) {
    const int axis = static_cast<int>(i);
    std::int64_t before = spec.pads[i], after = spec.pads[i + rank];
    for (const std::int64_t count : {before, after})
      if (count < -kMaxPad || count > kMaxPad) call.refuse(str("a number of pads is ", count));
    if (before < 0 || after < 0) {
      const auto cut = [&](const Tensor& of) {
        return slice(of, axis, std::max<std::int64_t>(-before, 0),
                     after < 0 ? std::optional(after) : std::nullopt);
      };
      x = cut(x);
      if (is_traced) inside = cut(inside);
      before = std::max<std::int64_t>(before, 0);
      after = std::max<std::int64_t>(after, 0);
    }
    if (before == 0 && after == 0) continue;
    if (is_constant) {
      x = pad(x, axis, before, after, spec.value);
      if (is_traced) inside = pad(inside, axis, before, after);
    } else {
      const std::int64_t size = x.dim(axis).size();
      if (size == 0) call.refuse(str("axis ", axis, " has no element to repeat"));
      check_bytes(call.node(), 8. * static_cast<double>(size + before + after));
      x = gather(x, padded_positions(size, before, after, spec.mode), axis);
    }
  }
  return is_traced ? where(equal(inside, 1), x, spec.traced_value) : x;
}

/// Returns the pads of all axes. given: pads of the axes that input 3 names (from version 18 on).
template <class T>
std::vector<T> pads_of_all_axes(const Call& call, const std::vector<T>& given, const T& none) {
  if (!call.has(3)) return given;
  const int rank = call.tensor(0).rank();
  const std::vector<std::int64_t> axes = call.known_integers(3);
  if (given.size() != 2 * axes.size())
    call.refuse(str(given.size(), " pads for ", axes.size(), " axes"));
  std::vector<T> all(2 * static_cast<std::size_t>(rank), none);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(call.axis_in(axes[i], rank));
    all[axis] = given[i];
    all[axis + static_cast<std::size_t>(rank)] = given[i + axes.size()];
  }
  return all;
}

/// Returns x with numbers of elements added that only a run knows. Throws AssertionError if the run
/// finds a negative one.
Tensor padded_in_a_run(const Call& call, Tensor x, const Tensor& value) {
  const std::vector<Number> counts = pads_of_all_axes(call, elements_of(call, 1), Number{0, {}});
  const auto rank = static_cast<std::size_t>(x.rank());
  if (counts.size() != 2 * rank) call.refuse(str(counts.size(), " pads for rank ", rank));
  const auto more = [&](std::size_t axis, const Number& count) {
    Dims dims = x.dims();
    if (count.known) {
      dims[axis] = Dim(*count.known);
    } else {
      assert_that(count.traced >= 0, "Pad: a number that only a run knows is not negative");
      dims[axis] = size_of_a_run(count.traced);
    }
    return broadcast_to(value, dims);
  };
  for (std::size_t i = 0; i < rank; ++i) {
    const Number &before = counts[i], &after = counts[i + rank];
    if (before.known.value_or(0) < 0 || after.known.value_or(0) < 0)
      call.refuse("it cuts elements off, and only a run knows the other numbers");
    Tensors parts;
    if (before.known != 0) parts.push_back(more(i, before));
    parts.push_back(x);
    if (after.known != 0) parts.push_back(more(i, after));
    if (parts.size() > 1) x = concat(parts, static_cast<int>(i));
  }
  return x;
}

Values run_pad(const Call& call) {
  PadSpec spec;
  spec.mode = call.text("mode", "constant");
  if (spec.mode != "constant" && spec.mode != "reflect" && spec.mode != "edge" &&
      spec.mode != "wrap")
    call.refuse(str("the mode ", spec.mode, " is not supported"));
  if (call.version() >= 11 && !call.is_known(1) && spec.mode == "constant") {
    const Tensor zero = scalar(0, call.tensor(0).dtype());
    return {call.like(
        0, padded_in_a_run(call, call.tensor(0), call.has(2) ? scalar_of(call.tensor(2)) : zero))};
  }
  if (call.version() >= 11) {
    spec.pads = pads_of_all_axes(call, call.known_integers(1), std::int64_t{0});
    if (call.has(2) && call.is_known(2))
      spec.value = call.known_numbers(2).at(0);
    else if (call.has(2))
      spec.traced_value = scalar_of(call.tensor(2));
  } else {
    spec.pads = call.version() >= 2 ? call.integers("pads") : call.integers("paddings");
    spec.value = call.number("value", 0);
  }
  return {call.like(0, padded(call, call.tensor(0), spec))};
}

const Rule kRules[] = {with_numbers({1, 2, 3}, {"Pad", run_pad})};

}  // namespace

std::span<const Rule> pad_rules() { return kRules; }

}  // namespace reel::imported
