#include "reel/onnx/writers/recurrent_writer.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/onnx/writers/cell_pattern.h"
#include "reel/onnx/writers/loop_parts.h"

namespace reel::exported {
namespace {

class RecurrentWriter : LoopParts {
 public:
  explicit RecurrentWriter(const WriteCall& call)
      : LoopParts(call),
        body_(model_, to_.nodes(), *attrs_.body.graph, &to_, body_env(attrs_, operand_types_)) {}

  std::optional<Names> write() {
    if (!is_plain_scan()) return {};
    const std::optional<StandardCell> cell = find_standard_cell(attrs_, to_.graph(), values_);
    if (!cell) return {};
    cell_ = *cell;
    if (!find_batch()) return {};
    const auto captures = body_inputs(attrs_).captures;
    for (std::size_t i = 0; i < captures.size(); ++i)
      body_.set(captures[i], captured(attrs_.body_captures[i]));
    return write_node();
  }

 private:
  /// True for a scan over the whole of its dim, in f32, without a condition and without residuals.
  bool is_plain_scan() const {
    const auto is_output = [](const LoopStack& stack) {
      return stack.role == StackRole::output && !stack.is_list && !stack.adds_finished;
    };
    const auto is_f32 = [](const TensorType& type) {
      return !type.is_list() && type.dtype() == f32 && type.rank() > 0;
    };
    const TripCount& trips = attrs_.trips;
    return model_.options().recurrent_nodes && !attrs_.cond && trips.is_full && !trips.makes_dim &&
           attrs_.sums.empty() && !values_.chunk && !attrs_.has_windows() &&
           !to_.is_read(results_.trips) &&
           (values_.lengths ? !trips.is_reverse : !attrs_.has_entries()) &&
           attrs_.slices.size() == 1 &&
           std::all_of(attrs_.stacks.begin(), attrs_.stacks.end(), is_output) &&
           std::all_of(types_.carries.begin(), types_.carries.end(), is_f32) &&
           std::all_of(types_.slices.begin(), types_.slices.end(), is_f32);
  }

  /// Sets the dims of entries, and the order of the axes of xs: time, entries, features. Returns
  /// false if xs and states have other entries.
  bool find_batch() {
    const TensorType& state = types_.carries[cell_.h];
    const TensorType& xs = to_.type(cell_.xs);
    batch_ = state.dims();
    batch_.pop_back();
    if (xs.rank() != static_cast<int>(batch_.size()) + 2) return false;
    order_ = {0};
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      int axis = static_cast<int>(i) + 1;
      if (batch_[i].is_named())
        axis = find(xs.dims(), batch_[i]);
      else if (!(xs.dims()[static_cast<std::size_t>(axis)] == batch_[i]))
        return false;
      if (axis < 1 || axis == cell_.in) return false;
      order_.push_back(axis);
    }
    order_.push_back(cell_.in);
    const Dims& entries = attrs_.entries.dims;
    return std::all_of(entries.begin(), entries.end(),
                       [&](const Dim& dim) { return contains(batch_, dim); });
  }

  Names write_node() {
    const bool is_lstm = cell_.op == "LSTM";
    Names inputs{data(),    weights(&CellGate::input), weights(&CellGate::recurrent), biases(),
                 lengths(), initial(cell_.h)};
    if (is_lstm) {
      inputs.push_back(initial(cell_.c));
      inputs.push_back(peepholes());
    }
    while (inputs.back().empty()) inputs.pop_back();
    Attributes attributes{{"hidden_size", integer(units())}};
    if (!cell_.activations.empty()) attributes.emplace("activations", texts(cell_.activations));
    if (attrs_.trips.is_reverse) attributes.emplace("direction", text("reverse"));
    if (cell_.resets_product) attributes.emplace("linear_before_reset", integer(1));
    const Names made = to_.add(cell_.op, inputs, is_lstm ? 3 : 2, attributes);

    Names names(results_.carries.size());
    names[cell_.h] = result(made[1], {0}, to_.type(results_.carries[cell_.h]));
    if (is_lstm) names[cell_.c] = result(made[2], {0}, to_.type(results_.carries[cell_.c]));
    for (const ValueId stack : results_.stacks)
      names.push_back(result(made[0], {1}, to_.type(stack)));
    names.emplace_back();  // the trip count, which nothing reads
    return names;
  }

  // ---- Entries: ONNX has one axis of them -------------------------------------------------------

  /// Returns the number of all entries: i64[1].
  Name entry_count() {
    std::int64_t count = 1;
    for (const Dim& dim : batch_) count *= std::max(known_size(dim), std::int64_t{0});
    const bool is_known = std::all_of(batch_.begin(), batch_.end(),
                                      [](const Dim& dim) { return known_size(dim) >= 0; });
    if (is_known) return model_.integers({count});
    return to_.add("ReduceProd", {to_.shape(batch_)}, {{"axes", integers(std::vector<int>{0})}});
  }
  /// Returns x with one axis for its entries, which are between the dims `front` and `back`.
  Name merged(const Name& x, const Dims& front, const Dims& back) {
    if (batch_.size() == 1) return x;
    if (batch_.empty()) return to_.unsqueeze(x, {static_cast<int>(front.size())});
    Names sizes;
    if (!front.empty()) sizes.push_back(to_.shape(front));
    sizes.push_back(entry_count());
    if (!back.empty()) sizes.push_back(to_.shape(back));
    return to_.add("Reshape", {x, to_.concat(sizes, 0)}, {{"allowzero", integer(1)}});
  }
  /// Returns a result without the axis of directions, and with the axes of its type.
  Name result(const Name& made, int directions, const TensorType& type) {
    if (batch_.empty()) return to_.squeeze(made, {directions, directions + 1});
    const Name one_batch = to_.squeeze(made, {directions});
    return batch_.size() == 1 ? one_batch
                              : to_.add("Reshape", {one_batch, to_.shape(type.dims())},
                                        {{"allowzero", integer(1)}});
  }

  // ---- Operands ---------------------------------------------------------------------------------

  Name data() {
    const Dims& dims = to_.type(cell_.xs).dims();
    return merged(to_.transpose(to_.name(cell_.xs), order_), {dims[0]},
                  {dims[static_cast<std::size_t>(cell_.in)]});
  }
  Name initial(std::size_t carry) {
    return to_.unsqueeze(
        merged(to_.name(values_.carries[carry]), {}, {types_.carries[carry].dims().back()}), {0});
  }
  Name lengths() {
    if (!values_.lengths) return "";
    const Dims& dims = types_.lengths->dims();
    Name result = to_.cast(to_.name(*values_.lengths), i32);
    if (dims != batch_) result = to_.expand(to_.aligned(result, dims, batch_), batch_);
    return merged(result, {}, {});
  }

  // ---- Weights ----------------------------------------------------------------------------------

  const TensorType& type_of(const CellValue& at) const {
    return at.is_outside ? to_.type(at.value) : body_.type(at.value);
  }
  /// Returns the name of a weight. Weights that the body computes are computed before the node.
  Name name_of(const CellValue& at) {
    return at.is_outside ? to_.name(at.value) : body_.name_after_writing(at.value);
  }
  Name elements_of(const CellWeight& weight) {
    const Name whole = name_of(weight.of);
    const std::int64_t size =
        known_size(type_of(weight.of).dims()[static_cast<std::size_t>(weight.axis)]);
    if (weight.begin == 0 && weight.end == size) return whole;
    return to_.add("Slice", {whole, model_.integers({weight.begin}), model_.integers({weight.end}),
                             model_.integers({static_cast<std::int64_t>(weight.axis)})});
  }
  /// Returns the parts one behind another, in one piece where they are neighbours in one weight.
  Name joined(const std::vector<CellWeight>& parts) {
    std::vector<CellWeight> runs;
    for (const CellWeight& part : parts) {
      CellWeight* const last = runs.empty() ? nullptr : &runs.back();
      if (last && last->of == part.of && last->axis == part.axis && last->end == part.begin)
        last->end = part.end;
      else
        runs.push_back(part);
    }
    Names names;
    for (const CellWeight& run : runs) {
      const Name name = elements_of(run);
      names.push_back(run.axis == 1 ? to_.transpose(name, {1, 0}) : name);
    }
    return to_.concat(names, 0);
  }

  /// Returns the matrices of all gates: [1, gates · units, in].
  Name weights(CellWeight CellGate::*matrix) {
    std::vector<CellWeight> parts;
    for (const CellGate& gate : cell_.gates) parts.push_back(gate.*matrix);
    return to_.unsqueeze(joined(parts), {0});
  }
  Name peepholes() {
    std::vector<CellWeight> parts;
    for (const CellGate& gate : cell_.gates)
      if (gate.peephole) parts.push_back(*gate.peephole);
    return parts.empty() ? "" : to_.unsqueeze(joined(parts), {0});
  }
  /// Returns the biases of all gates: [1, 2 · gates · units], for the inputs and for the state.
  Name biases() {
    const auto has_none = [](const CellGate& gate) {
      return gate.biases.empty() && gate.recurrent_biases.empty();
    };
    if (std::all_of(cell_.gates.begin(), cell_.gates.end(), has_none)) return "";
    return to_.unsqueeze(
        to_.concat({bias(&CellGate::biases), bias(&CellGate::recurrent_biases)}, 0), {0});
  }
  Name bias(std::vector<CellWeight> CellGate::*vectors) {
    const auto has_one = [&](const CellGate& gate) { return (gate.*vectors).size() == 1; };
    if (std::all_of(cell_.gates.begin(), cell_.gates.end(), has_one)) {
      std::vector<CellWeight> parts;
      for (const CellGate& gate : cell_.gates) parts.push_back((gate.*vectors)[0]);
      return joined(parts);
    }
    const Name none = model_.constant(zeros({units()}));
    Names sums;
    for (const CellGate& gate : cell_.gates) {
      Name sum;
      for (const CellWeight& vector : gate.*vectors)
        sum = sum.empty() ? elements_of(vector) : to_.add("Add", {sum, elements_of(vector)});
      sums.push_back(sum.empty() ? none : sum);
    }
    return to_.concat(sums, 0);
  }
  std::int64_t units() const { return known_size(types_.carries[cell_.h].dims().back()); }

  GraphWriter body_;  ///< of weights that the body computes: its nodes precede the node
  StandardCell cell_;
  Dims batch_;              ///< of entries, in the order of the states
  std::vector<int> order_;  ///< of the axes of xs
};

}  // namespace

std::optional<Names> write_recurrent(const WriteCall& call) {
  return RecurrentWriter(call).write();
}

}  // namespace reel::exported
