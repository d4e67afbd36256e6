#include "reel/tests/fuzz/derivatives.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/types/dim_node.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/transforms/jvp.h"

namespace reel::fuzz {
namespace {

bool may_be_table(const TensorType& type) {
  // Must hold in all modes: in a trace, a dim that comes with arguments has no size.
  const auto is_static = [](const Dim& dim) {
    return dim.has_size() && (!dim.is_named() || dim.node()->kind == DimKind::fixed);
  };
  return is_float(type.dtype()) && type.rank() > 0 &&
         std::all_of(type.dims().begin(), type.dims().end(), is_static);
}

/// Returns a function that computes the tangent of the first result of f.
auto tangent_of(const Function& f, const Tensors& directions) {
  return [=](const Tensors& x) {
    return jvp([&](const Tensors& y) { return f(y)[0]; }, x, directions).second;
  };
}

bool has_floating(const Tensors& x) {
  return std::any_of(x.begin(), x.end(), [](const Tensor& t) { return is_float(t.dtype()); });
}

}  // namespace

std::pair<Tensors, Tensors> arguments_and_directions(const Tensors& x) {
  const std::ptrdiff_t n = std::ssize(x) / 2;
  std::pair<Tensors, Tensors> result{{x.begin(), x.begin() + n}, {x.begin(), x.begin() + n}};
  for (std::ptrdiff_t i = 0; i < n; ++i)
    if (const auto k = static_cast<std::size_t>(i); is_float(x[k].dtype()))
      result.second[k] = x[static_cast<std::size_t>(n) + k];
  return result;
}

Function with_gradient(const Function& f) {
  return [f](const Tensors& x) {
    if (!has_floating(x)) return f(x);  // value_and_grad refuses such arguments
    const auto [results, gradient] = value_and_grad([&](const Tensors& y) {
      const Tensors all = f(y);
      return std::pair{all[0], all};
    })(x);
    Tensors both = results.second;
    both.insert(both.end(), gradient.begin(), gradient.end());
    return both;
  };
}

Function with_rows(const Function& f) {
  return [f](const Tensors& x) {
    if (!has_floating(x)) return f(x);
    using Split = std::pair<std::vector<EmbeddingTable>, Tensors>;
    Split split;
    for (const Tensor& argument : x)
      if (may_be_table(argument.type()))
        split.first.emplace_back(argument);
      else
        split.second.push_back(argument);
    const auto joined = [&](const Split& parts) {
      Tensors all;
      std::size_t table = 0, other = 0;
      for (const Tensor& argument : x)
        all.push_back(may_be_table(argument.type()) ? parts.first[table++].to_dense()
                                                    : parts.second[other++]);
      return all;
    };
    const auto [results, gradient] = value_and_grad([&](const Split& parts) {
      const Tensors all = f(joined(parts));
      return std::pair{all[0], all};
    })(split);
    Tensors both = results.second;
    const Tensors whole = joined(gradient);
    both.insert(both.end(), whole.begin(), whole.end());
    return both;
  };
}

Function with_second(const Function& f) {
  return [f](const Tensors& x) {
    const std::size_t n = x.size() / 2;
    const auto slope = [&](const Tensors& all) {
      const Tensors arguments(all.begin(), all.begin() + n);
      const Tensors gradient = grad([&](const Tensors& y) { return f(y)[0]; })(arguments);
      Tensor total;
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_float(gradient[i].dtype())) continue;
        const Tensor part = sum(gradient[i] * all[n + i]);
        total = total.is_defined() ? total + part : part;
      }
      return total;
    };
    const auto [value, gradient] = value_and_grad(slope)(x);
    Tensors both{value};
    both.insert(both.end(), gradient.begin(), gradient.begin() + n);
    return both;
  };
}

Function with_tangents(const Function& f) {
  return [f](const Tensors& x) {
    const auto [arguments, directions] = arguments_and_directions(x);
    const auto [value, tangent] =
        jvp([&](const Tensors& y) { return f(y)[0]; }, arguments, directions);
    return Tensors{value, tangent, jvp(tangent_of(f, directions), arguments, directions).second};
  };
}

Function with_tangents_of_gradients(const Function& f) {
  return [f](const Tensors& x) {
    const auto [arguments, directions] = arguments_and_directions(x);
    return jvp(grad([&](const Tensors& y) { return f(y)[0]; }), arguments, directions).second;
  };
}

Function with_third(const Function& f) {
  return [f](const Tensors& x) {
    const auto [arguments, directions] = arguments_and_directions(x);
    const Tensors& along = directions;
    const auto [value, gradient] = value_and_grad(
        [&](const Tensors& y) { return jvp(tangent_of(f, along), y, along).second; })(arguments);
    Tensors both{value};
    both.insert(both.end(), gradient.begin(), gradient.end());
    return both;
  };
}

}  // namespace reel::fuzz
