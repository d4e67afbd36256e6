// frontend/transforms/branch_cost.h — decides which branches only the rows that take them compute.
#pragma once

#include <cstdint>

#include "reel/frontend/transforms/row_batch.h"

namespace reel {

/// Returns true if a branch is computed for the rows that take it, instead of for all rows.
///
/// Costs are counted in computed elements. A multiplication and addition of a product costs 1/16, a
/// view nothing, a record that runs row by row 4096 more. Loops count with the size of their
/// slices, otherwise with 16 iterations; of a cond the larger branch counts. Unknown sizes count as
/// 64, an unknown number of rows as 1024. Only the taken rows compute a branch
///
/// - if it costs at least 4 elements for each element that is packed or unpacked, and at least 2^18
///   for all rows together;
/// - or if it has an effect, such as print: rows that do not take the branch cause none. A branch
///   with a collective is excluded, because ranks would send different sizes.
///
/// captures: of the branch.
bool computes_taken_rows(const SubGraph& branch, const RowValues& captures, const Rows& rows);

/// Returns the number of elements, 0 for a list. unknown_size: stands for each size that only a run
/// knows.
double estimated_numel(const TensorType& type, double unknown_size);

/// When only the rows that take a branch compute it.
enum class TakenRowsRule : std::uint8_t { by_cost, always, never };

/// Replaces the rule during its lifetime, on this thread. A function under vmap is recorded with
/// `never`: the rows of a vmap inside would else have another number of taken rows in every row of
/// the vmap around it. Tests have few rows and use `always`.
class TakenRowsScope {
 public:
  explicit TakenRowsScope(TakenRowsRule rule);
  ~TakenRowsScope();
  TakenRowsScope(const TakenRowsScope&) = delete;
  TakenRowsScope& operator=(const TakenRowsScope&) = delete;

 private:
  TakenRowsRule before_;
};

}  // namespace reel
