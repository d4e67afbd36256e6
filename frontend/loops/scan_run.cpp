// The eager form of scan: a C++ loop that calls body in each iteration.
#include <algorithm>
#include <limits>

#include "reel/core/dims/dim_facts.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/core/ops/loop/printed_entries.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/loops/state/finished_capture_view.h"
#include "reel/frontend/loops/state/growing_dim_state.h"
#include "reel/frontend/loops/varying_ys.h"

namespace reel {
namespace {

/// One run of a scan.
class EagerScan {
 public:
  EagerScan(const ScanSpec& spec, const ScanPlan& plan)
      : spec_(spec),
        plan_(plan),
        rule_(plan.what, spec.initial, spec.state_paths, spec.returned_paths, spec.shape_invariants,
              StateRule::Asks::nothing),
        state_(as_own_values(spec.initial)),
        frozen_(rule_, {}, plan.entry_dims) {
    slices_begin_ = next_block_id();
    for (const Tensor& x : plan.xs) slices_.push_back(unstack_shown(x, 0));
    limit_ = plan.bound.is_defined() ? plan.bound.item<std::int64_t>() : INT64_MAX;
    for (const Tensors& slices : slices_)
      limit_ = std::min(limit_, static_cast<std::int64_t>(slices.size()));
  }

  ScanResult run() {
    {
      MarkedLoop marks(plan_.what);
      loop_begin_ = next_block_id();
      const bool has_entries = !plan_.entry_dims.empty();
      if (spec_.is_reverse) {
        for (std::int64_t k = limit_ - 1; k >= 0; --k) step(k, Tensor(), marks);
      } else {
        Tensor active;
        if (spec_.cond)
          active = mask_padding(spec_.cond_before_body ? eval_condition(0)
                                                       : ones(plan_.entry_dims, boolean));
        if (has_entries && spec_.cond) reached_ = zeros(plan_.entry_dims, i32);
        while (trips_ < limit_) {
          Tensor running = running_at(trips_);
          if (active.is_defined())
            running = running.is_defined() ? logical_and(active, running) : active;
          if (running.is_defined() && !any_running(running)) break;
          step(trips_, has_entries ? running : Tensor(), marks);
          if (spec_.cond) {
            if (has_entries) reached_ = reached_ + cast(running, i32);
            active = logical_and(active, eval_condition(trips_));
          }
        }
      }
    }
    return finish();
  }

 private:
  Tensor eval_condition(std::int64_t k) {
    random_.begin(k, 1);
    const LoopCondition condition = in_iteration(k, plan_.what, [&] { return spec_.cond(state_); });
    return stop_gradient(after_iteration(
        k, plan_.what, [&] { return checked_entry_condition(spec_, plan_, condition); }));
  }
  Tensor running_at(std::int64_t position) const {
    if (!plan_.lengths.is_defined()) return {};
    return mask_padding(less(scalar(position, plan_.lengths.dtype()), plan_.lengths));
  }

  void step(std::int64_t position, const Tensor& running, MarkedLoop& marks) {
    marks.begin_iteration(trips_);
    random_.begin(position);
    const std::uint64_t begin = next_block_id();
    const bool has_finished = running.is_defined() && !all_running(running);
    TreeLeaves x = spec_.xs, state = state_;
    if (!running.is_defined() || (!has_finished && rule_.slots().empty())) drop_tensors(state_);
    if (spec_.truncate && trips_ && trips_ % spec_.truncate == 0) cut_gradients(state);
    std::size_t next = 0;
    for (TreeLeaf& leaf : x)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = slices_[next++][position];
    ScanStep result;
    const auto call_body = [&] {
      std::optional<PrintedEntries> printed;
      if (running.is_defined()) printed.emplace(running, scalar(trips_, i64));
      std::optional<detail::RunningEntries> entries;
      if (has_finished && thread_mode.nan_checks) entries.emplace(Tensors{running});
      result = in_iteration(trips_, plan_.what, [&] { return spec_.body(x, std::move(state)); });
    };
    const auto check = [&] {
      after_iteration(trips_, plan_.what, [&] {
        result.state = own_state(rule_.checked(std::move(result.state)), begin);
        note_changes(result.state);
        note_varying(result.y);
        const TreeLeaves first = has_y_ ? first_for(result.y) : TreeLeaves();
        result.y = own_terms(
            checked_ys(spec_, plan_, std::move(result.y), has_y_ ? &first : nullptr), begin);
      });
    };
    if (has_finished) {
      FinishedCaptureView entries(running, dims_kept(state), loop_begin_, filled_captures_);
      show_running_entries(x, state, running, entries);
      {
        ModeScope scope({thread_mode.builder, thread_mode.tape, &entries});
        call_body();
      }
      entries.restore_state(result.state, state_);
      entries.restore(result.y);
    } else {
      call_body();
    }
    check();
    if (!has_y_) first_y_ = result.y;
    has_y_ = true;
    if (running.is_defined() && !frozen_.is_empty())
      result.state = frozen_.kept(std::move(result.state), state_, running);
    if (has_finished) {
      for (std::size_t i = 0; i < state_.size(); ++i)
        if (state_[i].kind == TreeLeaf::Kind::tensor && !frozen_.follows(i))
          result.state[i].tensor = keep_finished(result.state[i].tensor, state_[i].tensor, running);
      for (TreeLeaf& leaf : result.y)
        if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = zero_finished(leaf.tensor, running);
    }
    state_ = std::move(result.state);
    terms_.push_back(tensors_of(result.y));
    running_.push_back(has_finished ? running : Tensor());
    ++trips_;
  }

  /// Drops the references to a state that no entry keeps, so that the body's may be the only ones.
  static void drop_tensors(TreeLeaves& state) {
    for (TreeLeaf& leaf : state)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = {};
  }
  /// Makes the state a constant to gradients at the first iteration of a segment.
  static void cut_gradients(TreeLeaves& state) {
    for (TreeLeaf& leaf : state)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = stop_gradient(leaf.tensor);
  }
  /// Returns the dims that finished entries see unchanged: dims of the entries, and of elements of
  /// arrays in the state.
  Dims dims_kept(const TreeLeaves& state) const {
    Dims result = plan_.entry_dims;
    const Dims elements = dims_of_arrays(state);
    result.insert(result.end(), elements.begin(), elements.end());
    return result;
  }
  /// Fills the finished entries of x and state with values of a running entry.
  void show_running_entries(TreeLeaves& x, TreeLeaves& state, const Tensor& running,
                            FinishedCaptureView& entries) const {
    // Before the first iteration it is unknown which Dims change: assume all slots.
    const GrowingDimState frozen =
        has_y_ ? frozen_ : GrowingDimState(rule_, rule_.slots(), plan_.entry_dims);
    for (TreeLeaf& leaf : x)
      if (leaf.kind == TreeLeaf::Kind::tensor)
        leaf.tensor = frozen.goes_on() ? GrowingDimState::own_frame(leaf.tensor, running)
                                       : entries.filled(leaf.tensor);
    for (std::size_t i = 0; i < state.size(); ++i)
      if (state[i].kind == TreeLeaf::Kind::tensor && !frozen.follows(i))
        state[i].tensor = entries.filled(state[i].tensor);
    state = frozen.seen(std::move(state), running);
  }
  void note_changes(const TreeLeaves& returned) {
    const std::size_t known = changing_.size();
    for (const std::size_t i : rule_.slots())
      if (!(returned[i].dim == rule_.initial()[i].dim) &&
          std::find(changing_.begin(), changing_.end(), i) == changing_.end())
        changing_.push_back(i);
    if (changing_.size() != known) frozen_ = GrowingDimState(rule_, changing_, plan_.entry_dims);
  }
  /// Notes dims of y that may differ in size between iterations: a dim that the body makes, or a
  /// changing Dim of the state. A dim from outside that the state passes on is the same in every
  /// iteration.
  void note_varying(const TreeLeaves& ys) {
    DimChanges changing;
    for (const std::size_t i : changing_) changing.add(state_[i].dim, Dim("any", 0));
    for (std::size_t i = 0; i < ys.size(); ++i) {
      if (ys[i].kind != TreeLeaf::Kind::tensor || !ys[i].tensor.is_defined()) continue;
      const TensorType& y = ys[i].tensor.type();
      const Dims& dims = ys[i].tensor.dims();  // throws for an unknown rank
      for (int axis = 0; axis < y.rank(); ++axis) {
        const Dim& dim = dims[static_cast<std::size_t>(axis)];
        const bool may_stay = has_y_ ? has_dim(first_y_, i, dim) : is_of_state(dim);
        const bool is_other = has_y_ && !may_stay && dim.is_named() && is_made_from_lengths(dim);
        if ((changing.affects(dim) && !may_stay) || is_other || is_made_inside(dim))
          add_varying(varying_, i, axis);
      }
      if (const VaryingY* const varying = find_varying(varying_, i))
        check_varying(plan_, y, *varying);
    }
  }
  bool is_of_state(const Dim& dim) const {
    return std::any_of(changing_.begin(), changing_.end(),
                       [&](std::size_t i) { return state_[i].dim == dim; });
  }
  /// Returns y of the first iteration with dims of this iteration in the place of varying ones.
  /// Puts the axes of these ys into the order of the first iteration.
  TreeLeaves first_for(TreeLeaves& ys) const {
    TreeLeaves first = first_y_;
    for (const VaryingY& varying : varying_) {
      const std::size_t i = varying.leaf;
      if (i >= ys.size() || i >= first.size() || !ys[i].tensor.is_defined() ||
          !first[i].tensor.is_defined())
        continue;
      Tensor& y = ys[i].tensor;
      y = with_static_dims_of(first[i].tensor.type(), std::move(y));
      y = in_order_of_first(y, first[i].tensor.type(), varying);
      if (differs_in_varying(y.type(), first[i].tensor.type(), varying)) first[i].tensor = y;
    }
    return first;
  }
  static bool has_dim(const TreeLeaves& ys, std::size_t leaf, const Dim& dim) {
    return leaf < ys.size() && ys[leaf].kind == TreeLeaf::Kind::tensor &&
           contains(ys[leaf].tensor.dims(), dim);
  }
  /// True if the dim was made inside the loop, of lengths that a slice of xs may have. A dim
  /// computed inside from outer dims is the same in every iteration, so it does not count.
  bool is_made_inside(const Dim& dim) const {
    if (const DimExpression* expression = expression_of(dim))
      return std::any_of(expression->operands.begin(), expression->operands.end(),
                         [&](const Dim& of) { return is_made_inside(of); });
    return dim.is_named() && dim.node()->lengths &&
           is_id_since(dim.node()->lengths->id, slices_begin_) &&
           !(thread_mode.entries && thread_mode.entries->shows(dim));
  }

  ScanResult finish() {
    ScanResult result;
    result.state = as_own_values(state_);
    if (!has_y_ && spec_.has_ys) first_y_ = abstract_ys(spec_, plan_, rule_, &varying_);
    const std::string name = name_of_made_dim(plan_, first_y_);
    if (!plan_.makes_dim)
      result.dim = plan_.dim ? *plan_.dim : Dim(trips_);
    else if (name.empty())
      result.dim = Dim(trips_);
    else if (reached_.is_defined())
      result.dim = Dim(name, reached_);
    else
      result.dim = Dim(name, scalar(trips_, i32));
    if (spec_.is_reverse) {
      std::reverse(terms_.begin(), terms_.end());
      std::reverse(running_.begin(), running_.end());
    }
    result.ys = first_y_;
    std::size_t place = 0;
    for (std::size_t i = 0; i < result.ys.size(); ++i) {
      if (result.ys[i].kind != TreeLeaf::Kind::tensor) continue;
      Tensor& y = result.ys[i].tensor;
      const TensorType first = y.type();
      Tensors column;
      for (const Tensors& terms : terms_) column.push_back(terms[place]);
      ++place;
      const VaryingY* const varying = find_varying(varying_, i);
      if (spec_.return_tensor_arrays)
        y = as_array(first, column);
      else
        y = varying ? stack_varying(plan_, column, running_, first, *varying, result.dim)
                    : stacked(first, column, result.dim);
    }
    follow_stacks(first_y_, result.ys);
    return result;
  }

  static Tensor as_array(const TensorType& element, const Tensors& column) {
    Tensor list = list_new(element, 0);
    for (const Tensor& y : column) {
      // The type of a list has the dims of its last element.
      if (y.type() != list.type().element()) list = list_of_type(list, y.type().as_list());
      list = list_push(std::move(list), y);
    }
    return list;
  }
  static Tensor stacked(const TensorType& y, const Tensors& column, const Dim& dim) {
    if (!column.empty()) {
      Tensors all = column;
      all.resize(
          static_cast<std::size_t>(dim.size()));  // entries may all have ended before the dim does
      for (Tensor& term : all)
        if (!term.is_defined()) term = zeros(y);
      return stack(all, dim);
    }
    Dims dims{dim};
    for (const Dim& of : y.dims())
      dims.push_back(of.has_size() ? of : of.is_named() ? Dim(of.name(), 0) : Dim(0));
    return zeros(y.with(dims));
  }

  const ScanSpec& spec_;
  const ScanPlan& plan_;
  StateRule rule_;
  RandomScope random_;
  TreeLeaves state_, first_y_;
  std::vector<std::size_t> changing_;  // slots of the state that changed so far
  GrowingDimState frozen_;             // the leaves that have these Dims
  FilledCaptures filled_captures_;
  bool has_y_ = false;
  VaryingYs varying_;  // ys with dims of another size in every iteration
  std::vector<Tensors> slices_, terms_;
  Tensors running_;  // the running entries of each iteration, if some have finished
  Tensor reached_;
  std::uint64_t slices_begin_ = 0, loop_begin_ = 0;
  std::int64_t limit_ = 0, trips_ = 0;
};

}  // namespace

ScanResult run_scan(const ScanSpec& spec, const ScanPlan& plan) {
  return EagerScan(spec, plan).run();
}

}  // namespace reel
