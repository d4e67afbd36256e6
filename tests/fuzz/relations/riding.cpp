#include "reel/tests/fuzz/relations/riding.h"

#include <algorithm>
#include <set>
#include <string>

#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"
#include "reel/tests/fuzz/relations/coupling.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

using Kind = DimInfo::Kind;

/// Sum over given axes instead of all axes.
const Rule* term_with_axes() {
  static const Rule* const rule = expression(REEL_EXPRESSION(sum(0.5 * a + sin(a), axes)), 0,
                                             [](Drafter&, Instruction&) { return false; });
  return rule;
}
const Rule* term_without_axes() {
  static const Rule* const rule = expression(REEL_EXPRESSION(0.5 * a + sin(a)), 0,
                                             [](Drafter&, Instruction&) { return false; });
  return rule;
}

/// True for rules that leave a further named dim alone.
bool leaves_dims_alone(const Rule* rule) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"full(dims, x, real)", "full(dims, 2, i32)", "full(dims, 0, i32)",
                              "full(dims, true, boolean)"};
    for (const auto family :
         {elementwise_rules, integer_rules, reduction_rules, recurrence_rules, shape_rules,
          index_rules, fold_rules, scan_rules, checkpoint_rules, vmap_rules, derivative_rules})
      for (const Rule* riding : family()) all.insert(riding->name());
    // Reductions of all axes, and ops that need operands with equal dims or all dims of a result.
    for (const char* other :
         {"sum(a)", "sum(0.5 * a + sin(a))", "all(a)", "transpose(a, axes)", "expand(a, dims)",
          "stack({a, b}, to)", "scatter_add(a, mod(b, n), gather(sin(a), mod(b, n), axis), axis)",
          "scatter_max(a, mod(b, n), gather(cos(a), mod(b, n), axis), axis)"})
      all.erase(other);
    all.insert({term_with_axes()->name(), term_without_axes()->name()});
    return all;
  }();
  return names.contains(rule->name());
}

/// True for a rule of a test: an injected defect.
bool is_injected(const Rule* rule) {
  return rule != term_with_axes() && rule != term_without_axes() &&
         std::find(all_rules().begin(), all_rules().end(), rule) == all_rules().end();
}

/// True if the value has a dim without the dims that its lengths run over. It is as long as the
/// longest entry of all rows.
bool lacks_lengths(const Program& program, int value) {
  const std::vector<int>& dims = program.values[value].dims;
  return std::any_of(dims.begin(), dims.end(),
                     [&](int dim) { return !is_subset(program.dims[dim].over, dims); });
}

/// True if an instruction leaves a further dim alone.
bool rides(const Program& program, const Instruction& in) {
  if (!leaves_dims_alone(in.rule) && !is_injected(in.rule)) return false;
  // A tensor that is made with a dim of one row would have the longest row's size.
  if (in.inputs.empty())
    for (const int dim : in.dims)
      if (program.dims[dim].kind != Kind::fixed) return false;
  if (needs_slices(*in.rule)) return false;
  if (in.control == Control::scan) {
    // The lengths of rows that a bound alone ends have no dims in the condition.
    if (in.loop.has_bound && !in.loop.has_cond) return false;
  }
  // A finished entry reads the values of the first running entry, which may be another row's.
  if (couples_entries(program, in, in.loop.cond_dims)) return false;
  for (const int value : in.outputs)
    if (lacks_lengths(program, value)) return false;
  return !is_pullback_in_branch(in);
}

bool all_ride(const Program& program) {
  bool result = true;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body) result = result && rides(program, in);
  });
  return result;
}

void draw_dims(Drafter& d, Random& random) {
  const auto add = [&](DimInfo info) {
    const int dim = d.new_dim(std::move(info));
    d.show_dim(dim);
    return dim;
  };
  const auto dynamic = [&](const char* name) {
    return add({.kind = Kind::dynamic,
                .name = name,
                .lengths = {random.between(0, 4)},
                .elsewhere = {random.between(0, 4)}});
  };
  dynamic("time");
  if (random.chance(70))
    add({.kind = Kind::fixed, .name = "in", .size = random.chance(8) ? 0 : random.between(1, 5)});
  if (random.chance(30)) add({.kind = Kind::fixed, .name = "out", .size = random.between(1, 3)});
  if (random.chance(20)) dynamic("other");
}

void draw_inputs(Program& program, Drafter& d, Random& random) {
  const auto add = [&](ValueType type) {
    const int value = d.new_value(type);
    InputInfo info{.salt = random.next()};
    if (type.element != Element::real) {
      info.low = 0;
      info.high = 4;
    }
    info.is_captured = random.chance(15) &&
                       std::none_of(type.dims.begin(), type.dims.end(),
                                    [&](int dim) { return d.dim(dim).comes_with_arguments(); });
    program.inputs.push_back(info);
    program.main.params.push_back(value);
    d.show(value);
  };
  for (const int dim : std::vector<int>(d.visible_dims()))
    if (d.dim(dim).comes_with_arguments()) add({.dims = {dim}});
  const int reals = random.between(1, 3);
  for (int i = 0; i < reals; ++i) add({.dims = d.pick_dims(3)});
  add({.element = Element::i32});
  if (random.chance(50)) add({.element = Element::i32, .dims = d.pick_dims(2)});
  if (random.chance(50)) add({.element = Element::boolean, .dims = d.pick_dims(2)});
}

/// Makes the loss of a row. The other results are the values that no instruction reads.
void finish(Program& program, Drafter& d) {
  std::vector<int> read, outputs;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body)
      read.insert(read.end(), in.inputs.begin(), in.inputs.end());
    read.insert(read.end(), block.results.begin(), block.results.end());
  });
  for (const Instruction& in : program.main.body)
    for (const int value : in.outputs)
      if (!contains(read, value)) outputs.push_back(value);
  int loss = -1;
  std::vector<int> terms = outputs;
  terms.push_back(program.main.params[0]);
  for (const int value : terms) {
    if (d.type(value).element != Element::real) continue;
    const std::vector<int> axes = d.type(value).dims;
    const int term = d.new_value({});
    d.append({.rule = axes.empty() ? term_without_axes() : term_with_axes(),
              .inputs = {value},
              .outputs = {term},
              .axes = axes});
    loss = loss < 0 ? term : d.apply("a + b", {loss, term}, {});
  }
  program.main.results = {loss};
  program.main.results.insert(program.main.results.end(), outputs.begin(), outputs.end());
}

}  // namespace

bool is_riding(const Program& program) {
  const auto fits = [](const DimInfo& dim) {
    return dim.kind != Kind::ragged && !(dim.kind == Kind::dynamic && dim.is_captured);
  };
  return program.is_named && std::all_of(program.dims.begin(), program.dims.end(), fits) &&
         all_ride(program);
}

Program generate_riding(std::uint64_t seed, const Rules& rules) {
  Random random(seed ^ 0x526964696e67);
  Rules riding;
  for (const Rule* rule : rules)
    if (leaves_dims_alone(rule) || is_injected(rule)) riding.push_back(rule);
  while (true) {
    Program program{.seed = seed};
    program.real = random.chance(80) ? f64 : f32;
    Drafter d(program, random, riding);
    d.current_ = &program.main;
    d.percent_with_policy_ = random.chance(60) ? 0 : 60;
    d.draws_truncate_ = random.chance(10);
    draw_dims(d, random);
    draw_inputs(program, d, random);
    d.write(random.between(3, 10));
    finish(program, d);
    if (all_ride(program)) return program;
  }
}

}  // namespace reel::fuzz
