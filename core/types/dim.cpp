#include "reel/core/types/dim.h"

#include <atomic>
#include <ostream>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

constinit std::atomic<std::uint64_t> next_serial{1};

/// Never destroyed: destructors of global objects may use dims.
template <class T>
union Lasting {
  T value;
  constexpr Lasting() : value() {}
  constexpr ~Lasting() {}
};
constinit const Lasting<Dims> kNoDims;
/// No constinit object: for clang, the std::string of libstdc++ 12 is no constant.
const std::string& no_name() {
  static const Lasting<std::string> none;
  return none.value;
}

Ref<DimNode> new_node(std::string name, DimKind kind, std::int64_t size) {
  Ref<DimNode> node(new DimNode);
  node->name = std::move(name);
  node->kind = kind;
  node->size = size;
  node->is_symbol = is_tracing() && kind != DimKind::undefined;
  return node;
}

}  // namespace

DimNode::DimNode() : serial(next_serial.fetch_add(1, std::memory_order_relaxed)) {}
std::uint64_t next_dim_serial() { return next_serial.load(std::memory_order_relaxed); }
DimNode::~DimNode() = default;
void DimNode::destroy(const DimNode* node) {
  if (node->expression) forget_computed(node);
  forget_slice(node);
  delete node;
}

std::int64_t Dim::checked_size(std::int64_t size) {
  if (size < 0) throw ArgumentError(str("Dim: a size must not be negative, got ", size));
  return size;
}

Dim::Dim(std::string name) : node_(new_node(std::move(name), DimKind::undefined, -1)) {}

Dim::Dim(std::string name, std::int64_t size) : size_(size) {
  if (size < 0)
    throw ArgumentError(str("Dim ", name, ": a size must not be negative, got ", size,
                            "; Dim(name) without a size makes a dim to be defined later"));
  node_ = new_node(std::move(name), DimKind::fixed, size);
}

Dim Dim::unknown() { return of_node(new_node("", DimKind::plain, -1)); }

Dim Dim::of_node(Ref<const DimNode> node) {
  Dim dim;
  dim.size_ = node->size;
  dim.node_ = std::move(node);
  return dim;
}

bool Dim::is_named() const { return node_ && node_->kind != DimKind::plain; }
bool Dim::is_ragged() const { return node_ && node_->kind == DimKind::ragged; }
bool Dim::is_undefined() const { return node_ && node_->kind == DimKind::undefined; }
bool Dim::is_symbol() const { return node_ && node_->is_symbol; }
const std::string& Dim::name() const { return node_ ? node_->name : no_name(); }
const Dims& Dim::length_dims() const { return node_ ? node_->length_dims : kNoDims.value; }

std::int64_t Dim::size() const {
  if (size_ >= 0) return thread_mode.entries ? canonical(*this).size_ : size_;
  if (is_undefined())
    throw ArgumentError(str("Dim ", *this, " is undefined: it has a name, but no size"));
  throw TraceError(str("the size of dim ", *this,
                       " is not known while tracing; use dim.lengths(), or range(dim)"));
}

bool Dim::operator==(const Dim& other) const {
  if (node_ == other.node_) return node_ || size_ == other.size_;
  if (!is_named() && !other.is_named()) return false;  // an unknown size equals only itself
  if (!is_tracing() && !thread_mode.entries) return false;
  const Dim a = canonical(*this), b = canonical(other);
  return a.node_ && a.node_ == b.node_;
}

std::uint64_t Dim::serial() const { return node_ ? node_->serial : 0; }

std::size_t Dim::hash() const {
  return node_ ? reinterpret_cast<std::size_t>(node_.get()) >> 4
               : static_cast<std::size_t>(size_) * 0x9E3779B97F4A7C15ull;
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  if (!dim.is_named()) {
    if (dim.has_size()) return out << str(dim.size());
    return out << '?';
  }
  if (const DimExpression* expression = expression_of(dim))
    out << text_of(*expression);
  else
    out << dim.name();
  if (dim.is_ragged()) return out << '[' << join(dim.length_dims(), ",") << ']';
  if (dim.has_size()) out << str('=', dim.size());
  return out;
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  return out << '[' << join(dims, ",") << ']';
}

int find(const Dims& dims, const Dim& dim) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == dim) return static_cast<int>(i);
  return -1;
}
bool contains(const Dims& dims, const Dim& dim) { return find(dims, dim) >= 0; }

}  // namespace reel
