// Rule for vmap: a block of instructions of one row, applied to all rows.
#include "reel/frontend/transforms/vmap.h"

#include <algorithm>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/mode.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"
#include "reel/tests/fuzz/relations/plain_form.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 1;

/// in.axes: the dim of the rows, or 0 if axes are plain. Inputs: tensors with that dim. Named
/// inputs may lack it: they are the same in every row.
class VmapRule : public Rule {
 public:
  VmapRule() : Rule("vmap", 25) {}

  bool draft(Drafter& d, Instruction& in) const override {
    if (d.depth() > kDeepest) return false;
    const int rows = choose_inputs(d, in);
    if (rows < 0 || !std::all_of(in.inputs.begin(), in.inputs.end(),
                                 [&](int input) { return has_lengths(d, input, rows); }))
      return false;
    in.control = Control::vmap;
    std::vector<int> wholes;
    for (const int input : in.inputs)
      if (contains(d.type(input).dims, rows))
        for (const int dim : dims_running_over(d.program(), d.type(input).dims, rows))
          if (!contains(wholes, dim)) wholes.push_back(dim);
    in.slices = make_slices(d, wholes, rows, {});
    std::vector<ValueType> types;
    for (const int input : in.inputs) types.push_back(row_of(d, in, input));
    in.blocks.push_back(d.block(types, [&](Block& f) {
      for (const SlicedDim& sliced : in.slices) d.show_dim(sliced.slice);
      d.write(d.random().between(1, 5));
      // An unchanged row is left out: in a trace it is still a table of gradients by rows.
      const int y =
          d.pick([&](int v) { return !contains(f.params, v) && can_come_out(d, in, rows, v); });
      if (y >= 0) f.results = {y};
    }));
    if (in.blocks[0].results.empty()) return false;
    ValueType type = d.type(in.blocks[0].results[0]);
    type.dims = to_wholes(type.dims, in.slices);
    type.dims.insert(type.dims.begin(), rows);
    in.outputs = {d.new_value(type)};
    return true;
  }

  void run(const Instruction& in, Machine& machine) const override {
    const Block& block = in.blocks[0];
    const auto f = [&](const Tensors& rows) {
      machine.assign(block.params, State{rows, {}});
      machine.found(in.slices, block.params);
      machine.run(block);
      return machine.tensor(block.results[0]);
    };
    Tensors rows = machine.gather(in.inputs).tensors;
    std::optional<Dim> dim;
    if (machine.is_plain())
      rows = to_front(machine, in.inputs, in.axes[0]);
    else if (machine.program().is_named)
      dim = machine.dim(in.axes[0]);
    if (machine.watches() && may_have_empty_entry(rows[0], dim)) machine.hides_values();
    machine[in.outputs[0]] = vmap(f, dim)(rows);
    if (machine.is_plain()) from_front(machine, in.outputs[0]);
  }

  void print(const Instruction& in, Printer& p) const override {
    const Block& block = in.blocks[0];
    const std::string number = std::to_string(in.outputs[0]), rows = "rows" + number;
    p.line("const auto f" + number + " = [&](const Tensors& " + rows + ") -> Tensor {");
    p.in();
    for (std::size_t i = 0; i < block.params.size(); ++i) {
      p.define(block.params[i], rows + "[" + std::to_string(i) + "]");
      print_slices(p, in.slices, block.params[i]);
    }
    p.body(block);
    p.line("return " + p.value(block.results[0]) + ";");
    p.out();
    p.line("};");
    const std::string dim = p.program().is_named ? ", " + p.dim(in.axes[0]) : "";
    p.define(in.outputs[0], "vmap(f" + number + dim + ")(Tensors" + p.values(in.inputs) + ")");
  }

 private:
  /// True if an entry has no rows, or if only a run knows.
  static bool may_have_empty_entry(const Tensor& rows, const std::optional<Dim>& dim) {
    const ModeScope aside({});  // reading lengths must not count as an op of a scan's body
    if (rows.is_traced()) return true;
    if (!dim || !dim->is_ragged()) return rows.shape()[dim ? find_axis(rows.dims(), *dim) : 0] == 0;
    const Tensor lengths = dim->lengths();
    if (lengths.is_traced()) return true;
    const std::vector<int> all = lengths.to_vector<int>();
    return std::find(all.begin(), all.end(), 0) != all.end();
  }

  /// Returns the dim of the rows; -1 if nothing fits.
  static int choose_inputs(Drafter& d, Instruction& in) {
    const auto fits = [&](int v) { return !d.type(v).is_array && d.rank(v) > 0; };
    const int x = d.pick(fits);
    if (x < 0) return -1;
    const int axis = d.is_named() ? d.type(x).dims[d.random().below(d.rank(x))] : 0;
    const int rows = d.dim_at(x, axis);
    if (!is_subset(d.dim(rows).over, d.type(x).dims)) return -1;
    in.axes = {axis};
    in.inputs = {x};
    if (!d.random().chance(50)) return rows;
    const int other = d.pick([&](int v) {
      if (v == x || d.type(v).is_array) return false;
      if (!d.is_named()) return d.rank(v) > 0 && d.type(v).dims[0] == rows;
      return is_subset(d.dim(rows).over, d.type(v).dims);
    });
    if (other >= 0) in.inputs.push_back(other);
    return rows;
  }

  /// True if the value has all dims of lengths that run over the rows.
  static bool has_lengths(Drafter& d, int value, int rows) {
    const std::vector<int>& dims = d.type(value).dims;
    return std::all_of(dims.begin(), dims.end(), [&](int dim) {
      const std::vector<int>& over = d.dim(dim).over;
      return !contains(over, rows) || is_subset(over, dims);
    });
  }

  static ValueType row_of(Drafter& d, const Instruction& in, int input) {
    ValueType type = d.type(input);
    if (d.is_named())
      std::erase(type.dims, in.axes[0]);
    else
      type.dims.erase(type.dims.begin());
    type.dims = to_slices(type.dims, in.slices);
    return type;
  }

  /// Returns true for a real value without the dim of the rows, dims of its origin, and dims that
  /// were made in the block. A slice comes out with the slices that its lengths run over.
  static bool can_come_out(Drafter& d, const Instruction& in, int rows, int value) {
    const std::vector<int>& dims = d.type(value).dims;
    if (d.type(value).is_array || d.type(value).element != Element::real || dims.size() > 3)
      return false;
    const auto is_slice = [&](int dim) {
      return std::any_of(in.slices.begin(), in.slices.end(),
                         [&](const SlicedDim& sliced) { return sliced.slice == dim; });
    };
    return std::all_of(dims.begin(), dims.end(), [&](int dim) {
      const DimInfo& info = d.program().dims[dim];
      // A size that a row finds may differ between rows.
      if (!d.is_named()) return info.kind != DimInfo::Kind::found;
      if (origin_of(d.program(), dim) == origin_of(d.program(), rows)) return false;
      if (is_slice(dim))
        return std::all_of(info.over.begin(), info.over.end(),
                           [&](int over) { return !is_slice(over) || contains(dims, over); });
      if (contains(info.over, rows)) return false;  // it would get lengths that it has not here
      return info.kind != DimInfo::Kind::found || contains(d.outer_dims(), dim);
    });
  }
};

}  // namespace

Rules vmap_rules() {
  static const VmapRule vmap_rule;
  return {&vmap_rule};
}

}  // namespace reel::fuzz
