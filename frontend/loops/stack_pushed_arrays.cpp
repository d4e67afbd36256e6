#include "reel/frontend/loops/stack_pushed_arrays.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

bool reads(const Graph& graph, ValueId value) {
  const auto is_value = [&](ValueId v) { return v == value; };
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), is_value) ||
         std::any_of(graph.records.begin(), graph.records.end(), [&](const OpRecord& record) {
           const auto in = graph.inputs_of(record);
           return std::any_of(in.begin(), in.end(), is_value);
         });
}

int uses(const Graph& graph, ValueId value) {
  int result = static_cast<int>(std::count(graph.outputs.begin(), graph.outputs.end(), value));
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    result += static_cast<int>(std::count(in.begin(), in.end(), value));
  }
  return result;
}

/// Returns the record that pushes to the carry if that is the carry's only use, otherwise -1.
int only_push(const Graph& body, int carry) {
  const ValueId array = body.inputs[1 + carry], result = body.outputs[carry];
  const TensorType& type = body.types[array];
  if (!type.is_list() || has_unknown_size(type)) return -1;
  for (std::size_t r = 0; r < body.records.size(); ++r) {
    const OpRecord& record = body.records[r];
    if (body.outputs_of(record)[0] != result) continue;
    const auto in = body.inputs_of(record);
    const bool is_push = is_list_push(record) && in[0] == array && uses(body, result) == 1 &&
                         uses(body, array) == 2 && uses(body, in[2]) == 1;
    return is_push ? static_cast<int>(r) : -1;
  }
  return -1;
}

}  // namespace

std::vector<int> take_out_pushed_arrays(Ref<Graph>& body, Ref<Graph>& cond, int carries) {
  std::vector<int> result, pushes;
  for (int i = 0; i < carries; ++i) {
    const int push = only_push(*body, i);
    if (push < 0 || (cond && reads(*cond, cond->inputs[1 + i]))) continue;
    result.push_back(i);
    pushes.push_back(push);
  }
  if (result.empty()) return result;

  GraphRewriter to(*body);
  Graph* const without = &to.to();
  std::vector<ValueId> terms(pushes.size());
  for (std::size_t r = 0; r < body->records.size(); ++r) {
    const OpRecord& record = body->records[r];
    const auto in = body->inputs_of(record);
    const auto push = std::find(pushes.begin(), pushes.end(), static_cast<int>(r));
    if (push != pushes.end()) {
      const ValueId term = without->add_value(body->types[in[1]]);
      without->append(identity_op, {}, {{in[1]}}, {{term}});
      terms[push - pushes.begin()] = term;
    } else if (!(is_list_size(record) && std::any_of(pushes.begin(), pushes.end(), [&](int p) {
                   return body->inputs_of(body->records[p])[2] == body->outputs_of(record)[0];
                 }))) {
      to.keep(record);
    }
  }
  const auto drop = [&](std::vector<ValueId>& values, int first) {
    for (auto i = result.rbegin(); i != result.rend(); ++i)
      values.erase(values.begin() + first + *i);
  };
  drop(without->inputs, 1);
  drop(without->outputs, 0);
  without->outputs.insert(without->outputs.end(), terms.begin(), terms.end());
  without->formal_count -= result.size();
  body = to.finish();
  if (cond) {
    Ref<Graph> asks(new Graph(*cond));
    drop(asks->inputs, 1);
    asks->formal_count -= result.size();
    asks->seal();
    cond = asks;
  }
  return result;
}

}  // namespace reel
