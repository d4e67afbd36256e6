// Products of matrices, and sums of products by equation.
#include <algorithm>
#include <map>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

Values run_matmul(const Call& call) {
  return {call.like(0, matmul(call.tensor(0), call.tensor(1)))};
}

/// Returns alpha A B + beta C. Numbers that are 1 cost nothing.
Values run_gemm(const Call& call) {
  const auto operand = [&](std::size_t i, const char* flag) {
    return call.flag(flag, false) ? transpose(call.tensor(i), {1, 0}) : call.tensor(i);
  };
  const bool is_fractional = is_float(call.tensor(0).dtype());
  const auto times = [&](const Tensor& x, const char* name) {
    const double factor = call.number(name, 1);
    if (factor == 1) return x;
    return is_fractional ? x * factor : x * static_cast<std::int64_t>(factor);
  };
  Tensor result = times(matmul(operand(0, "transA"), operand(1, "transB")), "alpha");
  if (call.has(2)) result = result + times(call.tensor(2), "beta");
  return {call.like(0, result)};
}

// ---- Einsum -----------------------------------------------------------------------------------

/// A label for each axis: a letter, or -1, -2, ... for the axes of an ellipsis from the last on.
using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Operand {
  Tensor tensor;
  Labels labels;
};

/// Returns the labels of one term. ellipsis_rank: how many axes `...` stands for.
Labels parse_term(const Call& call, const std::string& term, int ellipsis_rank) {
  Labels labels;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      for (int axis = ellipsis_rank; axis > 0; --axis) labels.push_back(-axis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      call.refuse(str("the equation has the character ", term[i]));
    }
  }
  return labels;
}

/// Replaces two axes of one label by their diagonal.
Operand without_repeats(Operand x) {
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < x.labels.size(); ++j) {
      if (x.labels[i] != x.labels[j]) continue;
      const Dim dim = x.tensor.dim(static_cast<int>(i));
      Dims rows(x.labels.size(), Dim(1)), columns = rows;
      rows[i] = columns[j] = dim;
      const Tensor on_diagonal =
          equal(reshape_to(range(dim, i64), rows), reshape_to(range(dim, i64), columns));
      x.tensor = sum(where(on_diagonal, x.tensor, zeros_like(x.tensor)), static_cast<int>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      --j;
    }
  }
  return x;
}

/// Returns x summed over all labels that are not among `kept`.
Operand summed_to(Operand x, const Labels& kept) {
  std::vector<Axis> axes;
  Labels rest;
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(kept, x.labels[i]))
      rest.push_back(x.labels[i]);
    else
      axes.emplace_back(static_cast<int>(i));
  }
  if (!axes.empty()) x.tensor = sum(x.tensor, Axes(axes));
  x.labels = rest;
  return x;
}

/// Returns x with its axes in the order of these labels. Requires: x has all of them.
Tensor ordered(const Operand& x, const Labels& labels) {
  std::vector<Axis> order;
  for (const int label : labels)
    order.emplace_back(
        static_cast<int>(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin()));
  return transpose(x.tensor, Axes(order));
}

/// Returns the product of two operands, summed over the labels that are not among `kept`.
Operand contracted(Operand a, Operand b, const Labels& kept) {
  Labels needed_by_a = kept, needed_by_b = kept;
  needed_by_a.insert(needed_by_a.end(), b.labels.begin(), b.labels.end());
  needed_by_b.insert(needed_by_b.end(), a.labels.begin(), a.labels.end());
  a = summed_to(std::move(a), needed_by_a);
  b = summed_to(std::move(b), needed_by_b);
  Labels batch, inner, rows, columns;
  for (const int label : a.labels)
    (!contains(b.labels, label) ? rows : contains(kept, label) ? batch : inner).push_back(label);
  for (const int label : b.labels)
    if (!contains(a.labels, label)) columns.push_back(label);

  std::map<int, std::int64_t> sizes;
  const auto note = [&](const Operand& x) {
    for (std::size_t i = 0; i < x.labels.size(); ++i) {
      // A size of 1 broadcasts to any other, 0 included.
      const std::int64_t size = x.tensor.dim(static_cast<int>(i)).size();
      if (size != 1 || !sizes.count(x.labels[i])) sizes[x.labels[i]] = size;
    }
  };
  note(a), note(b);
  const auto product = [&](const Labels& labels) {
    std::int64_t result = 1;
    for (const int label : labels) result *= sizes[label];
    return result;
  };
  const auto matrix = [&](const Operand& x, Labels first, const Labels& second, std::int64_t height,
                          std::int64_t width) {
    Labels order = batch;
    order.insert(order.end(), first.begin(), first.end());
    order.insert(order.end(), second.begin(), second.end());
    Dims dims;
    for (const int label : order) dims.emplace_back(sizes[label]);
    return reshape(broadcast_to(ordered(x, order), dims), {product(batch), height, width});
  };
  Operand result;
  result.labels = batch;
  result.labels.insert(result.labels.end(), rows.begin(), rows.end());
  result.labels.insert(result.labels.end(), columns.begin(), columns.end());
  std::vector<std::int64_t> shape;
  for (const int label : result.labels) shape.push_back(sizes[label]);
  result.tensor = reshape(matmul(matrix(a, rows, inner, product(rows), product(inner)),
                                 matrix(b, inner, columns, product(inner), product(columns))),
                          shape);
  return result;
}

Values run_einsum(const Call& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms{""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != call.input_count())
    call.refuse(
        str("the equation has ", terms.size(), " terms for ", call.input_count(), " inputs"));

  std::vector<Operand> operands;
  int ellipsis_rank = 0;
  std::map<int, int> occurrences;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Tensor& x = call.tensor(i);
    const bool has_ellipsis = terms[i].find("...") != std::string::npos;
    const int rank = has_ellipsis ? x.rank() - static_cast<int>(terms[i].size() - 3) : 0;
    if (rank < 0) call.refuse(str("term ", terms[i], " does not fit ", x.type()));
    ellipsis_rank = std::max(ellipsis_rank, rank);
    const Labels labels = parse_term(call, terms[i], rank);
    if (static_cast<int>(labels.size()) != x.rank())
      call.refuse(str("term ", terms[i], " does not fit ", x.type()));
    for (const int label : labels) ++occurrences[label];
    operands.push_back(without_repeats({x, labels}));
  }
  Labels out;
  if (arrow != std::string::npos) {
    out = parse_term(call, equation.substr(arrow + 2), ellipsis_rank);
  } else {  // the axes of the ellipsis, then in alphabetical order the labels that occur once
    for (int axis = ellipsis_rank; axis > 0; --axis) out.push_back(-axis);
    for (const auto& [label, count] : occurrences)
      if (label > 0 && count == 1) out.push_back(label);
  }
  for (const int label : out)
    if (!occurrences.count(label)) call.refuse("the equation's result has a label of no term");

  Operand result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Labels kept = out;
    for (std::size_t j = i + 1; j < operands.size(); ++j)
      kept.insert(kept.end(), operands[j].labels.begin(), operands[j].labels.end());
    result = contracted(std::move(result), operands[i], kept);
  }
  return {call.like(0, ordered(summed_to(std::move(result), out), out))};
}

// ---- Determinant ------------------------------------------------------------------------------

/// Elimination with the largest pivot of each column, for all matrices at once.
Values run_det(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<std::int64_t> shape = x.shape();
  if (shape.size() < 2 || shape[shape.size() - 1] != shape[shape.size() - 2])
    call.refuse(str("takes square matrices, got ", x.type()));
  const std::int64_t size = shape.back();
  const std::vector<std::int64_t> batch(shape.begin(), shape.end() - 2);
  std::int64_t count = 1;
  for (const std::int64_t n : batch) count *= n;
  Tensor rest = reshape(x, {count, size, size});
  Tensor result = ones({Dim(count)}, x.dtype());
  for (std::int64_t left = size; left > 0; --left) {
    const Tensor column = gather(rest, scalar(0), 2);
    const Tensor pivot_row = argmax(abs(column), 1);
    // The first row and the pivot's change places, and the sign changes.
    const Tensor rows = range(left, i32), at = reshape(pivot_row, {count, 1});
    const Tensor order = where(equal(rows, 0), at, where(equal(rows, at), 0, rows));
    const Tensor sorted = gather(rest, order, 1, {.batch_dims = 1});
    const Tensor top = slice(sorted, 1, 0, 1), pivot = reshape(slice(top, 2, 0, 1), {count});
    result = result * where(equal(pivot_row, 0), pivot, -pivot);
    const Tensor below = slice(sorted, 1, 1, left);
    const Tensor divisor = reshape(where(equal(pivot, 0), 1., pivot), {count, 1, 1});
    rest = slice(below - slice(below, 2, 0, 1) / divisor * top, 2, 1, left);
  }
  return {call.like(0, reshape(result, batch))};
}

const Rule kRules[] = {
    {"Det", run_det, "", 11},
    {"Einsum", run_einsum, "", 12},
    {"Gemm", run_gemm},
    {"MatMul", run_matmul},
};

}  // namespace

std::span<const Rule> product_rules() { return kRules; }

}  // namespace reel::imported
