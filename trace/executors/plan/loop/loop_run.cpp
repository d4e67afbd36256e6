#include "reel/trace/executors/plan/loop/loop_run.h"

#include <algorithm>
#include <cstring>

#include "reel/core/ops.h"
#include "reel/core/ops/control/entries.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

void add_to(const Tensor& to, const Tensor& term) {
  const Tensor copy = to;
  Tensor out = to;
  const OpInput in[] = {copy, term};
  KernelArgs args{add_op, nullptr, in, false, {&to.type(), 1}, {&out, 1}};
  add_op.kernel(args);
}

__attribute__((optimize("O3"))) void add_block(Tensor& blocks, const Tensor& block) {
  const bool is_first = !blocks.is_defined();
  if (is_first) blocks = Tensor(allocate_block(block.type().with(f64)));
  double* __restrict to = blocks.data<double>();
  const float* __restrict from = block.data<float>();
  for (std::int64_t i = 0, count = block.numel(); i < count; ++i)
    to[i] = is_first ? static_cast<double>(from[i]) : to[i] + static_cast<double>(from[i]);
}

namespace {

[[gnu::noinline]] void keep_input(Plan& plan, std::size_t i, void* data) {
  plan.set_input(i, owned(placed(plan.input_type(i), data)));
}
inline void place_input(Plan& plan, std::size_t i, void* data) {
  if (!plan.reads_input(i)) return;
  if (plan.keeps_input(i)) return keep_input(plan, i, data);
  plan.move_input(i, data);
}

}  // namespace

// ---- Before the first iteration -----------------------------------------------------------------

LoopRun::LoopRun(PlannedLoop& loop, OpInputs in, std::span<Tensor> out, BlockRows* rows)
    : loop_(loop),
      attrs_(loop.loop()),
      in_(in),
      out_(out),
      rows_(rows),
      iterations_(attrs_, in),
      times_(attrs_) {
  Plan& body = *loop_.body;
  if (attrs_.over_chunks) iterations_.limit = loop_.chunks.count();
  if (rows_) iterations_.limit = rows_->iterations().value_or(iterations_.limit);
  const auto carries = static_cast<std::size_t>(attrs_.carries),
             stacks = static_cast<std::size_t>(attrs_.stacks);
  carries_.reserve(carries);
  carried_lists_.reserve(carries);
  slices_.reserve(static_cast<std::size_t>(attrs_.slices));
  lists_.reserve(stacks);
  stacks_.reserve(stacks);
  for (int i = 0; i < attrs_.carries; ++i) {
    const Tensor& initial = *in[attrs_.first_carry() + i].tensor;
    const bool is_list = loop_.carries[i].is_list;
    carries_.push_back(is_list ? nullptr : initial.data<char>());
    if (loop_.carries[i].is_updated) begin_with_copy(i);
    carried_lists_.push_back(is_list ? owned(initial) : Tensor());
  }
  for (int i = 0; i < attrs_.slices; ++i) bind_slice(i);
  for (int j = 0; j < attrs_.stacks; ++j) {
    lists_.emplace_back(attrs_.is_reverse, attrs_.memory_of(static_cast<std::size_t>(j)));
    find_stack(j);
  }
  sums_.resize(static_cast<std::size_t>(attrs_.sums));
  for (int i = 0; i < attrs_.sums; ++i) {
    const std::size_t k = first_sum() + i;
    Tensor& total = out_[attrs_.first_sum() + i];
    if (!total.is_defined() && !is_list(k)) total = Tensor(allocate_block(body.output_type(k)));
  }
  set_captures(body, attrs_.body_captures, 1 + attrs_.carries + attrs_.slices);
  if (attrs_.over_chunks && loop_.chunks.has_rest())
    set_captures(*loop_.rest, attrs_.body_captures, 1 + attrs_.carries + attrs_.slices);
  if (attrs_.cond) set_captures(*loop_.cond, attrs_.cond_captures, 1 + attrs_.carries);
  for (std::size_t i = attrs_.first_capture(); i < in.size(); ++i)
    captures_lists_ = captures_lists_ || in[i].tensor->type().is_list();
  for (std::size_t k = 0; k < attrs_.body.graph->outputs.size(); ++k)
    gives_lists_ = gives_lists_ || is_list(k);
}

void LoopRun::begin_with_copy(int i) {
  Tensor& out = out_[i];
  if (!out.is_defined()) out = Tensor(allocate_block(carry_type(i)));
  char* to = out.data<char>();
  if (to != carries_[i])
    std::memcpy(to, carries_[i], static_cast<std::size_t>(loop_.carries[i].bytes));
  carries_[i] = to;
}

void LoopRun::bind_slice(int i) {
  const Tensor& slices = *in_[attrs_.first_slice() + i].tensor;
  Slices result;
  result.saved = saved_value(slices);
  if (result.saved) {
    slices_.push_back(std::move(result));
    return;
  }
  if (slices.type().is_list() && attrs_.over_chunks) {
    const Tensors elements = list_elements(slices);
    for (std::int64_t k = 0; k < loop_.chunks.count(); ++k)
      result.elements.push_back(
          part_of_list(slices, elements, loop_.chunks.first(k), loop_.chunks.steps_of(k)));
  } else if (slices.type().is_list()) {
    const Graph& body = *attrs_.body.graph;
    result.elements =
        slices_of_list(slices, body.types[body.inputs[1 + attrs_.carries + i]], iterations_.limit);
  } else {
    result.data = slices.data<char>();
    const std::int64_t steps = slices.type().sizes()[0];
    if (steps) result.bytes = slices.type().bytes() / steps * loop_.chunks.size;
  }
  slices_.push_back(std::move(result));
}

void LoopRun::find_stack(int j) {
  Stack stack;
  if (attrs_.is_spilled(j) && !attrs_.is_checkpoint(j)) {
    stack.spilled = spills_.make_for_steps(attrs_, j, loop_.chunks, iterations_.expected());
  } else if (!attrs_.is_list(j)) {
    const TensorType& term = loop_.body->output_type(attrs_.carries + j);
    Tensor& out = out_[attrs_.first_stack() + j];
    stack.bytes = term.bytes();
    if (!out.is_defined() && !attrs_.makes_dim && attrs_.stack_dims[j].has_size()) {
      out = Tensor(allocate_block(stacked(remove_chunk_dim(attrs_, term), attrs_.stack_dims[j])));
      count_as(out, attrs_.memory_of(static_cast<std::size_t>(j)));
    }
    if (out.is_defined())
      stack.data = out.data<char>();
    else
      stack.growing.emplace(stack.bytes, attrs_.memory_of(static_cast<std::size_t>(j)));
  }
  stacks_.push_back(std::move(stack));
}

void LoopRun::set_captures(Plan& plan, const std::vector<int>& captures, std::size_t first) {
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const Tensor& capture = *in_[attrs_.first_capture() + captures[i]].tensor;
    plan.set_input(first + i, plan.keeps_input(first + i) ? owned(capture) : capture);
  }
}

// ---- Iterations ---------------------------------------------------------------------------------

void LoopRun::run() {
  put_first_carries();
  iterations_.run([&](std::int64_t position, const Tensor& live) { step(position, live); },
                  [&]() -> const Tensor& { return eval_condition(); });
  finish();
}

void LoopRun::advance() {
  iterations_.run_next([&](std::int64_t position) { step(position, Tensor()); });
}

std::int64_t LoopRun::steps_after(std::int64_t chunks) const {
  const Chunks& all = loop_.chunks;
  return attrs_.is_reverse ? all.steps - std::min(all.steps, all.first(iterations_.limit - chunks))
                           : std::min(all.steps, all.first(chunks));
}

/// Stacks of the carries before each iteration: later ones come from the previous iteration.
void LoopRun::put_first_carries() {
  const std::int64_t first = attrs_.is_reverse ? iterations_.limit - 1 : 0;
  for (int i = 0; i < attrs_.carries; ++i)
    if (const int stack = loop_.carries[i].stack_of_next; stack >= 0 && iterations_.limit > 0)
      std::memcpy(stack_at(stack, first), carries_[i],
                  static_cast<std::size_t>(loop_.carries[i].bytes));
}

Tensor& LoopRun::eval_condition() {
  Plan& cond = *loop_.cond;
  position_ = iterations_.count();
  set_position(cond);
  for (int i = 0; i < attrs_.carries; ++i) {
    if (loop_.carries[i].is_list)
      cond.set_input(1 + i, carried_lists_[i]);
    else
      place_input(cond, 1 + i, carries_[i]);
  }
  if (captures_lists_) set_list_captures(cond, attrs_.cond_captures, 1 + attrs_.carries);
  if (cond.output_is_placed(0)) {
    if (!condition_.is_defined()) condition_ = Tensor(allocate_block(cond.output_type(0)));
    cond.set_output(0, condition_.data<void>());
  }
  run_iteration(cond);
  return cond.output(0);
}

char* LoopRun::spilled_at(int j, std::int64_t position) {
  const TensorType& term = loop_.body->output_type(attrs_.carries + j);
  return stacks_[static_cast<std::size_t>(j)].spilled->place(
      remove_chunk_dim(attrs_, term), attrs_.over_chunks ? loop_.chunks.first(position) : position);
}

char* LoopRun::saved_at(const SavedValue& saved, std::int64_t position) const {
  const Chunks& all = loop_.chunks;
  const std::int64_t first = attrs_.over_chunks ? all.first(position) : position;
  saved.steps->need(first, attrs_.over_chunks ? all.steps_of(position) : 1);
  return saved.steps->data(saved.index, first);
}

std::int64_t LoopRun::steps_before(std::int64_t position) const {
  if (!attrs_.over_chunks) return iterations_.count();
  const Chunks& all = loop_.chunks;
  return attrs_.is_reverse ? all.steps - all.first(position) - all.steps_of(position)
                           : all.first(position);
}

void LoopRun::take_checkpoint() {
  times_.begin(steps_before(position_), [&](int i) {
    return loop_.carries[i].is_list ? bytes_of(carried_lists_[i]) : loop_.carries[i].bytes;
  });
  if (times_.opens_file()) open_file();
  for (std::size_t j = 0; j < lists_.size(); ++j) {
    if (!attrs_.is_checkpoint(j)) continue;
    for (int i = 0; i < times_.now().drops; ++i) lists_[j].thin();
    if (!times_.now().takes) continue;
    const int carry = times_.source(j) - 1, capture = carry - attrs_.carries - attrs_.slices;
    if (attrs_.is_steps(j))
      lists_[j].keep(
          tensor({steps_before(position_), attrs_.over_chunks ? loop_.chunks.size : 1}, {}, i64));
    else if (capture >= 0)
      lists_[j].keep(owned(*in_[attrs_.first_capture() + attrs_.body_captures[capture]].tensor));
    else if (carry >= 0 && loop_.carries[carry].is_list)
      lists_[j].keep(carried_lists_[carry]);
    else if (carry >= 0)
      lists_[j].keep(owned(placed(carry_type(carry), carries_[carry])));
  }
}

void LoopRun::open_file() {
  const auto limit = times_.puts(iterations_.expected(), loop_.chunks.size);
  for (int j = 0; j < attrs_.stacks; ++j)
    if (attrs_.is_checkpoint(j) && attrs_.is_spilled(j))
      lists_[static_cast<std::size_t>(j)].spill_to(spills_.make_for_checkpoints(attrs_, j, limit));
}

void LoopRun::step(std::int64_t position, const Tensor& live) {
  position_ = position;
  if (times_.takes_any()) take_checkpoint();
  if (rows_) rows_->before(position, carries_);
  if (attrs_.sums && begins_block(iterations_.count())) end_blocks();
  if (live.is_defined() && !all_live(live))
    step_with_ended(live);
  else
    step_with_all();
  if (rows_) rows_->after(position, carries_);
}

void LoopRun::place_position(Plan& plan) {
  seen_position_[0] =
      attrs_.over_chunks ? loop_.chunks.first(position_) : iterations_.step_at(position_);
  seen_position_[1] = loop_.chunks.steps;
  place_input(plan, 0, seen_position_);
}

void LoopRun::run_iteration(Plan& plan) {
  if (attrs_.over_chunks) return plan.run();  // the inner loop adds the iteration to errors
  in_iteration(iterations_.number(), attrs_.name, [&] { plan.run(); });
}

void LoopRun::step_with_all() {
  if (attrs_.over_chunks) loop_.chunks.show_lengths(position_);
  Plan& body = *loop_.body_at(position_);
  set_position(body);
  for (int i = 0; i < attrs_.carries; ++i) {
    if (loop_.carries[i].is_list)
      body.set_input(1 + i, std::move(carried_lists_[i]));
    else
      place_input(body, 1 + i, carries_[i]);
  }
  for (int i = 0; i < attrs_.slices; ++i) {
    const std::size_t k = 1 + attrs_.carries + i;
    Slices& slices = slices_[i];
    if (!slices.data && !slices.elements.empty()) {
      body.set_input(k, slices.elements[position_]);
      continue;
    }
    if (slices.saved && body.input_type(k).is_list()) {
      body.set_input(k, saved_list(i));
      continue;
    }
    if (char* const data = slice_at(i, position_); data || !slices.saved)
      place_input(body, k, data);
    else  // a tensor that stands for saved steps of an inner loop
      body.set_input(k, slices.saved->steps->tensor(slices.saved->index, position_));
  }
  const std::size_t first_capture = 1 + attrs_.carries + attrs_.slices;
  if (captures_lists_) set_list_captures(body, attrs_.body_captures, first_capture);

  for (int i = 0; i < attrs_.carries; ++i)
    if (body.output_is_placed(i)) body.set_output(i, next_place(i));
  for (int j = 0; j < attrs_.stacks; ++j)
    if (body.output_is_placed(attrs_.carries + j))
      body.set_output(attrs_.carries + j, stack_at(j, position_));
  for (int i = 0; i < attrs_.sums; ++i) {
    const std::size_t k = first_sum() + i;
    if (!body.output_is_placed(k)) continue;
    const bool adds = body.output_can_add(k);
    const bool is_first = is_first_term(i);
    if (adds) body.set_adds(k, !is_first);
    body.set_output(
        k, is_first || adds ? out_[attrs_.first_sum() + i].data<void>() : memory(loop_.scratch[k]));
  }
  run_iteration(body);

  for (int j = 0; j < attrs_.stacks; ++j) {
    const std::size_t k = attrs_.carries + j;
    if (attrs_.is_checkpoint(j))
      put_made_checkpoint(j, body.output(k));
    else if (attrs_.is_list(j))
      put_elements(j, body.output(k));
    else if (!body.output_is_placed(k) && !loop_.shares_carry[j])
      copy_elements(stack_at(j, position_), body.output(k));
  }
  for (int i = 0; i < attrs_.sums; ++i) {
    const std::size_t k = first_sum() + i;
    const Tensor& term = body.output(k);
    if (is_list(k))
      sums_[i].add(Tensor(term));
    else if (!body.output_can_add(k))
      add_term(i, term, body.output_is_placed(k));
  }
  for (int i = 0; i < attrs_.carries; ++i) take_carry(i, body);
  if (gives_lists_) release_lists(body);
}

void LoopRun::step_with_ended(const Tensor& live) {
  if (!ended_) ended_.emplace(attrs_, loop_.input_types);
  ended_->set_live(live);
  auto& [before, seen, places, made, types] = ended_step_;
  seen.clear();
  before.clear();
  const auto add = [&](const Tensor& x) { seen.push_back(ended_->seen(x, seen.size())); };
  for (int i = 0; i < attrs_.carries; ++i) {
    before.push_back(loop_.carries[i].is_list ? carried_lists_[i]
                                              : placed(carry_type(i), carries_[i]));
    add(before.back());
  }
  for (int i = 0; i < attrs_.slices; ++i) {
    const Slices& slices = slices_[i];
    const TensorType type = slice_type(loop_.input_types[attrs_.first_slice() + i]);
    if (slices.saved) {
      slices.saved->steps->need(position_, 1);
      add(slices.saved->steps->tensor(slices.saved->index, position_));
      continue;
    }
    add(!slices.data && !slices.elements.empty()
            ? slices.elements[static_cast<std::size_t>(position_)]
            : placed(type, slice_at(i, position_)));
  }
  for (const int capture : attrs_.body_captures) add(*in_[attrs_.first_capture() + capture].tensor);
  types.assign(1, TensorType(i64));
  for (const Tensor& x : seen) types.push_back(x.type());
  loop_.ended.prepare(loop_.attrs, ended_->body(), types, loop_.is_block);
  Plan& body = *loop_.ended;
  set_position(body);
  for (std::size_t i = 0; i < seen.size(); ++i)
    body.set_input(1 + i, body.keeps_input(1 + i) ? owned(seen[i]) : seen[i]);
  const std::size_t outputs = attrs_.body.graph->outputs.size();
  places.assign(outputs, Tensor());
  for (std::size_t k = 0; k < outputs; ++k)
    if (body.output_is_placed(k)) {
      places[k] = Tensor(allocate_block(body.output_type(k)));
      body.set_output(k, places[k].data<void>());
    }
  run_iteration(body);

  for (std::size_t k = 0; k < outputs; ++k) made.push_back(ended_->made(body.output(k), k));
  for (int j = 0; j < attrs_.stacks; ++j) {
    const std::size_t k = attrs_.carries + j;
    const Tensor kept = ended_->term(made[k], k);
    if (attrs_.is_checkpoint(j))
      put_made_checkpoint(j, kept);
    else if (attrs_.is_list(j))
      put_element(j, position_, owned(kept));
    else
      copy_elements(stack_at(j, position_), kept);
  }
  for (int i = 0; i < attrs_.sums; ++i) {
    const std::size_t k = first_sum() + i;
    const Tensor term = ended_->term(made[k], k);
    if (is_list(k))
      sums_[i].add(Tensor(term));
    else
      add_term(i, term, false);
  }
  for (int i = 0; i < attrs_.carries; ++i) {
    const Tensor next = ended_->next(made[i], before[i], i);
    if (loop_.carries[i].is_list) {
      carried_lists_[i] = owned(next);
      continue;
    }
    // A stack that the carry shares has zeros for finished entries; the carry needs its values.
    char* first = memory(loop_.carries[i].buffers[0]);
    char* to = carries_[i] == first ? memory(loop_.carries[i].buffers[1]) : first;
    copy_elements(to, next);
    carries_[i] = to;
  }
  for (Tensors* tensors : {&before, &seen, &places, &made}) tensors->clear();
  if (gives_lists_) release_lists(body);
  body.release();
}

void LoopRun::set_list_captures(Plan& plan, const std::vector<int>& captures, std::size_t first) {
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const Tensor& capture = *in_[attrs_.first_capture() + captures[i]].tensor;
    if (capture.type().is_list()) plan.set_input(first + i, capture);
  }
}

char* LoopRun::next_place(int i) {
  const PlannedLoop::Carry& carry = loop_.carries[i];
  if (carry.is_updated) return carries_[i];
  if (carry.stack >= 0) return stack_at(carry.stack, position_);
  if (carry.stack_of_next >= 0 && iterations_.count() + 1 < iterations_.limit)
    return stack_at(carry.stack_of_next, position_ + (attrs_.is_reverse ? -1 : 1));
  char* first = memory(carry.buffers[0]);
  return carries_[i] == first ? memory(carry.buffers[1]) : first;
}

void LoopRun::take_carry(int i, Plan& body) {
  if (loop_.carries[i].is_list) {
    carried_lists_[i] = owned(body.output(i));
    return;
  }
  if (body.output_is_placed(i)) {
    carries_[i] = body.output(i).data<char>();
    return;
  }
  char* to = next_place(i);
  copy_elements(to, body.output(i));
  carries_[i] = to;
}

/// Returns the list that the body reads: an element of a list of lists, or the elements of a chunk.
Tensor LoopRun::saved_list(int i) const {
  const SavedValue& saved = *slices_[static_cast<std::size_t>(i)].saved;
  const Chunks& all = loop_.chunks;
  const std::int64_t first = attrs_.over_chunks ? all.first(position_) : position_,
                     count = attrs_.over_chunks ? all.steps_of(position_) : 1;
  saved.steps->need(first, count);
  if (!attrs_.over_chunks) return saved.steps->tensor(saved.index, first);
  Tensors elements;
  for (std::int64_t k = first; k < first + count; ++k)
    elements.push_back(saved.steps->tensor(saved.index, k));
  const Tensor& list = *in_[attrs_.first_slice() + static_cast<std::size_t>(i)].tensor;
  return make_list(list.type().element(), elements);
}

/// Appends to a list stack: one element, or a chunk's elements in the order of the loop.
void LoopRun::put_elements(int j, const Tensor& made) {
  if (!attrs_.over_chunks) return put_element(j, position_, owned(made));
  Tensors elements = list_elements(made);
  const std::int64_t first = loop_.chunks.first(position_), count = std::ssize(elements);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t step = attrs_.is_reverse ? count - 1 - k : k;
    put_element(j, first + step, std::move(elements[static_cast<std::size_t>(step)]));
  }
}

void LoopRun::put_element(int j, std::int64_t position, Tensor element) {
  if (const Ref<Spilled>& spilled = stacks_[static_cast<std::size_t>(j)].spilled)
    return spilled->put(position, element);
  lists_[static_cast<std::size_t>(j)].put(
      position, attrs_.over_chunks ? loop_.chunks.steps : iterations_.limit, std::move(element));
}

void LoopRun::put_made_checkpoint(int j, const Tensor& term) {
  const auto stack = static_cast<std::size_t>(j);
  if (times_.now().takes && !attrs_.is_steps(stack) && times_.source(stack) < 0)
    lists_[stack].keep(owned(term));
}

void LoopRun::end_blocks() {
  wide_.resize(static_cast<std::size_t>(attrs_.sums));
  for (int i = 0; i < attrs_.sums; ++i)
    if (is_list(first_sum() + i))
      sums_[i].end_block();
    else if (is_in_blocks(i))
      add_block(wide_[i], out_[attrs_.first_sum() + i]);
}

void LoopRun::add_term(int i, const Tensor& term, bool is_in_place) {
  const Tensor& total = out_[attrs_.first_sum() + i];
  if (!is_first_term(i))
    add_to(total, term);
  else if (!is_in_place)
    copy_elements(total.data<void>(), term);
}

void LoopRun::release_lists(Plan& body) {
  for (std::size_t k = 0; k < attrs_.body.graph->outputs.size(); ++k)
    if (!body.output_is_placed(k) && body.output(k).is_defined() && body.output(k).type().is_list())
      body.output(k) = Tensor();
}

}  // namespace reel
