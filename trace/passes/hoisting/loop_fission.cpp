#include "reel/trace/passes/hoisting/loop_fission.h"

#include <algorithm>
#include <utility>

#include "reel/core/op/bind.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/nested_step_types.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/passes/analysis/one_chain.h"
#include "reel/trace/passes/support/grows_large.h"

namespace reel {
namespace {

/// Returns true if the type is no list and mentions no dim that only the body knows.
bool is_known_outside(const TensorType& type, const DimEnv& env) {
  bool result = true;
  for_each_symbol(type, [&](const Dim& symbol) { result = result && env.knows(symbol); });
  for (const Dim& dim : type.dims()) result = result && (dim.is_named() || dim.has_size());
  return result && !type.is_list();
}

/// Returns the input types with the element types of lists of slices removed: dims that an element
/// brings along may differ between iterations.
std::vector<TensorType> without_elements(const LoopAttrs& attrs,
                                         std::span<const TensorType> inputs) {
  std::vector<TensorType> result(inputs.begin(), inputs.end());
  for (TensorType& slices : operands_of(attrs, result).slices)
    if (slices.is_list()) slices = TensorType(slices.dtype()).as_list();
  return result;
}

/// Returns true if entries finish one by one and some slices are a list of tensors. A loop along no
/// dim, such as one without slices, saves residuals in lists, from which nothing is computed for
/// all iterations at once. Residuals of inner loops, a list in each iteration, do not count.
bool has_list_slices(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const auto slices = operands_of(attrs, inputs).slices;
  const auto formals = body_inputs(attrs).slices;
  for (std::size_t i = 0; attrs.has_entries() && i < slices.size(); ++i)
    if (slices[i].is_list() && !attrs.body.graph->types[formals[i]].is_list()) return true;
  return false;
}

bool computes_again(const Graph& body) {
  return std::any_of(body.records.begin(), body.records.end(),
                     [](const OpRecord& record) { return record.recompute != Recompute::no; });
}

/// Returns true if a policy keeps residuals of few iterations in memory. Ops that run once for all
/// iterations would need values of all of them.
bool has_few_steps(const LoopAttrs& attrs) {
  return attrs.has_windows() || attrs.keeps_few_steps();
}

}  // namespace

LoopFission::LoopFission(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                         const Dim& time, const DimChanges& renames, Leaves leaves, Packs packs)
    : attrs_(attrs),
      body_(*attrs.body.graph),
      time_(time),
      renames_(renames),
      is_open_(is_step_open(attrs, inputs)),
      packs_(packs),
      asked_(leaves),
      leaves_(is_open_ || has_few_steps(attrs) || is_one_chain(attrs) ? Leaves::once : leaves),
      env_(body_env(attrs, without_elements(attrs, inputs))),
      prints_(has_effects(body_)),
      placement_(body_.types.size(), Placement::in_loop),
      is_hoisted_(body_.records.size()),
      is_sunk_(body_.records.size()),
      makers_(body_.types.size(), kNone) {
  for (std::size_t r = 0; r < body_.records.size(); ++r)
    if (const auto out = body_.outputs_of(body_.records[r]); !out.empty()) makers_[out[0]] = r;
  const auto formals = body_inputs(attrs);
  for (std::size_t i = 0; i < formals.slices.size() && leaves_ == Leaves::all; ++i)
    if (!operands_of(attrs, inputs).slices[i].is_list())
      placement_[formals.slices[i]] = Placement::batched;
  for (const ValueId v : formals.captures) placement_[v] = Placement::invariant;
  if (attrs.has_entries()) {
    finished_.emplace(attrs, inputs);
    // If lengths run over entries, the body reads the lengths of a running entry, which differ from
    // those outside.
    for (const ValueId v : body_.inputs)
      if (finished_->is_mixed(v)) placement_[v] = Placement::in_loop;
    for (const ValueId v : formals.slices)
      if (finished_->has_filled_padding(v)) placement_[v] = Placement::in_loop;
  }
  is_needed_ = find_needed(false);
  is_term_ = find_terms_inside();
  hoist();
  std::vector<std::uint8_t> is_left_if_kept(body_.records.size());
  if (leaves_ == Leaves::all && computes_again(body_) && !has_list_slices(attrs, inputs))
    is_left_if_kept = find_left_if_kept();
  leaves_if_kept_ =
      std::any_of(is_left_if_kept.begin(), is_left_if_kept.end(), [](auto is) { return is; });
  if (attrs_.is_gradient_loop)
    keep_cheap_inside();
  else
    keep_grown_inside();
  if (leaves_ == Leaves::all) sink(is_left_if_kept);
  keep_what_is_again();
}

bool LoopFission::changes_anything() const {
  return std::count(is_sunk_.begin(), is_sunk_.end(), 1) ||
         std::count(is_hoisted_.begin(), is_hoisted_.end(), 1);
}

bool LoopFission::would_change_anything() const { return leaves_if_kept_ || changes_anything(); }

/// Keeps recomputed records in the loop if nothing else leaves it: with all residuals kept, the
/// loop would be unchanged.
void LoopFission::keep_what_is_again() {
  std::vector<std::uint8_t> is_again(body_.records.size());
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    if (!is_sunk_[r] && !is_hoisted_[r]) continue;
    const OpRecord& record = body_.records[r];
    is_again[r] = record.recompute != Recompute::no &&
                  placement_[body_.outputs_of(record)[0]] != Placement::invariant;
    if (!is_again[r]) return;
  }
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    if (!is_again[r]) continue;
    is_sunk_[r] = is_hoisted_[r] = 0;
    for (const ValueId v : body_.outputs_of(body_.records[r])) placement_[v] = Placement::in_loop;
  }
}

/// Returns true if the record treats each entry on its own. if_kept: values without rows, to which
/// several entries contributed, count as slices.
bool LoopFission::keeps_rows(const OpRecord& record, bool if_kept) const {
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  if (if_kept && finished_ && std::all_of(out.begin(), out.end(), [&](ValueId v) {
        return finished_->rows().made_of_one_row(v);
      }))
    return true;
  return !finished_ ||
         (!finished_->mixes(record) &&
          std::none_of(in.begin(), in.end(), [&](ValueId v) { return finished_->is_mixed(v); }));
}

/// Returns true if the record may fail and the body prints: the failure must not come before the
/// print.
bool LoopFission::may_fail_behind_print(const OpRecord& record) const {
  return prints_ && fails_for_values(*record.op, record.attrs.get());
}

bool LoopFission::can_leave(const OpRecord& record) const {
  if (record.op->kernel_decides_types || has_effects(record) || may_fail_behind_print(record))
    return false;
  bool knows_dims = true;  // and none that other records of the body make
  if (record.attrs)
    record.attrs->each_symbol(
        [&](const Dim& dim) { knows_dims = knows_dims && (dim.has_size() || env_.knows(dim)); });
  if (!knows_dims) return false;
  for (const ValueId v : body_.outputs_of(record))
    if (!is_known_outside(body_.types[v], env_)) return false;
  for (const ValueId v : body_.inputs_of(record))
    if (!is_known_outside(body_.types[v], env_)) return false;
  return true;
}

/// Returns true if no tensor can hold all time steps of the value. Either named dims would meet
/// plain ones, or the loop's dim would be there twice. Or lengths run over it, so that there would
/// be padding that a time step does not have.
bool LoopFission::clashes_with_time(ValueId v) const {
  const TensorType step = env_.resolve(body_.types[v]);
  if (step.rank() > 0 && step.is_named() != time_.is_named()) return true;
  return time_.is_named() &&
         std::any_of(step.dims().begin(), step.dims().end(), [&](const Dim& dim) {
           return dim == time_ || contains(dim.length_dims(), time_);
         });
}

/// Returns true if the op can run over all time steps: tries its rule in a graph that is discarded.
bool LoopFission::has_rule(const OpRecord& record, const std::vector<std::uint8_t>& is_many,
                           bool is_summed) const {
  const IterationBatchingRule rule = iteration_batching_rule(*record.op);
  if (!rule) return false;
  const auto in = body_.inputs_of(record);
  for (const ValueId v : in)
    if (clashes_with_time(v)) return false;
  for (const ValueId v : body_.outputs_of(record))
    if (clashes_with_time(v)) return false;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < in.size(); ++i) types.push_back(outside(in[i], is_many[i]));
  bool result = false;
  try {
    const RecordedGraph attempt = record_part(types, [&](const Tensors& inputs) {
      const Tensors made = apply(record, inputs, is_many, is_summed);
      const auto out = body_.outputs_of(record);
      result = made.size() == out.size();
      for (std::size_t i = 0; result && i < out.size(); ++i)
        result = made[i].type() == outside(out[i], !is_summed);
      return Tensors();
    });
    return result && attempt.captured.empty();
  } catch (const MemoryError&) {
    throw;                  // a graph must not depend on how much memory was free when it was made
  } catch (const Error&) {  // attributes of one time step need not fit all
    return false;
  }
}

/// Returns true for a product of at least 8 rows with a matrix that stays in the cache: it is as
/// fast in each iteration as over all time steps at once, and its readers find the result in the
/// cache. Also for gathers of as many rows of at least 64 columns from a matrix.
bool LoopFission::is_fast_inside(const OpRecord& record) const {
  constexpr std::int64_t kRows = 8, kCached = 64 * 1024, kColumns = 64;
  const auto in = body_.inputs_of(record);
  if (record.op == &gather_op) {
    const TensorType &table = body_.types[in[0]], &made = body_.types[body_.outputs_of(record)[0]];
    return placement_[in[0]] == Placement::invariant && table.rank() == 2 && made.is_known() &&
           made.sizes().back() >= kColumns && made.numel() >= kRows * made.sizes().back() &&
           table.dims()[1] == made.dims().back();
  }
  if (record.op != &dot_op) return false;
  if (is_light(record)) return true;
  if (placement_[in[0]] == Placement::invariant || placement_[in[1]] != Placement::invariant)
    return false;
  const TensorType &a = body_.types[in[0]], &b = body_.types[in[1]];
  if (!a.is_known() || !b.is_known() || b.numel() == 0 || b.numel() > kCached) return false;
  std::int64_t inner = 1;
  for (const int axis : get<DotAttrs>(record.attrs.get()).a_contract)
    inner *= a.sizes()[static_cast<std::size_t>(axis)];
  return a.numel() >= kRows * inner;
}

/// Returns the order in which an iteration adds up the product if it suits any number of rows;
/// otherwise by_sizes.
SumOrder LoopFission::order_in_step(const OpRecord& record) const {
  const auto in = body_.inputs_of(record);
  const TensorType &a = body_.types[in[0]], &b = body_.types[in[1]];
  if (!a.is_known() || !b.is_known()) return SumOrder::by_sizes;
  const auto& dot = get<DotAttrs>(record.attrs.get());
  const SumOrder order = placement_[in[1]] == Placement::invariant
                             ? order_in_steps(attrs_, dot, a, b, packs_)
                             : dot_order(dot, a, b);
  return has_alike_rows(order) ? order : SumOrder::by_sizes;
}

/// Returns true for sums of at least 512 elements. In each iteration they cost little more, as
/// their operands are in the cache. Summed over all time steps at once, these would have to be kept
/// and read again.
bool LoopFission::is_warm_inside(const OpRecord& record) const {
  constexpr std::int64_t kElements = 512;
  if (finished_ || !record.op->gains_from_batching || record.op == &dot_op) return false;
  const auto in = body_.inputs_of(record);
  return std::all_of(in.begin(), in.end(), [&](ValueId v) {
    return body_.types[v].is_known() && body_.types[v].numel() >= kElements;
  });
}

/// Returns true for a recomputed product or sum that an iteration depended on. If it had been
/// saved, it would be a slice that was computed one iteration at a time. Over all time steps at
/// once, a product may have other bits if the rows of its order are not alike (order_in_step).
bool LoopFission::must_stay(const OpRecord& record) const {
  return record.recompute == Recompute::in_steps && record.op->gains_from_batching;
}

/// Returns where the results of a record that can be hoisted are available; nothing if it cannot.
std::optional<Placement> LoopFission::home_before(const OpRecord& record, bool if_kept) const {
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  if (!can_leave(record) || !keeps_rows(record, if_kept) || must_stay(record)) return std::nullopt;
  bool any_steps = false;
  std::vector<std::uint8_t> is_many;
  for (const ValueId v : in) {
    if (placement_[v] == Placement::in_loop) return std::nullopt;
    any_steps = any_steps || placement_[v] == Placement::batched;
    is_many.push_back(placement_[v] == Placement::batched);
  }
  if (any_steps && (is_fast_inside(record) || !has_rule(record, is_many))) return std::nullopt;
  if (!any_steps && !in.empty() && !record.op->gains_from_batching && grows(record))
    return std::nullopt;
  if (finished_ &&
      !std::all_of(out.begin(), out.end(), [&](ValueId v) { return finished_->fill(v); }))
    return std::nullopt;
  return any_steps ? Placement::batched : Placement::invariant;
}

void LoopFission::hoist() {
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const std::optional<Placement> home = home_before(record);
    if (!home) continue;
    is_hoisted_[r] = record.input_count != 0;  // a constant costs nothing inside
    for (const ValueId v : body_.outputs_of(record)) placement_[v] = *home;
  }
}

/// Returns, by record, whether it is not hoisted, but would be if recomputed values were residuals
/// and came as slices.
std::vector<std::uint8_t> LoopFission::find_left_if_kept() {
  const std::vector<Placement> homes = placement_;
  const std::vector<std::uint8_t> is_hoisted = is_hoisted_;
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
    if (placement_[out[0]] != Placement::in_loop) continue;
    std::optional<Placement> home;
    if (record.recompute == Recompute::no)
      home = home_before(record, true);
    else if (std::any_of(in.begin(), in.end(),
                         [&](ValueId v) { return placement_[v] != Placement::invariant; }))
      home = Placement::batched;
    for (const ValueId v : out)
      if (home && is_known_outside(body_.types[v], env_) &&
          !(finished_ && finished_->is_mixed(v) && !finished_->has_no_rows(v)))
        placement_[v] = *home;
    is_hoisted_[r] = home && record.recompute == Recompute::no;
  }
  if (attrs_.is_gradient_loop) keep_cheap_inside();
  std::vector<std::uint8_t> result = std::exchange(is_hoisted_, is_hoisted);
  for (std::size_t r = 0; r < result.size(); ++r) result[r] = result[r] && !is_hoisted_[r];
  placement_ = homes;
  return result;
}

/// Returns true if, hoisted, a result would take much more memory than its operands.
bool LoopFission::grows(const OpRecord& record) const {
  std::vector<TensorType> in;
  for (const ValueId v : body_.inputs_of(record)) in.push_back(outside(v, false));
  const auto out = body_.outputs_of(record);
  return std::any_of(out.begin(), out.end(),
                     [&](ValueId v) { return grows_large(outside(v, false), in); });
}

/// Sinks records on which no carry or list depends, from the first op that gains by it on.
void LoopFission::sink(const std::vector<std::uint8_t>& is_left_if_kept) {
  const std::vector<std::uint8_t> is_only_summed = find_only_summed(), is_added = find_added();
  // Values that are a reason to sink their readers. is_after: made by sunk records. is_behind:
  // recomputed values as well. Had a recomputed value been saved, it would be a slice, and slices
  // are no reason to sink a record that is not recomputed itself.
  std::vector<std::uint8_t> is_after(body_.types.size()), is_behind(body_.types.size());
  // A hoisted value may be added to a value of the loop, and both to a sum. The sum then becomes
  // two sums.
  const auto is_reason_before = [&](const OpRecord& record) {
    const ValueId out = body_.outputs_of(record)[0];
    return is_term_[out] || (record.op->gains_from_batching && is_added[out]);
  };
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const ValueId out = body_.outputs_of(record)[0];
    if (is_hoisted_[r] && record.recompute == Recompute::no &&
        placement_[out] == Placement::batched)
      is_behind[out] = is_after[out] = is_reason_before(record);
  }
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
    if (is_hoisted_[r] || in.empty() || !can_leave(record) || must_stay(record) ||
        !(keeps_rows(record, is_left_if_kept[r]) || is_sum_over_entries(record, is_only_summed)) ||
        std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed_[v]; }))
      continue;
    if (finished_ && std::any_of(in.begin(), in.end(), [&](ValueId v) {
          return placement_[v] == Placement::in_loop && finished_->has_filled_padding(v);
        }))
      continue;
    const std::vector<std::uint8_t>& is_reason =
        record.recompute == Recompute::no ? is_after : is_behind;
    if ((!record.op->gains_from_batching || is_fast_inside(record) || is_warm_inside(record)) &&
        !(is_left_if_kept[r] && is_term_[out[0]]) &&
        std::none_of(in.begin(), in.end(), [&](ValueId v) { return is_reason[v]; }))
      continue;
    std::vector<std::uint8_t> is_many;
    for (const ValueId v : in) is_many.push_back(placement_[v] != Placement::invariant);
    const bool leaves_as_sum =
        !finished_ && record.op->gains_from_batching && is_only_summed[out[0]];
    if (!has_rule(record, is_many) && !(leaves_as_sum && has_rule(record, is_many, true))) continue;
    is_sunk_[r] = 1;
    for (const ValueId v : out) {
      is_behind[v] = 1;
      is_after[v] =
          record.recompute == Recompute::no && (!is_left_if_kept[r] || is_reason_before(record));
    }
  }
  // Operands of a record that stays must stay as well.
  std::vector<std::uint8_t> is_read(body_.types.size());
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const auto out = body_.outputs_of(record);
    if (std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_read[v]; })) is_sunk_[r] = 0;
    if (!is_sunk_[r] && !is_hoisted_[r])
      for (const ValueId v : body_.inputs_of(record)) is_read[v] = 1;
  }
}

TensorType LoopFission::outside(ValueId v, bool is_many) const {
  const TensorType step = env_.resolve(body_.types[v]);
  if (!is_many) return step;
  Dims dims{time_};
  dims.insert(dims.end(), step.dims().begin(), step.dims().end());
  return step.with(dims);
}

Tensors LoopFission::apply(const OpRecord& record, const Tensors& in,
                           const std::vector<std::uint8_t>& is_many, bool is_summed) const {
  AttrsRef attrs = record.attrs;
  if (attrs) attrs = attrs->resolve(env_);
  if (std::count(is_many.begin(), is_many.end(), 1) == 0) return bind_all(*record.op, in, attrs);
  if (record.op == &dot_op) {
    DotAttrs dot = get<DotAttrs>(attrs.get());
    dot.order = order_in_step(record);
    attrs = dot_attrs(std::move(dot));
  }
  std::vector<TensorType> step_out;
  for (const ValueId v : body_.outputs_of(record)) step_out.push_back(outside(v, false));
  return iteration_batching_rule(*record.op)(
      {*record.op, attrs, in, is_many, step_out, time_, is_summed});
}

}  // namespace reel
