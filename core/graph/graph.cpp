#include "reel/core/graph/graph.h"

#include <map>
#include <ostream>
#include <unordered_set>

#include "reel/core/base/str.h"

namespace reel {

void OpRecords::append(const Op& op, AttrsRef attrs, std::span<const ValueId> in,
                       std::span<const ValueId> out, SourceId source, Recompute recompute) {
  records.push_back({&op, std::move(attrs), static_cast<std::uint32_t>(operands.size()),
                     static_cast<std::uint32_t>(in.size()), static_cast<std::uint32_t>(out.size()),
                     source, recompute});
  operands.insert(operands.end(), in.begin(), in.end());
  operands.insert(operands.end(), out.begin(), out.end());
}

ValueId Graph::add_value(const TensorType& type) {
  types.push_back(type);
  return static_cast<ValueId>(types.size() - 1);
}

std::vector<TensorType> Graph::types_of(std::span<const ValueId> values) const {
  std::vector<TensorType> result;
  for (const ValueId v : values) result.push_back(types[v]);
  return result;
}

void Graph::seal() {
  Schedule s;
  s.last_use.assign(operands.size(), 0);
  std::vector<std::uint8_t> used_later(types.size(), 0);
  std::vector<std::uint32_t> times_in(types.size(), 0);  // as an input of one record
  for (ValueId v : outputs) used_later[v] = 1;
  for (std::size_t r = records.size(); r-- > 0;) {
    const OpRecord& record = records[r];
    for (const ValueId v : inputs_of(record)) ++times_in[v];
    for (std::uint32_t k = 0; k < record.input_count; ++k) {
      const ValueId v = operands[record.first + k];
      s.last_use[record.first + k] = !used_later[v] && times_in[v] == 1;
    }
    for (const ValueId v : inputs_of(record)) {
      used_later[v] = 1;
      times_in[v] = 0;
    }
  }
  std::unordered_set<const DimNode*> bound, free;
  const auto note = [&](const Dim& symbol) {
    if (bound.count(symbol.node()) || !free.insert(symbol.node()).second) return;
    s.free_symbols.push_back(symbol);
  };
  for (ValueId v : inputs) for_each_bound(types[v], [&](const Dim& d) { bound.insert(d.node()); });
  for (const OpRecord& record : records) {
    bool any = false;
    if (record.attrs)
      record.attrs->each_symbol([&](const Dim& d) {
        any = true;
        note(d);
      });
    s.attrs_have_symbols.push_back(any);
    bool makes = false;
    for (ValueId v : outputs_of(record)) {
      // A size known only at run time is bound by this value. A static dim is bound by an enclosing
      // graph; in the outermost graph, it is made when it is first needed.
      for_each_symbol(types[v], [&](const Dim& d) {
        makes = true;
        if (d.has_size()) note(d);
      });
      for_each_bound(types[v], [&](const Dim& d) {
        if (!d.has_size() && !free.count(d.node())) bound.insert(d.node());
      });
    }
    s.outputs_have_symbols.push_back(makes);
  }
  schedule_ = std::move(s);
}

namespace {

class Printer {
 public:
  Printer(std::ostream& out) : out_(out) {}

  void print(const Graph& graph, const std::string& indent) {
    std::map<ValueId, int> names;
    const auto name = [&](ValueId v) {
      const auto [it, fresh] = names.emplace(v, static_cast<int>(names.size()));
      return str('%', it->second);
    };
    out_ << indent << graph.name << '(';
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (i)
        out_ << (i == graph.formal_count ? "; captures " : ", ");
      else if (graph.formal_count == 0)
        out_ << "captures ";
      out_ << name(graph.inputs[i]) << ": " << graph.types[graph.inputs[i]];
    }
    out_ << ") {\n";
    for (const OpRecord& record : graph.records) {
      out_ << indent << "  ";
      const char* before = "";
      for (ValueId v : graph.outputs_of(record)) {
        out_ << before << name(v) << ": " << graph.types[v];
        before = ", ";
      }
      out_ << " = " << record.op->name << '(';
      before = "";
      for (ValueId v : graph.inputs_of(record)) {
        out_ << before << name(v);
        before = ", ";
      }
      out_ << ')';
      if (record.attrs) {
        const std::string attrs = str_of(*record.attrs);
        out_ << ' ' << '{';
        for (char c : attrs) {  // sub-graphs print over several lines
          out_ << c;
          if (c == '\n') out_ << indent << "    ";
        }
        out_ << '}';
      }
      out_ << '\n';
    }
    out_ << indent << "  return ";
    const char* before = "";
    for (ValueId v : graph.outputs) {
      out_ << before << name(v);
      before = ", ";
    }
    out_ << '\n' << indent << "}";
  }

 private:
  static std::string str_of(const Attrs& attrs) {
    TextStream text;
    attrs.print(text);
    return text.str();
  }
  std::ostream& out_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Graph& graph) {
  Printer(out).print(graph, "");
  return out << '\n';
}

DimEnv SubGraph::env() const {
  DimEnv env;
  for (const auto& [symbol, actual] : bindings) env.bind(symbol, actual);
  return env;
}

SubGraph make_sub_graph(GraphRef graph, DimEnv& env) {
  SubGraph sub{std::move(graph), {}};
  for (const Dim& symbol : sub.graph->schedule().free_symbols)
    sub.bindings.emplace_back(symbol, env.knows(symbol) ? env.resolve(symbol) : symbol);
  return sub;
}
SubGraph make_sub_graph(GraphRef graph) {
  DimEnv none;
  return make_sub_graph(std::move(graph), none);
}

std::ostream& operator<<(std::ostream& out, const SubGraph& sub) {
  if (!sub) return out << "none";
  return out << '\n' << *sub.graph;
}

std::size_t hash_of(const SubGraph& sub) {
  // Sub-graphs are equal if they are the same object. merge_equal compares loops by their records
  // (core/graph/passes/merge_equal.cpp).
  return reinterpret_cast<std::size_t>(sub.graph.get()) >> 4;
}

SubGraph resolve(const SubGraph& sub, DimEnv& env) {
  SubGraph result = sub;
  for (auto& [symbol, actual] : result.bindings) actual = env.resolve(actual);
  return result;
}

void each_symbol(const SubGraph& sub, const attr::SymbolFn& fn) {
  for (const auto& [symbol, actual] : sub.bindings) for_each_symbol(actual, fn);
}

}  // namespace reel
