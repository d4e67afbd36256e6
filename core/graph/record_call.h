// core/graph/record_call.h — RecordCall, the types and attributes of a record as an OpCall.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/op/axes.h"
#include "reel/core/types/type_list.h"

namespace reel {

/// The call of a record's op, with the types to which it refers.
class RecordCall {
 public:
  RecordCall(const Graph& graph, const OpRecord& record)
      : op_(*record.op), attrs_(record.attrs.get()) {
    for (const ValueId v : graph.inputs_of(record)) in_.push_back(graph.types[v]);
    for (const ValueId v : graph.outputs_of(record)) out_.push_back(graph.types[v]);
  }
  OpCall operator*() const { return {op_, attrs_, in_.span(), out_.span()}; }

 private:
  const Op& op_;
  const Attrs* attrs_;
  TypeList in_, out_;
};

}  // namespace reel
