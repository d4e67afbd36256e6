#include "reel/trace/executors/plan/row_blocks/joined_blocks.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/elementwise/add_to.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/reductions/sum_blocks.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {
namespace {

/// Returns the loop with sums over rows that keep the blocks apart.
LoopAttrs with_sums_of_blocks(const LoopAttrs& attrs, const RowCut& cut) {
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> is_summing(body.records.size());
  for (std::size_t i = 0; i < attrs.sums.size(); ++i)
    if (cut.sums[i] == RowCut::Sum::over_rows)
      is_summing[static_cast<std::size_t>(summing_record(attrs, i) - body.records.data())] = 1;
  const Dim blocks =
      cut.dim.is_named() ? Dim("blocks", std::ssize(cut.blocks)) : Dim(std::ssize(cut.blocks));
  GraphRewriter joined(body);
  for (std::size_t r = 0; r < body.records.size(); ++r) {
    const OpRecord& record = body.records[r];
    const InheritProvenance scope(record);
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    if (!is_summing[r]) {
      joined.keep(record);
      continue;
    }
    const AttrsRef sums =
        make_attrs(SumBlocksAttrs{get<ReduceAttrs>(record.attrs.get()).axes, blocks});
    TypeList types;
    const TensorType given[] = {body.types[in[0]]};
    TypeArgs rule{sum_blocks_op, sums.get(), given, types};
    sum_blocks_op.type(rule);
    joined.to().types[out[0]] = types.span()[0];
    joined.to().append(sum_blocks_op, sums, in, out);
  }
  LoopAttrs result = attrs;
  DimEnv names = attrs.body.env();
  result.body = make_sub_graph(joined.finish(), names);
  return result;
}

}  // namespace

bool JoinedBlocks::try_plan(const PlannedLoop& whole, const RowCut& cut) {
  loop_ = std::make_unique<PlannedLoop>(whole.context);
  if (!loop_->try_plan(make_attrs(with_sums_of_blocks(whole.loop(), cut)), whole.input_types))
    return false;
  sums_.clear();
  for (std::size_t i = 0; i < cut.sums.size(); ++i) {
    if (cut.sums[i] != RowCut::Sum::over_rows) continue;
    const std::size_t k = body_output_number(whole.loop(), {LeafKind::sum, i});
    Sum sum{k, Tensor(allocate_block(loop_->body->output_type(k))), {}};
    const TensorType& of_block = whole.body->output_type(k);
    for (std::int64_t b = 0; b < std::ssize(cut.blocks); ++b)
      sum.blocks.push_back(placed(of_block, sum.all.data<char>() + b * of_block.bytes()));
    sums_.push_back(std::move(sum));
  }
  return true;
}

void JoinedBlocks::run(OpInputs in, std::span<Tensor> out) {
  outputs_.assign(out.begin(), out.end());
  for (const Sum& sum : sums_) outputs_[sum.output] = sum.all;
  LoopRun(*loop_, in, outputs_).run();
  for (const Sum& sum : sums_) {
    Tensor& all = out[sum.output];
    copy_elements(all.data<void>(), sum.blocks[0]);
    for (std::size_t b = 1; b < sum.blocks.size(); ++b) add_to(all, sum.blocks[b]);
    outputs_[sum.output] = Tensor();
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    if (outputs_[k].is_defined()) out[k] = std::move(outputs_[k]);
}

}  // namespace reel
