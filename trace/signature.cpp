#include "reel/trace/signature.h"

#include <algorithm>
#include <array>
#include <optional>

#include "reel/core/base/key_bytes.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

template <class Fn>
void each_dim(const TreeLeaves& leaves, Fn&& fn) {
  const auto visit = [&](const Dim& dim) {
    for (const Dim& of : dim.length_dims()) fn(of);
    fn(dim);
  };
  const TypeNode* visited = nullptr;  // parameters of one type often follow one another
  for (const TreeLeaf& leaf : leaves) {
    if (leaf.kind == TreeLeaf::Kind::dim) visit(leaf.dim);
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined()) continue;
    const TypeNode* const type = leaf.tensor.type().node();
    if (type == visited) continue;
    for (const Dim& dim : type->dims) visit(dim);
    visited = type;
  }
}

/// The tag in front of each leaf and each axis.
enum class Part : std::uint8_t {
  empty_tensor,
  plain_tensor,  ///< of plain sizes: a pointer to its type, which lives forever
  repeated,      ///< a tensor of a recent type: its place in RecentTypes
  tensor,
  dim,
  none,
  fixed,
  plain_axis,
  unknown_axis,
  named_axis,
};

/// The last few different types of a call's tensors. Models repeat the types of their parameters,
/// so most tensors need one look-up instead of a description.
class RecentTypes {
 public:
  /// Returns the place of a type among the recent ones; nullopt if it is not there, and then adds
  /// it.
  std::optional<std::size_t> find(const TypeNode& type) {
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (types_[i] == &type) return i;
    types_[next_] = &type;
    next_ = (next_ + 1) % types_.size();
    return std::nullopt;
  }

 private:
  std::array<const TypeNode*, 8> types_ = {};
  std::size_t next_ = 0;
};

class Writer {
 public:
  Writer(DimTable& table, const DynamicSizes& dynamic) : table_(table), dynamic_(dynamic) {}

  std::string write(const TreeLeaves& leaves) {
    for (std::size_t i = 0; i < leaves.size(); ++i) add(leaves, i);
    for (std::size_t i = 0; i < table_.dims().size(); ++i) describe(Dim(table_.dims()[i]));
    add_slices();
    return out_.take();
  }

 private:
  void add(const TreeLeaves& leaves, std::size_t i) {
    const TreeLeaf& leaf = leaves[i];
    switch (leaf.kind) {
      case TreeLeaf::Kind::tensor:
        add_tensor(leaves, i);
        break;
      case TreeLeaf::Kind::dim:
        out_.number(Part::dim);
        add_axis(leaf.dim);
        break;
      case TreeLeaf::Kind::none:
        out_.number(Part::none);
        break;
      case TreeLeaf::Kind::fixed:
        out_.number(Part::fixed);
        out_.text(leaf.fixed.bytes());
        break;
    }
  }
  void add_tensor(const TreeLeaves& leaves, std::size_t i) {
    const Tensor& tensor = leaves[i].tensor;
    if (!tensor.is_defined()) {
      out_.number(Part::empty_tensor);
      return;
    }
    const TypeNode& type = *tensor.type().node();
    const bool has_dynamic_axis = dynamic_.has_axis_of(i);
    if (type.is_permanent && !has_dynamic_axis) {
      out_.number(Part::plain_tensor).pointer(&type);
      return;
    }
    if (!has_dynamic_axis)
      if (const std::optional<std::size_t> place = recent_.find(type)) {
        out_.number(Part::repeated).number(*place);
        return;
      }
    out_.number(Part::tensor);
    out_.number(type.is_list);
    out_.number(type.dtype);
    out_.number(type.dims.size());
    if (!has_dynamic_axis)
      for (const Dim& dim : type.dims) add_axis(dim);
    else
      for (const Dim& dim : dims_in_trace(leaves, i, dynamic_)) add_axis(dim);
  }
  void add_axis(const Dim& dim) {
    if (dim.is_named()) {
      out_.number(Part::named_axis);
      out_.number(static_cast<std::uint64_t>(table_.place(dim)));
    } else if (dim.has_size()) {
      out_.number(Part::plain_axis);
      out_.number(static_cast<std::uint64_t>(dim.size()));
    } else {
      out_.number(Part::unknown_axis);
    }
  }
  void describe(const Dim& dim) {
    out_.text(dim.name());
    const DimKind kind = dynamic_.has(dim) ? DimKind::dynamic : dim.node()->kind;
    out_.number(kind);
    if (kind == DimKind::fixed) out_.number(static_cast<std::uint64_t>(dim.size()));
    const DimExpression* expression = table_.visible_expression(dim);
    out_.number(expression ? expression->operands.size() : 0);
    if (expression) {
      out_.number(expression->operation);
      out_.number(static_cast<std::uint64_t>(expression->number));
      for (const Dim& of : expression->operands) add_axis(of);
    }
    out_.number(dim.length_dims().size());
    for (const Dim& of : dim.length_dims()) add_axis(of);
  }

  /// Adds the pairs of a slice and its whole: they decide which axes a dim selects and which dims
  /// broadcast together. A call in the function that gives the slice gives this dim.
  void add_slices() {
    const Dims& dims = table_.dims();
    for (std::size_t i = 0; has_slices() && i < dims.size(); ++i)
      for (std::size_t j = 0; j < dims.size(); ++j)
        if (i != j && is_slice_of(dims[i], dims[j])) {
          out_.number(i).number(j);
          add_key(table_.key_of_slice(dims[i], dims[j]));
        }
  }
  void add_key(const std::optional<SliceKey>& key) {
    out_.number(key.has_value());
    if (!key) return;
    out_.text(key->items()).number(key->dims().size());
    for (const Dim& dim : key->dims()) add_axis(dim);
  }

  DimTable& table_;
  const DynamicSizes& dynamic_;
  RecentTypes recent_;
  KeyBytes out_;
};

}  // namespace

DimTable::DimTable(const TreeLeaves& leaves) {
  Dims computed;
  each_dim(leaves, [&](const Dim& dim) {
    if (expression_of(dim) && !contains(computed, dim)) computed.push_back(dim);
  });
  if (computed.empty()) return;
  each_dim(leaves, [&](const Dim& dim) {
    if (dim.node() && !expression_of(dim)) uses_.emplace(dim.node(), 2);  // of an argument
  });
  for (const Dim& dim : computed) for_each_operand(dim, [&](const Dim& of) { ++uses_[of.node()]; });
}

int DimTable::find(const Dim& dim) {
  constexpr std::size_t kFew = 16;  // comparing up to 16 is faster than a look-up
  // In a scan with finished entries one dim may stand for another and equal it, and arguments may
  // have both.
  const bool may_have_two_nodes = is_tracing() || thread_mode.entries;
  if (dims_.size() > kFew) {
    for (; placed_ < dims_.size(); ++placed_)
      places_.emplace(dims_[placed_].node(), static_cast<int>(placed_));
    if (const auto found = places_.find(dim.node()); found != places_.end()) return found->second;
    if (!may_have_two_nodes) return -1;
  }
  return reel::find(dims_, dim);
}

std::optional<SliceKey> DimTable::key_of_slice(const Dim& slice, const Dim& whole) {
  const std::optional<KnownSlice> known = noted_slice(slice);
  if (!known || known->key.is_by_value() || known->whole.node() != whole.node())
    return std::nullopt;
  for (const Dim& dim : known->key.dims())
    if (dim.is_named() && find(dim) < 0) return std::nullopt;
  return known->key;
}

int DimTable::place(const Dim& dim) {
  if (const int found = find(dim); found >= 0) return found;
  for (const Dim& of : dim.length_dims()) place(of);
  if (const DimExpression* expression = visible_expression(dim))
    for (const Dim& of : expression->operands) place(of);
  dims_.push_back(dim);
  return static_cast<int>(dims_.size()) - 1;
}

const DimExpression* DimTable::visible_expression(const Dim& dim) const {
  const DimExpression* expression = expression_of(dim);
  bool result = expression != nullptr;
  if (result)
    for_each_operand(dim, [&](const Dim& of) {
      const auto found = uses_.find(of.node());
      result = result && found != uses_.end() && found->second > 1;
    });
  return result ? expression : nullptr;
}

bool DynamicSizes::has_axis_of(std::size_t leaf) const {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const PlainAxis& at) { return at.leaf == leaf; });
}

bool DynamicSizes::has(const Dim& dim) const {
  if (dims.empty() || !dim.node() || dim.node()->kind != DimKind::fixed) return false;
  if (std::find(dims.begin(), dims.end(), dim.name()) != dims.end()) return true;
  const DimExpression* expression = expression_of(dim);
  return expression && std::any_of(expression->operands.begin(), expression->operands.end(),
                                   [&](const Dim& of) { return has(of); });
}

Dims dims_in_trace(const TreeLeaves& leaves, std::size_t place, const DynamicSizes& dynamic) {
  Dims dims = leaves[place].tensor.dims();
  for (const DynamicSizes::PlainAxis& at : dynamic.axes)
    if (at.leaf == place && at.axis < dims.size() && !dims[at.axis].is_named())
      dims[at.axis] = Dim::unknown();
  return dims;
}

std::string signature_of(const TreeLeaves& leaves, DimTable& table, const DynamicSizes& dynamic) {
  return Writer(table, dynamic).write(leaves);
}

namespace {

/// Returns true if dims of equal nodes are equal in all respects: no dim is a slice, or stands for
/// another one.
bool are_dims_apart() { return !has_slices() && !is_tracing() && !thread_mode.entries; }

bool is_same_dim(const Dim& a, const Dim& b) {
  return a.node() == b.node() && a.raw_size() == b.raw_size();
}

}  // namespace

KnownLeaves::KnownLeaves(const TreeLeaves& leaves, const DynamicSizes& dynamic, const Dims& dims) {
  if (!dynamic.axes.empty() || !dynamic.dims.empty()) return;
  if (!dims.empty() && !are_dims_apart()) return;
  for (const Dim& dim : dims)
    if (dim.is_undefined() || dim.node()->kind != DimKind::fixed || dim.is_ragged() ||
        expression_of(dim))
      return;
  std::vector<Leaf> all;
  all.reserve(leaves.size());
  for (const TreeLeaf& leaf : leaves) {
    all.push_back({.kind = leaf.kind, .type = {}});
    if (leaf.kind == TreeLeaf::Kind::dim) all.back().dim = leaf.dim;
    if (leaf.tensor.is_defined()) all.back().type = leaf.tensor.type();
    if (leaf.kind == TreeLeaf::Kind::fixed) fixed_.push_back(leaf.fixed);
  }
  dims_ = dims;
  for (const Dim& dim : dims) tokens_.push_back(Tensor(allocate_block(token_type(dim))));
  leaves_ = std::move(all);
}

bool KnownLeaves::are_like(const TreeLeaves& leaves, const DynamicSizes& dynamic) const {
  if (leaves_.empty() || leaves.size() != leaves_.size() || !dynamic.axes.empty()) return false;
  if (!dims_.empty() && !are_dims_apart()) return false;
  auto fixed = fixed_.begin();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const TreeLeaf& leaf = leaves[i];
    const TensorBlock* const block = leaf.tensor.block();
    const std::optional<TensorType>& type = leaves_[i].type;
    if (leaf.kind != leaves_[i].kind ||
        (block ? block->type.node() : nullptr) != (type ? type->node() : nullptr))
      return false;
    if (leaf.kind == TreeLeaf::Kind::fixed && leaf.fixed != *fixed++) return false;
    if (leaf.kind == TreeLeaf::Kind::dim && !is_same_dim(leaf.dim, leaves_[i].dim)) return false;
  }
  return true;
}

StaticSizes::StaticSizes(const TreeLeaves& leaves, const Dims& dims, const DynamicSizes& dynamic) {
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != TreeLeaf::Kind::tensor || !leaves[i].tensor.is_defined()) continue;
    const Dims seen = dims_in_trace(leaves, i, dynamic);
    for (std::size_t axis = 0; axis < seen.size(); ++axis)
      if (!seen[axis].is_named() && seen[axis].has_size())
        plain.push_back({tensor, static_cast<int>(axis), seen[axis].size()});
    ++tensor;
  }
  for (const Dim& dim : dims)
    named.emplace_back(dim.name(),
                       dim.node()->kind == DimKind::fixed && !dynamic.has(dim) ? dim.size() : -1);
}

bool StaticSizes::is_like(const StaticSizes& other) const {
  return std::equal(plain.begin(), plain.end(), other.plain.begin(), other.plain.end(),
                    [](const Axis& a, const Axis& b) {
                      return a.tensor == b.tensor && a.axis == b.axis;
                    }) &&
         std::equal(named.begin(), named.end(), other.named.begin(), other.named.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && (a.second < 0) == (b.second < 0);
                    });
}

}  // namespace reel
