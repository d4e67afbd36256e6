#include "reel/trace/executors/plan/loop/loop_run.h"

#include <algorithm>
#include <cstring>

#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/add_to.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

// ---- Before the first iteration -----------------------------------------------------------------

LoopRun::LoopRun(PlannedLoop& loop, OpInputs in, std::span<Tensor> out, BlockRows* rows)
    : loop_(loop),
      attrs_(loop.loop()),
      in_(operands_of(attrs_, in)),
      out_(results_of(attrs_, out)),
      inputs_(loop.input_numbers()),
      outputs_(loop.output_numbers()),
      cond_inputs_(loop.cond ? std::optional(loop.cond_input_numbers()) : std::nullopt),
      rows_(rows),
      iterations_(attrs_, in),
      leaves_{attrs_, loop.input_types, loop.chunks, iterations_},
      checkpoints_(leaves_, spills_) {
  Plan& body = *loop_.body;
  if (attrs_.chunking.over_chunks) iterations_.limit = loop_.chunks.count();
  if (rows_) iterations_.limit = rows_->iterations().value_or(iterations_.limit);
  carries_.reserve(attrs_.carries.size());
  carried_lists_.reserve(attrs_.carries.size());
  slices_.reserve(attrs_.slices.size());
  stacks_.reserve(attrs_.stacks.size());
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
    const Tensor& initial = *in_.carries[i].tensor;
    const bool is_list = loop_.carries[i].is_list;
    carries_.push_back(is_list ? nullptr : initial.data<char>());
    if (loop_.carries[i].is_updated) begin_with_copy(i);
    carried_lists_.push_back(is_list ? owned(initial) : Tensor());
  }
  for (std::size_t i = 0; i < attrs_.slices.size(); ++i)
    slices_.push_back(
        make_slice_source(loop_, leaves_, i, *in_.slices[i].tensor, iterations_.limit, rows_));
  for (std::size_t j = 0; j < attrs_.stacks.size(); ++j)
    stacks_.push_back(make_stack_sink(leaves_, j, body.output_type(outputs_.stacks[j]),
                                      out_.stacks[j], rows_, checkpoints_, spills_));
  sums_.resize(attrs_.sums.size());
  for (std::size_t i = 0; i < attrs_.sums.size(); ++i) {
    const std::size_t k = outputs_.sums[i];
    Tensor& total = out_.sums[i];
    if (!total.is_defined() && !formal_sum(i).is_list())
      total = Tensor(allocate_block(body.output_type(k)));
  }
  set_captures(body, attrs_.body_captures, inputs_.captures);
  if (attrs_.chunking.over_chunks && loop_.chunks.has_rest())
    set_captures(*loop_.rest, attrs_.body_captures, inputs_.captures);
  if (attrs_.cond)
    set_captures(*loop_.cond, attrs_.cond_captures, loop_.cond_input_numbers().captures);
  for (const OpInput& capture : in_.captures)
    captures_lists_ = captures_lists_ || capture.tensor->type().is_list();
  for (const ValueId v : attrs_.body.graph->outputs)
    gives_lists_ = gives_lists_ || attrs_.body.graph->types[v].is_list();
}

void LoopRun::begin_with_copy(std::size_t i) {
  Tensor& out = out_.carries[i];
  if (!out.is_defined()) out = Tensor(allocate_block(carry_type(i)));
  char* to = out.data<char>();
  if (to != carries_[i])
    std::memcpy(to, carries_[i], static_cast<std::size_t>(loop_.carries[i].bytes));
  carries_[i] = to;
}

void LoopRun::set_captures(Plan& plan, const std::vector<int>& captures,
                           std::span<const std::size_t> inputs) {
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const Tensor& value = capture(captures[i]);
    plan.set_input(inputs[i], plan.keeps_input(inputs[i]) ? owned(value) : value);
  }
}

// ---- Iterations ---------------------------------------------------------------------------------

void LoopRun::run() {
  const std::int64_t begin = profile() ? nanoseconds_now() : 0;
  put_first_carries();
  if (can_run_series())
    while (has_next()) {
      advance();
      run_series();
    }
  else
    iterations_.run([&](std::int64_t position, const Tensor& running) { step(position, running); },
                    [&]() -> const Tensor& { return eval_condition(); });
  finish();
  if (profile()) profile()->nanoseconds += nanoseconds_now() - begin;
}

void LoopRun::advance() {
  iterations_.run_next([&](std::int64_t position) { step(position, Tensor()); });
}

std::int64_t LoopRun::steps_after(std::int64_t chunks) const {
  const Chunks& all = loop_.chunks;
  return attrs_.trips.is_reverse
             ? all.steps - std::min(all.steps, all.first(iterations_.limit - chunks))
             : std::min(all.steps, all.first(chunks));
}

/// Stacks of the carries before each iteration: later ones come from the previous iteration.
void LoopRun::put_first_carries() {
  const std::int64_t first = attrs_.trips.is_reverse ? iterations_.limit - 1 : 0;
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i)
    if (const auto stack = loop_.carries[i].stack_of_next; stack && iterations_.limit > 0)
      std::memcpy(stack_at(*stack, first), carries_[i],
                  static_cast<std::size_t>(loop_.carries[i].bytes));
}

Tensor& LoopRun::eval_condition() {
  Plan& cond = *loop_.cond;
  const std::size_t carries = attrs_.carries.size();
  position_ = iterations_.count();
  set_position(cond);
  for (std::size_t i = 0; i < carries; ++i) {
    if (loop_.carries[i].is_list)
      cond.set_input(cond_inputs_->carries[i], carried_lists_[i]);
    else
      place_input(cond, cond_inputs_->carries[i], carries_[i]);
  }
  if (captures_lists_) set_list_captures(cond, attrs_.cond_captures, cond_inputs_->captures);
  if (cond.output_is_placed(0)) {
    if (!condition_.is_defined()) condition_ = Tensor(allocate_block(cond.output_type(0)));
    cond.set_output(0, condition_.data<void>());
  }
  run_iteration(cond);
  return cond.output(0);
}

Tensor LoopRun::body_input(std::size_t input) const {
  const auto [kind, i] = body_input_at(attrs_, input);
  if (kind == LeafKind::capture) return owned(capture(attrs_.body_captures[i]));
  if (kind != LeafKind::carry) throw InternalError("a checkpoint of a slice");
  return loop_.carries[i].is_list ? carried_lists_[i] : owned(placed(carry_type(i), carries_[i]));
}

void LoopRun::step(std::int64_t position, const Tensor& running) {
  position_ = position;
  checkpoints_.before(
      position,
      [&](std::size_t i) {
        return loop_.carries[i].is_list ? bytes_of(carried_lists_[i]) : loop_.carries[i].bytes;
      },
      [&](std::size_t input) { return body_input(input); });
  if (rows_) rows_->before(position, carries_);
  if (!attrs_.sums.empty() && begins_block(iterations_.count())) end_blocks();
  if (running.is_defined() && !all_running(running)) {
    const std::int64_t begin = profile() ? nanoseconds_now() : 0;
    step_with_finished(running);
    if (profile()) profile()->finished_nanoseconds += nanoseconds_now() - begin;
  } else {
    step_with_all();
  }
  if (rows_) rows_->after(position, carries_);
}

void LoopRun::place_position(Plan& plan) {
  seen_position_[0] =
      attrs_.chunking.over_chunks ? loop_.chunks.first(position_) : iterations_.step_at(position_);
  seen_position_[1] = loop_.chunks.steps;
  place_input(plan, 0, seen_position_);
}

void LoopRun::run_iteration(Plan& plan) {
  if (attrs_.chunking.over_chunks)
    return plan.run();  // the inner loop adds the iteration to errors
  in_iteration(iterations_.number(), attrs_.name, [&] { plan.run(); });
}

void LoopRun::step_with_all() {
  if (attrs_.chunking.over_chunks) loop_.chunks.show_lengths(position_);
  Plan& body = *loop_.body_at(position_);
  const std::size_t carries = attrs_.carries.size(), sums = attrs_.sums.size();
  set_position(body);
  for (std::size_t i = 0; i < carries; ++i) {
    if (loop_.carries[i].is_list)
      body.set_input(inputs_.carries[i], std::move(carried_lists_[i]));
    else
      place_input(body, inputs_.carries[i], carries_[i]);
  }
  for (std::size_t i = 0; i < slices_.size(); ++i)
    std::visit([&](const auto& slices) { slices.set(body, inputs_.slices[i], position_); },
               slices_[i]);
  if (captures_lists_) set_list_captures(body, attrs_.body_captures, inputs_.captures);

  for (std::size_t i = 0; i < carries; ++i)
    if (const std::size_t k = outputs_.carries[i]; body.output_is_placed(k))
      body.set_output(k, next_place(i));
  for (std::size_t j = 0; j < stacks_.size(); ++j)
    if (const std::size_t k = outputs_.stacks[j]; body.output_is_placed(k))
      body.set_output(k, stack_at(j, position_));
  for (std::size_t i = 0; i < sums; ++i) {
    const std::size_t k = outputs_.sums[i];
    if (!body.output_is_placed(k)) continue;
    const bool adds = body.output_can_add(k);
    const bool is_first = is_first_term(i);
    if (adds) body.set_adds(k, !is_first);
    body.set_output(k, is_first || adds ? out_.sums[i].data<void>() : memory(loop_.scratch[i]));
  }
  run_iteration(body);

  for (std::size_t j = 0; j < stacks_.size(); ++j) {
    const std::size_t k = outputs_.stacks[j];
    if (attrs_.stacks[j].is_list || (!body.output_is_placed(k) && !loop_.shares_carry[j]))
      put(j, body.output(k));
  }
  for (std::size_t i = 0; i < sums; ++i) {
    const std::size_t k = outputs_.sums[i];
    const Tensor& term = body.output(k);
    if (formal_sum(i).is_list())
      sums_[i].add(Tensor(term));
    else if (!body.output_can_add(k))
      add_term(i, term, body.output_is_placed(k));
  }
  for (std::size_t i = 0; i < carries; ++i) take_carry(i, body);
  if (gives_lists_) release_lists(body);
}

void LoopRun::step_with_finished(const Tensor& running) {
  if (!finished_) finished_.emplace(attrs_, loop_.input_types);
  finished_->set_running(running);
  auto& [before, seen, places, made, types] = finished_buffers_;
  seen.clear();
  before.clear();
  const auto add = [&, &inputs = seen](const Tensor& x) {
    inputs.push_back(finished_->seen(x, inputs.size()));
  };
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
    before.push_back(loop_.carries[i].is_list ? carried_lists_[i]
                                              : placed(carry_type(i), carries_[i]));
    add(before.back());
  }
  for (const SliceSource& source : slices_)
    std::visit([&](const auto& slices) { add(slices.slice(position_)); }, source);
  for (const int i : attrs_.body_captures) add(capture(i));
  types.assign(1, TensorType(i64));
  for (const Tensor& x : seen) types.push_back(x.type());
  loop_.finished.prepare(finished_->body(), types, loop_.is_block);
  Plan& body = *loop_.finished;
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

  for (std::size_t k = 0; k < outputs; ++k) made.push_back(finished_->made(body.output(k), k));
  for (std::size_t j = 0; j < stacks_.size(); ++j)
    put(j, finished_->term(made[outputs_.stacks[j]], outputs_.stacks[j]));
  for (std::size_t i = 0; i < attrs_.sums.size(); ++i) {
    const std::size_t k = outputs_.sums[i];
    if (formal_sum(i).is_list())
      sums_[i].add(finished_->term(made[k], k));
    else if (attrs_.sums[i].adds_finished || !add_running(i, made[k], running))
      add_term(i, finished_->term(made[k], k), false);
  }
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
    const Tensor next = finished_->next(made[outputs_.carries[i]], before[i], i);
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

void LoopRun::set_list_captures(Plan& plan, const std::vector<int>& captures,
                                std::span<const std::size_t> inputs) {
  for (std::size_t i = 0; i < captures.size(); ++i)
    if (const Tensor& list = capture(captures[i]); list.type().is_list())
      plan.set_input(inputs[i], list);
}

char* LoopRun::next_place(std::size_t i) {
  const PlannedLoop::Carry& carry = loop_.carries[i];
  if (carry.is_updated) return carries_[i];
  if (carry.stack) return stack_at(*carry.stack, position_);
  if (carry.stack_of_next && iterations_.count() + 1 < iterations_.limit)
    return stack_at(*carry.stack_of_next, position_ + (attrs_.trips.is_reverse ? -1 : 1));
  char* first = memory(carry.buffers[0]);
  return carries_[i] == first ? memory(carry.buffers[1]) : first;
}

void LoopRun::take_carry(std::size_t i, Plan& body) {
  const std::size_t k = outputs_.carries[i];
  if (loop_.carries[i].is_list) {
    carried_lists_[i] = owned(body.output(k));
    return;
  }
  if (body.output_is_placed(k)) {
    carries_[i] = body.output(k).data<char>();
    return;
  }
  char* to = next_place(i);
  copy_elements(to, body.output(k));
  carries_[i] = to;
}

/// Compares before it writes: a pipelined loop may read the other stack at the same time.
bool LoopRun::is_there(std::size_t j, const Tensor& term) {
  const char* const to = stack_at(j, position_);
  const char* const from = term.data<char>();
  return to == from || !std::memcmp(to, from, static_cast<std::size_t>(term.type().bytes()));
}

void LoopRun::end_blocks() {
  wide_.resize(attrs_.sums.size());
  for (std::size_t i = 0; i < attrs_.sums.size(); ++i)
    if (formal_sum(i).is_list())
      sums_[i].end_block();
    else if (is_in_blocks(i))
      add_block(wide_[i], out_.sums[i]);
}

void LoopRun::add_term(std::size_t i, const Tensor& term, bool is_in_place) {
  const Tensor& total = out_.sums[i];
  if (!is_first_term(i))
    add_to(total, term);
  else if (!is_in_place)
    copy_elements(total.data<void>(), term);
}

/// Adds the terms of running entries only. Returns false and adds nothing if the entries are not
/// the first dims of the term.
bool LoopRun::add_running(std::size_t i, const Tensor& term, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(term.type(), running);
  if (!mask || !std::equal(mask->dims().begin(), mask->dims().end(), term.dims().begin()))
    return false;
  const Tensor& total = out_.sums[i];
  const std::int64_t rows = mask->type().numel(), width = rows ? term.numel() / rows : 0,
                     bytes = rows ? term.type().bytes() / rows : 0;
  const bool* const is_running = mask->data<bool>();
  const bool is_first = is_first_term(i);
  for (std::int64_t row = 0, count = 0; row < rows; row += count) {
    for (count = 1; row + count < rows && is_running[row + count] == is_running[row];) ++count;
    char* const to = total.data<char>() + row * bytes;
    const auto size = static_cast<std::size_t>(count * bytes);
    if (!is_running[row]) {
      if (is_first) std::memset(to, 0, size);
      continue;
    }
    char* const from = term.data<char>() + row * bytes;
    const TensorType flat(term.dtype(), {Dim(count * width)});
    if (is_first)
      std::memcpy(to, from, size);
    else
      add_to(placed(flat, to), placed(flat, from));
  }
  return true;
}

void LoopRun::release_lists(Plan& body) {
  for (std::size_t k = 0; k < attrs_.body.graph->outputs.size(); ++k)
    if (!body.output_is_placed(k) && body.output(k).is_defined() && body.output(k).type().is_list())
      body.output(k) = Tensor();
}

}  // namespace reel
