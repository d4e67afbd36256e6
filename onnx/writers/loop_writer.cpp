#include "reel/onnx/writers/loop_writer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "reel/core/ops.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writers/entries.h"
#include "reel/onnx/writers/lists.h"
#include "reel/onnx/writers/loop_parts.h"

namespace reel::exported {
namespace {

class LoopWriter : LoopParts {
 public:
  explicit LoopWriter(const WriteCall& call)
      : LoopParts(call),
        inner_(model_, "body"),
        types_inside_(operand_types_inside()),
        body_(model_, inner_.nodes(), *attrs_.body.graph, &to_, body_env(attrs_, types_inside_)) {}

  Names write() {
    check_expressible(body_);
    set_limit();
    begin();
    write_body();
    return finish();
  }

 private:
  /// One state of the Loop.
  struct State {
    TensorType type;
    Name initial, inside, next;
  };
  /// Lengths of a dim that changes in iterations, such as a history's dim. A tensor only shows the
  /// size of the dim.
  struct CarriedLengths {
    std::size_t carry, axis;  ///< a carry that has the dim, and its axis
    State* state;
  };

  /// Returns the types of the operands. If dims of a carry change in iterations, it has the body's
  /// dims.
  std::vector<TensorType> operand_types_inside() {
    std::vector<TensorType> types = operand_types_;
    const auto carries = operands_of(attrs_, types).carries;
    const auto formal = body_inputs(attrs_).carries;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      Dims dims = carries[i].dims();
      const Dims &inside = attrs_.body.graph->types[formal[i]].dims(),
                 &behind = to_.type(results_.carries[i]).dims();
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (!(dims[axis] == behind[axis])) dims[axis] = inside[axis];
      carries[i] = carries[i].with(dims);
    }
    return types;
  }

  // ---- The trip count ---------------------------------------------------------------------------

  /// Sets limit_ to the largest number of iterations (i64), or leaves it empty.
  void set_limit() {
    Names limits;
    if (values_.bound) {
      const Name bound = to_.cast(to_.name(*values_.bound), i64);
      limits.push_back(to_.add("Max", {bound, model_.integer(0)}));
    }
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < values_.slices.size(); ++i) {
      if (types_.slices[i].is_list()) continue;
      const Dim& dim = types_.slices[i].dims()[0];
      if (std::find(dims.begin(), dims.end(), dim) != dims.end()) continue;
      dims.push_back(dim);
      limits.push_back(to_.squeeze(to_.size(dim), {0}));
    }
    for (std::size_t i = 0; i < values_.slices.size() && limits.empty(); ++i)
      limits.push_back(to_.squeeze(list_size(to_, to_.name(values_.slices[i])), {0}));
    if (values_.lengths && !has_cond())
      limits.push_back(to_.squeeze(to_.largest(to_.name(*values_.lengths)), {0}));
    if (limits.size() == 1)
      limit_ = limits[0];
    else if (!limits.empty())
      limit_ = to_.add("Min", limits);
  }

  /// Returns the largest number of iterations, or -1 if the model does not tell it.
  std::int64_t known_limit() const {
    std::int64_t known = -1;
    if (values_.bound)
      if (const auto bound = model_.known_integer(to_.name(*values_.bound)))
        known = std::max<std::int64_t>(*bound, 0);
    for (const TensorType& slice : types_.slices)
      if (!slice.is_list() && known_size(slice.dims()[0]) >= 0)
        known =
            known < 0 ? known_size(slice.dims()[0]) : std::min(known, known_size(slice.dims()[0]));
    return known;
  }
  /// Makes the numbers of draws inputs with an axis for the values of this position.
  /// more: number of values beyond one for each iteration.
  void add_position(const Name& position, std::int64_t more = 0) {
    if (model_.options().draws != OnnxDraws::inputs) return;
    imported::Declared::Size count;
    if (const std::int64_t known = known_limit(); known >= 0)
      count.size = known + more;
    else
      count.name = model_.unique_size_name("iterations");
    model_.add_position(position, {std::move(count)});
  }
  /// Returns the position at which the condition is evaluated before the loop. If draws are inputs,
  /// it differs from other zeros.
  Name first_position() {
    if (model_.options().draws != OnnxDraws::inputs) return model_.integer(0);
    const Name first = to_.add("Identity", {model_.integer(0)});
    add_position(first, 1);
    return first;
  }

  // ---- State ------------------------------------------------------------------------------------

  State& add_state(const TensorType& type, const Name& initial, const std::string& name) {
    const Name inside = inner_.add_input(body_, name, type);
    if (model_.fixed_lists.count(initial)) model_.fixed_lists.insert(inside);
    return states_.emplace_back(State{type, initial, inside, {}});
  }
  bool wants_trips() const { return to_.is_read(results_.trips) || results_.token; }
  bool has_cond() const { return attrs_.cond && !attrs_.trips.is_reverse; }
  bool counts() const { return wants_trips() && (has_cond() || limit_.empty()); }
  bool is_active_carried() const { return has_cond() && attrs_.trips.is_scan; }

  /// Adds all states, with their values before the first iteration.
  void begin() {
    const auto inside = operands_of(attrs_, types_inside_).carries;
    std::size_t axes = 0;
    for (const TensorType& type : inside) axes += type.dims().size();
    states_.reserve(attrs_.carries.size() + attrs_.sums.size() + attrs_.stacks.size() + 3 + axes);
    iteration_ = inner_.add_input(body_, "iteration", TensorType(i64));
    inner_.add_input(body_, "condition", TensorType(boolean));
    for (std::size_t i = 0; i < values_.carries.size(); ++i)
      add_state(leaving_type(inside[i]), leaving(to_, values_.carries[i]), "state");
    for (const ValueId sum : results_.sums) {
      const TensorType& type = to_.type(sum);
      const Name zero = type.is_list() ? empty_list(to_, type)
                        : type.rank()  ? to_.expand(model_.number(0, type.dtype()), type.dims())
                                       : model_.number(0, type.dtype());
      add_state(type, zero, "sum");
    }
    for (std::size_t i = 0; i < results_.stacks.size(); ++i) {
      joined_.push_back(nullptr);
      if (is_joined(i)) joined_[i] = &add_joined(to_.type(results_.stacks[i]).element());
    }
    if (counts()) count_ = &add_state(TensorType(i32), model_.integer(0, i32), "count");
    if (attrs_.makes_lengths()) {
      const TensorType type(i32, attrs_.entries.dims);
      reached_ = &add_state(type, to_.expand(model_.integer(0, i32), type.dims()), "reached");
    }
    add_lengths();
    if (has_cond()) begin_condition();
  }

  /// Adds a state for elements that are joined along their first axis.
  State& add_joined(const TensorType& element) {
    Dims dims = element.dims(), none = dims;
    dims[0] = Dim::unknown();
    none[0] = Dim(0);
    const Name empty = model_.constant(zeros(none, element.dtype()));
    return add_state(TensorType(element.dtype(), dims), empty, "joined");
  }

  /// Adds states for the lengths of dims that change, unless the loop carries their tokens.
  void add_lengths() {
    const auto formal = body_inputs(attrs_).carries;
    std::vector<Dim> carried;
    for (const ValueId value : formal)
      if (is_token(body_.type(value))) carried.push_back(body_.type(value).dims()[1]);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      const Dims &inside = body_.type(formal[i]).dims(), &before = types_.carries[i].dims(),
                 &behind = to_.type(results_.carries[i]).dims();
      for (std::size_t axis = 0; axis < inside.size(); ++axis) {
        const bool changes = !(before[axis] == behind[axis]);
        if (!changes || !inside[axis].is_ragged() || contains(carried, inside[axis])) continue;
        carried.push_back(inside[axis]);
        const TensorType type(i32, before[axis].length_dims());
        lengths_.push_back({i, axis, &add_state(type, to_.lengths(before[axis]), "lengths")});
      }
    }
  }

  void begin_condition() {
    Names carries, lengths;
    for (std::size_t i = 0; i < values_.carries.size(); ++i) carries.push_back(states_[i].initial);
    for (const CarriedLengths& of : lengths_) lengths.push_back(of.state->initial);
    if (!is_active_carried()) {
      go_ = as_scalar(to_, condition(to_.nodes(), first_position(), carries, lengths));
      return;
    }
    const TensorType type(boolean, attrs_.entries.dims);
    const Name yes = model_.constant(full({}, true, boolean));
    Name active = type.rank() ? to_.expand(yes, type.dims()) : yes;
    if (attrs_.trips.cond_before_body)
      active = ordered_condition(to_, condition(to_.nodes(), first_position(), carries, lengths));
    active = without_padding(active);
    active_ = &add_state(type, active, "active");
    Name running = active;
    if (values_.lengths) running = to_.add("And", {running, is_within(to_, model_.integer(0))});
    go_ = any_of(to_, running);
  }

  /// Adds the nodes of the condition to a list and returns its result.
  Name condition(std::vector<Node>& nodes, const Name& trips, const Names& carries,
                 const Names& lengths) {
    const Graph& graph = *attrs_.cond.graph;
    GraphWriter writer(model_, nodes, graph, &to_, cond_env(attrs_, operand_types_));
    const auto inputs = cond_inputs(attrs_);
    writer.set(inputs.trips, trips);
    for (std::size_t i = 0; i < inputs.carries.size(); ++i)
      enter(writer, inputs.carries[i], carries[i]);
    for (std::size_t i = 0; i < lengths_.size(); ++i)
      writer.set_lengths(dim_of(writer, inputs.carries, lengths_[i]), lengths[i]);
    for (std::size_t i = 0; i < inputs.captures.size(); ++i)
      writer.set(inputs.captures[i], captured(attrs_.cond_captures[i]));
    writer.write_records();
    condition_type_ = writer.type(graph.outputs[0]);
    return writer.name(graph.outputs[0]);
  }
  static const Dim& dim_of(const GraphWriter& at, std::span<const ValueId> carries,
                           const CarriedLengths& lengths) {
    return at.type(carries[lengths.carry]).dims()[lengths.axis];
  }
  /// Returns the condition with the dims of the entries in their order.
  Name ordered_condition(GraphWriter& at, const Name& condition) {
    if (!attrs_.has_entries()) return as_scalar(at, condition);
    const Dims& dims = condition_type_.dims();
    std::vector<int> order;
    for (const Dim& dim : attrs_.entries.dims) order.push_back(find(dims, dim));
    const bool is_known = std::find(order.begin(), order.end(), -1) == order.end();
    return is_known ? at.transpose(condition, order) : condition;
  }
  Name as_scalar(GraphWriter& at, const Name& condition) {
    if (!condition_type_.rank()) return condition;
    return at.add("Reshape", {condition, model_.integers(std::vector<std::int64_t>{})});
  }
  /// Returns a mask of entries, outside of the loop, with false in padding.
  Name without_padding(Name mask) {
    const Dims& entries = attrs_.entries.dims;
    for (const Dim& dim : entries) {
      if (!dim.is_ragged()) continue;
      Dims dims = dim.length_dims();
      dims.push_back(dim);
      mask = to_.add("And", {mask, to_.aligned(to_.mask(dim), dims, entries)});
    }
    return mask;
  }
  /// Returns the mask of entries with lengths above a position.
  Name is_within(GraphWriter& at, const Name& position) {
    const TensorType& type = *types_.lengths;
    if (entry_lengths_.empty())
      entry_lengths_ =
          to_.mask_padding(to_.name(*values_.lengths), type, model_.number(0, type.dtype()));
    return at.add("Less", {at.cast(position, type.dtype()), entry_lengths_});
  }
  Name any_of(GraphWriter& at, const Name& running) {
    std::vector<int> axes(attrs_.entries.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    return at.any(running, axes);
  }

  // ---- The body ---------------------------------------------------------------------------------

  void write_body() {
    position_ = iteration_;
    if (attrs_.trips.is_reverse)
      position_ = body_.add("Sub", {to_.add("Sub", {limit_, model_.integer(1)}), iteration_});
    add_position(position_);
    if (attrs_.has_entries()) set_running();
    enter_inputs();
    body_.write_records();
    const auto outputs = body_outputs(attrs_);
    write_carries(outputs.carries);
    for (std::size_t i = 0; i < outputs.sums.size(); ++i) {
      const TensorType& type = to_.type(results_.sums[i]);
      const Name term = this->term(outputs.sums[i], type, attrs_.sums[i].adds_finished, false);
      State& sum = states_[attrs_.carries.size() + i];
      // onnxruntime takes an Add of a constant without elements for the identity, and fails.
      sum.next = type.is_list()         ? add_lists(body_, sum.inside, term, type)
                 : is_known_empty(type) ? sum.inside
                                        : body_.add("Add", {sum.inside, term});
    }
    if (count_) count_->next = body_.add("Add", {count_->inside, model_.integer(1, i32)});
    if (reached_) reached_->next = body_.add("Add", {reached_->inside, body_.cast(running_, i32)});
    const Name again = write_condition();
    inner_.add_output(body_, again, TensorType(boolean));
    for (std::size_t i = 0; i < joined_.size(); ++i) {
      if (!joined_[i]) continue;
      State& state = *joined_[i];
      const LoopStack& stack = attrs_.stacks[i];
      const Name element = term(outputs.stacks[i], slice_type(to_.type(results_.stacks[i])),
                                stack.adds_finished, stack.is_raw());
      state.next = body_.concat(
          attrs_.trips.is_reverse ? Names{element, state.inside} : Names{state.inside, element}, 0);
    }
    for (const State& state : states_) inner_.add_output(body_, state.next, state.type);
    for (std::size_t i = 0; i < outputs.stacks.size(); ++i) {
      if (joined_[i]) continue;
      const TensorType type = slice_type(to_.type(results_.stacks[i]));
      inner_.add_output(
          body_,
          term(outputs.stacks[i], type, attrs_.stacks[i].adds_finished, attrs_.stacks[i].is_raw()),
          leaving_type(type));
    }
  }

  /// Sets the mask of running entries.
  void set_running() {
    if (values_.lengths) running_ = is_within(body_, position_);
    if (active_)
      running_ = running_.empty() ? active_->inside : body_.add("And", {running_, active_->inside});
    entries_.emplace(body_, running_, attrs_.entries.dims);
  }

  Name seen(const Name& x, const TensorType& type, FinishedFill fill) {
    return entries_ ? entries_->seen(x, type, fill) : x;
  }

  void enter_inputs() {
    const auto inputs = body_inputs(attrs_);
    body_.set(inputs.position, position_);
    for (std::size_t i = 0; i < inputs.carries.size(); ++i)
      enter(body_, inputs.carries[i],
            seen(states_[i].inside, states_[i].type, attrs_.carries[i].fill));
    for (const CarriedLengths& of : lengths_)
      body_.set_lengths(dim_of(body_, inputs.carries, of), of.state->inside);
    for (std::size_t i = 0; i < inputs.slices.size(); ++i) {
      Name slices = to_.name(values_.slices[i]);
      if (types_.slices[i].is_list())
        slices =
            padded_list(to_, slices, leaving_type(types_.slices[i]), to_.unsqueeze(limit_, {0}));
      const Name slice = body_.add("Gather", {slices, position_}, {{"axis", integer(0)}});
      enter(body_, inputs.slices[i],
            seen(slice, leaving_type(slice_type(types_.slices[i])), attrs_.slices[i].fill));
    }
    for (std::size_t i = 0; i < inputs.captures.size(); ++i) {
      const auto from = static_cast<std::size_t>(attrs_.body_captures[i]);
      const Name name = captured(attrs_.body_captures[i]);
      body_.set(
          inputs.captures[i],
          name.empty() ? name : seen(name, types_.captures[from], attrs_.captures[from].fill));
    }
  }

  void write_carries(std::span<const ValueId> outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      State& state = states_[i];
      state.next = leaving(body_, outputs[i]);
      if (model_.fixed_lists.count(state.inside) && !model_.fixed_lists.count(state.next))
        throw NotExpressible{"an array that cannot grow is replaced by another one"};
      if (!entries_) continue;
      const LoopCarry& carry = attrs_.carries[i];
      if (carry.adds_finished) state.next = entries_->collected(state.next, state.type);
      if (carry.fill != FinishedFill::as_is)
        state.next = entries_->keep_finished(state.next, state.inside, state.type);
    }
    for (const CarriedLengths& of : lengths_) {
      State& state = *of.state;
      state.next = body_.lengths(dim_of(body_, outputs, of));
      if (entries_ && attrs_.carries[of.carry].fill != FinishedFill::as_is)
        state.next = entries_->keep_finished(state.next, state.inside, state.type);
    }
  }

  /// Returns the term of a stack or sum.
  Name term(ValueId value, const TensorType& type, bool adds_finished, bool is_raw) {
    const Name made = leaving(body_, value);
    if (!entries_) return made;
    const TensorType outside = leaving_type(type);
    if (adds_finished) return entries_->collected(made, outside);
    return is_raw ? made : entries_->zero_finished(made, outside);
  }

  /// Returns whether there is another iteration.
  Name write_condition() {
    if (!has_cond()) return model_.constant(full({}, true, boolean));
    const Name trips = body_.add("Add", {iteration_, model_.integer(1)});
    add_position(trips, 1);
    Names carries, lengths;
    for (std::size_t i = 0; i < attrs_.carries.size(); ++i) carries.push_back(states_[i].next);
    for (const CarriedLengths& of : lengths_) lengths.push_back(of.state->next);
    const Name holds = condition(inner_.nodes(), trips, carries, lengths);
    if (!is_active_carried()) return as_scalar(body_, holds);
    active_->next = body_.add("And", {active_->inside, ordered_condition(body_, holds)});
    Name running = active_->next;
    if (values_.lengths) running = body_.add("And", {running, is_within(body_, trips)});
    return any_of(body_, running);
  }

  // ---- Results ----------------------------------------------------------------------------------

  Names finish() {
    Names inputs{limit_, go_};
    for (const State& state : states_) inputs.push_back(state.initial);
    const auto joined = static_cast<std::size_t>(
        std::count_if(joined_.begin(), joined_.end(), [](const State* state) { return state; }));
    const std::size_t count = states_.size() + attrs_.stacks.size() - joined;
    // A loop without results needs no node: its prints are left out.
    const Names made =
        count ? to_.add("Loop", inputs, count, {{"body", graph(inner_.graph())}}) : Names{};
    std::size_t next = 0;
    Names names;
    for (const ValueId result : results_.carries) {
      if (model_.fixed_lists.count(states_[next].inside)) model_.fixed_lists.insert(made[next]);
      names.push_back(left(result, made[next++]));
    }
    const std::size_t begin_of_sums = next;
    next = states_.size();
    const auto behind = [&](const State* state) {
      return made[static_cast<std::size_t>(state - states_.data())];
    };
    for (std::size_t i = 0; i < results_.stacks.size(); ++i)
      names.push_back(joined_[i] ? behind(joined_[i]) : stacked(i, made[next++]));
    for (std::size_t i = 0; i < results_.sums.size(); ++i) names.push_back(made[begin_of_sums + i]);
    for (const CarriedLengths& of : lengths_)
      to_.set_lengths(dim_of(to_, results_.carries, of), behind(of.state));
    Name trips;
    if (wants_trips()) trips = count_ ? behind(count_) : to_.cast(limit_, i32);
    names.push_back(trips);
    if (results_.lengths) names.push_back(behind(reached_));
    if (results_.token) {
      const Dim& dim = to_.type(*results_.token).dims()[1];
      if (dim.node()) to_.set_lengths(dim, reached_ ? behind(reached_) : trips);
      names.emplace_back();
    }
    return names;
  }
  Name left(ValueId result, const Name& name) {
    const TensorType& type = to_.type(result);
    if (!is_token(type) || type.is_list()) return name;
    to_.set_lengths(type.dims()[1], name);
    return "";
  }
  /// Returns a stack given the elements in the order of the iterations. A loop that runs backwards
  /// makes the last element first. Behind a loop that ended early, there are zeros.
  Name stacked(std::size_t i, const Name& name) {
    Name result = with_sizes(name, slice_type(to_.type(results_.stacks[i])));
    if (attrs_.trips.is_reverse)
      result = to_.add("Slice", {result, model_.integers({-1}),
                                 model_.integers({std::numeric_limits<std::int64_t>::min() + 1}),
                                 model_.integers({0}), model_.integers({-1})});
    const LoopStack& stack = attrs_.stacks[i];
    const bool is_whole = attrs_.trips.is_full || attrs_.trips.makes_dim || stack.is_list;
    if (is_whole || !(stack.dim.is_named() || known_size(stack.dim) > 0)) return result;
    const TensorType& type = to_.type(results_.stacks[i]);
    const Name missing = to_.add("Sub", {to_.shape(type.dims()), to_.add("Shape", {result})});
    const std::vector<std::int64_t> before(static_cast<std::size_t>(type.rank()));
    const Name pads = to_.concat({model_.integers(before), missing}, 0);
    const DType dtype = type.dtype() == boolean ? i32 : type.dtype();
    if (dtype != type.dtype()) result = to_.cast(result, dtype);
    result = to_.add("Pad", {result, pads, model_.number(0, dtype)});
    return dtype == type.dtype() ? result : to_.cast(result, boolean);
  }

  /// Returns a stack with the sizes of its elements. A Loop without iterations, which makes no
  /// element, only tells those that its body declares.
  Name with_sizes(const Name& name, const TensorType& element) {
    const Dims& dims = element.dims();
    const auto is_declared = [](const Dim& dim) { return known_size(dim) > 0; };
    if (known_limit() > 0 && !has_cond()) return name;
    if (element.is_list() || is_token(element)) return name;
    if (std::all_of(dims.begin(), dims.end(), is_declared)) return name;
    try {
      const Name sizes = to_.concat({list_size(to_, name), to_.shape(dims)}, 0);
      return to_.add("Reshape", {name, sizes}, {{"allowzero", integer(1)}});
    } catch (const NotExpressible&) {
      return name;  // elements have sizes that only the body knows
    }
  }

  InnerGraph inner_;
  std::vector<TensorType> types_inside_;
  GraphWriter body_;
  std::vector<State> states_;
  std::vector<CarriedLengths> lengths_;
  // Pointers into states_ stay valid: begin() reserves places for all states.
  std::vector<State*> joined_;  ///< by stack; null for other stacks
  State *count_ = nullptr, *reached_ = nullptr, *active_ = nullptr;
  Name limit_, go_, iteration_, position_, running_;
  Name entry_lengths_;  ///< with zeros in padding
  TensorType condition_type_{boolean};
  std::optional<EntryWriter> entries_;
};

}  // namespace

Names write_loop(const WriteCall& call) { return LoopWriter(call).write(); }

}  // namespace reel::exported
