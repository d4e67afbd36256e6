#include "reel/tests/fuzz/relations/plain_form.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "reel/core/ops.h"
#include "reel/tests/fuzz/program/expression.h"
#include "reel/tests/fuzz/program/families.h"

namespace reel::fuzz {
namespace {

/// The way in which the axes of a result follow from the axes of all operands.
enum class ResultAxes { same, without_axes, replaced, appended, product, renamed, none };

const std::map<std::string, ResultAxes>& kinds() {
  static const std::map<std::string, ResultAxes> kinds = [] {
    std::map<std::string, ResultAxes> all;
    for (const auto family : {elementwise_rules, integer_rules})
      for (const Rule* rule : family()) all[rule->name()] = ResultAxes::same;
    for (const char* text :
         {"softmax(a, axes)", "log_softmax(a, axes)", "cumsum(a, axis)",
          "cumsum(a, axis, {.exclusive = true, .reverse = true})", "cumprod(a, axis)",
          "cumprod(a, axis, {.exclusive = true})", "sort(a, axis)", "sort(a, axis, true)",
          "argsort(a, axis)", "reverse(a, axis)", "shift(a, axis, n)", "shift(a, axis, n, x)",
          "linear_scan(sin(a), b, axis)", "linear_scan(cos(a), tanh(a), axis, {.input = b})",
          "linear_scan(tanh(a), b, scalar(x, real), axis, {.reverse = true})", "0.5 * a + sin(a)"})
      all[text] = ResultAxes::same;
    for (const char* text :
         {"sum(a, axes)", "mean(a, axes)", "prod(a, axes)", "max(a, axes)", "min(a, axes)",
          "variance(a, axes)", "logsumexp(a, axes)", "any(a, axes)", "argmax(a, axis)",
          "argmin(a, axis)", "sum(0.5 * a + sin(a), axes)"})
      all[text] = ResultAxes::without_axes;
    for (const char* text :
         {"slice(a, axis, n, m, to)", "slice(a, axis, 0, {}, 2, to)", "pad(a, axis, n, m, x, to)",
          "concat({a, 0.5 * a}, axis, to)", "top_k(a, axis, to).values"})
      all[text] = ResultAxes::replaced;
    for (const char* text : {"full(dims, x, real)", "full(dims, 2, i32)", "full(dims, 0, i32)",
                             "full(dims, true, boolean)", "range(to)"})
      all[text] = ResultAxes::none;
    all["one_hot(mod(a, n), to, real)"] = ResultAxes::appended;
    all["matmul(a, b, to)"] = ResultAxes::product;
    all["rename(a, axis, to)"] = ResultAxes::renamed;
    return all;
  }();
  return kinds;
}

/// True if a loop made a dim of the value: such a dim has a name.
bool has_found_dim(const Program& program, int value) {
  return std::ranges::any_of(program.values[value].dims, [&](int dim) {
    return program.dims[dim].kind == DimInfo::Kind::found;
  });
}

bool has_plain_form(const Program& program, const Instruction& in) {
  for (const int input : in.inputs)
    if (has_found_dim(program, input)) return false;
  switch (in.control) {
    case Control::none:
      return kinds().contains(in.rule->name()) ||
             std::find(all_rules().begin(), all_rules().end(), in.rule) == all_rules().end();
    case Control::scan:
      return in.loop.cond_dims.empty();
    case Control::vmap:
    case Control::call:
    case Control::derivative:
      return true;
    default:
      return false;
  }
}

int position(const std::vector<int>& dims, int dim) {
  return static_cast<int>(std::find(dims.begin(), dims.end(), dim) - dims.begin());
}

std::vector<int> sorted(std::vector<int> dims) {
  std::sort(dims.begin(), dims.end());
  return dims;
}

/// Returns x with its axes in order. dims: of its axes.
Tensor in_order(const Tensor& x, const std::vector<int>& dims) {
  if (std::is_sorted(dims.begin(), dims.end())) return x;
  std::vector<Axis> order;
  for (const int dim : sorted(dims)) order.emplace_back(position(dims, dim));
  return transpose(x, Axes(order));
}

/// Returns x with axes of size 1 for the dims that it lacks. Requires axes in order.
Tensor aligned(const Tensor& x, const std::vector<int>& own, const std::vector<int>& all) {
  if (own.size() == all.size()) return x;
  Dims dims;
  std::size_t next = 0;
  for (const int dim : all) dims.push_back(contains(own, dim) ? x.dims()[next++] : Dim(1));
  return reshape(x, dims);
}

Dims plain_dims(const Program& program, const std::vector<int>& dims) {
  Dims result;
  for (const int dim : dims) result.emplace_back(program.dims[dim].size);
  return result;
}

/// A product by NumPy's rules: common dims in front, then dims of one operand, then the summed
/// dim.
Tensor product(const Instruction& in, Machine& machine) {
  const Program& program = machine.program();
  const int inner = in.dims.at(0);
  const std::vector<int> of_a = sorted(program.values[in.inputs[0]].dims),
                         of_b = sorted(program.values[in.inputs[1]].dims);
  std::vector<int> both, left, right;
  for (const int dim : of_a)
    if (dim != inner) (contains(of_b, dim) ? both : left).push_back(dim);
  for (const int dim : of_b)
    if (dim != inner && !contains(of_a, dim)) right.push_back(dim);
  const auto matrix = [&](int value, const std::vector<int>& own, const std::vector<int>& rows,
                          const std::vector<int>& columns) {
    std::vector<Axis> order;
    Dims dims;
    const auto take = [&](const std::vector<int>& list, bool merges) {
      Dims sizes;
      for (const int dim : list) {
        order.emplace_back(position(own, dim));
        sizes.push_back(machine.tensor(value).dims()[static_cast<std::size_t>(position(own, dim))]);
      }
      if (!merges)
        dims.insert(dims.end(), sizes.begin(), sizes.end());
      else
        dims.push_back(
            Dim(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                                [](std::int64_t n, const Dim& d) { return n * d.size(); })));
    };
    take(both, false);
    take(rows, true);
    take(columns, true);
    const Tensor& x = machine.tensor(value);
    return reshape(order.empty() ? x : transpose(x, Axes(order)), dims);
  };
  const Tensor made =
      matmul(matrix(in.inputs[0], of_a, left, {inner}), matrix(in.inputs[1], of_b, {inner}, right));
  std::vector<int> layout = both;
  Dims dims;
  for (const auto* list : {&both, &left, &right}) {
    if (list != &both) layout.insert(layout.end(), list->begin(), list->end());
    const int value = list == &right ? in.inputs[1] : in.inputs[0];
    for (const int dim : *list)
      dims.push_back(
          machine.tensor(value)
              .dims()[static_cast<std::size_t>(position(list == &right ? of_b : of_a, dim))]);
  }
  return in_order(reshape(made, dims), layout);
}

}  // namespace

bool has_plain_form(const Program& program) {
  bool result = program.is_named;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body) result = result && has_plain_form(program, in);
    if (&block == &program.main) return;
    for (const int value : block.results) result = result && !has_found_dim(program, value);
  });
  return result;
}

bool may_have_plain_form(const Rule& rule) {
  const bool is_expression = dynamic_cast<const ExpressionRule*>(&rule) != nullptr;
  const bool is_injected =
      std::find(all_rules().begin(), all_rules().end(), &rule) == all_rules().end();
  return !is_expression || is_injected || kinds().contains(rule.name());
}

void run_plainly(const Instruction& in, Machine& machine) {
  const auto* rule = dynamic_cast<const ExpressionRule*>(in.rule);
  if (!rule) return in.rule->run(in, machine);
  const Program& program = machine.program();
  const auto found = kinds().find(rule->name());
  const ResultAxes kind = found == kinds().end() ? ResultAxes::same : found->second;
  Slot& output = machine[in.outputs[0]];
  if (kind == ResultAxes::product) {
    output = product(in, machine);
    return;
  }
  std::vector<int> layout;
  for (const int value : in.inputs)
    for (const int dim : program.values[value].dims)
      if (!contains(layout, dim)) layout.push_back(dim);
  layout = sorted(layout);
  const auto operand = [&](std::size_t i) {
    if (i >= in.inputs.size()) return Tensor();
    const int value = in.inputs[i];
    return aligned(machine.tensor(value), sorted(program.values[value].dims), layout);
  };
  std::vector<Axis> axes;
  for (const int dim : in.axes) axes.emplace_back(position(layout, dim));
  const std::vector<int> given = kind == ResultAxes::none ? sorted(in.dims) : in.dims;
  const Dims dims = plain_dims(program, given);
  Operands named = ExpressionRule::operands_of(in, machine);
  const Operands operands{operand(0), operand(1),
                          operand(2), {},
                          Axes(axes), axes.empty() ? Axis(0) : axes[0],
                          dims,       dims.empty() ? Dim() : dims[0],
                          named.n,    named.m,
                          named.x,    named.real,
                          named.keep, named.swap};
  if (kind == ResultAxes::without_axes)
    for (const int dim : in.axes) std::erase(layout, dim);
  if (kind == ResultAxes::replaced || kind == ResultAxes::renamed)
    layout[static_cast<std::size_t>(position(layout, in.axes[0]))] = in.dims[0];
  if (kind == ResultAxes::appended) layout.push_back(in.dims[0]);
  if (kind == ResultAxes::none) layout = given;
  output =
      in_order(kind == ResultAxes::renamed ? operands.a : rule->compute(operands).tensor, layout);
}

Tensors to_front(Machine& machine, const std::vector<int>& values, int dim) {
  Tensors result;
  for (const int value : values) {
    const std::vector<int> dims = sorted(machine.program().values[value].dims);
    const Tensor& x = machine.tensor(value);
    if (!contains(dims, dim)) {
      result.push_back(expand(x, result.at(0).dims()[0]));
      continue;
    }
    std::vector<Axis> order{position(dims, dim)};
    for (const int other : dims)
      if (other != dim) order.emplace_back(position(dims, other));
    result.push_back(order.size() < 2 ? x : transpose(x, Axes(order)));
  }
  return result;
}

void from_front(Machine& machine, int value) {
  std::vector<int> dims = machine.program().values[value].dims;
  std::sort(dims.begin() + 1, dims.end());
  machine[value] = in_order(machine.tensor(value), dims);
}

Tensor plain_form_of(const Tensor& x) {
  // The drafter appends its number to the name of a dim.
  const auto number = [](const Dim& dim) {
    const std::size_t digits = dim.name().find_first_of("0123456789");
    return digits == std::string::npos ? -1 : std::stoi(dim.name().substr(digits));
  };
  std::vector<std::size_t> places(x.dims().size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return number(x.dims()[a]) < number(x.dims()[b]);
  });
  std::vector<Axis> order;
  Dims dims;
  for (const std::size_t place : places) {
    order.emplace_back(static_cast<int>(place));
    dims.emplace_back(x.shape()[place]);
  }
  if (order.empty()) return x;
  const std::vector<double> values = cast(transpose(x, Axes(order)), f64).to_vector<double>();
  return cast(tensor(values, dims, f64), x.dtype());
}

}  // namespace reel::fuzz
