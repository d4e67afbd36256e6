// tests/cases/entries_alone.h — checks that each entry of a batch gets the result that it gets
// alone.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

/// Cuts one entry out of tensors over some dims. The dims themselves get size 1; dims with lengths
/// over them get the entry's own length.
class Entry {
 public:
  Entry(Dims dims, std::vector<std::int64_t> place)
      : dims_(std::move(dims)), place_(std::move(place)) {}

  Dim alone(const Dim& dim) {
    for (const auto& [from, to] : known_)
      if (from == dim) return to;
    Dim result = dim;
    if (contains(dims_, dim)) {
      result = Dim(dim.name(), 1);
    } else if (dim.is_ragged()) {
      const Tensor lengths = mask_padding(dim.lengths());
      const Tensor own = alone(lengths);
      if (own.dims() != lengths.dims()) result = Dim(dim.name(), cast(own, i32));
    }
    known_.emplace_back(dim, result);
    return result;
  }
  Tensor alone(const Tensor& x) {
    Dims dims;
    for (const Dim& dim : x.dims()) dims.push_back(alone(dim));
    if (dims == x.dims()) return x;
    return tensor(part(x), dims, f64);
  }
  /// Returns the entry's elements of a tensor of the batch, up to the entry's own lengths.
  std::vector<double> part(const Tensor& x) {
    std::vector<double> all = values_of(x), result;
    const std::vector<std::int64_t> shape = x.shape();
    std::vector<std::int64_t> first, size;
    for (const Dim& dim : x.dims()) {
      const int of = find(dims_, dim);
      first.push_back(of < 0 ? 0 : place_[of]);
      size.push_back(alone(dim).size());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool is_inside = true;
      std::size_t rest = i;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        const auto at = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[axis]));
        rest /= static_cast<std::size_t>(shape[axis]);
        is_inside = is_inside && at >= first[axis] && at < first[axis] + size[axis];
      }
      if (is_inside) result.push_back(all[i]);
    }
    return result;
  }

 private:
  Dims dims_;
  std::vector<std::int64_t> place_;
  std::vector<std::pair<Dim, Dim>> known_;
};

class EntriesAlone : public InEveryMode {
 protected:
  using In = std::vector<Tensor>;
  using Loss = std::function<Tensor(const In&)>;

  /// Expects that a loss which sums over entries equals the sum of the losses of single entries,
  /// and the same of first and second gradients. Gradients of tensors without the entries' dims are
  /// summed over the entries. in: f64, with any values in the padding. entries: the dims that
  /// number the entries.
  void expect_entries_alone(const Loss& loss, const In& in, const Dims& entries,
                            double tolerance = 1e-10, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) const {
    manual_seed(3);
    In directions;
    for (const Tensor& x : in) directions.push_back(random_normal(x.dims(), f64));
    const auto turned = [&](const In& x, const In& v) {
      const In gradients = grad(loss)(x);
      Tensor total = scalar(0.0, f64);
      for (std::size_t i = 0; i < x.size(); ++i)
        total = total + sum(mask_padding(gradients[i]) * v[i]);
      return total;
    };
    const auto first = value_and_grad(loss);
    const auto second = value_and_grad(turned);
    const auto [value, gradients] = run([&](const In& x) { return first(x); })(in);
    const auto [slope, curvatures] =
        run([&](const In& x, const In& v) { return second(x, v); })(in, directions);

    double sum_of_values = 0, sum_of_slopes = 0;
    std::vector<std::vector<double>> shared(in.size()), shared_curvature(in.size());
    std::vector<std::int64_t> place(entries.size(), 0), sizes;
    bool is_over = false;
    for (const Dim& dim : entries) {
      sizes.push_back(dim.size());
      is_over = is_over || dim.size() == 0;
    }
    while (!is_over) {
      Entry entry(entries, place);
      if (exists(entries, place)) {
        In x, v;
        for (const Tensor& t : in) x.push_back(entry.alone(t));
        for (const Tensor& t : directions) v.push_back(entry.alone(t));
        const auto [y, dx] = first(x);
        const auto [z, ddx] = second(x, v);
        sum_of_values += y.item<double>();
        sum_of_slopes += z.template item<double>();
        for (std::size_t i = 0; i < in.size(); ++i) {
          std::string where = str("input ", i, ", entry");
          for (const std::int64_t at : place) where += str(' ', at);
          if (x[i].type() == in[i].type()) {
            add(shared[i], values_of(dx[i]));
            add(shared_curvature[i], values_of(ddx[i]));
            continue;
          }
          check_detail::compare("gradient of " + where, entry.part(mask_padding(gradients[i])),
                                values_of(mask_padding(dx[i])), tolerance, file, line);
          check_detail::compare("second gradient of " + where,
                                entry.part(mask_padding(curvatures[i])),
                                values_of(mask_padding(ddx[i])), tolerance, file, line);
        }
      }
      std::size_t axis = place.size();
      while (axis > 0 && ++place[axis - 1] == sizes[axis - 1]) place[--axis] = 0;
      is_over = axis == 0;
    }
    check_detail::compare("value", {value.template item<double>()}, {sum_of_values}, tolerance,
                          file, line);
    check_detail::compare("slope", {slope.template item<double>()}, {sum_of_slopes}, tolerance,
                          file, line);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (shared[i].empty()) continue;
      check_detail::compare(str("gradient of input ", i), values_of(gradients[i]), shared[i],
                            tolerance, file, line);
      check_detail::compare(str("second gradient of input ", i), values_of(curvatures[i]),
                            shared_curvature[i], tolerance, file, line);
    }
  }

 private:
  /// Entries may lie along a ragged dim themselves: returns false for a place in its padding.
  static bool exists(const Dims& entries, const std::vector<std::int64_t>& place) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].is_ragged()) continue;
      Tensor lengths = entries[i].lengths();
      for (const Dim& of : entries[i].length_dims())
        lengths = gather(lengths, scalar(place[find(entries, of)], i64), of);
      if (place[i] >= lengths.item<std::int32_t>()) return false;
    }
    return true;
  }
  static void add(std::vector<double>& to, const std::vector<double>& from) {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  }
};

}  // namespace reel
