#include "reel/trace/passes/cleanup/share_masked_operands.h"

#include <algorithm>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

class SharingMasked {
 public:
  explicit SharingMasked(const Graph& from)
      : from_(from), to_(from), readers_(from.types.size()), is_made_(from.types.size()) {
    for (const OpRecord& record : from_.records) {
      for (const ValueId v : from_.inputs_of(record)) readers_[v].push_back(&record);
      if (const auto dim = dim_read_by(*record.op, record.attrs.get()))
        masks_.push_back({record.op, *dim, from_.outputs_of(record)[0]});
    }
    for (const ValueId v : from_.outputs) readers_[v].push_back(nullptr);
    for (const ValueId v : from_.inputs) is_made_[v] = 1;
  }

  Ref<Graph> run() {
    for (const OpRecord& record : from_.records) {
      if (record.output_count && is_made_[from_.outputs_of(record)[0]]) continue;
      std::vector<ValueId> in;
      for (std::size_t i = 0; i < record.input_count; ++i) in.push_back(operand(record, i));
      append(record, in);
    }
    return to_.finish();
  }

 private:
  void append(const OpRecord& record, std::span<const ValueId> in) {
    to_.keep(record, with_all_sub_graphs(record, share_masked_operands), in);
    for (const ValueId v : from_.outputs_of(record)) is_made_[v] = 1;
  }

  /// Returns the value that replaces an operand of a record. Makes it if necessary.
  ValueId operand(const OpRecord& record, std::size_t i) {
    const ValueId x = from_.inputs_of(record)[i];
    if (record.op != &dot_op) return x;
    const OpRecord* const masked = masked_form(x);
    return masked && make(*masked) ? from_.outputs_of(*masked)[0] : x;
  }

  /// Returns the record that masks x, if all other readers of x are products that may read the
  /// result of the record instead; otherwise null.
  const OpRecord* masked_form(ValueId x) const {
    const OpRecord* masked = nullptr;
    for (const OpRecord* reader : readers_[x])
      if (reader && is_mask_of(*reader, x)) masked = reader;
    const auto may_read = [&](const OpRecord* reader) {
      return reader == masked || (reader && is_hidden(*reader, x, *masked));
    };
    return masked && std::ranges::all_of(readers_[x], may_read) ? masked : nullptr;
  }

  bool is_mask_of(const OpRecord& record, ValueId x) const {
    if (record.op != &where_op) return false;
    const auto in = from_.inputs_of(record);
    return in[1] == x && in[0] != x && in[2] != x &&
           from_.types[from_.outputs_of(record)[0]] == from_.types[x];
  }

  /// True if the record is a product of x, and its elements that read masked elements of x are
  /// hidden by the same mask wherever the product is read.
  bool is_hidden(const OpRecord& record, ValueId x, const OpRecord& masked) const {
    if (record.op != &dot_op) return false;
    const auto in = from_.inputs_of(record);
    const ValueId mask = from_.inputs_of(masked)[0], made = from_.outputs_of(record)[0];
    if (in[0] == in[1] || readers_[made].empty()) return false;
    const auto& attrs = get<DotAttrs>(record.attrs.get());
    const std::vector<int>& summed = in[0] == x ? attrs.a_contract : attrs.b_contract;
    const TensorType& type = from_.types[x];
    for (const Dim& dim : from_.types[mask].dims()) {
      const int axis = find(type.dims(), dim);
      if (!dim.is_named() || axis < 0 || std::ranges::count(summed, axis)) return false;
    }
    return std::ranges::all_of(readers_[made], [&](const OpRecord* reader) {
      return reader && is_mask_of(*reader, made) && are_equal(from_.inputs_of(*reader)[0], mask);
    });
  }

  /// True if both are one mask, or masks of one dim: those in bodies of loops are not merged.
  bool are_equal(ValueId a, ValueId b) const {
    const auto found = [&](ValueId v) {
      return std::ranges::find(masks_, v, [](const MaskOfDim& mask) { return mask.made; });
    };
    const auto of_a = found(a), of_b = found(b);
    return a == b || (of_a != masks_.end() && of_b != masks_.end() && of_a->op == of_b->op &&
                      of_a->dim == of_b->dim);
  }

  /// Makes a value where it is needed: the mask and the number behind it may come later in the
  /// graph. Returns false if other values do not exist yet.
  bool make(const OpRecord& record) {
    if (is_made_[from_.outputs_of(record)[0]]) return true;
    std::vector<const OpRecord*> before;
    for (const ValueId v : from_.inputs_of(record)) {
      if (is_made_[v]) continue;
      const OpRecord* const producer = mask_or_number(v);
      if (!producer) return false;
      before.push_back(producer);
    }
    for (const OpRecord* producer : before)
      if (!is_made_[from_.outputs_of(*producer)[0]]) append(*producer, {});
    append(record, from_.inputs_of(record));
    return true;
  }

  /// Returns the record that makes a value, if it is the mask of a dim or a number; otherwise null.
  const OpRecord* mask_or_number(ValueId v) const {
    for (const OpRecord& record : from_.records)
      if ((record.op == &full_op || dim_read_by(*record.op, record.attrs.get())) &&
          from_.outputs_of(record)[0] == v)
        return &record;
    return nullptr;
  }

  struct MaskOfDim {
    const Op* op;
    Dim dim;
    ValueId made;
  };

  const Graph& from_;
  GraphRewriter to_;
  std::vector<MaskOfDim> masks_;
  std::vector<std::vector<const OpRecord*>> readers_;  ///< by value; null: an output of the graph
  std::vector<std::uint8_t> is_made_;                  ///< by value
};

}  // namespace

Ref<Graph> share_masked_operands(const Graph& graph) { return SharingMasked(graph).run(); }

}  // namespace reel
