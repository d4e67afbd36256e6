// core/ops/loop/entry_ops.h — fill_running and collect_running, the ops on values of finished
// entries.
#pragma once

#include <memory>

#include "reel/core/op/op.h"
#include "reel/core/ops/loop/entries.h"

namespace reel {

/// The entries of a value lie in rows. In each row, finished entries read the first running one:
///
///   entry            0          1          2   3
///   running          0          1          0   1
///   x                a          b          c   d
///   fill_running     b          b          b   d     0 and 2 have finished, 1 runs first
///   cotangents       g0         g1         g2  g3
///   collect_running  0    g0 + g1 + g2     0   g3    the transpose
///
/// A row without running entries stays unchanged. Each row of vmap is a row; otherwise there is
/// one.
///
/// Operands: x with the entry dims in front, and the mask of running entries.
extern const Op fill_running_op;
extern const Op collect_running_op;

/// Returns fill_running_op of x. Axes of x and of the mask may be plain.
Tensor fill_entries_in_front(const Tensor& x, const Tensor& running);

/// Attributes of both ops. An op without attributes has one row, and keeps the dims of x.
struct EntryOpAttrs {
  /// Dims of the result, with the sizes of x's: ragged ones give finished entries the length of the
  /// first running entry. The ops set their padding to zero. Empty: x's dims; padding stays.
  Dims dims = {};
  /// The number of dims in front of the mask that are rows of vmap.
  int rows = 0;
  /// Receives the result of fill_running, and gives it to a later call with an equal mask. Null for
  /// none. Changes no value, so it is no field.
  std::shared_ptr<FilledEntries> cache = {};

  template <class F>
  static void fields(F&& f) {
    f("dims", &EntryOpAttrs::dims);
    f("rows", &EntryOpAttrs::rows);
  }
};

}  // namespace reel
