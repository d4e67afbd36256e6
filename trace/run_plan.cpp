#include "reel/trace/run_plan.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/denormals.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/explain/donation_report.h"
#include "reel/trace/executors/plan/explain/explain.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/passes/residuals/recompute_runners.h"
#include "reel/trace/plan_counts.h"
#include "reel/trace/recent_sizes.h"
#include "reel/trace/sorted_rows.h"

namespace reel {
namespace {

Sizes sizes_of(const std::vector<TensorType>& types) {
  Sizes sizes;
  std::size_t count = 0;
  for (const TensorType& type : types) count += type.sizes().size();
  sizes.reserve(count);
  for (const TensorType& type : types)
    sizes.insert(sizes.end(), type.sizes().begin(), type.sizes().end());
  return sizes;
}

std::vector<TensorType> types_of(const Tensors& tensors) {
  std::vector<TensorType> types;
  types.reserve(tensors.size());
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

bool have_types(const Tensors& tensors, const std::vector<TensorType>& types) {
  return std::equal(
      tensors.begin(), tensors.end(), types.begin(), types.end(),
      [](const Tensor& tensor, const TensorType& type) { return tensor.block()->type == type; });
}

/// Returns true if results have dims that no input has: each run makes them anew, so that the types
/// of one run differ from the next. A plan may use its other dims in every run.
bool bears_dims(const Graph& graph) {
  std::unordered_set<const DimNode*> given;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& dim) { given.insert(dim.node()); });
  bool result = false;
  for (const ValueId v : graph.outputs)
    for_each_symbol(graph.types[v],
                    [&](const Dim& symbol) { result = result || !given.count(symbol.node()); });
  return result;
}

/// Cached with a graph: the graph after the plan's passes, and plans for some sizes.
class PlannedGraph {
 public:
  struct Entry {
    Sizes sizes;
    std::vector<TensorType> types;
    std::unique_ptr<Profile> profile;  ///< of profiled runs
    std::shared_ptr<Plan> plan;
    PlanMemoryNeed need;      ///< of the plan
    RunPlaces places;         ///< of its last run
    bool sorts_rows = false;  ///< it runs on sorted rows, if it can
    std::string rows;         ///< RowsOfCall::text() of its last run
    std::int64_t bytes = 0;   ///< Plan::held_bytes() after a run with other sizes or dims
    bool is_changed = true;   ///< this run has other sizes or dims than the plan's last one
  };

  using All = std::vector<std::unique_ptr<PlannedGraph>>;

  /// is_checked: plans check the result of every instruction (DetectNan), and overwrite no input.
  static PlannedGraph& of(const Graph& graph, const Passes& passes, bool is_profiled,
                          bool is_checked = false) {
    const std::lock_guard lock(graph.plans.mutex);
    if (!graph.plans.value) graph.plans.value = std::make_shared<All>();
    All& all = *static_cast<All*>(const_cast<void*>(graph.plans.value.get()));
    for (const auto& planned : all)
      if (planned->passes_ == passes && planned->is_profiled_ == is_profiled &&
          planned->is_checked_ == is_checked)
        return *planned;
    return *all.emplace_back(
        std::make_unique<PlannedGraph>(graph, passes, is_profiled, is_checked));
  }
  PlannedGraph(const Graph& graph, const Passes& passes, bool is_profiled, bool is_checked)
      : passes_(passes),
        is_profiled_(is_profiled),
        is_checked_(is_checked),
        formal_count_(graph.formal_count) {
    const detail::NanCheckScope no_checks(nullptr);
    SortedRows::RowsOfGraph rows;
    if (passes.shrink_batch) rows = SortedRows::rows_of(graph, passes);
    const Ref<Graph> numbered = rows.numbered;
    const Graph& recorded = numbered ? *numbered : graph;
    Optimised optimised = optimise_for_plan(recorded, passes);
    graph_ = std::move(optimised.graph);
    takes_numbers_ = static_cast<bool>(numbered);
    if (has_recomputes(*graph_)) graph_ = recompute_by(*graph_, {run_plan, {passes}});
    captures_ = std::move(optimised.kept_captures);
    if (passes.shrink_batch) rows_.emplace(recorded, captures_, std::move(rows), passes);
    bears_dims_ = bears_dims(*graph_);
  }

  /// Frees the memory that its plans gave back on this thread, unless other plans need it.
  ~PlannedGraph() {
    for (const Entry& entry : entries_) entry.need.note_end();
    entries_.clear();
    free_unneeded_plan_memory();
  }
  PlannedGraph(const PlannedGraph&) = delete;
  PlannedGraph& operator=(const PlannedGraph&) = delete;

  /// Returns the inputs of the plans. Moves the formal inputs out of `all`.
  Tensors inputs_of(Tensors& all) const {
    const Tensors numbers = takes_numbers_ ? rows_->numbers_of(all) : Tensors();
    const auto formal = std::make_move_iterator(all.begin());
    Tensors inputs;
    inputs.reserve(formal_count_ + captures_.size());
    inputs.assign(formal, formal + static_cast<std::ptrdiff_t>(formal_count_));
    for (const int i : captures_) {
      const std::size_t at = formal_count_ + static_cast<std::size_t>(i);
      inputs.push_back(at < all.size() ? all[at] : numbers[at - all.size()]);
    }
    return inputs;
  }

  /// Returns the rows of a call.
  std::optional<RowsOfCall> rows_of_call() {
    return rows_ ? std::optional<RowsOfCall>(*rows_) : std::nullopt;
  }

  /// Returns a plan for these inputs, and sorts their rows if the plan runs so. The plan is removed
  /// from the cache during the run: one run at a time.
  Entry take(Tensors& inputs, std::optional<RowsOfCall>& rows) {
    Entry entry = take_or_make(inputs, rows);
    entry.need.set(entry.plan->memory_bytes());
    return entry;
  }
  void give_back(Entry entry) {
    entry.plan->release();
    entry.plan->give_back_memory();
    if (entry.is_changed) entry.bytes = entry.plan->held_bytes();
    const std::lock_guard lock(mutex_);
    try {
      entries_.insert(entries_.begin(), std::move(entry));  // the one used last in front
    } catch (const std::bad_alloc&) {                       // the next run makes a plan
    }
    // The memory of a replaced plan stays on the thread: it may serve the next size.
    while (entries_.size() > 1 && held_bytes() > kMaxPlanBytes) entries_.pop_back();
  }
  /// Records that the interpreter ran the call because the plan failed.
  void note_failure(const char* message) {
    const std::lock_guard lock(mutex_);
    failure_ = message;
  }
  std::optional<std::string> explain() {
    const std::lock_guard lock(mutex_);
    std::string result;
    if (!failure_.empty())
      result = str("run op by op, by the interpreter, because its plan failed: ", failure_, '\n');
    if (entries_.empty()) return result.empty() ? std::nullopt : std::optional(result);
    const Entry& last = entries_.front();
    if (!failure_.empty()) result += "as of the call before:\n";
    const std::string rows = last.rows.empty() && last.sorts_rows ? rows_->text() : last.rows;
    if (!rows.empty()) result += rows + '\n';
    if (const std::string plans = counts_.text(entries_.size(), held_bytes()); !plans.empty())
      result += plans + '\n';
    return result + reel::explain(*last.plan, in_place_text(*last.plan, last.places));
  }

  Planned planned() {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return {{}, nullptr, failure_};
    return {graph_, entries_.front().profile.get(), failure_};
  }

 private:
  /// A plan that was taken from the cache.
  struct Taken {
    Entry entry;           ///< without a plan if none has these sizes
    Entry other;           ///< a plan for other sizes that is to be resized
    bool is_same = false;  ///< the inputs have the types of the plan's last run
  };

  Entry take_or_make(Tensors& inputs, std::optional<RowsOfCall>& rows) {
    Taken taken = take_cached(inputs);
    Entry& entry = taken.entry;
    const bool are_sorted = rows && (!entry.plan || entry.sorts_rows) && rows->sort(inputs);
    if (are_sorted || !taken.is_same) {
      taken.is_same = have_types(inputs, entry.types);
      if (!taken.is_same) entry.types = types_of(inputs);
    }
    if (entry.plan) entry.plan->take_memory();
    entry.is_changed = !entry.plan || !taken.is_same || bears_dims_;
    if (!entry.is_changed) return std::move(entry);
    const std::int64_t begin = nanoseconds_now();
    if (entry.plan && entry.plan->rebind(entry.types, {})) {
      count(counts_.bound, begin);
      return std::move(entry);
    }
    make_plan(entry, taken.other);
    count(taken.other.plan ? counts_.resized : counts_.made, begin);
    entry.sorts_rows = rows && SortedRows::suits(*entry.plan);
    if (rows && !entry.sorts_rows) {
      rows->restore(inputs, inputs.size());
      entry.types = types_of(inputs);
      entry.plan->rebind(entry.types, {});
    }
    return std::move(entry);
  }

  /// Takes the plan for the inputs' sizes, or one to be resized, out of the cache.
  Taken take_cached(const Tensors& inputs) {
    Taken taken;
    const std::lock_guard lock(mutex_);
    failure_.clear();
    auto found = entries_.begin();
    // Most calls have the types of the last one: no list of sizes is needed to find its plan.
    taken.is_same = found != entries_.end() && have_types(inputs, found->types);
    if (!taken.is_same) {
      const auto& sizes = taken.entry.sizes = sizes_of(types_of(inputs));
      found =
          std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.sizes == sizes; });
      const bool pays = recent_.recur(sizes);
      const bool has_room =
          entries_.empty() || held_bytes() + entries_.front().bytes <= kMaxPlanBytes;
      if (found == entries_.end() && !entries_.empty() && !(pays && has_room)) {
        taken.other = std::move(entries_.back());
        entries_.pop_back();
        found = entries_.end();
      }
    }
    if (found == entries_.end()) return taken;
    Entry& entry = taken.entry = std::move(*found);
    entries_.erase(found);
    if (entry.profile && std::exchange(entry.profile->is_first, false)) entry.profile->clear();
    return taken;
  }

  /// Makes a plan for the types of an entry. other: without a plan, or resized.
  void make_plan(Entry& entry, Entry& other) {
    if (other.profile) {
      entry.profile = std::move(other.profile);
      entry.profile->clear();
      entry.profile->is_first = true;
    } else if (is_profiled_) {
      entry.profile = std::make_unique<Profile>();
    }
    entry.plan = std::make_shared<Plan>(
        *graph_, entry.types, DimEnv(),
        std::vector<Plan::Outputs>(graph_->outputs.size(), Plan::Outputs::blocks),
        is_checked_ ? Plan::Inputs::lent : Plan::Inputs::given,
        PlanContext{passes_, entry.profile.get(), is_checked_}, other.plan.get());
  }

  std::int64_t held_bytes() const {
    std::int64_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.bytes;
    return bytes;
  }

  void count(PlanCounts::Count& of, std::int64_t begin) {
    const std::int64_t end = nanoseconds_now();
    const std::lock_guard lock(mutex_);
    ++of.times;
    of.nanoseconds += end - begin;
  }

  /// Bound of the bytes that plans for sizes that recur hold, besides the one used last. For other
  /// sizes, the least recently used plan is resized.
  static constexpr std::int64_t kMaxPlanBytes = std::int64_t{64} << 20;
  Passes passes_;
  bool is_profiled_, is_checked_;
  std::size_t formal_count_;
  Ref<Graph> graph_;
  std::vector<int> captures_;  ///< captures of the graph that the plans take
  bool bears_dims_ = false;
  bool takes_numbers_ = false;      ///< plans take SortedRows::numbers_of() behind the captures
  std::optional<SortedRows> rows_;  ///< none: rows keep their places
  std::mutex mutex_;
  std::vector<Entry> entries_;
  RecentSizes recent_;
  PlanCounts counts_;
  std::string failure_;  ///< why the interpreter ran the last call; empty: it did not
};

/// Moves the arguments of a run back to their source unless the run succeeded.
class ArgumentsOfRun {
 public:
  /// from: the caller's inputs, with formal inputs moved out. inputs: of the plan. rows: of the
  /// inputs.
  ArgumentsOfRun(std::size_t count, Tensors& from, Tensors& inputs, std::optional<RowsOfCall>& rows)
      : count_(count), from_(from), inputs_(inputs), rows_(rows) {}
  ~ArgumentsOfRun() { give_back(); }
  ArgumentsOfRun(const ArgumentsOfRun&) = delete;
  ArgumentsOfRun& operator=(const ArgumentsOfRun&) = delete;

  void hand_to(Plan& plan) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) plan.set_input(i, std::move(inputs_[i]));
    plan_ = &plan;
  }
  void give_back() {
    for (std::size_t i = 0; i < count_; ++i)
      from_[i] = plan_ ? plan_->input_before(i) : std::move(inputs_[i]);
    if (rows_) rows_->restore(from_, count_);
    count_ = 0;
  }
  void let_go() { count_ = 0; }

 private:
  std::size_t count_;
  Tensors &from_, &inputs_;
  std::optional<RowsOfCall>& rows_;
  Plan* plan_ = nullptr;
};

/// Returns the passes that leave every op where the program has it, and its operands as they are.
Passes without_motion(Passes passes) {
  passes.hoist_invariants = passes.multiply_tables = passes.batch_over_time = false;
  passes.split_loops = passes.chunk_loops = passes.adjoin_loops = false;
  passes.fuse_pointwise = passes.cut_rows = passes.shrink_batch = false;
  passes.reuse_memory = false;  // checks read operands behind the op
  return passes;
}

Tensors run(const GraphRef& graph, Tensors&& all_inputs, const Passes& given, bool is_profiled) {
  ModeScope plain({});
  const bool is_checked = thread_mode.nan_checks != nullptr;
  if (is_checked && has_lasting_effects(*graph)) return interpret(graph, std::move(all_inputs));
  const Passes passes = is_checked ? without_motion(given) : given;
  const std::int64_t begin = is_profiled ? nanoseconds_now() : 0;
  is_profiled = is_profiled && !is_checked;
  PlannedGraph& planned = PlannedGraph::of(*graph, passes, is_profiled, is_checked);
  Tensors inputs = planned.inputs_of(all_inputs);
  std::optional<RowsOfCall> rows = planned.rows_of_call();
  // If the run throws, the plan is dropped too: its state is of no use.
  std::optional<PlannedGraph::Entry> entry;
  ArgumentsOfRun arguments(graph->formal_count, all_inputs, inputs, rows);
  entry.emplace(planned.take(inputs, rows));
  Plan& plan = *entry->plan;
  Tensors outputs;
  outputs.reserve(graph->outputs.size());
  entry->places.note_arguments(inputs, graph->formal_count);
  entry->places.results.reserve(graph->outputs.size());
  if (rows) rows->mark_copies(entry->places.are_copies);
  if (rows) rows->make_outputs(plan);
  entry->rows = rows ? rows->text() : std::string();
  if (entry->profile) entry->profile->forget_events();
  arguments.hand_to(plan);
  try {
    const DenormalScope scope(passes.flush_denormals ? DenormalMode::flushing()
                                                     : DenormalMode::now());
    plan.run();
  } catch (const IoError&) {
    throw;  // a full disk would be filled once more
  } catch (const CancelledError&) {
    throw;
  } catch (const MemoryError&) {
    throw;  // the interpreter has other bits, and needs more memory
  } catch (const Error& error) {
    // A hoisted op cannot say in which iteration it failed; the interpreter can. The op may even
    // come from a loop that does not run, or the NaN that DetectNan found from a finished entry, so
    // that the call succeeds there. No input has been overwritten: only instructions that cannot
    // fail do so.
    arguments.give_back();
    if (has_lasting_effects(*graph)) throw;
    outputs = interpret(graph, std::move(all_inputs));
    planned.note_failure(error.what());
    return outputs;
  }
  for (std::size_t k = 0; k < graph->outputs.size(); ++k)
    outputs.push_back(rows ? rows->put_back(k, plan.take_output(k)) : plan.take_output(k));
  arguments.let_go();
  entry->places.note_results(outputs);
  if (entry->profile) entry->profile->nanoseconds += nanoseconds_now() - begin;
  planned.give_back(std::move(*entry));
  return outputs;
}

}  // namespace

Tensors run_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  return run(graph, std::move(inputs), options.passes, false);
}
Tensors run_profiled_plan(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  return run(graph, std::move(inputs), options.passes, true);
}

std::optional<std::string> explain_plan(const Graph& graph, const Passes& passes,
                                        bool is_profiled) {
  if (!graph.plans.value) return std::nullopt;
  ModeScope plain({});
  return PlannedGraph::of(graph, passes, is_profiled).explain();
}

Planned planned_graph(const Graph& graph) {
  const std::lock_guard lock(graph.plans.mutex);
  Planned result;
  if (!graph.plans.value) return result;
  for (const auto& planned : *static_cast<const PlannedGraph::All*>(graph.plans.value.get()))
    if (Planned found = planned->planned();
        (found.graph || !found.failure.empty()) && !result.profile)
      result = std::move(found);
  return result;
}

}  // namespace reel
