// autodiff/reversal_cut.h — ReversalCut, which chooses the residuals of a reversed graph.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reel/autodiff/recorded_reversal.h"
#include "reel/core/options/checkpoint_policy.h"

namespace reel {

/// Decides which values and records of a RecordedReversal the reversed graph takes. Its arguments
/// must outlive it.
class ReversalCut {
 public:
  ReversalCut(const Graph& forward, const ReversalSpec& spec, const RecordedReversal& both);

  /// Where the reversed graph gets a value from.
  enum class Source : std::uint8_t {
    made,      ///< a record of the reversed graph
    input,     ///< a free input of the forward graph, a cotangent or a capture
    kept,      ///< an output of the forward graph that is stored anyway
    residual,  ///< saved by the forward graph
    unknown,   ///< a forward value that the reversed graph does not use
  };

  /// Returns true if the reversed graph reads `v`, and gets it from `source`.
  bool uses(ValueId v, Source source) const { return is_used(v) && source_[v] == source; }
  bool is_used(ValueId v) const { return used_.count(v) != 0; }
  /// Returns true if the reversed graph contains this record.
  bool takes(std::size_t record) const { return takes_[record]; }
  /// Returns true if the rule asks for a file for this residual.
  bool spills(ValueId v) const { return verdict(maker_[v]) == Saving::spill; }

 private:
  // In the order of the constructor.
  void find_sources(const Graph& forward);
  void find_dims_made_inside();
  void find_constants(const Graph& forward);
  void choose_residuals();
  void take_used_records();

  std::vector<ValueId> values_read_in_reverse() const;
  void follow_rule(std::vector<ValueId>& reads);
  Saving verdict(int record) const;
  bool mentions_dim_made_inside(const OpRecord& record) const;
  bool is_cheap(const OpRecord& record) const;
  bool can_recompute(ValueId v);
  void use(ValueId v);
  void take(int record);

  const ReversalSpec& spec_;
  const RecordedReversal& both_;
  std::vector<int> maker_;                 ///< by value: the record that makes it, or -1
  std::vector<Source> source_;             ///< by value
  std::vector<std::uint8_t> takes_;        ///< by record
  std::vector<std::uint8_t> is_constant_;  ///< by value: equal in every run
  std::unordered_set<ValueId> used_;
  std::unordered_map<ValueId, bool> recomputable_;     ///< results of can_recompute()
  std::unordered_map<const DimNode*, int> dim_maker_;  ///< the record that makes a dim
  std::unordered_set<int> recomputed_by_rule_;         ///< forward records
  std::vector<ValueId> pending_;                       ///< to use()
};

}  // namespace reel
