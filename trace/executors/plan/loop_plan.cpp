#include "reel/trace/executors/plan/loop_plan.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "reel/core/ops.h"
#include "reel/core/ops/elementwise.h"
#include "reel/core/ops/entries.h"
#include "reel/core/ops/list.h"
#include "reel/core/parallel.h"
#include "reel/trace/executors/ended_entries.h"
#include "reel/trace/executors/loop_types.h"
#include "reel/trace/executors/plan/placed.h"
#include "reel/trace/executors/plan/slices.h"

namespace reel {
namespace {

std::int64_t integer_of(const Tensor& t) {
  return t.dtype() == i64 ? *t.data<std::int64_t>() : *t.data<std::int32_t>();
}

/// A tensor over memory of the loop, for as long as it stays there.
Tensor placed(const TensorType& type, void* data) { return Tensor(allocate_placed(type, data)); }

/// What a stack of such terms is.
TensorType stacked(const TensorType& term, const Dim& dim) {
  Dims dims{dim};
  dims.insert(dims.end(), term.dims().begin(), term.dims().end());
  return term.with(dims);
}

/// to += term, element by element.
void add_to(const Tensor& to, const Tensor& term) {
  const Tensor copy = to;
  Tensor out = to;
  const OpInput in[] = {copy, term};
  KernelArgs args{add_op, nullptr, in, false, {&to.type(), 1}, {&out, 1}};
  add_op.kernel(args);
}

}  // namespace

LoopPlan::LoopPlan() = default;
LoopPlan::~LoopPlan() = default;

namespace {

/// The type of a list whose elements are all of one type -> nothing if they are not.
std::optional<TensorType> uniform_type(const Tensor& list) {
  std::optional<TensorType> type;
  for (const Tensor& element : list_elements(list)) {
    if (!element.is_defined() || element.type().is_list()) continue;
    if (type && !(*type == element.type())) return std::nullopt;
    type = element.type();
  }
  return type ? type->as_list() : list.type();
}

}  // namespace

/// Plans the graphs for these inputs -> false if the loop cannot be planned.
bool LoopPlan::prepare(const AttrsRef& attrs_ref, OpInputs in) {
  const auto& attrs = get<LoopAttrs>(attrs_ref.get());
  bool is_same = attrs_ && attrs_.get() == attrs_ref.get();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor& input = *in[i].tensor;
    const bool is_slices = i >= attrs.first_slice() && i < attrs.first_capture();
    const auto type = is_slices && input.type().is_list() ? uniform_type(input) : input.type();
    if (!type) return false;
    if (i == input_types_.size()) {
      input_types_.push_back(*type);
      is_same = false;
    } else if (!(input_types_[i] == *type)) {
      input_types_[i] = *type;
      is_same = false;
    }
  }
  if (is_same) return is_planned_;
  attrs_ = AttrsRef();  // until all is done
  blocks_.clear();
  is_planned_ = find_types(attrs_ref);
  attrs_ = attrs_ref;
  if (is_planned_) lay_out(attrs);
  if (is_planned_) cut(attrs);
  return is_planned_;
}

bool LoopPlan::find_types(const AttrsRef& attrs_ref) {
  const auto& attrs = get<LoopAttrs>(attrs_ref.get());
  if (!changing_dims(attrs).empty() || std::any_of(attrs.last_dims.begin(), attrs.last_dims.end(),
                                                   [](const Dims& dims) { return !dims.empty(); }))
    return false;
  std::vector<TensorType> types{TensorType(i64)}, cond_types{TensorType(i64)};
  for (int i = 0; i < attrs.carries; ++i) {
    types.push_back(input_types_[attrs.first_carry() + i]);
    cond_types.push_back(types.back());
  }
  for (int i = 0; i < attrs.slices; ++i) {
    const TensorType slice = slice_type(input_types_[attrs.first_slice() + i]);
    const bool is_list = attrs.body.graph->types[attrs.body.graph->inputs[types.size()]].is_list();
    types.push_back(is_list ? slice.as_list() : slice);  // of a list of lists
  }
  for (const int capture : attrs.body_captures)
    types.push_back(input_types_[attrs.first_capture() + capture]);
  for (const int capture : attrs.cond_captures)
    cond_types.push_back(input_types_[attrs.first_capture() + capture]);
  is_block_.assign(attrs.body.graph->outputs.size(), 0);
  for (int i = 0; i < attrs.stacks; ++i)
    if (attrs.is_list(i)) is_block_[attrs.carries + i] = 1;
  body_.prepare(attrs_ref, attrs.body, types, is_block_);
  if (attrs.cond) cond_.prepare(attrs_ref, attrs.cond, cond_types);
  for (int i = 0; i < attrs.carries; ++i) {
    const bool is_list = types[1 + i].is_list();
    if (!is_list && !(body_->output_is_known(i) && body_->output_type(i) == types[1 + i]))
      return false;
  }
  for (std::size_t k = attrs.carries; k < is_block_.size(); ++k)
    if (!is_block_[k] && !body_->output_is_known(k)) return false;
  return !attrs.cond || cond_->output_is_known(0);
}

void LoopPlan::lay_out(const LoopAttrs& attrs) {
  std::int64_t bytes = 0;
  const auto room_for = [&](const TensorType& type) {
    return std::exchange(bytes, bytes + (type.bytes() + 63) / 64 * 64);
  };
  carries_.assign(attrs.carries, {});
  shares_carry_.assign(attrs.stacks, 0);
  scratch_.assign(attrs.body.graph->outputs.size(), -1);
  for (int i = 0; i < attrs.carries; ++i) {
    Carry& carry = carries_[i];
    carry.is_list = input_types_[attrs.first_carry() + i].is_list();
    if (carry.is_list) continue;
    const TensorType& type = body_->output_type(i);
    carry.bytes = type.bytes();
    carry.buffers[0] = room_for(type);
    carry.buffers[1] = room_for(type);
    if (!body_->output_is_placed(i)) continue;
    for (int j = 0; j < attrs.stacks && carry.stack < 0; ++j)
      if (!attrs.is_list(j) && body_->outputs_are_same(i, attrs.carries + j)) {
        carry.stack = j;
        shares_carry_[j] = 1;
      }
  }
  for (std::size_t k = 0; k < scratch_.size(); ++k)
    if (body_->output_is_placed(k)) scratch_[k] = room_for(body_->output_type(k));
  memory_ = Tensor(allocate_block(TensorType(boolean, {bytes})));
}

/// One run of the loop.
class LoopPlan::Run {
 public:
  Run(LoopPlan& plan, OpInputs in, std::span<Tensor> out, const Pitches* pitches = nullptr)
      : plan_(plan),
        attrs_(get<LoopAttrs>(plan.attrs_.get())),
        in_(in),
        out_(out),
        pitches_(pitches) {
    Plan& body = *plan_.body_;
    for (int i = 0; i < attrs_.carries; ++i) {
      const Tensor& initial = *in[attrs_.first_carry() + i].tensor;
      state_.push_back(plan_.carries_[i].is_list ? State{owned(initial), nullptr}
                                                 : State{Tensor(), initial.data<char>()});
    }
    if (attrs_.has_lengths) lengths_ = *in[attrs_.has_bound].tensor;
    if (attrs_.has_bound) limit_ = integer_of(*in[0].tensor);
    for (int i = 0; i < attrs_.slices; ++i) {
      const Tensor& slices = *in[attrs_.first_slice() + i].tensor;
      if (!slices.type().is_list()) limit_ = std::min(limit_, slices.type().sizes()[0]);
    }
    for (int i = 0; i < attrs_.slices; ++i) find_slices(i);
    limit_ = std::max<std::int64_t>(limit_, 0);
    for (int j = 0; j < attrs_.stacks; ++j) find_stack(j);
    lists_.resize(attrs_.stacks);
    sums_.resize(attrs_.sums);
    for (int i = 0; i < attrs_.sums; ++i) {
      const std::size_t k = first_sum() + i;
      Tensor& total = out_[attrs_.first_sum() + i];
      if (!total.is_defined() && !is_list(k)) total = Tensor(allocate_block(body.output_type(k)));
    }
    set_captures(body, attrs_.body_captures, 1 + attrs_.carries + attrs_.slices);
    if (attrs_.cond) set_captures(*plan_.cond_, attrs_.cond_captures, 1 + attrs_.carries);
  }

  void run() {
    const bool has_entries = !attrs_.entry_dims.empty();
    if (has_entries && attrs_.cond) reached_ = zeros(attrs_.entry_dims, i32);
    if (attrs_.is_reverse) {
      for (std::int64_t k = 0; k < limit_; ++k)
        step(limit_ - 1 - k, has_entries ? live_at(limit_ - 1 - k) : Tensor());
    } else if (!attrs_.is_scan) {
      while (trips_ < limit_ && (!attrs_.cond || *ask().data<bool>())) step(trips_, Tensor());
    } else {
      Tensor active;
      if (attrs_.cond)
        active = attrs_.cond_before_body ? owned(ask()) : ones(attrs_.entry_dims, boolean);
      while (trips_ < limit_) {
        Tensor live = has_entries ? live_at(trips_) : Tensor();
        if (active.is_defined()) live = live.is_defined() ? logical_and(live, active) : active;
        if (live.is_defined() && !any_live(mask_padding(live))) break;
        step(trips_, has_entries ? live : Tensor());
        if (attrs_.cond) {
          if (has_entries) reached_ = reached_ + cast(live, i32);
          active = logical_and(active, ask());
        }
      }
    }
    finish();
  }

 private:
  struct State {
    Tensor list;
    char* data;
  };
  struct Slices {
    char* data = nullptr;
    std::int64_t bytes = 0;
    Tensors elements;  ///< of a list
  };
  struct Stack {
    char* data = nullptr;  ///< where its length is known
    std::int64_t bytes = 0;
    std::optional<GrowingStack> growing;
    char* at(std::int64_t position) {
      return growing ? growing->at(position) : data + position * bytes;
    }
  };

  std::size_t first_sum() const { return attrs_.carries + attrs_.stacks; }
  bool is_list(std::size_t body_output) const {
    return attrs_.body.graph->types[attrs_.body.graph->outputs[body_output]].is_list();
  }
  char* memory(std::int64_t offset) const { return plan_.memory_.data<char>() + offset; }

  void find_slices(int i) {
    const Tensor& slices = *in_[attrs_.first_slice() + i].tensor;
    Slices result;
    if (slices.type().is_list()) {
      const Graph& body = *attrs_.body.graph;
      result.elements =
          slices_of_list(slices, body.types[body.inputs[1 + attrs_.carries + i]], limit_);
    } else {
      result.data = slices.data<char>();
      result.bytes = pitches_ ? pitches_->slices[i] : slice_type(slices.type()).bytes();
    }
    slices_.push_back(std::move(result));
  }

  void find_stack(int j) {
    Stack stack;
    if (!attrs_.is_list(j)) {
      const TensorType& term = plan_.body_->output_type(attrs_.carries + j);
      Tensor& out = out_[attrs_.first_stack() + j];
      stack.bytes = pitches_ ? pitches_->stacks[j] : term.bytes();
      if (!out.is_defined() && !attrs_.makes_dim && attrs_.stack_dims[j].has_size())
        out = Tensor(allocate_block(stacked(term, attrs_.stack_dims[j])));
      if (out.is_defined())
        stack.data = out.data<char>();
      else
        stack.growing.emplace(stack.bytes);
    }
    stacks_.push_back(std::move(stack));
  }

  void set_captures(Plan& plan, const std::vector<int>& captures, std::size_t first) {
    for (std::size_t i = 0; i < captures.size(); ++i) {
      const Tensor& capture = *in_[attrs_.first_capture() + captures[i]].tensor;
      plan.set_input(first + i, plan.keeps_input(first + i) ? owned(capture) : capture);
    }
  }
  /// A list is let go of by the instruction that reads it last, so that it can be written in place.
  void set_list_captures(Plan& plan, const std::vector<int>& captures, std::size_t first) {
    for (std::size_t i = 0; i < captures.size(); ++i) {
      const Tensor& capture = *in_[attrs_.first_capture() + captures[i]].tensor;
      if (capture.type().is_list()) plan.set_input(first + i, capture);
    }
  }
  static void place_input(Plan& plan, std::size_t i, const TensorType& type, void* data) {
    if (plan.keeps_input(i))
      plan.set_input(i, owned(placed(type, data)));
    else
      plan.move_input(i, data);
  }

  Tensor& ask() {
    Plan& cond = *plan_.cond_;
    place_input(cond, 0, TensorType(i64), &trips_);
    for (int i = 0; i < attrs_.carries; ++i) {
      if (plan_.carries_[i].is_list)
        cond.set_input(1 + i, state_[i].list);
      else
        place_input(cond, 1 + i, carry_type(i), state_[i].data);
    }
    set_list_captures(cond, attrs_.cond_captures, 1 + attrs_.carries);
    if (cond.output_is_placed(0)) {
      if (!condition_.is_defined()) condition_ = Tensor(allocate_block(cond.output_type(0)));
      cond.set_output(0, condition_.data<void>());
    }
    in_iteration(iteration(), attrs_.name, [&] { cond.run(); });
    return cond.output(0);
  }

  /// The number of this iteration, for errors.
  std::int64_t iteration() const { return attrs_.counts_down ? limit_ - 1 - trips_ : trips_; }

  const TensorType& carry_type(int i) const { return plan_.input_types_[attrs_.first_carry() + i]; }

  /// Which entries run at a position, as far as lengths say.
  Tensor live_at(std::int64_t position) const {
    if (!lengths_.is_defined()) return {};
    return less(scalar(position, lengths_.dtype()), lengths_);
  }

  void step(std::int64_t position, const Tensor& live) {
    position_ = position;
    if (live.is_defined() && !all_live(live))
      step_with_ended(live);
    else
      step_with_all();
    ++trips_;
  }

  void set_position(Plan& body) { place_input(body, 0, TensorType(i64), &position_); }

  void step_with_all() {
    Plan& body = *plan_.body_;
    set_position(body);
    for (int i = 0; i < attrs_.carries; ++i) {
      if (plan_.carries_[i].is_list)
        body.set_input(1 + i, std::move(state_[i].list));
      else
        place_input(body, 1 + i, carry_type(i), state_[i].data);
    }
    for (int i = 0; i < attrs_.slices; ++i) {
      const std::size_t k = 1 + attrs_.carries + i;
      Slices& slices = slices_[i];
      if (!slices.data && !slices.elements.empty())
        body.set_input(k, slices.elements[position_]);
      else
        place_input(body, k, slice_type(plan_.input_types_[attrs_.first_slice() + i]),
                    slices.data + position_ * slices.bytes);
    }
    const std::size_t first_capture = 1 + attrs_.carries + attrs_.slices;
    set_list_captures(body, attrs_.body_captures, first_capture);

    for (int i = 0; i < attrs_.carries; ++i)
      if (body.output_is_placed(i)) body.set_output(i, next_place(i));
    for (int j = 0; j < attrs_.stacks; ++j)
      if (body.output_is_placed(attrs_.carries + j))
        body.set_output(attrs_.carries + j, stacks_[j].at(position_));
    for (int i = 0; i < attrs_.sums; ++i)
      if (body.output_is_placed(first_sum() + i))
        body.set_output(first_sum() + i, trips_ ? memory(plan_.scratch_[first_sum() + i])
                                                : out_[attrs_.first_sum() + i].data<void>());
    in_iteration(iteration(), attrs_.name, [&] { body.run(); });

    for (int j = 0; j < attrs_.stacks; ++j) {
      const std::size_t k = attrs_.carries + j;
      if (attrs_.is_list(j))
        put_element(j, owned(body.output(k)));
      else if (!body.output_is_placed(k) && !plan_.shares_carry_[j])
        copy_elements(stacks_[j].at(position_), body.output(k));
    }
    for (int i = 0; i < attrs_.sums; ++i) {
      const std::size_t k = first_sum() + i;
      const Tensor& term = body.output(k);
      if (is_list(k))
        sums_[i] = sums_[i].is_defined() ? list_add(std::move(sums_[i]), term) : term;
      else
        add_term(i, term, body.output_is_placed(k));
    }
    for (int i = 0; i < attrs_.carries; ++i) take_carry(i, body);
    release_lists(body);
  }

  /// Where iteration `position_` writes carry i: the slice of a stack that it goes to as well, or
  /// the buffer that does not hold it now.
  char* next_place(int i) {
    const Carry& carry = plan_.carries_[i];
    if (carry.stack >= 0) return stacks_[carry.stack].at(position_);
    char* first = memory(carry.buffers[0]);
    return state_[i].data == first ? memory(carry.buffers[1]) : first;
  }
  void take_carry(int i, Plan& body) {
    if (plan_.carries_[i].is_list) {
      state_[i].list = owned(body.output(i));
      return;
    }
    char* to = next_place(i);
    if (!body.output_is_placed(i)) copy_elements(to, body.output(i));
    state_[i].data = to;
  }

  void put_element(int j, Tensor element) {
    if (attrs_.is_reverse && lists_[j].empty()) lists_[j].resize(static_cast<std::size_t>(limit_));
    if (attrs_.is_reverse)
      lists_[j][static_cast<std::size_t>(position_)] = std::move(element);
    else
      lists_[j].push_back(std::move(element));
  }

  /// The first term of a sum is the sum.
  void add_term(int i, const Tensor& term, bool is_in_place) {
    const Tensor& total = out_[attrs_.first_sum() + i];
    if (trips_)
      add_to(total, term);
    else if (!is_in_place)
      copy_elements(total.data<void>(), term);
  }

  /// A list is written in place while nobody else holds it: the plan must not.
  void release_lists(Plan& body) {
    for (std::size_t k = 0; k < attrs_.body.graph->outputs.size(); ++k)
      if (!body.output_is_placed(k) && body.output(k).is_defined() &&
          body.output(k).type().is_list())
        body.output(k) = Tensor();
  }

  /// Entries that have ended see what Fill says, and what they compute is thrown away.
  ///
  /// Dims that they show are others than those of the body's plan: another plan runs then.
  void step_with_ended(const Tensor& live) {
    if (!ended_) ended_.emplace(attrs_, plan_.input_types_);
    ended_->set_live(live);
    Tensors before, seen;
    const auto add = [&](const Tensor& x) { seen.push_back(ended_->seen(x, seen.size())); };
    for (int i = 0; i < attrs_.carries; ++i) {
      before.push_back(plan_.carries_[i].is_list ? state_[i].list
                                                 : placed(carry_type(i), state_[i].data));
      add(before.back());
    }
    for (int i = 0; i < attrs_.slices; ++i) {
      const Slices& slices = slices_[i];
      const TensorType type = slice_type(plan_.input_types_[attrs_.first_slice() + i]);
      add(!slices.data && !slices.elements.empty()
              ? slices.elements[static_cast<std::size_t>(position_)]
              : placed(type, slices.data + position_ * slices.bytes));
    }
    for (const int capture : attrs_.body_captures)
      add(*in_[attrs_.first_capture() + capture].tensor);
    std::vector<TensorType> types{TensorType(i64)};
    for (const Tensor& x : seen) types.push_back(x.type());
    plan_.ended_.prepare(plan_.attrs_, ended_->body(), types, plan_.is_block_);
    Plan& body = *plan_.ended_;
    set_position(body);
    for (std::size_t i = 0; i < seen.size(); ++i)
      body.set_input(1 + i, body.keeps_input(1 + i) ? owned(seen[i]) : seen[i]);
    const std::size_t outputs = attrs_.body.graph->outputs.size();
    Tensors places(outputs);
    for (std::size_t k = 0; k < outputs; ++k)
      if (body.output_is_placed(k)) {
        places[k] = Tensor(allocate_block(body.output_type(k)));
        body.set_output(k, places[k].data<void>());
      }
    in_iteration(iteration(), attrs_.name, [&] { body.run(); });

    Tensors made;
    for (std::size_t k = 0; k < outputs; ++k) made.push_back(ended_->made(body.output(k), k));
    for (int j = 0; j < attrs_.stacks; ++j) {
      const std::size_t k = attrs_.carries + j;
      const Tensor kept = ended_->term(made[k], k);
      if (attrs_.is_list(j))
        put_element(j, owned(kept));
      else
        copy_elements(stacks_[j].at(position_), kept);
    }
    for (int i = 0; i < attrs_.sums; ++i) {
      const std::size_t k = first_sum() + i;
      const Tensor term = ended_->term(made[k], k);
      if (is_list(k))
        sums_[i] = sums_[i].is_defined() ? list_add(std::move(sums_[i]), term) : term;
      else
        add_term(i, term, false);
    }
    for (int i = 0; i < attrs_.carries; ++i) {
      const Tensor next = ended_->next(made[i], before[i], i);
      if (plan_.carries_[i].is_list) {
        state_[i].list = owned(next);
        continue;
      }
      // A stack that the carry shares holds zeros for ended entries: not what they carry on.
      char* first = memory(plan_.carries_[i].buffers[0]);
      char* to = state_[i].data == first ? memory(plan_.carries_[i].buffers[1]) : first;
      copy_elements(to, next);
      state_[i].data = to;
    }
    made.clear();
    release_lists(body);
    body.release();
  }

  void finish() {
    for (int i = 0; i < attrs_.carries; ++i) {
      Tensor& out = out_[i];
      if (plan_.carries_[i].is_list) {
        out = std::move(state_[i].list);
        continue;
      }
      if (!out.is_defined()) out = Tensor(allocate_block(carry_type(i)));
      if (const std::int64_t bytes = plan_.carries_[i].bytes)
        std::memcpy(out.data<char>(), state_[i].data, static_cast<std::size_t>(bytes));
    }
    const Dim fresh = attrs_.makes_dim ? new_dim() : Dim(0);
    for (int j = 0; j < attrs_.stacks; ++j) finish_stack(j, fresh);
    for (int i = 0; i < attrs_.sums; ++i) finish_sum(i);
    set_number(out_[attrs_.trips_output()], trips_);
    if (attrs_.makes_lengths()) give_result(attrs_.lengths_output(), reached_);
    if (attrs_.makes_dim)
      out_[attrs_.token_output()] = Tensor(
          allocate_block(TensorType(boolean, {fresh.is_named() ? Dim("none", 0) : Dim(0), fresh})));
    plan_.body_->release();
    if (attrs_.cond) plan_.cond_->release();
  }

  void finish_stack(int j, const Dim& fresh) {
    Tensor& out = out_[attrs_.first_stack() + j];
    const TensorType& formal =
        attrs_.body.graph->types[attrs_.body.graph->outputs[attrs_.carries + j]];
    if (attrs_.is_list(j)) {
      out =
          make_list(lists_[j].empty() ? type_without_iterations(attrs_, plan_.input_types_, formal)
                                      : common_type(lists_[j]),
                    lists_[j]);
      return;
    }
    const TensorType& term = plan_.body_->output_type(attrs_.carries + j);
    Stack& stack = stacks_[j];
    if (stack.growing) {
      const Dim dim = attrs_.makes_dim ? fresh : Dim(trips_);
      out = Tensor(allocate_block(stacked(term, dim)));
      const std::int64_t count = std::min(trips_, dim.size());
      stack.growing->copy_to(out.data<char>(), count);
      clear(out.data<char>(), count * stack.bytes, dim.size() * stack.bytes);
      return;
    }
    if (pitches_) return;  // all iterations ran
    // Where iterations ended before the dim does, what they would have made is zero.
    clear(stack.data, trips_ * stack.bytes, out.type().bytes());
  }
  static void clear(char* data, std::int64_t from, std::int64_t to) {
    if (from < to) std::memset(data + from, 0, static_cast<std::size_t>(to - from));
  }

  void finish_sum(int i) {
    const std::size_t k = first_sum() + i;
    Tensor& out = out_[attrs_.first_sum() + i];
    if (is_list(k))
      out = sums_[i].is_defined() ? owned(sums_[i])
                                  : empty_list(type_without_iterations(
                                        attrs_, plan_.input_types_,
                                        attrs_.body.graph->types[attrs_.body.graph->outputs[k]]));
    else if (!trips_)
      clear(out.data<char>(), 0, out.type().bytes());
  }

  void give_result(std::size_t k, const Tensor& value) {
    if (out_[k].is_defined())
      copy_elements(out_[k].data<void>(), value);
    else
      out_[k] = value;
  }
  void set_number(Tensor& out, std::int64_t number) {
    if (!out.is_defined()) out = Tensor(allocate_block(TensorType(i32)));
    *out.data<std::int32_t>() = static_cast<std::int32_t>(number);
  }
  Dim new_dim() const {
    if (attrs_.new_dim.empty()) return Dim(trips_);
    if (attrs_.makes_lengths()) return Dim(attrs_.new_dim, reached_);
    return Dim(attrs_.new_dim, scalar(trips_, i32));
  }

  LoopPlan& plan_;
  const LoopAttrs& attrs_;
  OpInputs in_;
  std::span<Tensor> out_;
  const Pitches* pitches_;
  std::vector<State> state_;
  std::vector<Slices> slices_;
  std::vector<Stack> stacks_;
  std::vector<Tensors> lists_;
  Tensors sums_;  ///< those that are lists
  Tensor lengths_, reached_, condition_;
  std::optional<EndedEntries> ended_;
  std::int64_t position_ = 0, limit_ = INT64_MAX, trips_ = 0;
};

namespace {

/// No iteration will run, and types that one would tell are not known.
bool is_empty(const LoopAttrs& attrs, OpInputs in) {
  if (attrs.has_bound && integer_of(*in[0].tensor) <= 0) return true;
  for (int i = 0; i < attrs.slices; ++i) {
    const Tensor& slices = *in[attrs.first_slice() + i].tensor;
    if (slices.type().is_list() ? !attrs.has_bound && list_elements(slices).empty()
                                : slices.type().sizes()[0] == 0)
      return true;
  }
  return false;
}

/// All carries and stacks have their places.
bool are_there(const LoopAttrs& attrs, std::span<const Tensor> out) {
  return std::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(attrs.first_sum()),
                     [](const Tensor& tensor) { return tensor.is_defined(); });
}

}  // namespace

/// Plans the loop for blocks of rows where that can be done.
void LoopPlan::cut(const LoopAttrs& attrs) {
  cut_ = find_row_cut(attrs, input_types_);
  if (!cut_) return;
  for (const std::int64_t rows : cut_->blocks)
    if (!make_block(attrs, rows)) {
      blocks_.clear();
      return;
    }
}

bool LoopPlan::make_block(const LoopAttrs& attrs, std::int64_t rows) {
  const Dim part = cut_->dim.is_named() ? Dim(cut_->dim.name(), rows) : Dim(rows);
  const auto on_part = [&](const TensorType& type, std::size_t axis) {
    Dims dims = type.dims();
    dims[axis] = part;
    return type.with(dims);
  };
  Block block{std::unique_ptr<LoopPlan>(new LoopPlan), make_attrs(on_rows(attrs, cut_->dim, part)),
              input_types_};
  for (std::size_t i = 0; i < input_types_.size(); ++i)
    if (cut_->has_rows[i])
      block.types[i] =
          on_part(input_types_[i], i >= attrs.first_slice() && i < attrs.first_capture() ? 1 : 0);
  block.plan->input_types_ = block.types;
  try {
    if (!block.plan->find_types(block.attrs)) return false;
  } catch (const Error&) {  // an op knows how many rows there are
    return false;
  }
  for (int j = 0; j < attrs.stacks; ++j) {
    const std::size_t k = static_cast<std::size_t>(attrs.carries + j);
    if (!(block.plan->body_->output_type(k) == on_part(body_->output_type(k), 0))) return false;
  }
  block.plan->attrs_ = block.attrs;
  block.plan->is_planned_ = true;
  block.plan->lay_out(get<LoopAttrs>(block.attrs.get()));
  blocks_.push_back(std::move(block));
  return true;
}

void LoopPlan::run_blocks(OpInputs in, std::span<Tensor> out) {
  parallel_for(static_cast<int>(blocks_.size()),
               [&](int i) { run_block(static_cast<std::size_t>(i), in, out); });
}

/// The loop on the rows of one block, where they lie among the others.
void LoopPlan::run_block(std::size_t number, OpInputs in, std::span<Tensor> out) {
  const auto& attrs = get<LoopAttrs>(attrs_.get());
  Block& block = blocks_[number];
  LoopPlan& plan = *block.plan;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < number; ++i) first += cut_->blocks[i];
  const std::int64_t all = cut_->dim.size();
  const auto rows_of = [&](const Tensor& whole, std::int64_t bytes, const TensorType& type) {
    return placed(type, whole.data<char>() + bytes / all * first);
  };

  Tensors inputs;
  Pitches pitches;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor& input = *in[i].tensor;
    const bool is_slices = i >= attrs.first_slice() && i < attrs.first_capture();
    const std::int64_t bytes = is_slices ? slice_type(input.type()).bytes() : input.type().bytes();
    if (is_slices) pitches.slices.push_back(bytes);
    inputs.push_back(cut_->has_rows[i] ? rows_of(input, bytes, block.types[i]) : input);
  }
  Tensors outputs(out.size());
  for (int i = 0; i < attrs.carries; ++i) {
    const Tensor& carry = out[static_cast<std::size_t>(i)];
    if (cut_->carry_has_rows[static_cast<std::size_t>(i)])
      outputs[static_cast<std::size_t>(i)] =
          rows_of(carry, carry.type().bytes(),
                  plan.input_types_[attrs.first_carry() + static_cast<std::size_t>(i)]);
    else if (number == 0)  // the same in all blocks
      outputs[static_cast<std::size_t>(i)] = carry;
  }
  for (int j = 0; j < attrs.stacks; ++j) {
    const std::size_t k = attrs.first_stack() + static_cast<std::size_t>(j);
    const TensorType& term = plan.body_->output_type(static_cast<std::size_t>(attrs.carries + j));
    pitches.stacks.push_back(
        body_->output_type(static_cast<std::size_t>(attrs.carries + j)).bytes());
    outputs[k] = rows_of(out[k], pitches.stacks.back(),
                         stacked(term, attrs.stack_dims[static_cast<std::size_t>(j)]));
  }
  if (number == 0) outputs[attrs.trips_output()] = out[attrs.trips_output()];
  const std::vector<OpInput> views(inputs.begin(), inputs.end());
  Run(plan, views, outputs, &pitches).run();
  if (number == 0) out[attrs.trips_output()] = outputs[attrs.trips_output()];
}

void LoopPlan::run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out) {
  if (!is_empty(get<LoopAttrs>(attrs.get()), in) && prepare(attrs, in)) {
    if (!blocks_.empty() && are_there(get<LoopAttrs>(attrs.get()), out)) return run_blocks(in, out);
    return Run(*this, in, out).run();
  }
  // Types change from iteration to iteration: the interpreter looks at each.
  Tensors inputs, outputs;
  for (const OpInput& input : in) inputs.push_back(owned(*input.tensor));
  const std::vector<OpInput> views(inputs.begin(), inputs.end());
  KernelArgs args{loop_op, attrs.get(), views, false, {}, {}, &outputs};
  run_loop(args);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k].is_defined())
      copy_elements(out[k].data<void>(), outputs[k]);
    else
      out[k] = std::move(outputs[k]);
}

}  // namespace reel
