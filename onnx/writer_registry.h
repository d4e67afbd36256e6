// onnx/writer_registry.h — Writer, how an op of Reel becomes nodes of ONNX, and the list of all
// writers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// One record, as a writer sees it.
struct WriteCall {
  GraphWriter& to;
  const OpRecord& record;

  std::size_t count_in() const { return record.input_count; }
  std::size_t count_out() const { return record.output_count; }
  ValueId value_in(std::size_t i) const { return to.graph().inputs_of(record)[i]; }
  ValueId value_out(std::size_t i) const { return to.graph().outputs_of(record)[i]; }
  const Name& in(std::size_t i) const { return to.name(value_in(i)); }
  const TensorType& type_in(std::size_t i) const { return to.type(value_in(i)); }
  const TensorType& type_out(std::size_t i = 0) const { return to.type(value_out(i)); }
  /// Returns input i such that it broadcasts to result 0.
  Name aligned(std::size_t i) const {
    return to.aligned(in(i), type_in(i).dims(), type_out().dims());
  }
  template <class T>
  const T& attr() const {
    return get<T>(record.attrs.get());
  }
};

/// An op that ONNX can express. A writer returns the names of the results.
struct Writer {
  std::string_view op;
  Names (*write)(const WriteCall&);
};

/// An op that ONNX cannot express, with the reason for the error.
struct Refused {
  std::string_view op;
  const char* reason;
};

/// Returns the writer of an op, or null.
const Writer* find_writer(std::string_view op);
/// Returns the reason why an op has no writer; empty if there is none.
std::string_view reason_against(std::string_view op);
std::vector<const Writer*> all_writers();

// The writers of each subject, in writers/.
std::span<const Writer> elementwise_writers();
std::span<const Writer> reduction_writers();
std::span<const Writer> product_writers();
std::span<const Writer> convolution_writers();
std::span<const Writer> shape_writers();
std::span<const Writer> join_writers();
std::span<const Writer> creation_writers();
std::span<const Writer> indexing_writers();
std::span<const Writer> order_writers();
std::span<const Writer> dim_writers();
std::span<const Writer> identity_writers();
std::span<const Writer> control_writers();
std::span<const Writer> entry_writers();
std::span<const Writer> random_writers();
std::span<const Writer> list_writers();
std::span<const Writer> scan_writers();
std::span<const Writer> row_writers();
std::span<const Writer> transform_writers();
std::span<const Writer> function_writers();

/// Returns true if a call of a checkpointed function becomes one node in the op set: its label
/// names a function of the frontend. Other calls are inlined.
bool has_own_node(const Graph& graph, const OpRecord& call, std::int64_t op_set);

}  // namespace reel::exported
