// Rule for scan: along dims of every kind, until a condition ends it, or both.
#include "reel/frontend/loops/scan.h"

#include "reel/core/dims/dim_slices.h"
#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"
#include "reel/tests/fuzz/relations/plain_form.h"
#include "reel/tests/fuzz/shrinking/cut_by_hand.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 2;

std::vector<int> without(const std::vector<int>& dims, int dim) {
  std::vector<int> result;
  for (const int item : dims)
    if (item != dim) result.push_back(item);
  return result;
}

struct Parts {
  std::vector<int> xs, initial, ys, states;
};

Parts parts_of(const Instruction& in) {
  const auto at = [](const std::vector<int>& list, int i) { return list.begin() + i; };
  const int xs = in.loop.xs, states = in.loop.states;
  const int ys = static_cast<int>(in.outputs.size()) - states;
  return {{at(in.inputs, 0), at(in.inputs, xs)},
          {at(in.inputs, xs), at(in.inputs, xs + states)},
          {at(in.outputs, 0), at(in.outputs, ys)},
          {at(in.outputs, ys), in.outputs.end()}};
}

class ScanRule : public Rule {
 public:
  ScanRule() : Rule("scan", 50) {}

  bool draft(Drafter& d, Instruction& in) const override {
    if (d.depth() > kDeepest) return false;
    in.control = Control::scan;
    in.policy = d.policy();
    LoopForm& loop = in.loop;
    const bool known = d.random().chance(70);
    if (known && !choose_xs(d, in)) return false;
    loop.has_cond = !known || d.random().chance(25);
    loop.has_bound = (known && d.random().chance(15)) || loop.has_cond;
    loop.reverse = known && d.random().chance(30);
    if (loop.has_cond) choose_cond_dims(d, loop, known);
    loop.cond_before_body = !loop.has_cond || d.random().chance(60);
    choose_states(d, in);
    choose_truncate(d, in);
    // Without spatial_dim, the state decides whether the new axis has a name.
    if (!known && !d.is_named() &&
        std::none_of(in.inputs.begin(), in.inputs.end(), [&](int v) { return d.rank(v) > 0; }))
      return false;
    choose_slices(d, in);
    std::vector<ValueType> types;
    for (int i = 0; i < loop.xs; ++i) types.push_back(slice_of(d, in, in.inputs[i]));
    for (int i = 0; i < loop.states; ++i) types.push_back(d.type(in.inputs[loop.xs + i]));
    if (loop.has_bound) in.inputs.push_back(choose_bound(d, in));

    std::vector<ValueType> ys;
    in.blocks.push_back(d.block(types, [&](Block& body) { write_body(d, in, body, ys); }));
    if (loop.has_cond)
      in.blocks.push_back(d.block({types.begin() + loop.xs, types.end()},
                                  [&](Block& cond) { write_cond(d, in, cond); }));
    const int out = come_out(d, in);
    slice_anew(d, in, out, ys);
    for (ValueType type : ys) {
      type.dims = to_wholes(type.dims, in.slices);
      type.dims = to_slices(with_finished_entries(in, with_entries(d, in, type.dims)), in.sliced);
      type.dims.insert(type.dims.begin(), out);
      in.outputs.push_back(d.new_value(type));
    }
    for (int i = 0; i < loop.states; ++i) in.outputs.push_back(d.new_value(types[loop.xs + i]));
    return true;
  }

  void run(const Instruction& in, Machine& machine) const override;
  void print(const Instruction& in, Printer& p) const override;

 private:
  static bool choose_xs(Drafter& d, Instruction& in) {
    const int x = d.pick([&](int v) { return !d.type(v).is_array && d.rank(v) > 0; });
    if (x < 0) return false;
    const int axis = d.is_named() ? d.type(x).dims[d.random().below(d.rank(x))] : 0;
    in.loop.spatial = d.is_named() ? axis : -1;
    const int dim = d.dim_at(x, axis);
    in.inputs.push_back(x);
    if (d.random().chance(40)) {
      const int other = d.pick([&](int v) {
        if (v == x || d.type(v).is_array || !d.rank(v)) return false;
        return d.is_named() ? contains(d.type(v).dims, dim) : d.type(v).dims[0] == dim;
      });
      if (other >= 0) in.inputs.push_back(other);
    }
    in.loop.xs = static_cast<int>(in.inputs.size());
    return true;
  }

  /// In a reverse scan along a ragged dim, each entry begins at its own end. A value that entries
  /// share is then another element in each, so it gets the entries' dims.
  static std::vector<int> with_entries(const Drafter& d, const Instruction& in,
                                       std::vector<int> dims) {
    if (!in.loop.reverse || in.loop.spatial < 0) return dims;
    for (const int entry : d.dim(in.loop.spatial).over)
      if (!contains(dims, entry)) dims.insert(dims.begin(), entry);
    return dims;
  }

  /// In a reverse scan that ends entries one by one, each has its last elements.
  static std::vector<int> with_finished_entries(const Instruction& in, std::vector<int> dims) {
    if (in.loop.reverse)
      for (const int entry : in.loop.cond_dims)
        if (!contains(dims, entry)) dims.insert(dims.begin(), entry);
    return dims;
  }

  /// Makes slices, for the body, of dims with lengths over the scanned dim.
  static void choose_slices(Drafter& d, Instruction& in) {
    std::vector<int> wholes;
    if (in.loop.spatial < 0) return;
    for (int i = 0; i < in.loop.xs; ++i)
      for (const int dim : dims_running_over(
               d.program(), with_entries(d, in, d.type(in.inputs[i]).dims), in.loop.spatial))
        if (!contains(wholes, dim)) wholes.push_back(dim);
    in.slices = make_slices(d, wholes, in.loop.spatial, {});
  }
  static bool is_slice(const Instruction& in, int dim) {
    return std::any_of(in.slices.begin(), in.slices.end(),
                       [&](const SlicedDim& sliced) { return sliced.slice == dim; });
  }

  /// A loop with an unknown trip count has a new dim; lengths of ys run over that dim.
  static void slice_anew(Drafter& d, Instruction& in, int out, const std::vector<ValueType>& ys) {
    if (in.found.empty()) return;
    std::vector<int> wholes;
    for (const SlicedDim& sliced : in.slices)
      if (std::any_of(ys.begin(), ys.end(),
                      [&](const ValueType& y) { return contains(y.dims, sliced.slice); }))
        wholes.push_back(sliced.whole);
    in.sliced = make_slices(d, wholes, in.loop.spatial, {out});
  }

  static ValueType slice_of(Drafter& d, const Instruction& in, int x) {
    ValueType type = d.type(x);
    type.dims = d.is_named() ? without(with_entries(d, in, type.dims), in.loop.spatial)
                             : std::vector<int>(type.dims.begin() + 1, type.dims.end());
    type.dims = to_slices(type.dims, in.slices);
    return type;
  }

  /// Chooses if entries finish one by one or all together.
  static void choose_cond_dims(Drafter& d, LoopForm& loop, bool known) {
    if (!d.is_named()) return;
    if (known) {
      loop.cond_dims = d.dim(loop.spatial).over;
      if (!loop.cond_dims.empty()) return;
    }
    for (const int dim : d.visible_dims())
      if (d.dim(dim).over.empty() && dim != loop.spatial && loop.cond_dims.empty() &&
          d.random().chance(60))
        loop.cond_dims.push_back(dim);
  }

  /// True for an array of elements with a ragged dim. In the state of a scan, that dim stays as it
  /// is for finished entries, which show a running entry's values: its padding would be elements.
  static bool is_array_of_ragged(Drafter& d, int v) {
    const std::vector<int>& dims = d.type(v).dims;
    return d.type(v).is_array &&
           std::any_of(dims.begin(), dims.end(), [&](int dim) { return d.dim(dim).is_ragged(); });
  }

  static void choose_states(Drafter& d, Instruction& in) {
    LoopForm& loop = in.loop;
    const std::size_t begin = in.inputs.size();
    if (loop.has_cond) {
      Instruction attributes;
      attributes.dims = loop.cond_dims;
      in.inputs.push_back(d.apply("full(dims, 0, i32)", {},
                                  {.element = Element::i32, .dims = loop.cond_dims}, attributes));
    }
    if (d.random().chance(15)) add_array(d, in);
    const int states = d.random().between(loop.xs && d.random().chance(20) ? 0 : 1, 2);
    for (int i = 0; i < states; ++i) {
      const int state = d.pick([&](int v) {
        return !contains(d.type(v).dims, loop.spatial) && !is_array_of_ragged(d, v) &&
               std::find(in.inputs.begin() + begin, in.inputs.end(), v) == in.inputs.end();
      });
      if (state >= 0) in.inputs.push_back(state);
    }
    loop.states = static_cast<int>(in.inputs.size() - begin);
  }

  /// Adds an array to the state. Without this, programs would have few of them.
  static void add_array(Drafter& d, Instruction& in) {
    const int like = d.pick([&](int v) {
      if (d.type(v).element != Element::real || contains(d.type(v).dims, in.loop.spatial))
        return false;
      return std::all_of(d.type(v).dims.begin(), d.type(v).dims.end(), [&](int dim) {
        return !d.dim(dim).is_ragged() && (d.dim(dim).is_named() || d.dim(dim).has_size());
      });
    });
    if (like < 0) return;
    Instruction attributes;
    attributes.dims = d.type(like).dims;
    attributes.numbers = {d.random().between(0, 2)};
    const ValueType type{.dims = attributes.dims,
                         .is_array = true,
                         .least = static_cast<int>(attributes.numbers[0])};
    in.inputs.push_back(
        d.apply("TensorArray(TensorType{real, dims}, {.size = n})", {}, type, attributes));
  }

  /// Chooses truncate. A reverse scan needs a trip count that is known before a run, or from a dim.
  static void choose_truncate(Drafter& d, Instruction& in) {
    if (!d.draws_truncate() || !in.loop.states || !d.random().chance(70)) return;
    if (in.loop.reverse && !d.is_named() && !d.dim(d.type(in.inputs[0]).dims[0]).has_size()) return;
    in.loop.truncate = d.random().chance(85) ? d.random().between(1, 3) : kAllSteps;
    // With a shorter truncate, gradients are not derivatives of the whole loop.
    if (in.loop.truncate < kAllSteps) d.program().checks_differences = false;
  }

  static int choose_bound(Drafter& d, const Instruction& in) {
    const int count = d.random().chance(70) ? d.pick([&](int v) {
      return !d.type(v).is_array && d.type(v).element == Element::i32 &&
             is_subset(d.type(v).dims, in.loop.cond_dims);
    })
                                            : -1;
    if (count >= 0) return d.apply("mod(a * 3, 4)", {count}, d.type(count));
    return d.apply("full(dims, 2, i32)", {}, {.element = Element::i32});
  }

  static void write_body(Drafter& d, const Instruction& in, Block& body,
                         std::vector<ValueType>& ys) {
    for (const SlicedDim& sliced : in.slices) d.show_dim(sliced.slice);
    d.write(d.random().between(1, 6));
    const int count = d.random().between(in.loop.states ? 0 : 1, 2);
    const auto fits = [&](int v) { return !d.type(v).is_array && can_be_y(d, in, d.type(v).dims); };
    for (int i = 0; i < count; ++i) {
      const int y = d.pick(fits);
      if (y < 0) continue;
      body.results.push_back(y);
      ys.push_back(d.type(y));
    }
    for (int i = 0; i < in.loop.states; ++i) {
      const int state = body.params[in.loop.xs + i];
      body.results.push_back(in.loop.has_cond && i == 0 ? d.apply("a + 1", {state}, d.type(state))
                                                        : d.make_like(state));
    }
  }

  static bool can_be_y(Drafter& d, const Instruction& in, const std::vector<int>& dims) {
    for (const int dim : dims) {
      // The scanned dim and another dim of its origin would both be dims of ys.
      if (in.loop.spatial >= 0 &&
          origin_of(d.program(), dim) == origin_of(d.program(), in.loop.spatial))
        return false;
      if (is_slice(in, dim)) {
        // Requires the slices that its lengths run over.
        for (const int over : d.dim(dim).over)
          if (is_slice(in, over) && !contains(dims, over)) return false;
      } else if (d.dim(dim).kind == DimInfo::Kind::found && !contains(d.outer_dims(), dim)) {
        return false;
      } else if (contains(d.dim(dim).over, in.loop.spatial)) {
        return false;  // stacked, it would get lengths that it does not have here
      }
    }
    return true;
  }

  static void write_cond(Drafter& d, const Instruction& in, Block& cond) {
    const ValueType truth{.element = Element::boolean, .dims = in.loop.cond_dims};
    const auto within = [&](int v, Element element) {
      return !d.type(v).is_array && d.type(v).element == element &&
             is_subset(d.type(v).dims, in.loop.cond_dims);
    };
    int limit = d.pick([&](int v) { return v != cond.params[0] && within(v, Element::i32); });
    if (limit >= 0)
      limit = d.apply("mod(a * 3, 4)", {limit}, d.type(limit));
    else
      limit = d.apply("full(dims, 2, i32)", {}, {.element = Element::i32});
    int more = d.apply("less(a, b)", {cond.params[0], limit}, truth);
    const int real =
        d.random().chance(30) ? d.pick([&](int v) { return within(v, Element::real); }) : -1;
    if (real >= 0) {
      Instruction number;
      number.constant = draw_number(d);
      const int low = d.apply("a <= x", {real},
                              {.element = Element::boolean, .dims = d.type(real).dims}, number);
      more = d.apply("a && b", {more, low}, truth);
    }
    cond.results = {more};
  }

  /// Returns the dim of ys.
  static int come_out(Drafter& d, Instruction& in) {
    const LoopForm& loop = in.loop;
    if (!loop.has_cond && !loop.has_bound)
      return d.is_named() ? loop.spatial : d.type(in.inputs[0]).dims[0];
    DimInfo info{.kind = DimInfo::Kind::found, .name = d.is_named() ? "steps" : ""};
    if (loop.spatial >= 0) {
      info.name = d.dim(loop.spatial).name;
      info.over = d.dim(loop.spatial).over;
    }
    for (const int dim : loop.cond_dims)
      if (!contains(info.over, dim)) info.over.push_back(dim);
    in.found = {d.new_dim(info)};
    return in.found[0];
  }
};

/// Returns the scan's spatial_dim. None for plain axes: the first one is scanned.
std::optional<Dim> spatial_dim(const Instruction& in, const Machine& machine) {
  if (machine.is_plain()) return {};
  if (in.loop.spatial >= 0) return machine.dim(in.loop.spatial);
  if (!machine.program().is_named || in.found.empty()) return {};
  return Dim(machine.program().dims[in.found[0]].name);
}

/// Runs a loop over the slices before `parts_at`, and another one over the others, which takes the
/// state of the first. In reverse, the other way round.
template <class Run>
Scanned<Tensors, State> in_two(const Tensors& xs, const State& initial,
                               const std::optional<Dim>& spatial, int parts_at, bool reverse,
                               const Run& run) {
  std::vector<Scanned<Tensors, State>> results;
  State state = initial;
  for (const bool is_first : {!reverse, reverse}) {
    std::optional<Dim> part;
    Tensors slices;
    for (const Tensor& x : xs) {
      const Axis axis = spatial ? Axis(*spatial) : Axis(0);
      slices.push_back(is_first ? slice(x, axis, 0, parts_at, part)
                                : slice(x, axis, parts_at, {}, part));
      if (spatial && !part) part = slices[0].dims()[find_axis(x.dims(), *spatial)];
    }
    results.push_back(run(slices, state, part));
    state = results.back().state;
  }
  if (reverse) std::swap(results[0], results[1]);
  Scanned<Tensors, State> result = results[1];
  result.state = state;
  for (std::size_t i = 0; i < result.ys.size(); ++i)
    result.ys[i] = concat({results[0].ys[i], results[1].ys[i]}, 0, spatial);
  return result;
}

void ScanRule::run(const Instruction& in, Machine& machine) const {
  const Parts parts = parts_of(in);
  const Block& body = in.blocks[0];
  const LoopForm& loop = in.loop;
  const CutByHand by_hand(in, machine);
  const auto call_body = [&](const Tensors& xs, const State& state) {
    const std::vector<int> slices(body.params.begin(), body.params.begin() + loop.xs);
    machine.assign(slices, State{xs, {}});
    machine.found(in.slices, slices);
    machine.assign({body.params.begin() + loop.xs, body.params.end()}, by_hand.cut(state));
    machine.run(body);
    const auto states = body.results.end() - loop.states;
    return std::pair{machine.gather({body.results.begin(), states}).tensors,
                     by_hand.counted(machine.gather({states, body.results.end()}), state)};
  };
  const auto call_cond = [&](const State& state) {
    machine.assign(in.blocks[1].params, by_hand.without_counters(state));
    machine.run(in.blocks[1]);
    return machine.tensor(in.blocks[1].results[0]);
  };
  const std::optional<Dim> spatial = spatial_dim(in, machine);
  std::optional<IterationCount> bound;
  if (loop.has_bound) bound = machine.tensor(in.inputs.back());
  const int truncate = loop.is_cut_by_hand ? 0 : loop.truncate;
  using Result = Scanned<Tensors, State>;
  const auto run = [&](const Tensors& xs, const State& initial,
                       const std::optional<Dim>& along) -> Result {
    if (loop.has_cond)
      return scan(Scan{.spatial_dim = along,
                       .cond_dims = machine.cond_dims(loop.cond_dims),
                       .cond_before_body = loop.cond_before_body,
                       .initial = initial,
                       .xs = xs,
                       .cond = call_cond,
                       .body = call_body,
                       .max_seq_len = bound,
                       .reverse = loop.reverse,
                       .checkpoint = checkpoint_of(in.policy),
                       .swap_memory = swap_memory_of(in.policy),
                       .truncate = truncate});
    return scan(Scan{.spatial_dim = along,
                     .initial = initial,
                     .xs = xs,
                     .body = call_body,
                     .max_seq_len = bound,
                     .reverse = loop.reverse,
                     .checkpoint = checkpoint_of(in.policy),
                     .swap_memory = swap_memory_of(in.policy),
                     .truncate = truncate});
  };
  Tensors xs = machine.gather(parts.xs).tensors;
  if (machine.is_plain()) xs = to_front(machine, parts.xs, loop.spatial);
  const State initial = by_hand.with_counters(machine.initial(parts.initial));
  const Result result = loop.parts_at < 0
                            ? run(xs, initial, spatial)
                            : in_two(xs, initial, spatial, loop.parts_at, loop.reverse, run);
  machine.assign(parts.ys, State{result.ys, {}});
  if (machine.is_plain())
    for (const int y : parts.ys) from_front(machine, y);
  machine.assign(parts.states, by_hand.without_counters(result.state));
  if (!in.found.empty()) machine.found(in.found[0], result.dim);
  machine.found(in.sliced, parts.ys);
}

void ScanRule::print(const Instruction& in, Printer& p) const {
  const Parts parts = parts_of(in);
  const Block& body = in.blocks[0];
  const LoopForm& loop = in.loop;
  const std::string name = "s" + std::to_string(in.outputs.at(0));
  p.line("const auto " + name + " = scan(Scan{");
  p.in();
  p.in();
  if (loop.spatial >= 0)
    p.line(".spatial_dim = " + p.dim(loop.spatial) + ",");
  else if (p.program().is_named && !in.found.empty())
    p.line(".spatial_dim = Dim(\"" + p.dim(in.found[0]) + "\"),");
  if (loop.has_cond) {
    p.line(".cond_dims = " + p.dims(loop.cond_dims) + ",");
    if (!loop.cond_before_body) p.line(".cond_before_body = false,");
  }
  p.line(".initial = State" + p.state(parts.initial) + ",");
  p.line(".xs = Tensors" + p.values(parts.xs) + ",");
  if (loop.has_cond) {
    p.line(".cond =");
    p.lambda("const State& s", "Tensor", in.blocks[1], "s", ",");
  }
  p.line(".body =");
  p.in();
  p.line("[&](const Tensors& x, const State& s) {");
  p.in();
  for (int i = 0; i < loop.xs; ++i) {
    p.define(body.params[i], "x[" + std::to_string(i) + "]");
    print_slices(p, in.slices, body.params[i]);
  }
  p.unpack({body.params.begin() + loop.xs, body.params.end()}, "s");
  p.body(body);
  const auto states = body.results.end() - loop.states;
  p.line("return std::pair{Tensors" + p.values({body.results.begin(), states}) + ", State" +
         p.state({states, body.results.end()}) + "};");
  p.out();
  p.line("},");
  p.out();
  const auto option = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) p.line("." + name + " = " + value + ",");
  };
  option("max_seq_len", loop.has_bound ? p.value(in.inputs.back()) : "");
  option("reverse", loop.reverse ? "true" : "");
  option("checkpoint", checkpoint_text(in.policy));
  option("swap_memory", swap_memory_text(in.policy));
  option("truncate", loop.truncate ? std::to_string(loop.truncate) : "");
  p.out();
  p.line("});");
  p.out();
  for (std::size_t i = 0; i < parts.ys.size(); ++i)
    p.define(parts.ys[i], name + ".ys[" + std::to_string(i) + "]");
  p.unpack(parts.states, name + ".state");
  if (!in.found.empty() && p.program().is_named)
    p.line("const Dim " + p.dim(in.found[0]) + " = " + name + ".dim;");
  for (const int y : parts.ys) print_slices(p, in.sliced, y);
}

}  // namespace

Rules scan_rules() {
  static const ScanRule scan_rule;
  return {&scan_rule};
}

}  // namespace reel::fuzz
