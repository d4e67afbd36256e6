#include "reel/core/functions/dim_arithmetic.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <unordered_map>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/attrs.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

// ---- The table ----------------------------------------------------------------------------------

/// An expression as a key of the table. Sorts the operands of sums and products, so that their
/// order does not matter.
struct Key {
  DimOperation operation;
  std::vector<const DimNode*> operands;
  std::int64_t number;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t result = static_cast<std::size_t>(key.operation);
    for (const DimNode* node : key.operands)
      result = attr::mix(result, reinterpret_cast<std::size_t>(node) >> 4);
    return attr::mix(result, static_cast<std::size_t>(key.number));
  }
};
Key key_of(const DimExpression& expression) {
  Key key{expression.operation, {}, expression.number};
  for (const Dim& dim : expression.operands) key.operands.push_back(dim.node());
  if (key.operation == DimOperation::sum || key.operation == DimOperation::product)
    std::sort(key.operands.begin(), key.operands.end());
  return key;
}

/// Owns no references: a computed dim holds its operands, and leaves the table when it is freed.
struct Table {
  std::mutex mutex;
  std::unordered_map<Key, const DimNode*, KeyHash> nodes;
};
Table& table() {
  static Table& instance = *new Table;  // dims may be freed after static objects
  return instance;
}

/// Returns the node of this key; null if there is none or its reference count is already zero.
Ref<const DimNode> find_again(const Table& t, const Key& key) {
  const auto found = t.nodes.find(key);
  if (found == t.nodes.end()) return nullptr;
  std::uint32_t count = found->second->refs.load(std::memory_order_relaxed);
  while (count && !found->second->refs.compare_exchange_weak(count, count + 1)) {
  }
  return count ? Ref<const DimNode>::adopt(found->second) : nullptr;
}

// ---- Making a dim -------------------------------------------------------------------------------

/// Returns a quotient without remainder. Throws ArgumentError if there is a remainder.
std::int64_t exact_quotient(const DimExpression& expression,
                            const std::vector<std::int64_t>& lengths) {
  std::int64_t divisor = expression.number;
  if (lengths.size() > 1 && __builtin_mul_overflow(divisor, lengths[1], &divisor))
    divisor = std::numeric_limits<std::int64_t>::max();
  if (lengths[0] == 0) return 0;
  if (divisor == 0 || lengths[0] % divisor)
    throw ArgumentError(str("Dim ", text_of(expression), ": ", lengths[0], " is no multiple of ",
                            divisor, "; to round, divide by a number"));
  return lengths[0] / divisor;
}

/// Returns the result for one length of each operand; -1 if it does not fit into 64 bits.
std::int64_t value_of(const DimExpression& expression, const std::vector<std::int64_t>& lengths) {
  const std::int64_t n = expression.number, first = lengths[0];
  std::int64_t result = n;
  switch (expression.operation) {
    case DimOperation::sum:
      for (const std::int64_t length : lengths)
        if (__builtin_add_overflow(result, length, &result)) return -1;
      return result;
    case DimOperation::difference:
      return std::max<std::int64_t>(first - (lengths.size() > 1 ? lengths[1] : n), 0);
    case DimOperation::product:
      for (const std::int64_t length : lengths)
        if (__builtin_mul_overflow(result, length, &result)) return -1;
      return result;
    case DimOperation::quotient:
      return exact_quotient(expression, lengths);
    case DimOperation::floor:
      return first / n;
    default:
      return first / n + (first % n != 0);
  }
}

[[noreturn]] void refuse_length(const std::string& name, int bits) {
  throw ArgumentError(str("Dim ", name, ": a length does not fit into ", bits, " bits"));
}

/// Returns the dims of the result's lengths. One operand has them all.
Dims length_dims_of(const DimExpression& expression) {
  const Dims* most = &expression.operands[0].length_dims();
  for (const Dim& dim : expression.operands)
    if (dim.length_dims().size() > most->size()) most = &dim.length_dims();
  for (const Dim& dim : expression.operands)
    for (const Dim& of : dim.length_dims())
      if (!contains(*most, of))
        throw ShapeError(str("Dim ", text_of(expression), ": the lengths of ", dim, " run over ",
                             of, ", those of another operand over ", *most,
                             "; one operand's must run over all dims"));
  return *most;
}

std::int64_t size_of_static(const DimExpression& expression) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : expression.operands) sizes.push_back(dim.size());
  const std::int64_t size = value_of(expression, sizes);
  if (size < 0) refuse_length(text_of(expression), 64);
  return size;
}

/// Returns the lengths (i32) over these dims, computed outside of traces, tapes and bodies. Padding
/// is 0: operands with fewer dims are repeated there, and fit no padding of the others.
Tensor lengths_of(const DimExpression& expression, const Dims& over) {
  ModeScope plain({});
  std::vector<Tensor> operands;
  for (const Dim& dim : expression.operands) operands.push_back(expand(dim.lengths(), over));
  const Tensor result(allocate_block(TensorType(i32, over)));
  std::vector<char> is_padding(static_cast<std::size_t>(result.type().numel()));
  for_each_padding(result.type(), [&](std::int64_t first, std::int64_t count) {
    std::fill_n(is_padding.begin() + first, count, true);
  });
  std::vector<std::int64_t> lengths(operands.size());
  for (std::int64_t i = 0; i < result.type().numel(); ++i) {
    if (is_padding[static_cast<std::size_t>(i)]) {
      result.data<std::int32_t>()[i] = 0;
      continue;
    }
    for (std::size_t k = 0; k < operands.size(); ++k)
      lengths[k] = operands[k].data<std::int32_t>()[i];
    const std::int64_t length = value_of(expression, lengths);
    if (length < 0 || length > std::numeric_limits<std::int32_t>::max())
      refuse_length(text_of(expression), 32);
    result.data<std::int32_t>()[i] = static_cast<std::int32_t>(length);
  }
  return result;
}

Ref<DimNode> make_node(DimExpression expression) {
  const Dims& operands = expression.operands;
  const auto any = [&](auto&& is) { return std::any_of(operands.begin(), operands.end(), is); };
  const bool is_symbol = any([](const Dim& dim) { return dim.is_symbol(); });
  const bool is_static = !any([](const Dim& dim) { return dim.node()->kind != DimKind::fixed; });
  const Dims over = length_dims_of(expression);
  Ref<DimNode> node;
  if (is_static || is_symbol) {
    node = Ref<DimNode>(new DimNode);
    node->name = operands[0].name();
    node->kind = is_static ? DimKind::fixed : over.empty() ? DimKind::dynamic : DimKind::ragged;
    node->length_dims = over;
    if (is_static) node->size = size_of_static(expression);
  } else {
    node = node_of_lengths(operands[0].name(), lengths_of(expression, over));
  }
  node->is_symbol = is_symbol;
  node->expression = std::make_unique<const DimExpression>(std::move(expression));
  return node;
}

/// Returns the dim of an expression. Requires operands of one mode.
Dim found_or_made(DimExpression expression) {
  Table& t = table();
  const Key key = key_of(expression);
  {
    const std::lock_guard lock(t.mutex);
    if (auto node = find_again(t, key)) return Dim::of_node(std::move(node));
  }
  Ref<DimNode> made = make_node(std::move(expression));
  Ref<const DimNode> node = made;
  {
    const std::lock_guard lock(t.mutex);
    if (auto other = find_again(t, key))
      node = std::move(other);  // made by another thread meanwhile
    else
      t.nodes[key] = made.get();
  }
  return Dim::of_node(std::move(node));
}

Dim computed(DimExpression expression) {
  Dim result = found_or_made(std::move(expression));
  return is_tracing() ? thread_mode.builder->unified(result) : result;
}

// ---- Normal forms -------------------------------------------------------------------------------

/// Returns the dim's expression if it has this operation; otherwise null.
const DimExpression* as(const Dim& dim, DimOperation operation) {
  const DimExpression* expression = expression_of(dim);
  return expression && expression->operation == operation ? expression : nullptr;
}

Dim sum_of(Dims terms, std::int64_t number) {
  if (terms.size() == 1 && number == 0) return terms[0];
  return computed({DimOperation::sum, std::move(terms), number});
}

Dim product_of(Dims factors, std::int64_t number) {
  if (factors.empty()) return number;
  if (factors.size() == 1 && number == 1) return factors[0];
  return computed({DimOperation::product, std::move(factors), number});
}

/// The terms of a sum or the factors of a product: dims with names, and a number.
struct Terms {
  Dims dims;
  std::int64_t number;
};

/// Returns the terms of a dim that is a sum; otherwise the dim itself.
Terms terms_of(const Dim& dim) {
  if (!dim.is_named()) return {{}, dim.size()};
  const DimExpression* sum = as(dim, DimOperation::sum);
  return sum ? Terms{sum->operands, sum->number} : Terms{{dim}, 0};
}

/// Returns the factors of a dim that is a product; otherwise the dim itself.
Terms factors_of(const Dim& dim) {
  if (!dim.is_named()) return {{}, dim.size()};
  const DimExpression* product = as(dim, DimOperation::product);
  return product ? Terms{product->operands, product->number} : Terms{{dim}, 1};
}

/// Removes the dims that both lists have from both.
void cancel(Dims& a, Dims& b) {
  Dims rest;
  for (const Dim& dim : a) {
    if (const auto same = std::find(b.begin(), b.end(), dim); same != b.end())
      b.erase(same);
    else
      rest.push_back(dim);
  }
  a = std::move(rest);
}

std::int64_t checked_product(std::int64_t a, std::int64_t b, const Dim& dim) {
  if (__builtin_mul_overflow(a, b, &a)) refuse_length(str(dim), 64);
  return a;
}

/// Returns the dim, or its symbol while tracing. Throws ArgumentError for an undefined dim.
Dim operand(const Dim& dim) {
  if (dim.is_undefined())
    throw ArgumentError(str("arithmetic on dim ", dim, ", which is undefined: it has no size"));
  return canonical(dim);
}

}  // namespace

Dim recompute(const DimExpression& expression, const Dims& operands) {
  const std::int64_t n = expression.number;
  switch (expression.operation) {
    case DimOperation::sum: {
      Dim result = operands[0];
      for (std::size_t i = 1; i < operands.size(); ++i) result = result + operands[i];
      return dim_plus(result, n);
    }
    case DimOperation::difference:
      return operands.size() > 1 ? operands[0] - operands[1] : dim_plus(operands[0], -n);
    case DimOperation::product: {
      Dim result = operands[0];
      for (std::size_t i = 1; i < operands.size(); ++i) result = result * operands[i];
      return dim_times(result, n);
    }
    case DimOperation::quotient: {
      const Dim divisor = operands.size() > 1 ? dim_times(operands[1], n) : Dim(n);
      return operands[0] / divisor;
    }
    case DimOperation::floor:
      return dim_over(operands[0], n);
    default:
      return ceildiv(operands[0], n);
  }
}

void forget_computed(const DimNode* node) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  try {
    const auto found = t.nodes.find(key_of(*node->expression));
    if (found != t.nodes.end() && found->second == node) t.nodes.erase(found);
  } catch (const std::bad_alloc&) {  // for the key; the dim must be freed nevertheless
    std::erase_if(t.nodes, [&](const auto& entry) { return entry.second == node; });
  }
}

// ---- Public functions ---------------------------------------------------------------------------

Dim dim_plus(const Dim& dim, std::int64_t n) {
  const Dim d = operand(dim);
  if (n == 0 || is_unknown(d)) return n ? Dim::unknown() : d;
  if (!d.is_named()) {
    std::int64_t size = 0;
    if (__builtin_add_overflow(d.size(), n, &size)) refuse_length(str(d, '+', n), 64);
    return std::max<std::int64_t>(size, 0);
  }
  const DimExpression* sum = as(d, DimOperation::sum);
  if (n > 0) {
    std::int64_t number = n;
    if (sum && __builtin_add_overflow(sum->number, n, &number)) refuse_length(str(d), 64);
    return sum_of(sum ? sum->operands : Dims{d}, number);
  }
  // Subtracting up to the number of a sum never reaches the limit at 0.
  constexpr std::int64_t kMaxSize = std::numeric_limits<std::int64_t>::max();
  std::int64_t less = n < -kMaxSize ? kMaxSize : -n;
  if (sum && sum->number >= less) return sum_of(sum->operands, sum->number - less);
  if (sum && sum->number) return dim_plus(sum_of(sum->operands, 0), sum->number - less);
  const DimExpression* difference = as(d, DimOperation::difference);
  if (difference && difference->operands.size() > 1)  // (a - b) - n is a - (b + n)
    return difference->operands[0] - dim_plus(difference->operands[1], less);
  if (difference)
    less = less > kMaxSize - difference->number ? kMaxSize : less + difference->number;
  return computed({DimOperation::difference, difference ? difference->operands : Dims{d}, less});
}

Dim dim_minus(const Dim& dim, std::int64_t n) {
  if (n == std::numeric_limits<std::int64_t>::min()) refuse_length(str(dim, " - ", n), 64);
  return dim_plus(dim, -n);
}

namespace detail {
void refuse_operand(const Dim& dim, std::uint64_t n) {
  throw ArgumentError(
      str("arithmetic on dim ", dim, ": ", n, " does not fit into 64 bits with a sign"));
}
}  // namespace detail

Dim operator+(const Dim& a, const Dim& b) {
  const Dim left = operand(a), right = operand(b);
  if (is_unknown(left) || is_unknown(right)) return Dim::unknown();
  if (!right.is_named()) return dim_plus(left, right.size());
  if (!left.is_named()) return dim_plus(right, left.size());
  Dims terms;
  std::int64_t number = 0;
  for (const Dim& dim : {left, right}) {
    const DimExpression* sum = as(dim, DimOperation::sum);
    const Dims more = sum ? sum->operands : Dims{dim};
    terms.insert(terms.end(), more.begin(), more.end());
    if (sum && __builtin_add_overflow(number, sum->number, &number)) refuse_length(str(dim), 64);
  }
  return sum_of(std::move(terms), number);
}

namespace {

/// Throws ArgumentError if a plain size stands before a dim with a name. operation: its sign.
void check_named(const Dim& a, const Dim& b, char operation) {
  if (!a.is_named() && b.is_named())
    throw ArgumentError(str("Dim ", a, ' ', operation, ' ', b, ": ", a,
                            " is a plain size; give it a name, as in Dim(\"all\", ", a, ')'));
}

}  // namespace

Dim operator-(const Dim& a, const Dim& b) {
  Dim left = operand(a), right = operand(b);
  if (is_unknown(left) || is_unknown(right)) return Dim::unknown();
  if (!right.is_named()) return dim_minus(left, right.size());
  check_named(left, right, '-');
  const DimExpression* difference = as(left, DimOperation::difference);
  if (difference) {  // (a - b) - c is a - (b + c)
    right = difference->operands.size() > 1 ? difference->operands[1] + right
                                            : dim_plus(right, difference->number);
    left = difference->operands[0];
  }
  Terms from = terms_of(left), less = terms_of(right);
  cancel(from.dims, less.dims);
  // If nothing with a name is left, the terms stay, because a number has no name.
  if (from.dims.empty()) return computed({DimOperation::difference, {left, right}});
  const std::int64_t both = std::min(from.number, less.number);
  left = sum_of(std::move(from.dims), from.number - both);
  if (less.dims.empty()) return dim_minus(left, less.number - both);
  return computed(
      {DimOperation::difference, {left, sum_of(std::move(less.dims), less.number - both)}});
}

Dim operator*(const Dim& a, const Dim& b) {
  const Dim left = operand(a), right = operand(b);
  if (is_unknown(left) || is_unknown(right)) return Dim::unknown();
  if (!right.is_named()) return dim_times(left, right.size());
  if (!left.is_named()) return dim_times(right, left.size());
  Terms factors = factors_of(left);
  const Terms more = factors_of(right);
  factors.dims.insert(factors.dims.end(), more.dims.begin(), more.dims.end());
  return product_of(std::move(factors.dims), checked_product(factors.number, more.number, left));
}

Dim operator/(const Dim& a, const Dim& b) {
  Dim left = operand(a), right = operand(b);
  if (is_unknown(left) || is_unknown(right)) return Dim::unknown();
  check_named(left, right, '/');
  if (const DimExpression* quotient = as(left, DimOperation::quotient)) {  // (a/b)/c is a/(b*c)
    right = dim_times(right, quotient->number);
    if (quotient->operands.size() > 1) right = quotient->operands[1] * right;
    left = quotient->operands[0];
  }
  if (!right.is_named() && right.size() == 1) return left;
  if (!left.is_named() && left.size() == 0) return left;
  if (!left.is_named() || (!right.is_named() && right.size() == 0)) {
    const std::int64_t by = right.size();
    if (by ? left.size() % by : 1)
      throw ArgumentError(str("Dim ", left, " / Dim ", right, ": ", left, " is no multiple of ",
                              right, "; to round, divide by a number"));
    return left.size() / by;
  }
  Terms from = factors_of(left), by = factors_of(right);
  const Dims all = from.dims;
  cancel(from.dims, by.dims);
  if (from.dims.empty()) {  // a number has no name: the factors stay
    from.dims = all;
    by.dims = factors_of(right).dims;
  }
  if (const std::int64_t shared = std::gcd(from.number, by.number); shared > 1) {
    from.number /= shared;
    by.number /= shared;
  }
  left = product_of(std::move(from.dims), from.number);
  if (by.dims.empty() && by.number == 1) return left;
  if (by.dims.empty()) return computed({DimOperation::quotient, {left}, by.number});
  return computed({DimOperation::quotient, {left, product_of(std::move(by.dims), 1)}, by.number});
}

Dim dim_times(const Dim& dim, std::int64_t n) {
  const Dim d = operand(dim);
  if (n < 0) throw ArgumentError(str("Dim ", d, " * ", n, ": a size is not negative"));
  if (n == 1) return d;
  if (is_unknown(d)) return Dim::unknown();
  const DimExpression* product = as(d, DimOperation::product);
  std::int64_t number = n;
  const std::int64_t by = product ? product->number : d.is_named() ? 1 : d.size();
  if (__builtin_mul_overflow(by, n, &number)) refuse_length(str(d, '*', n), 64);
  if (!d.is_named()) return number;
  return product_of(product ? product->operands : Dims{d}, number);
}

namespace {

Dim divide(const Dim& dim, std::int64_t n, DimOperation how) {
  const Dim d = operand(dim);
  if (n <= 0)
    throw ArgumentError(str("Dim ", d, " divided by ", n, ": the divisor must be positive"));
  if (n == 1) return d;
  if (is_unknown(d)) return Dim::unknown();
  if (!d.is_named()) return value_of({how, {}, n}, {d.size()});
  if (const DimExpression* product = as(d, DimOperation::product))
    if (product->number % n == 0) return product_of(product->operands, product->number / n);
  const DimExpression* quotient = as(d, how);
  std::int64_t number = n;
  if (quotient && __builtin_mul_overflow(quotient->number, n, &number)) refuse_length(str(d), 64);
  return computed({how, quotient ? quotient->operands : Dims{d}, number});
}

}  // namespace

Dim dim_over(const Dim& dim, std::int64_t n) { return divide(dim, n, DimOperation::floor); }
Dim ceildiv(const Dim& dim, std::int64_t n) { return divide(dim, n, DimOperation::ceil); }

}  // namespace reel
