// core/graph/graph.h — OpRecords, the list of applied ops that is both tape and graph; Graph, such
// a list with inputs and outputs.
#pragma once

#include <iosfwd>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/base/source.h"
#include "reel/core/base/visibility.h"
#include "reel/core/dims/dim_changes.h"
#include "reel/core/op/op.h"

REEL_API_BEGIN
namespace reel {

/// Whether a record recomputes, for a gradient, a value that was computed before and not saved.
/// Records that recompute exist under some policies and rules only; decisions about other records
/// must not depend on them.
enum class Recompute : std::uint8_t {
  no,
  yes,
  in_steps,  ///< part of the loop-carried dependency: the loop did not compute it for all
             ///< iterations at once
};
namespace detail {
inline constinit thread_local Recompute open_recompute = Recompute::no;
}  // namespace detail

/// Marks records that this thread makes during its lifetime as recomputed (Recompute::yes).
class RecomputeScope {
 public:
  RecomputeScope() : before_(detail::open_recompute) { detail::open_recompute = Recompute::yes; }
  ~RecomputeScope() { detail::open_recompute = before_; }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  Recompute before_;
};

/// One application of an op: the op, its attributes, and the values that it reads and makes.
struct OpRecord {
  const Op* op;
  AttrsRef attrs;
  std::uint32_t first;  ///< index of its operands in OpRecords::operands: inputs, then outputs
  std::uint32_t input_count, output_count;
  SourceId source = kNoSource;  ///< the place in the user's program
  Recompute recompute = Recompute::no;
};

/// Records made on this thread during its lifetime replace `record`: they inherit its source and
/// its Recompute.
class InheritProvenance {
 public:
  explicit InheritProvenance(const OpRecord& record)
      : source_(record.source), before_(std::exchange(detail::open_recompute, record.recompute)) {}
  ~InheritProvenance() { detail::open_recompute = before_; }
  InheritProvenance(const InheritProvenance&) = delete;
  InheritProvenance& operator=(const InheritProvenance&) = delete;

 private:
  SourceScope source_;
  Recompute before_;
};

/// Records in the order in which they were made; values are numbers.
struct OpRecords {
  std::vector<OpRecord> records;
  std::vector<ValueId> operands;

  std::span<const ValueId> inputs_of(const OpRecord& r) const {
    return {operands.data() + r.first, r.input_count};
  }
  std::span<const ValueId> outputs_of(const OpRecord& r) const {
    return {operands.data() + r.first + r.input_count, r.output_count};
  }
  std::span<ValueId> inputs_of(const OpRecord& r) {
    return {operands.data() + r.first, r.input_count};
  }
  std::span<ValueId> outputs_of(const OpRecord& r) {
    return {operands.data() + r.first + r.input_count, r.output_count};
  }
  /// Appends a record. source, recompute: default to the open scopes (SourceScope, RecomputeScope).
  void append(const Op& op, AttrsRef attrs, std::span<const ValueId> in,
              std::span<const ValueId> out, SourceId source = detail::open_source,
              Recompute recompute = detail::open_recompute);
  /// Appends a record with the op, source and Recompute of `as`.
  void append(const OpRecord& as, AttrsRef attrs, std::span<const ValueId> in,
              std::span<const ValueId> out) {
    append(*as.op, std::move(attrs), in, out, as.source, as.recompute);
  }
};

/// A recorded function from inputs (formal ones, then captures) to outputs: a tape without values.
///
/// Immutable once shared. Each value is made once: as an input, or by one record.
class Graph : public RefCounted, public OpRecords {
 public:
  std::string name;
  std::vector<TensorType> types;  ///< by value
  std::vector<ValueId> inputs;
  std::size_t formal_count = 0;  ///< inputs[formal_count..] are captures
  std::vector<ValueId> outputs;
  /// Outermost graph only: dims of arguments that the traced code named itself, with their symbols.
  /// Recording the graph or parts of it again requires them, because captures have those dims.
  DimChanges renames;
  /// Outermost graph only: names of formal inputs and outputs for pictures, by position, such as
  /// "argument 0.cell.w"; empty if none were given.
  std::vector<std::string> input_names, output_names;

  /// Adds a value and returns its number.
  ValueId add_value(const TensorType& type);
  std::vector<TensorType> types_of(std::span<const ValueId> values) const;
  std::size_t capture_count() const { return inputs.size() - formal_count; }

  /// Facts for a run that follow from the records. Computed by seal().
  struct Schedule {
    std::vector<std::uint8_t> last_use;  ///< by operand: 1 if the value may be dropped afterwards
    std::vector<std::uint8_t> attrs_have_symbols, outputs_have_symbols;  ///< by record
    std::vector<Dim> free_symbols;  ///< mentioned in this graph, bound by an enclosing one
  };
  /// Computes the schedule. Must be called after the last change, and before the graph is shared.
  void seal();
  const Schedule& schedule() const { return schedule_; }

  /// A value derived from this graph that is costly to compute, cached with it (autodiff/call.cpp
  /// caches its reversal). Lock `mutex` for access.
  struct Derived {
    std::mutex mutex;
    std::shared_ptr<const void> value;
    Derived() = default;
    Derived(const Derived&) {}  // a copy of a graph may be changed
    Derived& operator=(const Derived&) { return *this; }
  };
  mutable Derived derived;
  /// Caches of executors: rewritten graphs, and plans for inputs of certain sizes.
  mutable Derived interpreted, plans, lowered;

  static void destroy(const Graph* graph) { delete graph; }

  /// Returns a picture in Graphviz's language. Loops, conds and branches are clusters; edges show
  /// types; captures are dashed; values carried to the next iteration are bold.
  std::string to_dot() const;
  /// Writes a page with a picture that can be searched, in which boxes (loops, conds, branches)
  /// fold and unfold. It needs no network. If a plan has run the graph (jit), the page also shows
  /// the plan's graph, and the graphs of gradients of calls under a tape. It shows
  /// times and counts if they were taken (JitOptions::profile). docs/pictures.md explains how to
  /// read it.
  ///
  /// Throws IoError if the file cannot be written; the file is then unchanged.
  void write_html(const std::string& path) const;

 private:
  Schedule schedule_;
};
using GraphRef = Ref<const Graph>;

/// Prints the graph: one line per record, sub-graphs indented, values numbered in order of
/// appearance.
std::ostream& operator<<(std::ostream& out, const Graph& graph);

/// Checks a graph. Throws InternalError in these cases:
/// - A record reads a value before it is made.
/// - A type differs from the op's type rule.
/// - A symbol is mentioned without a binding.
///
/// after: the transformation that the message names.
void verify(const Graph& graph, const char* after);

/// A graph as an attribute, with the dims that its free symbols stand for at the place of use.
struct SubGraph {
  GraphRef graph;
  std::vector<std::pair<Dim, Dim>> bindings;
  explicit operator bool() const { return static_cast<bool>(graph); }
  bool operator==(const SubGraph& other) const {
    return graph == other.graph && bindings == other.bindings;
  }
  /// Returns an environment for a run of the graph that holds the bindings.
  DimEnv env() const;
};
std::ostream& operator<<(std::ostream& out, const SubGraph& sub);
/// Returns the graph with each free symbol bound to itself.
SubGraph make_sub_graph(GraphRef graph);
/// Returns the graph with each free symbol bound to its dim in `env`, or to itself if `env` lacks
/// it.
SubGraph make_sub_graph(GraphRef graph, DimEnv& env);

// Functions for a SubGraph as a field of attributes (core/op/attrs.h).
std::size_t hash_of(const SubGraph& sub);
SubGraph resolve(const SubGraph& sub, DimEnv& env);
void each_symbol(const SubGraph& sub, const attr::SymbolFn& fn);

}  // namespace reel
REEL_API_END
