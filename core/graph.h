// core/graph.h — Records, the list of applied ops that is both tape and graph; Graph, such a list
// with inputs and outputs.
#pragma once

#include <iosfwd>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/op.h"
#include "reel/core/source.h"

namespace reel {

/// Whether a record computes again, for a gradient, what another one computed and nobody kept: it
/// is there under some policies and rules only, and nothing about the others may depend on it.
enum class Again : std::uint8_t {
  no,
  yes,
  in_steps,  ///< a step of the loop waits for it that the loop did not do for all steps at once
};
namespace detail {
inline constinit thread_local Again open_again = Again::no;
}  // namespace detail

/// What is recorded on this thread while it is open computes again what was computed before.
class AgainScope {
 public:
  AgainScope() : before_(detail::open_again) { detail::open_again = Again::yes; }
  ~AgainScope() { detail::open_again = before_; }
  AgainScope(const AgainScope&) = delete;
  AgainScope& operator=(const AgainScope&) = delete;

 private:
  Again before_;
};

/// "This op was applied to these values, and gave those."
struct OpRecord {
  const Op* op;
  AttrsRef attrs;
  std::uint32_t first;  ///< of its operands in Records::operands: inputs, then outputs
  std::uint32_t input_count, output_count;
  SourceId source = kNoSource;  ///< of what was recorded
  Again again = Again::no;
};

/// What is recorded while it is open stands for the record: it comes from where that does, and
/// computes again what that does.
class InPlaceOf {
 public:
  explicit InPlaceOf(const OpRecord& record)
      : source_(record.source), before_(std::exchange(detail::open_again, record.again)) {}
  ~InPlaceOf() { detail::open_again = before_; }
  InPlaceOf(const InPlaceOf&) = delete;
  InPlaceOf& operator=(const InPlaceOf&) = delete;

 private:
  SourceScope source_;
  Again before_;
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
  /// source, again: by default what the scopes say that are open, if some are.
  void append(const Op& op, AttrsRef attrs, std::span<const ValueId> in,
              std::span<const ValueId> out, SourceId source = detail::open_source,
              Again again = detail::open_again);
  /// A record of the same op, from the same place.
  void append(const OpRecord& as, AttrsRef attrs, std::span<const ValueId> in,
              std::span<const ValueId> out) {
    append(*as.op, std::move(attrs), in, out, as.source, as.again);
  }
};

using DimRenames = std::vector<std::pair<Dim, Dim>>;

/// A tape without values: a recorded function from inputs (formal ones, then captures) to outputs.
///
/// Immutable once shared. Each value is made once: by being an input, or by one record.
class Graph : public RefCounted, public OpRecords {
 public:
  std::string name;
  std::vector<TensorType> types;  ///< by value
  std::vector<ValueId> inputs;
  std::size_t formal_count = 0;  ///< inputs[formal_count..] are captures
  std::vector<ValueId> outputs;
  /// At the top: dims of arguments that the traced code named itself, and their symbols. Recording
  /// the graph again, or parts of it, has to know them: what is captured has those dims.
  DimRenames renames;
  /// At the top: what pictures call formal inputs and outputs, by place, such as "argument
  /// 0.cell.w"; empty where nobody has said.
  std::vector<std::string> input_names, output_names;

  ValueId add_value(const TensorType& type);
  std::vector<TensorType> types_of(std::span<const ValueId> values) const;
  std::size_t capture_count() const { return inputs.size() - formal_count; }

  /// What a run needs and the records do not say; computed once, by seal().
  struct Schedule {
    std::vector<std::uint8_t> last_use;  ///< by operand: a run may drop the value after this record
    std::vector<std::uint8_t> attrs_have_symbols, outputs_have_symbols;  ///< by record
    std::vector<Dim> free_symbols;  ///< mentioned here, bound by an enclosing graph
  };
  void seal();
  const Schedule& schedule() const { return schedule_; }

  /// Something derived from this graph that is costly to make, kept with it (autodiff/call.cpp
  /// keeps its reversal).
  struct Derived {
    std::mutex mutex;
    std::shared_ptr<const void> value;
    Derived() = default;
    Derived(const Derived&) {}  // a copy of a graph may be changed
    Derived& operator=(const Derived&) { return *this; }
  };
  mutable Derived derived;
  /// The same for executors: what they run instead, and prepare for inputs of some sizes.
  mutable Derived interpreted, plans, lowered;

  static void destroy(const Graph* graph) { delete graph; }

  /// A picture in Graphviz's language: loops, conds and branches are clusters, types stand on
  /// edges, captures are dashed, what is handed to the next iteration is bold.
  std::string to_dot() const;
  /// Writes a page with a picture that can be searched and whose boxes (loops, conds, branches)
  /// fold and unfold; it needs no network. Where a plan has run the graph (jit), the page shows
  /// what that runs too, and what gradients of calls under a tape run, with times and counts if
  /// they were taken (JitOptions::profile). docs/pictures.md shows how to read it.
  ///
  /// Throws IoError when the file cannot be written; it is then as it was.
  void write_html(const std::string& path) const;

 private:
  Schedule schedule_;
};
using GraphRef = Ref<const Graph>;

/// The text dump: one line per record, sub-graphs indented, values numbered in order of appearance.
std::ostream& operator<<(std::ostream& out, const Graph& graph);

/// Throws InternalError when a record reads what is not made before it, a type differs from its
/// op's rule, or a symbol is mentioned that nothing binds. `after` names the transformation to
/// blame.
void verify(const Graph& graph, const char* after);

/// A graph as an attribute, with what its free symbols stand for where it is used.
struct SubGraph {
  GraphRef graph;
  std::vector<std::pair<Dim, Dim>> bindings;
  explicit operator bool() const { return static_cast<bool>(graph); }
  bool operator==(const SubGraph& other) const {
    return graph == other.graph && bindings == other.bindings;
  }
  /// An environment for a run of the graph, the bindings in place.
  DimEnv env() const;
};
std::ostream& operator<<(std::ostream& out, const SubGraph& sub);
SubGraph make_sub_graph(GraphRef graph);
/// The same where the graph's free symbols are known under other names, which `env` gives.
SubGraph make_sub_graph(GraphRef graph, DimEnv& env);

// As a field of attributes (core/attrs.h).
std::size_t hash_of(const SubGraph& sub);
SubGraph resolve(const SubGraph& sub, DimEnv& env);
void each_symbol(const SubGraph& sub, const attr::SymbolFn& fn);

}  // namespace reel
