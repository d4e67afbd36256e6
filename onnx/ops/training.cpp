// The ops of ai.onnx.preview.training: optimisers, and Gradient.
#include <algorithm>
#include <set>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/reductions.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {
namespace {

/// The inputs are R, T, then for each kind of tensor (X, its gradient, its statistics) all of them.
struct Parameters {
  Parameters(const Call& call, std::size_t kinds)
      : call(call), count((call.input_count() - 2) / kinds) {
    if (call.input_count() < 2 + kinds || (call.input_count() - 2) % kinds)
      call.refuse(str(call.input_count(), " inputs do not fit"));
  }
  const Tensor& of(std::size_t kind, std::size_t i) const {
    return call.tensor(2 + kind * count + i);
  }
  /// Returns the gradient, with the gradient of X's norm added.
  Tensor gradient(std::size_t i) const {
    return of(0, i) * call.number("norm_coefficient", 0) + of(1, i);
  }

  const Call& call;
  std::size_t count;
};

/// Returns all new X, then all new statistics of each kind.
template <class Update>
Values updated(const Parameters& parameters, Update update) {
  std::vector<Tensors> columns;
  for (std::size_t i = 0; i < parameters.count; ++i) columns.push_back(update(i));
  Values results;
  for (std::size_t kind = 0; kind < columns.at(0).size(); ++kind)
    for (std::size_t i = 0; i < columns.size(); ++i)
      results.push_back(parameters.call.like(2 + i, columns[i][kind]));
  return results;
}

Tensor count_as(const Call& call, DType dtype) { return cast(call.tensor(1), dtype); }

Values run_adagrad(const Call& call) {
  const Parameters p(call, 3);
  return updated(p, [&](std::size_t i) {
    const Tensor& x = p.of(0, i);
    const Tensor rate =
        call.tensor(0) / (count_as(call, x.dtype()) * call.number("decay_factor", 0) + 1);
    const Tensor g = p.gradient(i), squares = p.of(2, i) + square(g);
    return Tensors{x - rate * g / (sqrt(squares) + call.number("epsilon", 1e-6)), squares};
  });
}

Values run_adam(const Call& call) {
  const Parameters p(call, 4);
  const double alpha = call.number("alpha", 0.9), beta = call.number("beta", 0.999);
  return updated(p, [&](std::size_t i) {
    const Tensor& x = p.of(0, i);
    const Tensor t = count_as(call, x.dtype()), g = p.gradient(i);
    const Tensor v = p.of(2, i) * alpha + g * (1 - alpha),
                 h = p.of(3, i) * beta + square(g) * (1 - beta);
    const auto power = [&](double base) {
      return pow(full({}, base, x.dtype()), where(t > 0, t, 1.));
    };
    const Tensor corrected = call.tensor(0) * sqrt(1 - power(beta)) / (1 - power(alpha));
    const Tensor rate = where(t > 0, corrected, call.tensor(0));
    const Tensor next = x - rate * v / (sqrt(h) + call.number("epsilon", 1e-6));
    return Tensors{next * (1 - call.number("norm_coefficient_post", 0)), v, h};
  });
}

Values run_momentum(const Call& call) {
  const Parameters p(call, 3);
  const double alpha = call.number("alpha", 0), beta = call.number("beta", 0);
  const std::string mode = call.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    call.refuse(str("the mode ", mode, " is not supported"));
  return updated(p, [&](std::size_t i) {
    const Tensor& x = p.of(0, i);
    const Tensor g = p.gradient(i);
    const Tensor factor =
        where(call.tensor(1) > 0, full({}, beta, x.dtype()), full({}, 1, x.dtype()));
    const Tensor v = p.of(2, i) * alpha + g * factor;
    return Tensors{x - call.tensor(0) * (mode == "nesterov" ? g + v * alpha : v), v};
  });
}

// ---- Gradient ---------------------------------------------------------------------------------

void add_read_names(const Node& node, std::set<std::string>& names) {
  names.insert(node.inputs.begin(), node.inputs.end());
  for (const auto& [name, attribute] : node.attributes)
    if (attribute.graph)
      for (const Node& inner : attribute.graph->nodes) add_read_names(inner, names);
}

/// Returns the nodes before the Gradient node that y depends on, given the values of some names.
std::vector<const Node*> nodes_of(const Call& call, const std::string& y,
                                  const std::set<std::string>& given) {
  const std::vector<Node>& all = call.scope().graph().nodes;
  auto end =
      std::find_if(all.begin(), all.end(), [&](const Node& node) { return &node == &call.node(); });
  std::set<std::string> needed{y};
  std::vector<const Node*> nodes;
  while (end != all.begin()) {
    const Node& node = *--end;
    const bool is_needed = std::any_of(
        node.outputs.begin(), node.outputs.end(),
        [&](const std::string& name) { return needed.count(name) && !given.count(name); });
    if (!is_needed) continue;
    nodes.insert(nodes.begin(), &node);
    add_read_names(node, needed);
  }
  return nodes;
}

/// Returns the derivatives of y with respect to xs at the values of the inputs: y is computed again
/// from them by the nodes before. The inputs stand for xs, then for zs, which are constants.
Values run_gradient(const Call& call) {
  const std::vector<std::string> xs = call.texts("xs"), zs = call.texts("zs");
  const std::string y = call.text("y", "");
  if (xs.size() + zs.size() != call.input_count())
    call.refuse(str(call.input_count(), " inputs for ", xs.size() + zs.size(), " names"));
  std::set<std::string> given(xs.begin(), xs.end());
  given.insert(zs.begin(), zs.end());
  const std::vector<const Node*> nodes = nodes_of(call, y, given);
  const auto function = [&](const Tensors& values) {
    Scope scope(call.scope().graph(), &call.scope(), call.scope().parameters());
    for (std::size_t i = 0; i < xs.size(); ++i) scope.set(xs[i], call.like(i, values[i]));
    for (std::size_t i = 0; i < zs.size(); ++i) scope.set(zs[i], call.in(xs.size() + i));
    for (const Node* node : nodes) run_node(*node, scope);
    return sum(scope.get(y).tensor);
  };
  Tensors at;
  for (std::size_t i = 0; i < xs.size(); ++i) at.push_back(call.tensor(i));
  const Tensors gradients = grad(function)(at);
  Values results;
  for (std::size_t i = 0; i < gradients.size(); ++i) results.push_back(call.like(i, gradients[i]));
  return results;
}

const Rule kRules[] = {
    {"Adagrad", run_adagrad, kTraining, 1, 1},
    {"Adam", run_adam, kTraining, 1, 1},
    {"Gradient", run_gradient, kTraining, 1, 1, false},
    {"Momentum", run_momentum, kTraining, 1, 1},
};

}  // namespace

std::span<const Rule> training_rules() { return kRules; }

}  // namespace reel::imported
