// Ops on table rows: take, put, add, coalesce.
#include "reel/core/ops/indexing/rows.h"

#include <algorithm>
#include <cstring>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/row_attrs.h"
#include "reel/core/ops/indexing/saved_rows.h"
#include "reel/core/ops/kernels/long_sums.h"
#include "reel/core/ops/registry.h"

namespace reel {
namespace {

// ---- Types of rows ------------------------------------------------------------------------------

Dim plain(const Dim& dim) { return dim.has_size() ? Dim(dim.raw_size()) : Dim::unknown(); }

/// Returns the dims of `count` rows of a table.
Dims dims_of_rows(const TensorType& table, const Dim& count, int axes = 1) {
  Dims dims{count};
  for (int axis = axes; axis < table.rank(); ++axis) dims.push_back(plain(dim_at(table, axis)));
  return dims;
}

void check_numbers(const TypeArgs& a, const TensorType& numbers) {
  if (numbers.dtype() != i64 || numbers.rank() != 1 || numbers.is_named())
    throw ShapeError(str(a.op.name, ": row numbers are i64[n], got ", numbers));
}

void check_table(const TypeArgs& a, const TensorType& table) {
  if (table.rank() == 0 || table.is_ragged() || table.is_list())
    throw ShapeError(str(
        a.op.name, ": a table has its rows along its first axis, and no ragged dims, got ", table));
}

void table_type(TypeArgs& a) {
  const TensorType &table = a.in[0], &numbers = a.in[1], &values = a.in[2];
  check_table(a, table);
  const int axes = axes_of_rows(a.attrs);
  if (axes < 1 || axes > table.rank())
    throw ShapeError(str(a.op.name, ": ", table, " has no ", axes, " first axes"));
  check_numbers(a, numbers);
  if (values.dtype() != table.dtype())
    throw DTypeError(str(a.op.name, ": rows ", values, " do not go into a table ", table,
                         ", which has another dtype; cast one of them"));
  const TensorType expected = table.with(dims_of_rows(table, dim_at(numbers, 0), axes));
  if (values != expected && values.is_known() && expected.is_known())
    throw ShapeError(
        str(a.op.name, ": rows are ", values, ", but those of ", table, " are ", expected));
  a.out.push_back(table);
}

OpSamples table_samples(bool with_rows) {
  const Dim vocab("vocab", 4), feature("feature", 3);
  const auto sample = [&](const Dims& table, std::int64_t count) {
    OpSample result{{{TensorType(f32, table)}, {TensorType(i64, {Dim(count)}), -1, 3, false}}};
    if (with_rows)
      result.inputs.push_back({TensorType(f32, dims_of_rows(result.inputs[0].type, count))});
    return result;
  };
  return {sample({4, 3}, 5),          sample({vocab, feature}, 3), sample({4}, 2),
          sample({4, 2, 2}, 3),       sample({4, 3}, 0),           sample({4, 0}, 3),
          sample({vocab, feature}, 6)};
}

// ---- Kernels ------------------------------------------------------------------------------------

/// Calls fn(row of the table, row of the values) for all numbers within the table, in order.
template <class Fn>
void each_row(const Tensor& numbers, std::int64_t rows, Fn&& fn) {
  const auto* number = numbers.data<std::int64_t>();
  for (std::int64_t i = 0; i < numbers.type().numel(); ++i)
    if (number[i] >= 0 && number[i] < rows) fn(number[i], i);
}

std::size_t bytes_of_row(const TensorType& table, int axes = 1) {
  std::size_t result = size_of(table.dtype());
  for (auto axis = static_cast<std::size_t>(axes); axis < table.sizes().size(); ++axis)
    result *= static_cast<std::size_t>(table.sizes()[axis]);
  return result;
}
std::int64_t count_rows(const TensorType& table, int axes) {
  std::int64_t result = 1;
  for (int axis = 0; axis < axes; ++axis) result *= table.sizes()[static_cast<std::size_t>(axis)];
  return result;
}

template <class T>
void add_to(T* to, const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// Returns the first input as the output: its buffer if it may be reused, or a copy.
const Tensor& take_table(KernelArgs& a) {
  KernelArgs first{a.op, a.attrs, a.in.first(1), a.may_reuse, a.types, a.out};
  const char* kept = a.input(0).data<char>();
  const Tensor& out = first.reuse();
  if (out.data<char>() != kept)
    std::memcpy(out.data<char>(), kept, static_cast<std::size_t>(out.type().bytes()));
  return out;
}

void take_rows_kernel(KernelArgs& a) { copy_rows(a.input(0), a.input(1), a.make()); }

void put_rows_kernel(KernelArgs& a) {
  const Tensor numbers = a.input(1), values = a.input(2), &out = take_table(a);
  overwrite_rows(out, numbers, values, axes_of_rows(a.attrs));
}

void add_rows_kernel(KernelArgs& a) {
  const Tensor numbers = a.input(1), values = a.input(2), &out = take_table(a);
  const auto size = static_cast<std::int64_t>(bytes_of_row(out.type()) / size_of(out.dtype()));
  visit(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      const std::int64_t rows = out.type().sizes()[0];
      LongSums<T> sums(out.data<T>(), rows, size, numbers.type().numel());
      each_row(numbers, rows, [&](std::int64_t row, std::int64_t i) {
        sums.add(row, values.data<T>() + i * size,
                 [](T* to, const T* term, std::int64_t count) { add_to(to, term, count); });
      });
      sums.finish();
    }
  });
}

// ---- take_rows, put_rows, add_rows --------------------------------------------------------------

namespace {

/// Attributes of take_rows if only a run determines the sizes of the table: its vjp reads the table
/// for them. Otherwise it has no attributes.
struct TakeRowsAttrs {
  template <class F>
  static void fields(F&&) {}
};

}  // namespace

const Op take_rows_op{
    .name = "take_rows",
    .type =
        [](TypeArgs& a) {
          check_table(a, a.in[0]);
          check_numbers(a, a.in[1]);
          a.out.push_back(a.in[0].with(dims_of_rows(a.in[0], dim_at(a.in[1], 0))));
        },
    .kernel = take_rows_kernel,
    .vjp =
        [](Vjp& at) {
          const Tensor none = at.attrs() ? zeros_like(at.input(0)) : zeros(at.input_type(0));
          at.add(0, add_rows(none, at.input(1), at.cotangent()));
        },
    .reads_by = [](const Attrs* attrs,
                   std::uint32_t) { return OpReads{.inputs = attrs ? 0b11u : 0b10u}; },
    .samples =
        [] {
          OpSamples samples = table_samples(false);
          samples.push_back(samples[0]);
          samples.back().attrs = make_attrs(TakeRowsAttrs{});
          return samples;
        },
    .fails = never_fails,
};

const Op add_rows_op{
    .name = "add_rows",
    .type =
        [](TypeArgs& a) {
          if (a.in[0].dtype() == boolean)
            throw DTypeError(str(a.op.name, ": takes numbers, got ", a.in[0]));
          table_type(a);
        },
    .kernel = add_rows_kernel,
    .vjp =
        [](Vjp& at) {
          if (at.needs(2)) at.add(2, take_rows(at.cotangent(), at.input(1)));
          at.add(0, at.cotangent());
        },
    .reads = {.inputs = 0b10},
    .samples = [] { return table_samples(true); },
    .updates_input = true,
    .fails = fails_without_memory,
};

Tensor without_overwritten(const Tensor& rows, const Tensor& numbers);

namespace {

/// Returns x with its first axes as one. The sizes of the others must be known.
Tensor as_table(const Tensor& x, int axes) {
  std::vector<std::int64_t> sizes{-1};
  for (int axis = axes; axis < x.rank(); ++axis)
    sizes.push_back(x.dims()[static_cast<std::size_t>(axis)].size());
  if (std::ranges::count(sizes, 0)) sizes[0] = count_rows(x.type(), axes);
  return reshape(x, sizes);
}

}  // namespace

const Op put_rows_op{
    .name = "put_rows",
    .type = table_type,
    .kernel = put_rows_kernel,
    .vjp =
        [](Vjp& at) {
          const Tensor g = at.cotangent(), &numbers = at.input(1);
          const int axes = axes_of_rows(at.attrs().get());
          const Tensor rows = take_rows(axes == 1 ? g : as_table(g, axes), numbers);
          if (at.needs(2)) at.add(2, without_overwritten(rows, numbers));
          if (at.needs(0)) at.add(0, put_rows(g, numbers, zeros_like(rows), axes));
        },
    .reads = {.inputs = 0b10},
    .samples =
        [] {
          OpSamples samples = table_samples(true);
          const Dim batch("batch", 2), place("place", 4), feature("feature", 3);
          const auto add = [&](const Dims& table, const Dims& rows, int axes) {
            samples.push_back({{{TensorType(f32, table)},
                                {TensorType(i64, {rows[0]}), -1, 7, false},
                                {TensorType(f32, rows)}},
                               make_attrs(PutRowsAttrs{axes})});
          };
          add({2, 4, 3}, {5, 3}, 2);
          add({batch, place, feature}, {Dim(2), Dim(3)}, 2);
          add({2, 4}, {3}, 2);
          return samples;
        },
    .updates_input = true,
    .fails = never_fails,
};

// ---- coalesce_rows ------------------------------------------------------------------------------

/// Returns the positions of all numbers within the table, sorted by number, equal ones in order.
std::vector<std::int64_t> sorted_positions(const Tensor& numbers, std::int64_t rows) {
  const auto* number = numbers.data<std::int64_t>();
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < numbers.type().numel(); ++i)
    if (number[i] >= 0 && (rows < 0 || number[i] < rows)) positions.push_back(i);
  std::sort(positions.begin(), positions.end(), [&](std::int64_t a, std::int64_t b) {
    return number[a] != number[b] ? number[a] < number[b] : a < b;
  });
  return positions;
}

void coalesce_kernel(KernelArgs& a) {
  const Tensor &values = a.input(0), &numbers = a.input(1);
  const std::vector<std::int64_t> positions =
      sorted_positions(numbers, a.attr<RowCountAttrs>().rows);
  const Tensor &sums = a.make(0), &distinct = a.make(1), &places = a.make(2);
  const auto* number = numbers.data<std::int64_t>();
  auto* place_of = places.data<std::int64_t>();
  std::fill_n(place_of, places.type().numel(), -1);
  std::int64_t count = 0;
  for (const std::int64_t i : positions) {
    if (count == 0 || distinct.data<std::int64_t>()[count - 1] != number[i])
      distinct.data<std::int64_t>()[count++] = number[i];
    place_of[i] = count - 1;
  }
  const std::int64_t all = distinct.type().numel();
  std::fill_n(distinct.data<std::int64_t>() + count, all - count, -1);
  const auto size =
      static_cast<std::int64_t>(bytes_of_row(values.type()) / size_of(values.dtype()));
  visit(values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      const T* from = values.data<T>();
      T* to = sums.data<T>();
      LongSums<T> sums(to, all, size, std::ssize(positions));
      std::int64_t last = -1;
      for (const std::int64_t i : positions) {
        const std::int64_t place = place_of[i];
        const bool is_first = place != last;
        sums.add(place, from + i * size, [&](T* row, const T* term, std::int64_t) {
          is_first ? void(std::copy_n(term, size, row)) : add_to(row, term, size);
        });
        last = place;
      }
      sums.finish();
      std::fill_n(to + count * size, (all - count) * size, T(0));
    }
  });
}

const Op coalesce_rows_op{
    .name = "coalesce_rows",
    .type =
        [](TypeArgs& a) {
          const TensorType &values = a.in[0], &numbers = a.in[1];
          check_numbers(a, numbers);
          if (values.rank() == 0 || values.is_named() || values.is_list() ||
              !(dim_at(values, 0) == dim_at(numbers, 0) || !values.is_known() ||
                !numbers.is_known()))
            throw ShapeError(str("IndexedSlices: values are one row for each index, with plain ",
                                 "sizes, got values ", values, " and indices ", numbers));
          if (values.dtype() == boolean)
            throw DTypeError(str("IndexedSlices: values are numbers, got ", values));
          const Dim n = dim_at(values, 0).has_size() ? dim_at(values, 0) : dim_at(numbers, 0);
          const std::int64_t rows = a.attr<RowCountAttrs>().rows;
          const Dim m = rows < 0       ? n
                        : n.has_size() ? Dim(std::min(n.raw_size(), rows))
                                       : Dim::unknown();
          a.out.push_back(values.with(with_dim(values.dims(), 0, m)));
          a.out.push_back(TensorType(i64, {m}));
          a.out.push_back(TensorType(i64, {n}));
        },
    .kernel = coalesce_kernel,
    .vjp = [](Vjp& at) { at.add(0, take_rows(at.cotangent(0), at.output(2))); },
    .reads = {.outputs = 0b100},
    .samples =
        [] {
          const auto sample = [](const Dims& values, std::int64_t rows, double low = -1) {
            return OpSample{
                {{TensorType(f32, values)}, {TensorType(i64, {values[0]}), low, 3, false}},
                make_attrs(RowCountAttrs{rows})};
          };
          return OpSamples{sample({5, 3}, 4), sample({3, 2}, -1), sample({6}, 4, -3),
                           sample({0, 3}, 4), sample({3, 0}, 5),  sample({4, 2, 2}, 9)};
        },
    .fails = fails_without_memory,
};

Tensors coalesced_by(const Tensor& values, const Tensor& numbers, std::int64_t rows) {
  return bind_all(coalesce_rows_op, {values, numbers}, make_attrs(RowCountAttrs{rows}));
}

/// Replaces rows with zeros if a later row has the same number.
Tensor without_overwritten(const Tensor& rows, const Tensor& numbers) {
  const Tensor position = cumsum(ones_like(numbers), 0);
  const Tensor places = coalesced_by(position, numbers, -1)[2];
  const Tensor last = put_rows(zeros_like(position), places, position);
  std::vector<std::int64_t> column(static_cast<std::size_t>(rows.rank()), 1);
  column[0] = -1;
  return where(reshape(equal(take_rows(last, places), position), column), rows, 0);
}

}  // namespace

// ---- Functions ----------------------------------------------------------------------------------

Coalesced coalesce_rows(const Tensor& values, const Tensor& numbers, std::int64_t rows) {
  Tensors all = coalesced_by(values, numbers, rows);
  return {std::move(all[0]), std::move(all[1])};
}

Tensor take_rows(const Tensor& table, const Tensor& numbers) {
  return bind(take_rows_op, {table, numbers},
              has_unknown_size(table.type()) ? make_attrs(TakeRowsAttrs{}) : AttrsRef());
}
Tensor put_rows(Tensor table, const Tensor& numbers, const Tensor& values, int axes) {
  return bind(put_rows_op, {std::move(table), numbers, values},
              axes == 1 ? AttrsRef() : make_attrs(PutRowsAttrs{axes}));
}
Tensor add_rows(Tensor table, const Tensor& numbers, const Tensor& values) {
  return bind(add_rows_op, {std::move(table), numbers, values});
}

bool may_overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values) {
  if (is_tracing() || thread_mode.entries) return false;
  for (const Tensor* x : {&table, &numbers, &values}) {
    const BlockKind kind = x->block()->kind;
    if (kind != BlockKind::dense && (kind != BlockKind::view || x == &table)) return false;
    for (const Recorder* tape = thread_mode.tape; tape; tape = tape->outer)
      if (tape->is_tracked(*x)) return false;
  }
  std::vector<std::int64_t> sizes = table.type().sizes();
  if (!table.ref().unique() || table.type().is_ragged() || sizes.empty()) return false;
  sizes[0] = numbers.type().numel();
  return numbers.dtype() == i64 && values.dtype() == table.dtype() &&
         values.type().sizes() == sizes;
}

void overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values,
                    int axes) noexcept {
  const std::size_t bytes = bytes_of_row(table.type(), axes);
  each_row(numbers, count_rows(table.type(), axes), [&](std::int64_t row, std::int64_t i) {
    std::memcpy(table.data<char>() + static_cast<std::size_t>(row) * bytes,
                values.data<char>() + static_cast<std::size_t>(i) * bytes, bytes);
  });
}

void copy_rows(const Tensor& table, const Tensor& numbers, const Tensor& to, int axes) noexcept {
  const std::size_t bytes = bytes_of_row(table.type(), axes);
  const auto* number = numbers.data<std::int64_t>();
  const std::int64_t rows = count_rows(table.type(), axes);
  char* row = to.data<char>();
  for (std::int64_t i = 0; i < numbers.type().numel(); ++i, row += bytes) {
    if (number[i] >= 0 && number[i] < rows)
      std::memcpy(row, table.data<char>() + static_cast<std::size_t>(number[i]) * bytes, bytes);
    else
      std::memset(row, 0, bytes);
  }
}

bool changes_rows(const Op& op) { return &op == &put_rows_op || &op == &add_rows_op; }

namespace {
const Op* const kRowOps[] = {&take_rows_op, &add_rows_op, &put_rows_op, &coalesce_rows_op};
}  // namespace
std::span<const Op* const> row_ops() { return kRowOps; }

}  // namespace reel
