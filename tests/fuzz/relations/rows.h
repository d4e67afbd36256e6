// tests/fuzz/relations/rows.h — Rows, arguments of a program that is a function of one row, and the
// ways to apply it to all of them.
#pragma once

#include <optional>
#include <vector>

#include "reel/tests/fuzz/relations/orders.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {

/// Arguments of rows. Dims that come with arguments have another size or other lengths in each row.
struct Rows {
  Arguments shared;                      ///< captured dims and tensors, and fixed dims
  std::vector<Tensors> each = {};        ///< the passed arguments of each row
  std::vector<Tensors> directions = {};  ///< as many directions of each row
  std::vector<bool> is_shared = {};      ///< for each argument: true if all rows have the same one

  int count() const { return static_cast<int>(each.size()); }
  /// Returns the rows with these numbers.
  Rows take(const std::vector<int>& numbers) const;
};

/// Returns a program without random numbers, as a function of one row. If rows may have different
/// lengths of a dim, it comes with tensors that have all dims of its lengths.
Program generate_row(std::uint64_t seed, const Rules& rules);

/// Draws arguments of 1 to 48 rows, mostly of few. has_equal_sizes: dims that come with arguments
/// have the same size in all rows.
Rows draw_rows(const Program& program, Random& random, bool has_equal_sizes = false);

/// Makes one tensor of rows. It has the rows as its first axis; dims that differ between rows get
/// lengths over the rows. Padding is NaN.
class RowStack {
 public:
  /// dim: of the rows; empty for plain axes. shared: dims that do not differ between rows.
  /// is_fixed: dims with the same size in all rows have this size instead of lengths.
  RowStack(std::optional<Dim> dim, const Dims& shared, bool is_fixed = false)
      : dim_(std::move(dim)), shared_(shared), is_fixed_(is_fixed) {}

  /// rows: the tensors of each row. Returns as many tensors as a row has.
  Tensors operator()(const std::vector<Tensors>& rows);

 private:
  Tensor stack(const Tensors& rows, double padding);
  Dim stacked(const Tensors& rows, std::size_t axis);

  std::optional<Dim> dim_;
  const Dims shared_;
  const bool is_fixed_;
  Dims made_;  // one for each name
};

/// The way to apply a function of one row to all rows. batched: tensors of all rows are arguments
/// of the function itself, which has no axis for the rows.
enum class Way { vmap, map, batched };

/// The form of a run of all rows.
struct Form {
  Way way = Way::vmap;
  bool is_inside = false;      ///< true: derivatives are taken in each row; false: of all at once
  const Mode* mode = nullptr;  ///< null: eager mode
  bool is_fixed = false;       ///< true: dims of equal size in all rows have it in their type
  bool is_plain = false;       ///< true: named dims have become plain axes (plain_form.h)
};

/// A program as a function of rows.
class RowTrial {
 public:
  RowTrial(Trial& trial, Rows rows, Order order);

  const Rows& rows() const { return rows_; }
  double tolerance() const;
  /// Returns the results of each row alone, in eager mode, as one tensor for each result.
  Tensors alone() const;
  /// Returns the results of all rows at once.
  Tensors at_once(const Rows& rows, const Form& form) const;
  /// Returns a description of a form, for findings.
  std::string describe(const Form& form) const;
  /// Returns the reference for results of these rows.
  Reference reference(const Rows& rows) const;

 private:
  std::vector<Tensors> inputs(const Rows& rows) const;
  Tensors row_by_row(const std::vector<Tensors>& inputs) const;
  Tensors stacked(const Rows& rows, const Form& form, const std::optional<Dim>& dim) const;
  std::optional<Dim> new_dim(const Rows& rows) const;

  Trial& trial_;
  const Rows rows_;
  const Order order_;
};

}  // namespace reel::fuzz
