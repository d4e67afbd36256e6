#include "reel/onnx/writers/loop_writer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "reel/core/ops.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writers/entries.h"
#include "reel/onnx/writers/lists.h"
#include "reel/onnx/writers/loop_parts.h"
#include "reel/onnx/writers/uneven_lists.h"

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
    check_expressible();
    limit_ = limit();
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
  /// A list whose elements may differ in size, and the state for the sizes of its elements.
  struct UnevenState {
    State *list, *sizes;
    UnevenList inside() const { return {list->inside, sizes->inside}; }
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
  bool counts() const { return wants_trips() && (has_cond() || limit_.empty()); }
  bool is_active_carried() const { return has_cond() && attrs_.trips.is_scan; }

  /// Adds all states, with their values before the first iteration.
  void begin() {
    const auto inside = operands_of(attrs_, types_inside_).carries;
    std::size_t axes = 0;
    for (const TensorType& type : inside) axes += type.dims().size();
    states_.reserve(2 * (attrs_.carries.size() + attrs_.sums.size() + attrs_.stacks.size()) + 3 +
                    axes);
    iteration_ = inner_.add_input(body_, "iteration", TensorType(i64));
    inner_.add_input(body_, "condition", TensorType(boolean));
    for (std::size_t i = 0; i < values_.carries.size(); ++i)
      add_state(leaving_type(inside[i]), leaving(to_, values_.carries[i]), "state");
    for (const ValueId sum : results_.sums) {
      const TensorType& type = to_.type(sum);
      const bool is_uneven = type.is_list() && is_open(type);
      const Name zero = is_uneven        ? recorded(to_, empty_uneven_list(to_, type))
                        : type.is_list() ? empty_list(to_, type)
                        : type.rank()    ? to_.expand(model_.number(0, type.dtype()), type.dims())
                                         : model_.number(0, type.dtype());
      add_state(type, zero, "sum");
    }
    for (std::size_t i = 0; i < attrs_.carries.size() + attrs_.sums.size(); ++i) {
      State& state = states_[i];
      if (!state.type.is_list()) continue;
      if (is_open(state.type) || model_.element_sizes.count(state.initial)) add_sizes(state);
    }
    for (std::size_t i = 0; i < results_.stacks.size(); ++i) {
      joined_.push_back(is_joined(i) ? add_joined(i) : nullptr);
      if (is_uneven(i, body_)) uneven_stacks_.emplace(i, add_uneven(i));
    }
    if (counts()) count_ = &add_state(TensorType(i32), model_.integer(0, i32), "count");
    if (attrs_.makes_lengths()) {
      const TensorType type(i32, attrs_.entries.dims);
      reached_ = &add_state(type, to_.expand(model_.integer(0, i32), type.dims()), "reached");
    }
    add_lengths();
    if (has_cond()) begin_condition();
  }

  /// Adds a state for the sizes of a list's elements.
  void add_sizes(State& list) {
    const TensorType type(i64, {Dim::unknown(), Dim(list.type.rank())});
    State& sizes = add_state(type, uneven_list(to_, list.initial, list.type).sizes, "sizes");
    recorded(body_, {list.inside, sizes.inside});
    uneven_.push_back({&list, &sizes});
  }
  /// Adds states for a stack whose elements may differ in size.
  std::size_t add_uneven(std::size_t stack) {
    const TensorType term = body_.type(body_outputs(attrs_).stacks[stack]);
    const TensorType type = element_type(term).as_list();
    add_sizes(add_state(type, recorded(to_, empty_uneven_list(to_, type)), "elements"));
    return uneven_.size() - 1;
  }
  /// Adds states for elements that are joined along their first axis, and for their lengths if a
  /// gradient reads them.
  State* add_joined(std::size_t stack) {
    const ValueId list = results_.stacks[stack];
    State& state = add_joined(to_.type(list).element());
    if (reads_joined_lengths(to_, list))
      joined_lengths_[stack] = &add_state(TensorType(i64, {Dim::unknown()}),
                                          model_.integers(std::vector<std::int64_t>{}), "lengths");
    return &state;
  }
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
      sum.next = sizes_of(sum)          ? added(sum, term)
                 : type.is_list()       ? add_lists(body_, sum.inside, even(body_, term), type)
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
      state.next = in_order(state.inside, element);
      if (const auto lengths = joined_lengths_.find(i); lengths != joined_lengths_.end())
        lengths->second->next =
            in_order(lengths->second->inside, body_.add("Shape", {element}, {{"end", integer(1)}}));
    }
    for (const auto& [i, at] : uneven_stacks_) {
      UnevenState& state = uneven_[at];
      const Name element = uneven_term(i, outputs.stacks[i]);
      state.list->next = recorded(body_, with_element(body_, state.inside(), element,
                                                      state.list->type, attrs_.trips.is_reverse));
    }
    for (const UnevenState& state : uneven_)
      state.sizes->next = uneven_list(body_, state.list->next, state.list->type).sizes;
    for (const State& state : states_) inner_.add_output(body_, state.next, state.type);
    for (std::size_t i = 0; i < outputs.stacks.size(); ++i) {
      if (joined_[i] || uneven_stacks_.count(i)) continue;
      const TensorType type = slice_type(to_.type(results_.stacks[i]));
      inner_.add_output(
          body_,
          term(outputs.stacks[i], type, attrs_.stacks[i].adds_finished, attrs_.stacks[i].is_raw()),
          leaving_type(type));
    }
  }

  /// Returns a list with the elements of an iteration in the order of the positions.
  Name in_order(const Name& before, const Name& made) {
    return body_.concat(attrs_.trips.is_reverse ? Names{made, before} : Names{before, made}, 0);
  }
  /// Returns the states of a list whose elements may differ in size; null for other states.
  const UnevenState* sizes_of(const State& list) const {
    for (const UnevenState& state : uneven_)
      if (state.list == &list) return &state;
    return nullptr;
  }
  /// Returns the sum of lists whose elements may differ in size.
  Name added(const State& sum, const Name& term) {
    return recorded(body_, sum_of(body_, sizes_of(sum)->inside(),
                                  uneven_list(body_, term, sum.type), sum.type));
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
      const bool is_list = body_.type(inputs.slices[i]).is_list();
      const TensorType type = is_list ? element_type(body_.type(inputs.slices[i]))
                                      : leaving_type(slice_type(types_.slices[i]));
      const Name value = slice(i, type);
      enter(body_, inputs.slices[i], is_list ? value : seen(value, type, attrs_.slices[i].fill));
    }
    for (std::size_t i = 0; i < inputs.captures.size(); ++i) {
      const auto from = static_cast<std::size_t>(attrs_.body_captures[i]);
      const Name name = captured(attrs_.body_captures[i]);
      body_.set(
          inputs.captures[i],
          name.empty() ? name : seen(name, types_.captures[from], attrs_.captures[from].fill));
    }
  }

  /// Returns slice i of an iteration. type: of the slice in ONNX.
  Name slice(std::size_t i, const TensorType& type) {
    const Name slices = to_.name(values_.slices[i]);
    if (!types_.slices[i].is_list())
      return body_.add("Gather", {slices, position_}, {{"axis", integer(0)}});
    const auto sizes = model_.element_sizes.find(slices);
    if (sizes != model_.element_sizes.end())
      return element_at(body_, {slices, sizes->second}, position_, type);
    const Name all = padded_list(to_, slices, type.as_list(), to_.unsqueeze(limit_, {0}));
    return body_.add("Gather", {all, position_}, {{"axis", integer(0)}});
  }

  void write_carries(std::span<const ValueId> outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      State& state = states_[i];
      state.next = leaving(body_, outputs[i]);
      if (model_.fixed_lists.count(state.inside) && !model_.fixed_lists.count(state.next))
        throw NotExpressible{"an array that cannot grow is replaced by another one"};
      if (state.type.is_list() && !sizes_of(state)) even(body_, state.next);
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

  /// Returns the term of a stack whose elements may differ in size.
  Name uneven_term(std::size_t i, ValueId value) {
    const LoopStack& stack = attrs_.stacks[i];
    if (body_.type(value).is_list()) return even(body_, leaving(body_, value));
    return term(value, slice_type(to_.type(results_.stacks[i])), stack.adds_finished,
                stack.is_raw());
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
    const std::size_t count =
        states_.size() + attrs_.stacks.size() - joined - uneven_stacks_.size();
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
    for (const UnevenState& state : uneven_)
      recorded(to_, {behind(state.list), behind(state.sizes)});
    for (std::size_t i = 0; i < results_.stacks.size(); ++i) {
      if (const auto uneven = uneven_stacks_.find(i); uneven != uneven_stacks_.end())
        names.push_back(behind(uneven_[uneven->second].list));
      else
        names.push_back(joined_[i] ? behind(joined_[i]) : stacked(i, made[next++]));
      if (const auto lengths = joined_lengths_.find(i); lengths != joined_lengths_.end())
        model_.joined_lengths[names.back()] = behind(lengths->second);
    }
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

  InnerGraph inner_;
  std::vector<TensorType> types_inside_;
  GraphWriter body_;
  std::vector<State> states_;
  std::vector<CarriedLengths> lengths_;
  // Pointers into states_ stay valid: begin() reserves places for all states.
  std::vector<State*> joined_;                    ///< by stack; null for other stacks
  std::map<std::size_t, State*> joined_lengths_;  ///< by stack
  std::vector<UnevenState> uneven_;
  std::map<std::size_t, std::size_t> uneven_stacks_;  ///< their places in uneven_, by stack
  State *count_ = nullptr, *reached_ = nullptr, *active_ = nullptr;
  Name limit_, go_, iteration_, position_, running_;
  Name entry_lengths_;  ///< with zeros in padding
  TensorType condition_type_{boolean};
  std::optional<EntryWriter> entries_;
};

}  // namespace

Names write_loop(const WriteCall& call) { return LoopWriter(call).write(); }

}  // namespace reel::exported
