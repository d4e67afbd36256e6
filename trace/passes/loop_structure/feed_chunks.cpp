#include "reel/trace/passes/loop_structure/feed_chunks.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/trace/passes/fusion/tile_ops.h"

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
      if (record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).chunking.over_chunks)
        changed[r] = feed(record);
    }
    GraphRewriter to(from_);
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      if (goes_[r]) continue;
      if (changed[r].attrs)
        to.keep(record, changed[r].attrs, changed[r].inputs);
      else
        to.keep(record);
    }
    return to.finish();
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
    if (tile_op(*record.op) != TileOp::spread && (!record.op->pointwise || record.attrs))
      return nullptr;
    for (const ValueId in : from_.inputs_of(record))
      if (!operand(in, from_.types[v], time, spreads_time(record))) return nullptr;
    return &record;
  }
  /// Returns true if the record repeats its input for every time step.
  static bool spreads_time(const OpRecord& record) {
    if (tile_op(*record.op) != TileOp::spread) return false;
    const auto& attrs = get<SpreadAttrs>(record.attrs.get());
    return !attrs.axes.empty() && attrs.axes[0] == 0;
  }

  /// A chunked loop to which records move.
  struct Fed {
    LoopAttrs attrs;
    Ref<Graph> body;
    Dim time, chunk;
    std::vector<ValueId> slices, captures;                ///< operands
    std::vector<ValueId> slices_inside, captures_inside;  ///< inputs of the body
    struct Moved {
      const OpRecord* record;
      AttrsRef attrs;
      std::vector<ValueId> in;
      ValueId out;
    };
    std::vector<Moved> moved;  ///< readers first
  };

  Changed feed(const OpRecord& record) {
    const auto& before = get<LoopAttrs>(record.attrs.get());
    const auto in = from_.inputs_of(record);
    const auto operands = operands_of(before, in);
    const auto formals = body_inputs(before);
    const Graph& body = *before.body.graph;
    const std::size_t along = *first_dense_slice(before, from_.types_of(in));
    const auto to_vector = [](std::span<const ValueId> values) {
      return std::vector<ValueId>(values.begin(), values.end());
    };
    Fed fed{before,
            Ref<Graph>(new Graph(body)),
            from_.types[operands.slices[along]].dims()[0],
            body.types[formals.slices[along]].dims()[0],
            to_vector(operands.slices),
            to_vector(operands.captures),
            to_vector(formals.slices),
            to_vector(formals.captures),
            {}};
    for (std::size_t i = 0; i < fed.slices.size();) {
      const OpRecord* maker = feeder(fed.slices[i], fed.time);
      // All uses are counted: a value stays if two loops read it, or one loop twice. The last
      // slices that tell the trip count stay as well.
      const auto dense = std::count_if(fed.slices.begin(), fed.slices.end(),
                                       [&](ValueId v) { return !from_.types[v].is_list(); });
      if (!maker || (spreads_time(*maker) && dense == 1))
        ++i;
      else
        move(*maker, i, fed);
    }
    if (fed.moved.empty()) return {};
    connect(fed);
    std::vector<ValueId> inputs(in.begin(), operands.carries.end());
    inputs.insert(inputs.end(), fed.slices.begin(), fed.slices.end());
    inputs.insert(inputs.end(), fed.captures.begin(), fed.captures.end());
    return {make_attrs(std::move(fed.attrs)), std::move(inputs)};
  }

  /// Moves the record that makes slice i into the loop. The loop then takes its operands.
  void move(const OpRecord& maker, std::size_t i, Fed& fed) {
    const bool spreads = spreads_time(maker);
    const auto at = static_cast<std::ptrdiff_t>(i);
    Fed::Moved made{&maker, maker.attrs, {}, fed.slices_inside[i]};
    if (spreads) {
      SpreadAttrs attrs = get<SpreadAttrs>(made.attrs.get());
      attrs.dims[0] = fed.chunk;
      made.attrs = make_attrs(std::move(attrs));
    }
    fed.slices.erase(fed.slices.begin() + at);
    fed.slices_inside.erase(fed.slices_inside.begin() + at);
    fed.attrs.slices.erase(fed.attrs.slices.begin() + at);
    const ValueId made_value = from_.outputs_of(maker)[0];
    for (const ValueId v : from_.inputs_of(maker)) {
      const TensorType& type = from_.types[v];
      const bool is_slices =
          *operand(v, from_.types[made_value], fed.time, spreads) == Operand::slices;
      auto& outside = is_slices ? fed.slices : fed.captures;
      auto& inside = is_slices ? fed.slices_inside : fed.captures_inside;
      const auto found = std::find(outside.begin(), outside.end(), v);
      if (found != outside.end()) {  // the body has it already
        made.in.push_back(inside[static_cast<std::size_t>(found - outside.begin())]);
        continue;
      }
      outside.push_back(v);
      inside.push_back(fed.body->add_value(is_slices ? chunk_type(type, fed.chunk) : type));
      if (is_slices)
        fed.attrs.slices.push_back({});
      else
        fed.attrs.captures.push_back({});
      made.in.push_back(inside.back());
    }
    goes_[static_cast<std::size_t>(maker_[made_value])] = 1;
    fed.moved.push_back(std::move(made));
  }

  /// Sets the body: the moved records, then its own.
  static void connect(Fed& fed) {
    GraphRewriter to(*fed.body);
    Graph& body = to.to();
    body.inputs.resize(body_input_number(fed.attrs, {LeafKind::slice}));
    body.inputs.insert(body.inputs.end(), fed.slices_inside.begin(), fed.slices_inside.end());
    body.formal_count = body.inputs.size();
    body.inputs.insert(body.inputs.end(), fed.captures_inside.begin(), fed.captures_inside.end());
    for (std::size_t i = fed.moved.size(); i-- > 0;)
      to.keep(*fed.moved[i].record, fed.moved[i].attrs, fed.moved[i].in, {&fed.moved[i].out, 1});
    for (const OpRecord& of : fed.body->records) to.keep(of);
    fed.attrs.body_captures.resize(fed.captures.size());
    std::iota(fed.attrs.body_captures.begin(), fed.attrs.body_captures.end(), 0);
    DimEnv names = fed.attrs.body.env();
    fed.attrs.body = make_sub_graph(to.finish(), names);
  }

  const Graph& from_;
  std::vector<int> maker_;          ///< by value, the record; -1 for inputs
  std::vector<int> uses_;           ///< by value
  std::vector<std::uint8_t> goes_;  ///< by record: it moves into a loop
};

}  // namespace

Ref<Graph> feed_chunks(const Graph& graph) { return Feeding(graph).run(); }

}  // namespace reel
