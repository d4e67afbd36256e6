// Writers of ops that return an input unchanged: names, marks for gradients, checks, prints.
#include "reel/onnx/writers/identity.h"

#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

Names write_first(const WriteCall& call) { return {call.to.name_or_none(call.value_in(0))}; }
/// The results are the last inputs.
Names write_custom_vjp(const WriteCall& call) {
  Names results;
  for (std::size_t i = call.count_in() - call.count_out(); i < call.count_in(); ++i)
    results.push_back(call.to.name_or_none(call.value_in(i)));
  return results;
}

/// Returns x, or zeros if a scalar is false. With a third input the zeros have its sizes.
Names write_zero_unless(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_out();
  const Name zero = to.model().number(0, type.dtype());
  if (call.count_in() == 2) return {to.where(call.in(0), call.in(1), zero, type.dtype())};
  const auto branch = [&](const Name& from, bool is_zero) {
    auto graph = std::make_shared<imported::Graph>();
    graph->name = to.model().unique("zero_unless");
    GraphWriter inside(to.model(), graph->nodes, to.graph(), &to);
    const Name result = is_zero ? inside.add("Expand", {zero, inside.add("Shape", {from})}) : from;
    const Name out = to.model().unique("result");
    inside.add_identity(result, out);
    graph->outputs.push_back(to.declared(out, type, false));
    return exported::graph(graph);
  };
  return {to.add(
      "If", {call.in(0)},
      {{"then_branch", branch(call.in(1), false)}, {"else_branch", branch(call.in(2), true)}})};
}

const Writer kWriters[] = {
    {"identity", write_first},        {"state", write_first},
    {"stop_gradient", write_first},   {"checkpoint_name", write_first},
    {"ensure_shape", write_first},    {"relax_shape", write_first},
    {"rename", write_first},          {"plain_dims", write_first},
    {"afresh", write_first},          {"print", write_first},
    {"check_numerics", write_first},  {"assert_that", write_first},
    {"checked_logits", write_first},  {"ctc_labels", write_first},
    {"custom_vjp", write_custom_vjp}, {"zero_unless", write_zero_unless},
};

}  // namespace

std::span<const Writer> identity_writers() { return kWriters; }

bool returns_first_input(std::string_view op) {
  const Writer* const writer = find_writer(op);
  return writer && writer->write == write_first;
}

}  // namespace reel::exported
