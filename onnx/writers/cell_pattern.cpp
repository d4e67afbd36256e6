#include "reel/onnx/writers/cell_pattern.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reel/core/op/attrs.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/onnx/writers/identity.h"

namespace reel::exported {
namespace {

using Pair = std::pair<ValueId, ValueId>;

/// The records of a graph by the values that they make.
class Makers {
 public:
  explicit Makers(const Graph& graph) : graph(graph), makers_(graph.types.size()) {
    for (const OpRecord& record : graph.records)
      for (const ValueId value : graph.outputs_of(record)) makers_[value] = &record;
  }
  /// Returns the record that makes a value; null for an input.
  const OpRecord* of(ValueId value) const { return makers_[value]; }
  /// Returns the value itself, or the one from which ops without an effect on elements made it.
  ValueId source_of(ValueId value) const {
    const OpRecord* record = of(value);
    while (record && returns_first_input(record->op->name)) {
      value = graph.inputs_of(*record)[0];
      record = of(value);
    }
    return value;
  }
  /// Returns the inputs of the op of this name that made the value, or nothing.
  std::optional<std::span<const ValueId>> inputs(ValueId value, std::string_view op) const {
    const OpRecord* const record = of(source_of(value));
    if (!record || record->op->name != op) return {};
    return graph.inputs_of(*record);
  }
  std::optional<ValueId> argument(ValueId value, std::string_view op) const {
    const auto in = inputs(value, op);
    return in ? std::optional((*in)[0]) : std::nullopt;
  }
  /// Returns both operands of the op, in both orders. Empty if another op made the value.
  std::vector<Pair> operands(ValueId value, std::string_view op) const {
    const auto in = inputs(value, op);
    if (!in) return {};
    return {{(*in)[0], (*in)[1]}, {(*in)[1], (*in)[0]}};
  }

  const Graph& graph;

 private:
  std::vector<const OpRecord*> makers_;
};

struct Range {
  std::int64_t begin, end;
};

/// A product of data with columns of a matrix.
struct Product {
  CellValue data;
  int contracted;  ///< axis of the data
  CellWeight matrix;
};
/// Terms that are added up to the argument of an activation.
struct Terms {
  std::vector<Product> products;
  std::vector<CellWeight> vectors;
  std::vector<ValueId> others;  ///< values of the body with all elements of the gate
};

class CellMatcher {
 public:
  CellMatcher(const LoopAttrs& attrs, const Graph& outside,
              const LoopOperands<const ValueId>& values)
      : attrs_(attrs),
        values_(values),
        body_(*attrs.body.graph),
        outside_(outside),
        in_(body_inputs_of(attrs, std::span(body_.graph.inputs))),
        out_(body_outputs_of(attrs, std::span(body_.graph.outputs))),
        is_weight_(body_.graph.types.size()) {
    for (const ValueId value : in_.captures) is_weight_[value] = true;
    for (const OpRecord& record : body_.graph.records) {
      const auto inputs = body_.graph.inputs_of(record);
      const bool is_weight = std::all_of(inputs.begin(), inputs.end(),
                                         [&](ValueId value) { return is_weight_[value]; });
      for (const ValueId value : body_.graph.outputs_of(record)) is_weight_[value] = is_weight;
    }
  }

  std::optional<StandardCell> match() {
    if (out_.carries.size() == 1) {
      for (const auto match : {&CellMatcher::match_rnn, &CellMatcher::match_gru}) {
        begin(0, 0);
        if ((this->*match)() && stacks_have_h()) return cell_;
      }
    } else if (out_.carries.size() == 2) {
      for (const std::size_t h : {0U, 1U}) {
        begin(h, 1 - h);
        if (match_lstm() && stacks_have_h()) return cell_;
      }
    }
    return {};
  }

 private:
  void begin(std::size_t h, std::size_t c) {
    cell_ = {};
    cell_.h = h;
    cell_.c = c;
    has_xs_ = false;
  }
  ValueId h() const { return in_.carries[cell_.h]; }
  ValueId c() const { return in_.carries[cell_.c]; }
  bool is(ValueId value, ValueId other) const {
    return body_.source_of(value) == body_.source_of(other);
  }
  bool stacks_have_h() const {
    const auto& stacks = out_.stacks;
    return std::all_of(stacks.begin(), stacks.end(),
                       [&](ValueId stack) { return is(stack, out_.carries[cell_.h]); });
  }

  // ---- Cells ------------------------------------------------------------------------------------

  bool match_rnn() {
    constexpr std::array<std::pair<const char*, const char*>, 3> kActivations{
        {{"tanh", "Tanh"}, {"relu", "Relu"}, {"sigmoid", "Sigmoid"}}};
    cell_.op = "RNN";
    for (const auto& [op, name] : kActivations)
      if (const auto sum = body_.argument(out_.carries[0], op)) {
        cell_.activations = {name};
        return add_gate(*sum, {});
      }
    return false;
  }

  /// c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c').
  bool match_lstm() {
    cell_.op = "LSTM";
    const ValueId next_h = out_.carries[cell_.h], next_c = out_.carries[cell_.c];
    for (const auto& [a, b] : body_.operands(next_h, "mul")) {
      const auto output = body_.argument(a, "sigmoid"), shown = body_.argument(b, "tanh");
      if (!output || !shown || !is(*shown, next_c)) continue;
      for (const auto& [kept, added] : body_.operands(next_c, "add"))
        for (const auto& [f, old] : body_.operands(kept, "mul"))
          for (const auto& [i, g] : body_.operands(added, "mul")) {
            const auto forget = body_.argument(f, "sigmoid"), input = body_.argument(i, "sigmoid"),
                       candidate = body_.argument(g, "tanh");
            if (!forget || !input || !candidate || !is(old, c())) continue;
            cell_.gates.clear();
            return add_gate(*input, c()) && add_gate(*output, next_c) && add_gate(*forget, c()) &&
                   add_gate(*candidate, {});
          }
    }
    return false;
  }

  /// h' = n + z (h - n), or (1 - z) n + z h.
  bool match_gru() {
    cell_.op = "GRU";
    const ValueId next = out_.carries[0];
    for (const auto& [n, moved] : body_.operands(next, "add"))
      for (const auto& [z, rest] : body_.operands(moved, "mul")) {
        const auto difference = body_.inputs(rest, "sub");
        if (difference && is((*difference)[0], h()) && is((*difference)[1], n)) return gru(z, n);
      }
    for (const auto& [fresh, kept] : body_.operands(next, "add"))
      for (const auto& [z, old] : body_.operands(kept, "mul"))
        for (const auto& [share, n] : body_.operands(fresh, "mul")) {
          const auto difference = body_.inputs(share, "sub");
          if (is(old, h()) && difference && is_one((*difference)[0]) && is((*difference)[1], z))
            return gru(z, n);
        }
    return false;
  }
  bool gru(ValueId z, ValueId n) {
    const auto update = body_.argument(z, "sigmoid"), candidate = body_.argument(n, "tanh");
    if (!update || !candidate) return false;
    Terms terms;
    CellGate gate;
    if (!add_terms(*candidate, terms)) return false;
    gate.biases = terms.vectors;
    ValueId reset = 0;
    if (terms.products.size() == 1 && terms.others.size() == 1) {
      const std::optional<ValueId> found = reset_of_product(terms.others[0], gate);
      if (!found || !take_input(terms.products[0], gate)) return false;
      reset = *found;
      cell_.resets_product = true;
    } else if (terms.products.size() == 2 && terms.others.empty()) {
      std::optional<ValueId> found = reset_of_state(terms.products[1]);
      const bool is_first = !found;
      if (is_first) found = reset_of_state(terms.products[0]);
      if (!found || !take_input(terms.products[is_first ? 1 : 0], gate)) return false;
      gate.recurrent = terms.products[is_first ? 0 : 1].matrix;
      reset = *found;
    } else {
      return false;
    }
    if (!add_gate(*update, {}) || !add_gate(reset, {})) return false;
    cell_.gates.push_back(gate);
    return true;
  }
  /// For σ(r) (h·recurrent + biases): sets the weights and returns r.
  std::optional<ValueId> reset_of_product(ValueId value, CellGate& gate) {
    for (const auto& [r, product] : body_.operands(value, "mul")) {
      const auto reset = body_.argument(r, "sigmoid");
      Terms terms;
      if (!reset || !add_terms(product, terms)) continue;
      if (terms.products.size() != 1 || !terms.others.empty() || !is_state(terms.products[0]))
        continue;
      gate.recurrent = terms.products[0].matrix;
      gate.recurrent_biases = terms.vectors;
      return reset;
    }
    return {};
  }
  /// For (σ(r) h)·recurrent: returns r.
  std::optional<ValueId> reset_of_state(const Product& product) {
    if (product.data.is_outside || product.contracted != rank_of_state() - 1) return {};
    for (const auto& [r, state] : body_.operands(product.data.value, "mul"))
      if (const auto reset = body_.argument(r, "sigmoid"); reset && is(state, h())) return reset;
    return {};
  }

  // ---- Gates ------------------------------------------------------------------------------------

  int rank_of_state() const { return body_.graph.types[h()].rank(); }
  bool is_state(const Product& product) const {
    return !product.data.is_outside && is(product.data.value, h()) &&
           product.contracted == rank_of_state() - 1;
  }
  bool is_one(ValueId value) const {
    const OpRecord* const record = body_.of(body_.source_of(value));
    if (!record || record->op != &full_op) return false;
    const FullAttrs& attrs = get<FullAttrs>(record->attrs.get());
    return attrs.number == 1;
  }

  /// Sets the input weight. Returns false unless the data are the xs of all gates.
  bool take_input(const Product& product, CellGate& gate) {
    ValueId xs = product.data.value;
    int in = product.contracted;
    if (!product.data.is_outside) {
      const std::optional<ValueId> slices = slices_of(xs);
      if (!slices) return false;
      xs = *slices;
      in += 1;
    }
    if (has_xs_ && (cell_.xs != xs || cell_.in != in)) return false;
    has_xs_ = true;
    cell_.xs = xs;
    cell_.in = in;
    gate.input = product.matrix;
    return true;
  }
  /// Returns the operand if the value is a slice of one, otherwise nothing.
  std::optional<ValueId> slices_of(ValueId value) const {
    const auto& slices = in_.slices;
    const auto found = std::find(slices.begin(), slices.end(), body_.source_of(value));
    if (found == slices.end()) return {};
    return values_.slices[static_cast<std::size_t>(found - slices.begin())];
  }

  /// Adds a gate; its activation reads the value. state: may be multiplied by a peephole.
  bool add_gate(ValueId value, std::optional<ValueId> state) {
    Terms terms;
    if (!add_terms(value, terms) || terms.products.size() != 2) return false;
    CellGate gate;
    const bool is_first = is_state(terms.products[0]);
    const Product &input = terms.products[is_first ? 1 : 0],
                  &recurrent = terms.products[is_first ? 0 : 1];
    if (!is_state(recurrent) || !take_input(input, gate)) return false;
    gate.recurrent = recurrent.matrix;
    gate.biases = terms.vectors;
    for (const ValueId other : terms.others) {
      if (!state || gate.peephole) return false;
      gate.peephole = peephole(other, *state);
      if (!gate.peephole) return false;
    }
    cell_.gates.push_back(std::move(gate));
    return true;
  }
  std::optional<CellWeight> peephole(ValueId value, ValueId state) const {
    for (const auto& [weight, other] : body_.operands(value, "mul"))
      if (is(other, state) && is_weight_[weight] && body_.graph.types[weight].rank() == 1)
        return CellWeight{{false, weight}, 0, 0, units()};
    return {};
  }
  std::int64_t units() const { return body_.graph.types[h()].dims().back().raw_size(); }

  // ---- Sums -------------------------------------------------------------------------------------

  /// Adds the terms of a value of the body with the gates along its last axis.
  bool add_terms(ValueId value, Terms& terms) const {
    return add_terms({false, value}, body_.graph.types[value].rank() - 1, {0, units()}, terms);
  }
  /// Adds the terms of elements in `range` along an axis of gates. Returns false for other values
  /// than sums of products, vectors and values with all gates.
  bool add_terms(CellValue at, int axis, Range range, Terms& terms) const {
    const Makers& makers = at.is_outside ? outside_ : body_;
    at.value = makers.source_of(at.value);
    const TensorType& type = makers.graph.types[at.value];
    if (axis < 0 || type.is_list() || type.dims()[static_cast<std::size_t>(axis)].raw_size() < 0)
      return false;
    if (type.rank() == 1 && is_weight(at)) {
      terms.vectors.push_back({at, 0, range.begin, range.end});
      return true;
    }
    if (!at.is_outside)
      if (const std::optional<ValueId> slices = slices_of(at.value))
        return add_terms({true, *slices}, axis + 1, range, terms);
    const OpRecord* const record = makers.of(at.value);
    if (!record) return false;
    const auto inputs = makers.graph.inputs_of(*record);
    const std::string_view op = record->op->name;
    if (op == "add") {
      for (const ValueId input : inputs) {
        const TensorType& from = makers.graph.types[input];
        const int its_axis = type.is_named()
                                 ? find(from.dims(), type.dims()[static_cast<std::size_t>(axis)])
                                 : axis - type.rank() + from.rank();
        if (!add_terms({at.is_outside, input}, its_axis, range, terms)) return false;
      }
      return true;
    }
    if (op == "split") {
      const SplitAttrs& attrs = get<SplitAttrs>(record->attrs.get());
      if (attrs.axis != axis) return false;
      const auto outputs = makers.graph.outputs_of(*record);
      const std::int64_t size = type.dims()[static_cast<std::size_t>(axis)].raw_size(),
                         begin = size * (std::find(outputs.begin(), outputs.end(), at.value) -
                                         outputs.begin());
      return add_terms({at.is_outside, inputs[0]}, axis, {begin + range.begin, begin + range.end},
                       terms);
    }
    if (op == "slice") {
      const SliceAttrs& attrs = get<SliceAttrs>(record->attrs.get());
      if (attrs.axis != axis || attrs.begin < 0 || attrs.step != 1) return false;
      return add_terms({at.is_outside, inputs[0]}, axis,
                       {attrs.begin + range.begin, attrs.begin + range.end}, terms);
    }
    if (op == "dot") return add_product(at, *record, axis, range, terms);
    const bool has_all =
        range.begin == 0 && range.end == type.dims()[static_cast<std::size_t>(axis)].raw_size();
    if (at.is_outside || !has_all) return false;
    terms.others.push_back(at.value);
    return true;
  }

  bool add_product(CellValue at, const OpRecord& record, int axis, Range range,
                   Terms& terms) const {
    const Graph& graph = at.is_outside ? outside_.graph : body_.graph;
    const DotAttrs& attrs = get<DotAttrs>(record.attrs.get());
    if (!attrs.a_batch.empty() || attrs.a_contract.size() != 1) return false;
    const auto inputs = graph.inputs_of(record);
    // The matrix is b, with the gates along the last axis of the product, or a.
    for (const std::size_t matrix : {1U, 0U}) {
      const CellValue weight{at.is_outside, inputs[matrix]},
          data{at.is_outside, inputs[1 - matrix]};
      const int contracted = matrix ? attrs.b_contract[0] : attrs.a_contract[0];
      const int gates = matrix ? graph.types[at.value].rank() - 1 : 0;
      const int of_data = matrix ? attrs.a_contract[0] : attrs.b_contract[0];
      if (graph.types[weight.value].rank() != 2 || !is_weight(weight) || axis != gates) continue;
      if (at.is_outside && of_data == 0) continue;  // the loop's dim
      terms.products.push_back({data, of_data, {weight, 1 - contracted, range.begin, range.end}});
      return true;
    }
    return false;
  }
  /// True for a value that all iterations share. Outside, the ranks of vectors and matrices exclude
  /// values along the loop's dim, since these have the axis of gates, too.
  bool is_weight(CellValue at) const { return at.is_outside || is_weight_[at.value]; }

  const LoopAttrs& attrs_;
  const LoopOperands<const ValueId>& values_;
  Makers body_, outside_;
  BodyInputs<const ValueId> in_;
  BodyOutputs<const ValueId> out_;
  std::vector<bool> is_weight_;  ///< by value of the body
  StandardCell cell_;
  bool has_xs_ = false;
};

}  // namespace

std::optional<StandardCell> find_standard_cell(const LoopAttrs& attrs, const Graph& outside,
                                               const LoopOperands<const ValueId>& values) {
  return CellMatcher(attrs, outside, values).match();
}

}  // namespace reel::exported
