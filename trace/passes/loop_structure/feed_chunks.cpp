#include "reel/trace/passes/loop_structure/feed_chunks.h"

#include <algorithm>
#include <optional>

#include "reel/core/ops/control/loop.h"
#include "reel/core/ops/reductions/reduce.h"

namespace reel {
namespace {

/// How the chunked loop takes an operand.
enum class Operand : std::uint8_t { slices, capture };

class Feeding {
 public:
  explicit Feeding(const Graph& from)
      : from_(from),
        maker_(from.types.size(), -1),
        uses_(from.types.size()),
        goes_(from.records.size()) {
    for (std::size_t r = 0; r < from.records.size(); ++r) {
      for (const ValueId v : from.outputs_of(from.records[r])) maker_[v] = static_cast<int>(r);
      for (const ValueId v : from.inputs_of(from.records[r])) ++uses_[v];
    }
    for (const ValueId v : from.outputs) ++uses_[v];
  }

  Ref<Graph> run() {
    // Loops first, as they decide which records move.
    std::vector<Changed> changed(from_.records.size());
    for (std::size_t r = from_.records.size(); r-- > 0;) {
      const OpRecord& record = from_.records[r];
      if (record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).over_chunks)
        changed[r] = feed(record);
    }
    Ref<Graph> to(new Graph(from_));
    to->records.clear();
    to->operands.clear();
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      if (goes_[r]) continue;
      if (changed[r].attrs)
        to->append(loop_op, changed[r].attrs, changed[r].inputs, from_.outputs_of(record),
                   record.source);
      else
        to->append(record, record.attrs, from_.inputs_of(record), from_.outputs_of(record));
    }
    to->seal();
    return to;
  }

 private:
  struct Changed {
    AttrsRef attrs;
    std::vector<ValueId> inputs;
  };

  /// Returns how the loop would take an operand of an op along `time`; nothing if it cannot.
  std::optional<Operand> operand(ValueId v, const TensorType& made, const Dim& time,
                                 bool spreads) const {
    const TensorType& type = from_.types[v];
    if (type.is_list()) return std::nullopt;
    // Plain dims are identified by position only.
    const bool has_places = type.rank() == made.rank() || type.is_named();
    const bool is_along = has_places && type.rank() > 0 && type.dims()[0] == time;
    if (is_along && !spreads) return Operand::slices;
    // Keep operands outside that have an equal plain dim elsewhere, or lengths over the time steps.
    const bool mentions = std::any_of(type.dims().begin(), type.dims().end(), [&](const Dim& dim) {
      return dim == time || contains(dim.length_dims(), time);
    });
    if (mentions) return std::nullopt;
    return spreads || type.rank() == 0 || type.is_named() ? std::optional(Operand::capture)
                                                          : std::nullopt;
  }

  /// Returns the record that makes the value, if it can be computed chunk by chunk; otherwise null.
  const OpRecord* feeder(ValueId v, const Dim& time) const {
    if (maker_[v] < 0 || uses_[v] != 1) return nullptr;
    const OpRecord& record = from_.records[static_cast<std::size_t>(maker_[v])];
    if (record.output_count != 1 || has_effects(record)) return nullptr;
    if (record.op != &spread_op && (!record.op->pointwise || record.attrs)) return nullptr;
    for (const ValueId in : from_.inputs_of(record))
      if (!operand(in, from_.types[v], time, spreads_time(record))) return nullptr;
    return &record;
  }
  /// Returns true if the record repeats its input for every time step.
  static bool spreads_time(const OpRecord& record) {
    if (record.op != &spread_op) return false;
    const auto& attrs = get<SpreadAttrs>(record.attrs.get());
    return !attrs.axes.empty() && attrs.axes[0] == 0;
  }

  Changed feed(const OpRecord& record) {
    const auto& before = get<LoopAttrs>(record.attrs.get());
    const auto in = from_.inputs_of(record);
    const Graph& body = *before.body.graph;
    const std::size_t along = *first_dense_slice(before, from_.types_of(in));
    const Dim time = from_.types[in[before.first_slice() + along]].dims()[0];
    const Dim chunk =
        body.types[body.inputs[1 + static_cast<std::size_t>(before.carries) + along]].dims()[0];
    LoopAttrs next = before;
    Ref<Graph> graph(new Graph(body));
    graph->records.clear();
    graph->operands.clear();
    std::vector<ValueId> slices(in.begin() + static_cast<std::ptrdiff_t>(before.first_slice()),
                                in.begin() + static_cast<std::ptrdiff_t>(before.first_capture())),
        captures(in.begin() + static_cast<std::ptrdiff_t>(before.first_capture()), in.end());
    std::vector<ValueId> slices_inside(
        body.inputs.begin() + 1 + before.carries,
        body.inputs.begin() + static_cast<std::ptrdiff_t>(body.formal_count)),
        captures_inside(body.inputs.begin() + static_cast<std::ptrdiff_t>(body.formal_count),
                        body.inputs.end());
    const auto first_fill = before.fills.begin() + before.carries;
    std::vector<Fill> slice_fills(first_fill, first_fill + before.slices),
        capture_fills(first_fill + before.slices, before.fills.end());
    struct Moved {
      const OpRecord* record;
      AttrsRef attrs;
      std::vector<ValueId> in;
      ValueId out;
    };
    std::vector<Moved> moved;
    for (std::size_t i = 0; i < slices.size();) {
      const OpRecord* maker = feeder(slices[i], time);
      const bool spreads = maker && spreads_time(*maker);
      // All uses are counted: a value stays if two loops read it, or one loop twice. The last
      // slices that tell the trip count stay as well.
      const auto dense = std::count_if(slices.begin(), slices.end(),
                                       [&](ValueId v) { return !from_.types[v].is_list(); });
      if (!maker || (spreads && dense == 1)) {
        ++i;
        continue;
      }
      Moved made{maker, maker->attrs, {}, slices_inside[i]};
      if (spreads) {
        SpreadAttrs attrs = get<SpreadAttrs>(made.attrs.get());
        attrs.dims[0] = chunk;
        made.attrs = make_attrs(std::move(attrs));
      }
      slices.erase(slices.begin() + static_cast<std::ptrdiff_t>(i));
      slices_inside.erase(slices_inside.begin() + static_cast<std::ptrdiff_t>(i));
      slice_fills.erase(slice_fills.begin() + static_cast<std::ptrdiff_t>(i));
      const ValueId made_value = from_.outputs_of(*maker)[0];
      for (const ValueId v : from_.inputs_of(*maker)) {
        const bool is_slices =
            *operand(v, from_.types[made_value], time, spreads) == Operand::slices;
        auto& outside = is_slices ? slices : captures;
        auto& inside = is_slices ? slices_inside : captures_inside;
        const auto found = std::find(outside.begin(), outside.end(), v);
        if (found != outside.end()) {  // the body has it already
          made.in.push_back(inside[static_cast<std::size_t>(found - outside.begin())]);
          continue;
        }
        const TensorType& type = from_.types[v];
        outside.push_back(v);
        inside.push_back(graph->add_value(is_slices ? chunk_type(type, chunk) : type));
        (is_slices ? slice_fills : capture_fills).push_back(Fill::live);
        made.in.push_back(inside.back());
      }
      goes_[static_cast<std::size_t>(maker_[from_.outputs_of(*maker)[0]])] = 1;
      moved.push_back(std::move(made));
    }
    if (moved.empty()) return {};
    graph->inputs.resize(static_cast<std::size_t>(1 + before.carries));
    graph->inputs.insert(graph->inputs.end(), slices_inside.begin(), slices_inside.end());
    graph->formal_count = graph->inputs.size();
    graph->inputs.insert(graph->inputs.end(), captures_inside.begin(), captures_inside.end());
    for (std::size_t i = moved.size(); i-- > 0;)
      graph->append(*moved[i].record, moved[i].attrs, moved[i].in, {&moved[i].out, 1});
    for (const OpRecord& of : body.records)
      graph->append(of, of.attrs, body.inputs_of(of), body.outputs_of(of));
    graph->seal();
    next.slices = static_cast<int>(slices.size());
    next.fills.assign(before.fills.begin(), first_fill);
    next.fills.insert(next.fills.end(), slice_fills.begin(), slice_fills.end());
    next.fills.insert(next.fills.end(), capture_fills.begin(), capture_fills.end());
    next.body_captures.clear();
    for (std::size_t i = 0; i < captures.size(); ++i)
      next.body_captures.push_back(static_cast<int>(i));
    DimEnv names = before.body.env();
    next.body = make_sub_graph(std::move(graph), names);
    std::vector<ValueId> inputs(in.begin(),
                                in.begin() + static_cast<std::ptrdiff_t>(before.first_slice()));
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    return {make_attrs(std::move(next)), std::move(inputs)};
  }

  const Graph& from_;
  std::vector<int> maker_;          ///< by value, the record; -1 for inputs
  std::vector<int> uses_;           ///< by value
  std::vector<std::uint8_t> goes_;  ///< by record: it moves into a loop
};

}  // namespace

Ref<Graph> feed_chunks(const Graph& graph) { return Feeding(graph).run(); }

}  // namespace reel
