// verify(): the checks of a graph in debug builds.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/graph.h"

namespace reel {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, const char* after)
      : graph_(graph), after_(after), made_(graph.types.size(), 0) {
    // An argument's dim that the function names itself is a symbol in the recording, but not here.
    for (const auto& [actual, symbol] : graph.renames) names_.bind(symbol, actual);
  }

  void run() {
    for (const Dim& d : graph_.schedule().free_symbols) bound_.insert(d.node());
    for (ValueId v : graph_.inputs) make(v);
    for (const OpRecord& record : graph_.records) {
      for (ValueId v : graph_.inputs_of(record))
        if (!made_[v])
          fail(str(record.op->name, " reads value ", v, ", which is not made before it"));
      check_symbols(record);
      try {
        if (!record.op->kernel_decides_types) check_types(record);
      } catch (const ArgumentError&) {  // a quotient of the first call's dims has a remainder
      }
      for (ValueId v : graph_.outputs_of(record)) make(v);
    }
    for (ValueId v : graph_.outputs)
      if (!made_[v]) fail(str("output value ", v, " is never made"));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(str("after ", after_, ", graph ", graph_.name, ": ", what, "\n", graph_));
  }

  void make(ValueId v) {
    if (made_[v]) fail(str("value ", v, " is made twice"));
    made_[v] = 1;
    for_each_bound(graph_.types[v], [&](const Dim& d) { bound_.insert(d.node()); });
  }

  void check_symbols(const OpRecord& record) const {
    if (!record.attrs) return;
    record.attrs->each_symbol([&](const Dim& d) {
      if (!d.has_size() && d.is_named() && !bound_.count(d.node()))
        fail(str(record.op->name, " mentions dim ", d, ", which nothing binds"));
    });
  }

  void check_types(const OpRecord& record) {
    std::vector<TensorType> in;
    for (ValueId v : graph_.inputs_of(record)) in.push_back(names_.resolve(graph_.types[v]));
    const AttrsRef attrs = record.attrs ? record.attrs->resolve(names_) : AttrsRef();
    TypeList out;
    TypeArgs args{*record.op, attrs.get(), in, out};
    try {
      record.op->type(args);
    } catch (const Error& error) {
      if (has_two_dims_of_one_name()) return;
      fail(str(record.op->name, "'s rule refuses its operands: ", error.what()));
    }
    const auto made_here = graph_.outputs_of(record);
    if (out.size() != made_here.size())
      fail(str(record.op->name, " makes ", made_here.size(), " values, not ", out.size()));
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i].is_known() && !are_same(out[i], graph_.types[made_here[i]]))
        fail(str(record.op->name, " is recorded with type ", graph_.types[made_here[i]],
                 ", its rule gives ", out[i]));
  }

  bool are_same(const TensorType& a, const TensorType& b) {
    return a == b ||
           (std::ranges::equal(a.dims(), b.dims(), may_be_same_dim) && a.with(b.dims()) == b) ||
           names_.resolve(a) == names_.resolve(b);
  }
  /// The segments of a loop that runs again are made during a run. They have both the symbol of a
  /// dim and the dim, because nothing there tells that one stands for the other. A size that was
  /// unknown while recording may be known by the dims that the graph's renames tell. Only a run
  /// knows the size of a ragged symbol.
  ///
  /// b: as recorded.
  static bool may_be_same_dim(const Dim& a, const Dim& b) {
    if (a == b) return true;
    if (!a.is_named() && !b.is_named()) return !b.has_size();
    if (a.is_symbol() == b.is_symbol() || !a.is_named() || !b.is_named() || a.name() != b.name())
      return false;
    if (a.has_size() && b.has_size()) return a.size() == b.size();
    return a.is_ragged() && std::ranges::equal(a.length_dims(), b.length_dims(), may_be_same_dim);
  }

  /// In the gradient of an eager loop, two dims of one name may stand for one dim of the run.
  bool has_two_dims_of_one_name() const {
    std::map<std::string, const DimNode*> seen;
    bool has_two = false;
    for (const TensorType& type : graph_.types)
      for_each_symbol(type, [&](const Dim& d) {
        if (d.is_named())
          has_two = has_two || seen.emplace(d.name(), d.node()).first->second != d.node();
      });
    return has_two;
  }

  const Graph& graph_;
  const char* const after_;
  std::vector<std::uint8_t> made_;
  std::unordered_set<const DimNode*> bound_;
  DimEnv names_ = DimEnv::renaming();
};

}  // namespace

void verify(const Graph& graph, const char* after) { Verifier(graph, after).run(); }

}  // namespace reel
