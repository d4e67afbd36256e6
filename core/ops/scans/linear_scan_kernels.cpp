// The kernels of linear recurrences: rows of channels by instruction set, few channels one by one.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/linear_scan_table.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/scans/linear_scan_chains.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

const LinearScanTable& linear_scan_table() {
  static const LinearScanTable& table = for_this_processor(REEL_TABLES(linear_scans));
  return table;
}

/// Rows with fewer channels are walked channel by channel: a vector would be mostly empty.
constexpr std::int64_t kLeastColumns = 8;
/// For rows with fewer channels, time is cut into segments. Plans cut the rows of a loop's body
/// into blocks of at least four, so this does not depend on such a cut.
constexpr std::int64_t kColumnsToCutTime = 4;
/// The minimum of channels that a thread takes, if there are more: 512 adjacent bytes are read at
/// the full bandwidth of memory.
constexpr std::int64_t kUnitColumns = 128;
constexpr double kZeros[kScanColumns] = {};

/// The memory of one kernel's operands: blocks of `outer` indices, of `steps` rows of `inner`
/// channels. The walk goes over them from the first row or from the last.
class Walk {
 public:
  Walk(const TensorType& full, const LinearScanAttrs& attrs)
      : view_(view_axis(full, attrs.axis)), attrs_(attrs) {}
  std::int64_t steps() const { return view_.size; }
  std::int64_t inner() const { return view_.inner; }
  std::int64_t channels() const { return view_.outer * view_.inner; }

  bool may_cut() const { return view_.inner < kColumnsToCutTime; }
  bool has(ScanOperand operand) const { return attrs_.operands & operand; }
  bool is_over_time(ScanOperand operand) const { return attrs_.over_time & operand; }
  bool wants(ScanOperand operand) const { return attrs_.wanted & operand; }

  /// Returns the step from one time step to the next of the walk, in elements.
  std::int64_t step(bool over_time) const {
    return over_time ? (attrs_.reverse ? -view_.inner : view_.inner) : 0;
  }
  /// Returns the place of a channel at a step of the walk.
  std::int64_t place(bool over_time, std::int64_t outer, std::int64_t column,
                     std::int64_t k) const {
    if (!over_time) return outer * view_.inner + column;
    const std::int64_t row = attrs_.reverse ? view_.size - 1 - k : k;
    return (outer * view_.size + row) * view_.inner + column;
  }

  /// Calls fn(outer, column) for every channel.
  template <class Fn>
  void each_channel(const Fn& fn) const {
    for (std::int64_t outer = 0; outer < view_.outer; ++outer)
      for (std::int64_t column = 0; column < view_.inner; ++column) fn(outer, column);
  }
  /// Calls fn(outer, column, width) for blocks of at most kScanColumns channels of one outer index,
  /// on several threads.
  template <class Fn>
  void each_block(std::int64_t work_per_element, const Fn& fn) const {
    const std::int64_t units_per_row =
        view_.inner >= 2 * kUnitColumns ? view_.inner / kUnitColumns : 1;
    const std::int64_t work = channels() * view_.size * work_per_element;
    parallel_ranges(view_.outer * units_per_row, work, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t unit = first; unit < first + count;) {
        const std::int64_t outer = unit / units_per_row, at = unit % units_per_row;
        const std::int64_t last = std::min(at + first + count - unit, units_per_row);
        const std::int64_t end = last == units_per_row ? view_.inner : last * kUnitColumns;
        for (std::int64_t column = at * kUnitColumns; column < end; column += kScanColumns)
          fn(outer, column, std::min(kScanColumns, end - column));
        unit += last - at;
      }
    });
  }

 private:
  AxisView view_;
  LinearScanAttrs attrs_;
};

/// Calls fn(zero, column of the table) for the dtype of the tensor.
template <class Fn>
void visit_floats(DType dtype, const Fn& fn) {
  if (dtype == f32)
    fn(0.f, 0);
  else
    fn(0., 1);
}

/// One operand of a kernel.
template <class T>
struct Operand {
  const T* data = nullptr;
  bool over_time = false;

  ScanRows rows(const Walk& walk, std::int64_t outer, std::int64_t column, std::int64_t k,
                int direction) const {
    if (!data) return {};
    return {data + walk.place(over_time, outer, column, k), direction * walk.step(over_time)};
  }
  ScanChainOperand<const T> chain(const Walk& walk, std::int64_t outer, std::int64_t column,
                                  std::int64_t k, int direction) const {
    if (!data) return {};
    return {data + walk.place(over_time, outer, column, k), direction * walk.step(over_time)};
  }
};

template <class T>
Operand<T> operand(const KernelArgs& args, const Walk& walk, int at, ScanOperand which) {
  if (at < 0) return {};
  return {args.input(static_cast<std::size_t>(at)).data<T>(), walk.is_over_time(which)};
}

}  // namespace

ScanGradOperands::ScanGradOperands(const LinearScanAttrs& attrs) {
  const auto wants = [&](int which) { return (attrs.wanted & which) != 0; };
  const auto has = [&](int which) { return (attrs.operands & which) != 0; };
  if (wants(kScanA)) h = count++;
  if (wants(kScanA) && has(kScanInitial)) initial = count++;
  if (wants(kScanX)) b = count++;
  if (wants(kScanB) && has(kScanX)) x = count++;
}

void linear_scan_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<LinearScanAttrs>();
  const Walk walk(args.types[0], attrs);
  const int x_at = walk.has(kScanX) ? 2 : -1;
  const int initial_at = !walk.has(kScanInitial) ? -1 : x_at < 0 ? 2 : 3;
  visit_floats(args.types[0].dtype(), [&](auto zero, int dtype) {
    using T = decltype(zero);
    const auto a = operand<T>(args, walk, 0, kScanA), b = operand<T>(args, walk, 1, kScanB),
               x = operand<T>(args, walk, x_at, kScanX),
               initial = operand<T>(args, walk, initial_at, kScanInitial);
    T* const h = args.reuse().data<T>();
    if (args.out[0].numel() == 0) return;
    const std::int64_t step = walk.step(true);
    if (walk.inner() < kLeastColumns) {
      std::vector<ScanChain<T>> chains;
      walk.each_channel([&](std::int64_t outer, std::int64_t column) {
        const std::int64_t row = walk.place(false, outer, column, 0);
        chains.push_back({a.chain(walk, outer, column, 0, 1),
                          b.chain(walk, outer, column, 0, 1),
                          x.chain(walk, outer, column, 0, 1),
                          {h + walk.place(true, outer, column, 0), step},
                          initial.data ? initial.data[row] : zero});
      });
      return run_chains(chains, walk.steps(), walk.may_cut());
    }
    walk.each_block(4, [&](std::int64_t outer, std::int64_t column, std::int64_t width) {
      const void* before =
          initial.data
              ? static_cast<const void*>(initial.data + walk.place(false, outer, column, 0))
              : kZeros;
      linear_scan_table().forward[dtype]({walk.steps(),
                                          width,
                                          a.rows(walk, outer, column, 0, 1),
                                          b.rows(walk, outer, column, 0, 1),
                                          x.rows(walk, outer, column, 0, 1),
                                          before,
                                          {h + walk.place(true, outer, column, 0), step}});
    });
  });
}

namespace {

/// One wanted result of the gradient's kernel.
template <class T>
struct Result {
  T* data = nullptr;
  bool over_time = false;
};

/// The operands and results of the gradient's kernel.
template <class T>
struct GradMemory {
  Operand<T> a, cotangent, h, initial, b, x;
  Result<T> a_out, b_out, x_out, initial_out;

  GradMemory(KernelArgs& args, const Walk& walk, const LinearScanAttrs& attrs)
      : a(operand<T>(args, walk, 0, kScanA)), cotangent{args.input(1).data<T>(), true} {
    const ScanGradOperands at(attrs);
    if (at.h >= 0) h = {args.input(static_cast<std::size_t>(at.h)).data<T>(), true};
    initial = operand<T>(args, walk, at.initial, kScanInitial);
    b = operand<T>(args, walk, at.b, kScanB);
    x = operand<T>(args, walk, at.x, kScanX);
    std::size_t next = 0;
    const auto place = [&](ScanOperand which, Result<T>& result) {
      if (!walk.wants(which)) return;
      // b's result is written last in each row, so it may take the memory of an operand.
      const bool may_reuse = which == kScanB && walk.is_over_time(kScanB);
      const Tensor& out = may_reuse ? args.reuse(next) : args.make(next);
      result = {out.data<T>(), walk.is_over_time(which)};
      ++next;
    };
    place(kScanA, a_out);
    place(kScanB, b_out);
    place(kScanX, x_out);
    place(kScanInitial, initial_out);
  }
};

/// Rows of channels: one pass over memory.
template <class T>
void grad_of_rows(const Walk& walk, const GradMemory<T>& at, int dtype) {
  walk.each_block(8, [&](std::int64_t outer, std::int64_t column, std::int64_t width) {
    alignas(64) double sums[3][kScanColumns];
    const std::int64_t last = walk.steps() - 1, row = walk.place(false, outer, column, 0);
    const auto rows = [&](const Operand<T>& operand, std::int64_t k) {
      return operand.rows(walk, outer, column, k, -1);
    };
    const auto out = [&](const Result<T>& result, double* sum) -> ScanRowsOut {
      if (!result.data) return {};
      if (result.over_time)
        return {result.data + walk.place(true, outer, column, last), -walk.step(true)};
      std::fill(sum, sum + width, 0.);
      return {sum, 0};
    };
    const void* const before =
        at.initial.data ? static_cast<const void*>(at.initial.data + row) : kZeros;
    linear_scan_table().gradient[dtype](
        {walk.steps(), width, rows(at.a, last), rows(at.cotangent, last),
         last > 0 ? rows(at.h, last - 1) : ScanRows{}, rows(at.b, last), rows(at.x, last), before,
         out(at.a_out, sums[0]), out(at.b_out, sums[1]), out(at.x_out, sums[2]),
         at.initial_out.data ? at.initial_out.data + row : nullptr});
    const double* sum = sums[0];
    for (const Result<T>* result : {&at.a_out, &at.b_out, &at.x_out}) {
      if (result->data && !result->over_time)
        for (std::int64_t j = 0; j < width; ++j) result->data[row + j] = static_cast<T>(sum[j]);
      sum += kScanColumns;
    }
  });
}

/// Computes g of all channels: the cotangent at the last step, and a recurrence over the others.
template <class T>
void cotangents_of_chains(const Walk& walk, const GradMemory<T>& at, T* g) {
  const std::int64_t last = walk.steps() - 1, step = -walk.step(true);
  std::vector<ScanChain<T>> chains;
  walk.each_channel([&](std::int64_t outer, std::int64_t column) {
    T* const end = g + walk.place(true, outer, column, last);
    *end = at.cotangent.data[walk.place(true, outer, column, last)];
    if (last == 0) return;
    chains.push_back({at.a.chain(walk, outer, column, last, -1),
                      at.cotangent.chain(walk, outer, column, last - 1, -1),
                      {},
                      {end + step, step},
                      *end});
  });
  if (last > 0) run_chains(chains, last, walk.may_cut());
}

/// Few channels: g of all steps, then its products.
template <class T>
void grad_of_chains(const Walk& walk, const GradMemory<T>& at) {
  const std::unique_ptr<T[]> memory(
      new T[static_cast<std::size_t>(walk.channels() * walk.steps())]);
  const T* const g = memory.get();
  cotangents_of_chains(walk, at, memory.get());
  // factor(outer, column, k) is the other factor at step k.
  const auto emit = [&](const Result<T>& result, const auto& factor) {
    if (!result.data) return;
    walk.each_channel([&](std::int64_t outer, std::int64_t column) {
      double sum = 0;
      T partial = 0;
      for (std::int64_t k = walk.steps(); k-- > 0;) {
        const std::int64_t place = walk.place(true, outer, column, k);
        const T term = g[place] * factor(outer, column, k);
        if (result.over_time) {
          result.data[place] = term;
          continue;
        }
        partial += term;
        if ((walk.steps() - k) % kScanTerms && k) continue;
        sum += static_cast<double>(partial);
        partial = 0;
      }
      if (!result.over_time) result.data[walk.place(false, outer, column, 0)] = static_cast<T>(sum);
    });
  };
  const auto value = [&](const Operand<T>& operand, T absent) {
    return [&walk, operand, absent](std::int64_t outer, std::int64_t column, std::int64_t k) {
      return operand.data ? operand.data[walk.place(operand.over_time, outer, column, k)] : absent;
    };
  };
  const auto h = value(at.h, T(0)), initial = value(at.initial, T(0)), a = value(at.a, T(0));
  emit(at.a_out, [&](std::int64_t outer, std::int64_t column, std::int64_t k) {
    return k > 0 ? h(outer, column, k - 1) : initial(outer, column, 0);
  });
  if (at.initial_out.data)
    walk.each_channel([&](std::int64_t outer, std::int64_t column) {
      at.initial_out.data[walk.place(false, outer, column, 0)] =
          a(outer, column, 0) * g[walk.place(true, outer, column, 0)];
    });
  emit(at.x_out, value(at.b, T(1)));
  emit(at.b_out, value(at.x, T(1)));
}

/// A tensor as blocks of rows that a walk goes over, with sizes in bytes.
struct WalkedRows {
  AxisView view;
  std::size_t row, block;
  bool reverse;
  WalkedRows(const TensorType& type, const ScanWalkAttrs& attrs)
      : view(view_axis(type, attrs.axis)),
        row(static_cast<std::size_t>(view.inner) * size_of(type.dtype())),
        block(row * static_cast<std::size_t>(view.size)),
        reverse(attrs.reverse) {}
  /// Returns the place of the first row of the walk in its block. Requires that there is one.
  std::size_t edge() const { return reverse ? block - row : 0; }
};

}  // namespace

void linear_scan_grad_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<LinearScanAttrs>();
  const TensorType full = args.input(1).type();
  const Walk walk(full, attrs);
  visit_floats(full.dtype(), [&](auto zero, int dtype) {
    const GradMemory<decltype(zero)> at(args, walk, attrs);
    if (full.numel() == 0) {
      for (const Tensor& out : args.out)
        fill_items(size_of(full.dtype()), out.data<void>(), out.numel(), &zero);
    } else if (walk.inner() < kLeastColumns) {
      grad_of_chains(walk, at);
    } else {
      grad_of_rows(walk, at, dtype);
    }
  });
}

void scan_lag_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  const WalkedRows rows(x.type(), args.attr<ScanWalkAttrs>());
  const char* from = x.data<char>();
  const char* first = args.in.size() > 1 ? args.input(1).data<char>() : nullptr;
  char* to = args.make().data<char>();
  if (rows.block == 0) return;
  for (std::int64_t outer = 0; outer < rows.view.outer; ++outer) {
    std::memcpy(to + (rows.reverse ? 0 : rows.row), from + (rows.reverse ? rows.row : 0),
                rows.block - rows.row);
    if (first)
      std::memcpy(to + rows.edge(), first + static_cast<std::size_t>(outer) * rows.row, rows.row);
    else
      std::memset(to + rows.edge(), 0, rows.row);
    from += rows.block, to += rows.block;
  }
}

void scan_edge_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  const WalkedRows rows(x.type(), args.attr<ScanWalkAttrs>());
  const char* from = x.data<char>();
  char* to = args.make().data<char>();
  if (rows.row == 0) return;
  for (std::int64_t outer = 0; outer < rows.view.outer; ++outer, to += rows.row)
    if (rows.block == 0)
      std::memset(to, 0, rows.row);
    else
      std::memcpy(to, from + static_cast<std::size_t>(outer) * rows.block + rows.edge(), rows.row);
}

}  // namespace reel
