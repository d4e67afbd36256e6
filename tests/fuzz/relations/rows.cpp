#include "reel/tests/fuzz/relations/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/loops/fold.h"
#include "reel/frontend/transforms/vmap.h"
#include "reel/tests/fuzz/relations/plain_form.h"

namespace reel::fuzz {
namespace {

int draw_count(Random& random) {
  if (random.chance(60)) return random.between(1, 4);
  return random.chance(60) ? random.between(5, 12) : random.between(13, 48);
}

/// True if rows may share the argument: its dims are equal in all rows.
bool may_be_shared(const Program& program, int value) {
  const std::vector<int>& dims = program.values[value].dims;
  return program.is_named && std::none_of(dims.begin(), dims.end(), [&](int dim) {
           return program.dims[dim].comes_with_arguments();
         });
}

double padding_of(DType dtype) {
  return is_float(dtype)    ? std::numeric_limits<double>::quiet_NaN()
         : dtype == boolean ? 1
                            : 1000003;
}

Dims shared_dims(const Program& program, const Arguments& arguments) {
  Dims dims;
  for (std::size_t i = 0; i < program.dims.size(); ++i)
    if (program.dims[i].is_named() && !program.dims[i].comes_with_arguments())
      dims.push_back(arguments.dims[i]);
  return dims;
}

/// Appends the elements of a row to `values`, padded to these sizes.
void append_padded(const Tensor& row, const std::vector<std::int64_t>& sizes, double padding,
                   std::vector<double>& values) {
  const std::vector<double> own = row.to_vector<double>();
  const std::vector<std::int64_t> shape = row.shape();
  const std::int64_t count =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t position = 0; position < count; ++position) {
    std::int64_t rest = position, at = 0, stride = 1;
    bool is_inside = true;
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      const std::int64_t index = rest % sizes[axis];
      rest /= sizes[axis];
      is_inside = is_inside && index < shape[axis];
      at += index * stride;
      stride *= shape[axis];
    }
    values.push_back(is_inside ? own[static_cast<std::size_t>(at)] : padding);
  }
}

}  // namespace

Rows Rows::take(const std::vector<int>& numbers) const {
  Rows rows{.shared = shared, .is_shared = is_shared};
  for (const int number : numbers) {
    rows.each.push_back(each[number]);
    rows.directions.push_back(directions[number]);
  }
  return rows;
}

Program generate_row(std::uint64_t seed, const Rules& rules) {
  Rules fitting = without_draws(rules);
  std::erase_if(fitting, [](const Rule* rule) { return needs_slices(*rule); });
  Program program = generate(seed, fitting);
  // Rows share the other ragged dims.
  const std::function<void(int)> share = [&](int dim) {
    program.dims[dim].is_captured = true;
    for (const int over : program.dims[dim].over) share(over);
  };
  for (const int value : program.main.params)
    for (const int dim : program.values[value].dims)
      if (!is_subset(program.dims[dim].over, program.values[value].dims)) share(dim);
  return program;
}

Rows draw_rows(const Program& program, Random& random, bool has_equal_sizes) {
  Rows rows{.shared = make_arguments(program, {})};
  std::vector<std::size_t> passed;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].is_captured) continue;
    passed.push_back(i);
    rows.is_shared.push_back(may_be_shared(program, program.main.params[i]) && random.chance(20));
  }
  if (passed.empty()) throw OutsideDomain();
  rows.is_shared[0] = false;  // vmap finds the rows by an argument
  const Call call{.is_static = random.chance(50)};
  const bool all_empty = random.chance(8);
  Program row = program;
  for (int count = draw_count(random); count > 0; --count) {
    if (rows.each.empty() || !has_equal_sizes) redraw_sizes(row, random, all_empty);
    for (std::size_t k = 0; k < passed.size(); ++k)
      if (!rows.is_shared[k]) row.inputs[passed[k]].salt = random.next();
    const Arguments arguments = make_arguments(row, call, &rows.shared);
    rows.each.push_back(passed_arguments(row, arguments));
    rows.directions.push_back(make_directions(row, arguments, call));
  }
  return rows;
}

Dim RowStack::stacked(const Tensors& rows, std::size_t axis) {
  const Dim& first = rows[0].dims()[axis];
  if (!first.is_named() || contains(shared_, first)) return first;
  for (const Dim& dim : made_)
    if (dim.name() == first.name()) return dim;
  const auto is_as_long = [&](const Tensor& row) {
    return !row.dims()[axis].is_ragged() && row.dims()[axis].size() == first.size();
  };
  if (is_fixed_ && std::all_of(rows.begin(), rows.end(), is_as_long))
    return made_.emplace_back(first.name(), first.size());
  Tensors lengths;
  for (const Tensor& row : rows) lengths.push_back(row.dims()[axis].lengths());
  // Entries in the padding of lengths have length 0.
  made_.emplace_back(first.name(), stack(lengths, 0));
  return made_.back();
}

Tensor RowStack::stack(const Tensors& rows, double padding) {
  Dims dims{dim_ ? *dim_ : Dim(std::ssize(rows))};
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < rows[0].dims().size(); ++axis) {
    dims.push_back(stacked(rows, axis));
    sizes.push_back(dims.back().size());
  }
  std::vector<double> values;
  for (const Tensor& row : rows) append_padded(cast(row, f64), sizes, padding, values);
  return cast(tensor(values, dims, f64), rows[0].dtype());
}

Tensors RowStack::operator()(const std::vector<Tensors>& rows) {
  Tensors result;
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    Tensors all;
    for (const Tensors& row : rows) all.push_back(row[i]);
    result.push_back(stack(all, padding_of(all[0].dtype())));
  }
  return result;
}

RowTrial::RowTrial(Trial& trial, Rows rows, Order order)
    : trial_(trial), rows_(std::move(rows)), order_(order) {}

double RowTrial::tolerance() const {
  return order_ > Order::gradients && order_ != Order::tangents ? trial_.close_second()
                                                                : trial_.close();
}

std::vector<Tensors> RowTrial::inputs(const Rows& rows) const {
  std::vector<Tensors> result = rows.each;
  if (takes_directions(order_))
    for (std::size_t r = 0; r < result.size(); ++r)
      result[r].insert(result[r].end(), rows.directions[r].begin(), rows.directions[r].end());
  return result;
}

std::optional<Dim> RowTrial::new_dim(const Rows& rows) const {
  if (!trial_.program().is_named) return {};
  return Dim("rows", rows.count());
}

Tensors RowTrial::row_by_row(const std::vector<Tensors>& inputs) const {
  const Function f =
      of_order(order_, Trial::function_of(trial_.program(), rows_.shared, kKnownOnly));
  std::vector<Tensors> results;
  for (const Tensors& row : inputs)
    results.push_back(trial_.call(str(name_of(order_), " of a row"), f, row));
  return RowStack(new_dim(rows_), shared_dims(trial_.program(), rows_.shared))(results);
}

Tensors RowTrial::alone() const { return row_by_row(inputs(rows_)); }

std::string RowTrial::describe(const Form& form) const {
  static const char* const ways[] = {"vmap", "map", "a batch"};
  const std::string order = name_of(order_), rows = str(form.is_plain   ? "plain "
                                                        : form.is_fixed ? "fixed "
                                                                        : "",
                                                        ways[static_cast<int>(form.way)]);
  return str(form.mode ? form.mode->name : "eager", ' ',
             order_ == Order::values ? rows
             : form.is_inside        ? str(rows, " of ", order)
                                     : str(order, " of ", rows));
}

Tensors RowTrial::stacked(const Rows& rows, const Form& form, const std::optional<Dim>& dim) const {
  const std::vector<Tensors> each = inputs(rows);
  Tensors all = RowStack(dim, shared_dims(trial_.program(), rows.shared), form.is_fixed)(each);
  if (form.is_plain) {
    for (Tensor& x : all) x = plain_form_of(x);
    return all;
  }
  // An argument that all rows share may lack their dim. Its gradient then is a sum over rows,
  // unless each row has its own.
  if (form.way != Way::map && (form.is_inside || order_ == Order::values))
    for (std::size_t i = 0; i < all.size(); ++i)
      if (rows.is_shared[i % rows.is_shared.size()]) all[i] = each[0][i];
  return all;
}

Tensors RowTrial::at_once(const Rows& rows, const Form& form) const {
  const std::optional<Dim> dim = new_dim(rows), axis = form.is_plain ? std::optional<Dim>() : dim;
  Arguments outside = rows.shared;
  if (form.way == Way::batched) outside.batch = dim;
  if (form.is_plain) {
    outside.is_plain = true;
    for (Tensor& captured : outside.all) captured = plain_form_of(captured);
  }
  const Function row = Trial::function_of(trial_.program(), outside, kKnownOnly);
  const auto over_rows = [&](const Function& f) -> Function {
    if (form.way == Way::vmap) return [f, axis](const Tensors& x) { return vmap(f, axis)(x); };
    if (form.way == Way::map)
      return [f, axis](const Tensors& x) { return map(f, x, {.spatial_dim = axis}); };
    return f;
  };
  Function f = form.is_inside ? over_rows(of_order(order_, row)) : of_order(order_, over_rows(row));
  if (form.mode) f = form.mode->run(f, form.mode->passes).call;
  return trial_.call(describe(form), f, stacked(rows, form, dim));
}

Reference RowTrial::reference(const Rows& rows) const {
  return {[this, rows] {
            std::vector<Tensors> all = inputs(rows);
            for (Tensors& row : all) row = trial_.moved(row);
            return row_by_row(all);
          },
          [this, rows] {
            manual_seed(trial_.program().seed);
            return std::all_of(rows.each.begin(), rows.each.end(), [&](const Tensors& row) {
              return Machine(trial_.program(), rows.shared).stays_finite(row);
            });
          }};
}

}  // namespace reel::fuzz
