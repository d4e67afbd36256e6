// Lowers a loop to a frame. Its variables pass through Enter, Merge, Switch, NextIteration and
// Exit.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/trace/executors/dataflow/lowering.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

/// Returns decode for while_loop "decode", and decode_grad for its gradient.
std::string short_name(const std::string& title) {
  const std::size_t begin = title.find('"'), end = title.rfind('"');
  std::string name = begin < end ? title.substr(begin + 1, end - begin - 1) : title;
  constexpr std::string_view kGradient = "the gradient of ";
  for (std::string_view rest = title; rest.starts_with(kGradient);
       rest.remove_prefix(kGradient.size()))
    name += "_grad";
  return name.empty() ? "loop" : name;
}

}  // namespace

/// Variables: the carries, a counter k, stacks and sums so far. If entries finish one by one, there
/// are three more: the entries that the condition has not finished (active), the iterations that
/// each entry ran (steps), and the values that finished entries read (finished). Unneeded variables
/// are dropped afterwards.
class Lowering::Loop {
 public:
  Loop(Lowering& lowering, Scope& around, std::size_t record)
      : all_(lowering),
        around_(around),
        record_(around.graph->records[record]),
        attrs_(get<LoopAttrs>(record_.attrs.get())),
        body_(*attrs_.body.graph) {
    for (const ValueId v : around.graph->inputs_of(record_)) given_.push_back(around.values[v]);
    const TripCount& trips = attrs_.trips;
    const bool evaluates_cond = attrs_.cond && !trips.is_reverse;
    has_entries_ = attrs_.has_entries() && (trips.has_lengths || evaluates_cond);
    has_active_ = evaluates_cond && trips.is_scan;
    has_bound_ = trips.is_scan || trips.is_reverse || trips.has_bound || !attrs_.slices.empty();
  }

  Ports run() {
    make_frame();
    make_begin();
    enter();
    test();
    run_body();
    return leave();
  }

 private:
  int helper(Scope& scope, LoweredRole role, Ports inputs, int index = -1, std::size_t outputs = 1,
             std::string name = {}) {
    const int at = all_.add_op(scope, role, name.empty() ? name_of(role) : name, std::move(inputs));
    all_.node(at).attrs = record_.attrs;
    all_.node(at).index = index;
    all_.node(at).outputs.resize(outputs);
    return at;
  }
  Port make(Scope& scope, LoweredRole role, Ports inputs, std::optional<TensorType> type = {},
            int index = -1) {
    const int at = helper(scope, role, std::move(inputs), index);
    all_.node(at).outputs[0].type = std::move(type);
    return {at, 0};
  }

  /// Type of a mask over entries, or of one number for each entry.
  TensorType of_entries(DType dtype) const { return TensorType(dtype, attrs_.entries.dims); }

  LoopOperands<const Port> given_leaves() const { return operands_of(attrs_, given_); }

  void make_frame() {
    LoweredFrame made;
    const std::string& outer = all_.lowered_.frames[static_cast<std::size_t>(around_.frame)].name;
    const std::string name = short_name(attrs_.name);
    made.name = all_.unique(outer.empty() ? name : outer + '/' + name);
    made.title = attrs_.name;
    made.parent = around_.frame;
    made.parallel_iterations = attrs_.debug.parallel_iterations;
    made.attrs = record_.attrs;
    made.source = record_.source;
    frame_ = static_cast<int>(all_.lowered_.frames.size());
    all_.lowered_.frames.push_back(std::move(made));
  }

  void make_begin() {
    Ports inputs = given_;
    if (!has_entries_) {
      inputs.clear();
      const auto given = given_leaves();
      for (const Port* one : {given.bound, given.lengths, given.chunk})
        if (one) inputs.push_back(*one);
      inputs.insert(inputs.end(), given.slices.begin(), given.slices.end());
    }
    const int at = helper(around_, LoweredRole::begin, inputs, -1, 3);
    all_.node(at).outputs[1].type = TensorType(i64);
    record_.attrs->each_symbol([&](const Dim& symbol) { all_.wait_for_dim(around_, at, symbol); });
    begin_ = {at, 0};
    zero_ = {at, 1};
    nothing_ = {at, 2};
    types_ = make(around_, LoweredRole::types, given_);
  }

  int enter_node(Port from, bool is_constant) {
    const int at = all_.add(LoweredKind::enter, "Enter", around_.frame, around_.id, {from}, frame_);
    all_.node(at).enters = frame_;
    all_.node(at).is_constant = is_constant;
    all_.node(at).outputs = {{all_.output(from).type}};
    // The value may be there in iterations of the outer loop that do not run.
    if (all_.is_constant(from) && around_.pivot) all_.wait(at, around_.pivot->node);
    return at;
  }
  /// Returns a value that is the same in all iterations; it enters the frame once.
  Port constant(Port from) {
    const auto [known, is_new] = constants_.emplace(from, Port{});
    if (is_new) known->second = {enter_node(from, true), 0};
    return known->second;
  }
  std::size_t variable(Port initial) {
    variables_.push_back({initial});
    return variables_.size() - 1;
  }

  void enter() {
    for (const Port& carry : given_leaves().carries) variable(carry);
    counter_ = variable(zero_);
    if (has_active_) active_ = variable(first_active());
    if (attrs_.makes_lengths() && has_active_)
      steps_ = variable(make(around_, LoweredRole::no_steps, {begin_}, of_entries(i32)));
    if (has_entries_) finished_ = variable(nothing_);
    stacks_ = variables_.size();
    for (std::size_t j = 0; j < attrs_.stacks.size(); ++j) variable(nothing_);
    sums_ = variables_.size();
    for (std::size_t j = 0; j < attrs_.sums.size(); ++j) variable(nothing_);
    for (Variable& of : variables_) of.enter = enter_node(of.initial, false);
    for (Variable& of : variables_) {
      of.merge = all_.add(LoweredKind::merge, "Merge", frame_, around_.id, {{of.enter, 0}});
      all_.node(of.merge).outputs = {{all_.output(of.initial).type}};
      of.at_top = {of.merge, 0};
    }
  }

  /// Returns the entries that run according to the condition before the loop.
  Port first_active() {
    const Port every = make(around_, LoweredRole::every_entry, {begin_}, of_entries(boolean));
    if (!attrs_.trips.cond_before_body) return every;
    const auto given = given_leaves();
    const Ports carries(given.carries.begin(), given.carries.end());
    Ports captures;
    for (const int capture : attrs_.cond_captures)
      captures.push_back(given.captures[static_cast<std::size_t>(capture)]);
    Scope scope = all_.make_scope(attrs_.cond.graph, &around_, around_.frame);
    all_.lowered_.scopes.back().first_of = attrs_.name;
    scope.pivot = around_.pivot;
    scope.handle = begin_;
    scope.part = 1;
    const Port asked = eval_condition(scope, zero_, carries, captures);
    return make(around_, LoweredRole::both, {every, asked}, of_entries(boolean));
  }

  /// Lowers the condition's records in a scope that has its pivot. Returns the condition's value.
  Port eval_condition(Scope& scope, Port trips, const Ports& carries, const Ports& captures) {
    Ports inputs{trips};
    inputs.insert(inputs.end(), carries.begin(), carries.end());
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    all_.take_inputs(scope, inputs);
    all_.lower_records(scope);
    return all_.live_outputs(scope)[0];
  }
  Ports cond_captures() {
    Ports result;
    for (const int capture : attrs_.cond_captures)
      result.push_back(constant(given_leaves().captures[static_cast<std::size_t>(capture)]));
    return result;
  }
  /// Returns a carry that the condition reads, as it passes through all iterations anyway;
  /// otherwise the counter.
  const Variable& leading() const {
    const Graph* cond = attrs_.cond.graph.get();
    if (has_bound_ || !cond) return variables_[counter_];
    const auto carries = cond_inputs(attrs_).carries;
    for (std::size_t i = 0; i < carries.size(); ++i)
      if (std::count(cond->operands.begin(), cond->operands.end(), carries[i]) ||
          cond->outputs[0] == carries[i])
        return variables_[i];
    return variables_[counter_];
  }

  /// Lowers the test at the top of every iteration, including the one after the last.
  void test() {
    // Nodes of the frame that belong to no graph get the scope around.
    top_ = Scope{around_.id, around_.graph, frame_, {}, leading().at_top};
    Port pred{};
    const Port k = variables_[counter_].at_top;
    if (has_bound_)
      pred = make(top_, LoweredRole::in_bound, {constant(begin_), k}, TensorType(boolean));
    if (has_active_ || has_entries_) {
      Ports inputs{constant(begin_), k};
      if (has_active_) inputs.push_back(variables_[active_].at_top);
      running_ = make(top_, LoweredRole::running, inputs, of_entries(boolean));
      if (!attrs_.trips.is_reverse)
        pred = make(top_, LoweredRole::any_running, {constant(begin_), k, running_},
                    TensorType(boolean));
    } else if (attrs_.cond) {
      pred = has_bound_
                 ? ask_within_bound(pred)
                 : ask_at_top(top_.pivot, variables_[counter_].at_top, tops(), cond_captures());
    }
    const int at = all_.add(LoweredKind::loop_cond, "LoopCond", frame_, around_.id, {pred});
    all_.node(at).outputs = {{TensorType(boolean)}};
    cond_ = {at, 0};
    for (Variable& of : variables_) of.in_body = all_.add_switch(top_, of.at_top, cond_);
  }
  Ports tops() const {
    Ports result;
    for (std::size_t i = 0; i < attrs_.carries.size(); ++i) result.push_back(variables_[i].at_top);
    return result;
  }
  Port ask_at_top(std::optional<Port> pivot, Port trips, const Ports& carries,
                  const Ports& captures) {
    Scope scope = all_.make_scope(attrs_.cond.graph, &around_, frame_);
    all_.lowered_.scopes.back().ahead = 0;
    scope.pivot = pivot;
    scope.handle = constant(begin_);
    scope.part = 1;
    return eval_condition(scope, trips, carries, captures);
  }
  /// Evaluates the condition only if the bound allows another iteration, as a cond would.
  Port ask_within_bound(Port allowed) {
    const auto within = [&](Port x) { return all_.add_switch(top_, x, allowed); };
    Ports carries;
    for (const Port& top : tops()) carries.push_back(within(top));
    const Port switched = within(allowed);
    const Port pivot = all_.identity(top_, switched, kNoValue);
    const Port asked =
        ask_at_top(pivot, within(variables_[counter_].at_top), carries, cond_captures());
    const int at =
        all_.add(LoweredKind::merge, "Merge", frame_, around_.id, {Port{switched.node, 0}, asked});
    all_.node(at).outputs = {{TensorType(boolean)}};
    return {at, 0};
  }

  void run_body() {
    Scope body = all_.make_scope(attrs_.body.graph, &around_, frame_);
    all_.lowered_.scopes.back().ahead = 0;
    const Port k = variables_[counter_].in_body;
    const auto formals = body_inputs(attrs_);
    Ports before;
    for (std::size_t i = 0; i < formals.carries.size(); ++i)
      before.push_back(
          all_.identity(body, variables_[i].in_body, has_entries_ ? kNoValue : formals.carries[i]));
    const Variable& lead = leading();
    const auto index = static_cast<std::size_t>(&lead - variables_.data());
    body.pivot =
        index < before.size() ? before[index] : all_.identity(body, lead.in_body, kNoValue);
    Port finished{};
    if (has_entries_) {
      const Port running = all_.add_switch(top_, running_, cond_);
      finished = make(body, LoweredRole::finished,
                      {constant(begin_), variables_[finished_].in_body, running});
      variables_[finished_].next = finished.node;
      body.handle = finished;
      running_in_body_ = running;
    } else {
      body.handle = constant(begin_);
    }

    Ports inputs{make(body, LoweredRole::position, {constant(begin_), k}, TensorType(i64))};
    for (const Port& carry : before) inputs.push_back(carry);
    for (std::size_t j = 0; j < formals.slices.size(); ++j) {
      const ValueId v = formals.slices[j];
      inputs.push_back(make(body, LoweredRole::slice, {constant(begin_), k}, body_.types[v],
                            static_cast<int>(j)));
      if (!has_entries_) all_.node(inputs.back().node).outputs[0].value = v;
    }
    for (const int capture : attrs_.body_captures)
      inputs.push_back(constant(given_leaves().captures[static_cast<std::size_t>(capture)]));
    if (has_entries_)
      for (std::size_t i = 1; i < inputs.size(); ++i) {
        if (all_.is_constant(inputs[i]) && is_same_to_all(i)) continue;
        const ValueId v = body_.inputs[i];
        const int number = static_cast<int>(i) - 1;
        inputs[i] = make(body, LoweredRole::seen, {inputs[i], finished}, body_.types[v], number);
        all_.node(inputs[i].node).outputs[0].value = v;
      }
    all_.node(inputs[0].node).outputs[0].value = formals.position;
    all_.take_inputs(body, inputs);
    name_alike(body, inputs);
    all_.lower_records(body);
    hand_on(body, all_.outputs_of(body), before, finished);
  }

  /// Returns true for a capture that is the same for finished and running entries: it has no dim of
  /// the entries, no lengths, and no dim for which only a run knows.
  bool is_same_to_all(std::size_t input) const {
    const int capture = attrs_.body_captures[body_input_at(attrs_, input).index];
    const auto captures = operands_of(attrs_, around_.graph->inputs_of(record_)).captures;
    const TensorType& type = around_.graph->types[captures[static_cast<std::size_t>(capture)]];
    const auto is_theirs = [&](const Dim& dim) {
      return !dim.has_size() || dim.is_symbol() || dim.is_ragged() ||
             contains(attrs_.entries.dims, dim);
    };
    return !type.is_list() && std::none_of(type.dims().begin(), type.dims().end(), is_theirs);
  }

  /// Elements of lists take the dims of the body's other inputs, and of earlier elements, as
  /// name_alike() does in other executors. Each element tells the dims that no other input tells;
  /// an identity behind it waits for the dims of all elements.
  void name_alike(Scope& body, const Ports& inputs) {
    std::vector<TensorType> types;
    for (const ValueId v : around_.graph->inputs_of(record_))
      types.push_back(around_.graph->types[v]);
    const std::vector<std::size_t> made = slices_with_own_dims(attrs_, types);
    const auto slices = body_inputs_of(attrs_, inputs).slices;
    const ToldByOthers others = tell_by_others(body, made);
    for (const std::size_t i : made) {
      const ValueId v = body_inputs(attrs_).slices[i];
      for_each_symbol(body_.types[v], [&](const Dim& symbol) {
        if (contains(others.bound, symbol))
          all_.wait(slices[i].node, *all_.dim_known(body, symbol));
      });
      for (const Dim& dim : body_.types[v].dims())
        if (const auto told = others.computed.find(dim.node()); told != others.computed.end())
          all_.wait(slices[i].node, all_.tell(body, told->second));
      LoweredOutput& element = all_.node(slices[i].node).outputs[0];
      element.binds = true;
      element.value = kNoValue;
      body.told[v] = slices[i].node;
      const Port named = all_.identity(body, slices[i], v);
      all_.node(named.node).outputs[0].has_known_dims = true;
      for_each_symbol(body_.types[v], [&](const Dim& symbol) {
        if (const auto known = all_.dim_known(body, symbol)) all_.wait(named.node, *known);
      });
      body.values[v] = named;
    }
  }

  /// Dims that a body's inputs tell, without elements of lists.
  struct ToldByOthers {
    Dims bound;
    std::unordered_map<const DimNode*, ValueId> computed;  ///< by hist + 1, the first such input
  };
  /// Lets the body's other inputs, not elements of lists, tell the dims that both have: an element
  /// may come with a dim of its own.
  ///
  /// made: the slices that are such elements.
  ToldByOthers tell_by_others(Scope& body, const std::vector<std::size_t>& made) const {
    std::vector<std::uint8_t> is_made(body_.inputs.size());
    for (const std::size_t i : made) body_inputs_of(attrs_, is_made).slices[i] = true;
    ToldByOthers result;
    for (std::size_t k = 0; k < is_made.size(); ++k) {
      const ValueId v = body_.inputs[k];
      if (is_made[k] || body_.types[v].is_list()) continue;
      for (const Dim& dim : body_.types[v].dims())
        if (expression_of(dim)) result.computed.emplace(dim.node(), v);
      for_each_bound(body_.types[v], [&](const Dim& symbol) {
        if (contains(result.bound, symbol)) return;
        body.tells[symbol.node()] = v;
        result.bound.push_back(symbol);
      });
    }
    return result;
  }

  /// outputs: of the body.
  void hand_on(Scope& body, Ports outputs, const Ports& before, Port finished) {
    if (has_entries_)
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const int index = static_cast<int>(o);
        const std::optional<TensorType> type = body_.types[body_.outputs[o]];
        outputs[o] =
            o < before.size()
                ? make(body, LoweredRole::next, {outputs[o], before[o], finished}, type, index)
                : make(body, LoweredRole::term, {outputs[o], finished}, type, index);
      }
    const Port k = variables_[counter_].in_body;
    std::vector<Port> next(variables_.size());
    Ports carries;
    for (std::size_t i = 0; i < before.size(); ++i) {
      // A constant value must not begin another iteration after the last.
      next[i] =
          all_.is_constant(outputs[i]) ? all_.identity(body, outputs[i], kNoValue) : outputs[i];
      carries.push_back(next[i]);
    }
    next[counter_] = make(body, LoweredRole::increment, {k}, TensorType(i64));
    if (has_active_) {
      Scope scope = all_.make_scope(attrs_.cond.graph, &around_, frame_);
      all_.lowered_.scopes.back().ahead = 1;
      scope.pivot = body.pivot;
      scope.handle = constant(begin_);
      scope.part = 1;
      const Port asked = eval_condition(scope, next[counter_], carries, cond_captures());
      next[active_] =
          make(body, LoweredRole::both, {variables_[active_].in_body, asked}, of_entries(boolean));
    }
    if (attrs_.makes_lengths() && has_active_)
      next[steps_] = make(body, LoweredRole::count_running,
                          {variables_[steps_].in_body, running_in_body_}, of_entries(i32));
    if (has_entries_) next[finished_] = finished;
    const auto terms = body_outputs_of(attrs_, outputs);
    for (std::size_t j = 0; j < terms.stacks.size(); ++j)
      next[stacks_ + j] =
          make(body, LoweredRole::put,
               {constant(begin_), k, variables_[stacks_ + j].in_body, terms.stacks[j]}, {},
               static_cast<int>(j));
    for (std::size_t j = 0; j < terms.sums.size(); ++j)
      next[sums_ + j] =
          make(body, LoweredRole::add_term, {variables_[sums_ + j].in_body, terms.sums[j]}, {},
               static_cast<int>(j));
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const int at =
          all_.add(LoweredKind::next_iteration, "NextIteration", frame_, around_.id, {next[i]});
      all_.node(at).outputs = {{all_.output(next[i]).type}};
      all_.node(variables_[i].merge).inputs.push_back({at, 0});
    }
  }

  /// Leaves the frame. Returns the op's outputs.
  Ports leave() {
    for (Variable& of : variables_) {
      const int at =
          all_.add(LoweredKind::exit, "Exit", frame_, around_.id, {{of.in_body.node, 0}});
      all_.node(at).outputs = {{all_.output(of.in_body).type}};
      of.last = {at, 0};
    }
    const auto values = results_of(attrs_, around_.graph->outputs_of(record_));
    Ports ports(result_count(attrs_));
    const auto result = results_of(attrs_, ports);
    const Port trips = variables_[counter_].last;
    for (std::size_t i = 0; i < result.carries.size(); ++i) result.carries[i] = variables_[i].last;
    if (result.lengths) *result.lengths = variables_[steps_].last;
    if (result.token) {
      Ports inputs{begin_, trips};
      if (result.lengths) inputs.push_back(*result.lengths);
      *result.token = own(make(around_, LoweredRole::made_dim, inputs), *values.token);
    }
    for (std::size_t j = 0; j < result.stacks.size(); ++j) {
      Ports inputs{begin_, types_, trips, variables_[stacks_ + j].last};
      if (result.token) inputs.push_back(*result.token);
      result.stacks[j] =
          own(make(around_, LoweredRole::stack, inputs, {}, static_cast<int>(j)), values.stacks[j]);
    }
    for (std::size_t j = 0; j < result.sums.size(); ++j)
      result.sums[j] =
          own(make(around_, LoweredRole::sum, {begin_, types_, variables_[sums_ + j].last}, {},
                   static_cast<int>(j)),
              values.sums[j]);
    result.trips = own(make(around_, LoweredRole::trips, {trips}), values.trips);
    return ports;
  }
  /// Marks a port as a value of the graph around.
  Port own(Port made, ValueId value) {
    LoweredOutput& of = all_.node(made.node).outputs[0];
    of.value = value;
    of.type = around_.graph->types[of.value];
    return made;
  }

  Lowering& all_;
  Scope& around_;
  const OpRecord& record_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  Ports given_;  ///< inputs of the op
  bool has_entries_, has_active_, has_bound_;
  int frame_ = -1;
  Port begin_, zero_, nothing_, types_;
  std::map<Port, Port> constants_;  ///< by entering value
  std::vector<Variable> variables_;
  std::size_t counter_ = 0, active_ = 0, steps_ = 0, finished_ = 0, stacks_ = 0, sums_ = 0;
  Scope top_{};
  Port running_, running_in_body_, cond_;
};

void Lowering::lower_loop(Scope& scope, std::size_t r) {
  make_values(scope, r, Loop(*this, scope, r).run());
}

}  // namespace reel
