#include "reel/core/ops/shape/dims.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/known_dims.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/dim_node.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

struct DimAttrs {
  Dim dim{0};
  template <class F>
  static void fields(F&& f) {
    f("dim", &DimAttrs::dim);
  }
};
/// Attributes of ops with DimUse::reads.
struct ReadDimAttrs {
  Dim dim{0};
  template <class F>
  static void fields(F&& f) {
    f("dim", &ReadDimAttrs::dim);
  }
};
/// Attributes of ops with DimUse::defines.
struct DefinedDimAttrs {
  std::string name;
  /// The new dim is static in runs in which all of these dims are; without any, in no run.
  Dims from;
  template <class F>
  static void fields(F&& f) {
    f("name", &DefinedDimAttrs::name);
    f("from", &DefinedDimAttrs::from);
  }
};

template <class Fn>
void each_length(const Tensor& lengths, Fn&& fn) {
  const std::int64_t count = lengths.type().numel();
  for (std::int64_t i = 0; i < count; ++i)
    fn(lengths.dtype() == i64 ? lengths.data<std::int64_t>()[i] : lengths.data<std::int32_t>()[i]);
}

template <class Attributes>
OpSamples dim_samples() {
  static const Dim& time = *new Dim("time", tensor({3, 1}, {Dim("batch", 2)}));
  static const Dim& empty = *new Dim("time", tensor({0, 0}, {Dim("batch", 2)}));
  return {{{}, make_attrs(Attributes{time})},
          {{}, make_attrs(Attributes{empty})},
          {{}, make_attrs(Attributes{Dim("width", 3)})}};
}

const Op dim_lengths_op{
    .name = "dim_lengths",
    .type =
        [](TypeArgs& a) {
          a.out.push_back(TensorType(i32, a.attr<ReadDimAttrs>().dim.length_dims()));
        },
    .kernel =
        [](KernelArgs& a) {
          const Dim& dim = a.attr<ReadDimAttrs>().dim;
          if (dim.node() && dim.node()->lengths)
            a.out[0] = Tensor(dim.node()->lengths);
          else
            *a.make().data<std::int32_t>() =
                checked_i32(dim.size(), "lengths", str("the size of dim ", dim));
        },
    .storage = OpStorage::any,
    .no_vjp = "lengths are integers",
    .samples = dim_samples<ReadDimAttrs>,
    .dim_use = DimUse::reads,
};

const Op define_dim_op{
    .name = "define_dim",
    .type =
        [](TypeArgs& a) {
          a.out.push_back(token_type(dim_symbol(a.attr<DefinedDimAttrs>().name, a.in[0].dims())));
        },
    .kernel =
        [](KernelArgs& a) {
          const Dim dim = dim_defined_by(*a.attrs, a.input(0));
          a.decided->push_back(Tensor(allocate_block(token_type(dim))));
        },
    .no_vjp = "lengths are integers",
    .samples =
        [] {
          return OpSamples{{{{TensorType(i32, {Dim("batch", 2)}), 0, 4, false}},
                            make_attrs(DefinedDimAttrs{"time", {}})}};
        },
    .kernel_decides_types = true,
    .dim_use = DimUse::defines,
};

const Op dim_token_op{
    .name = "dim_token",
    .type = [](TypeArgs& a) { a.out.push_back(token_type(a.attr<DimAttrs>().dim)); },
    .kernel = [](KernelArgs& a) { a.make(); },
    .no_vjp = "has no elements",
    .samples = dim_samples<DimAttrs>,
};

const Op mask_op{
    .name = "mask",
    .type =
        [](TypeArgs& a) {
          const Dim& dim = a.attr<ReadDimAttrs>().dim;
          Dims dims = dim.length_dims();
          dims.push_back(dim);
          a.out.push_back(TensorType(boolean, dims));
        },
    .kernel =
        [](KernelArgs& a) {
          const Dim& dim = a.attr<ReadDimAttrs>().dim;
          const std::int64_t extent = dim.size();
          bool* out = a.make().data<bool>();
          if (!dim.is_ragged()) {
            std::fill_n(out, extent, true);
            return;
          }
          each_length(Tensor(dim.node()->lengths), [&](std::int64_t length) {
            std::fill_n(out, length, true);
            std::fill_n(out + length, extent - length, false);
            out += extent;
          });
        },
    .no_vjp = "a mask is boolean",
    .samples = dim_samples<ReadDimAttrs>,
    .dim_use = DimUse::reads,
};

}  // namespace

const Dim* dim_of_lengths(const OpRecord& record) {
  return record.op == &dim_lengths_op ? &get<ReadDimAttrs>(record.attrs.get()).dim : nullptr;
}
const std::string* name_of_defined_dim(const OpRecord& record) {
  if (record.op->dim_use != DimUse::defines) return nullptr;
  return &get<DefinedDimAttrs>(record.attrs.get()).name;
}
Dim dim_defined_by(const Attrs& attrs, const Tensor& lengths) {
  const auto& [name, from] = get<DefinedDimAttrs>(&attrs);
  if (from.empty() || lengths.rank() || !std::ranges::all_of(from, is_static))
    return Dim(name, lengths);
  check_lengths(name, lengths);
  return Dim(name, largest_length(lengths));
}
std::optional<Dim> dim_read_by(const Op& op, const Attrs* attrs) {
  if (op.dim_use != DimUse::reads) return std::nullopt;
  return get<ReadDimAttrs>(attrs).dim;
}

std::pair<const Op*, AttrsRef> op_of_lengths(const Dim& dim) {
  return {&dim_lengths_op, make_attrs(ReadDimAttrs{dim})};
}

ValueId append_dim_token(Graph& graph, const Dim& dim) {
  const ValueId token = graph.add_value(token_type(dim));
  graph.append(dim_token_op, make_attrs(DimAttrs{dim}), {}, {&token, 1});
  return token;
}

namespace {
/// Lengths may run over a ragged dim; its padding holds no lengths.
Tensor without_padding(const Tensor& lengths) {
  if (!lengths.type().is_ragged()) return lengths;
  ModeScope plain({});
  return mask_padding(lengths, 0);
}
}  // namespace

void check_lengths(const std::string& name, const Tensor& lengths) {
  if (!is_integer(lengths.dtype()))
    throw DTypeError(str("Dim ", name, ": lengths must be integers, got ", lengths.type()));
  if (lengths.rank() && !lengths.type().is_named())
    throw ShapeError(str("Dim ", name, ": lengths ", lengths.type(),
                         " have plain sizes; give them named dims, as in ",
                         "tensor({3, 1}, {batch})"));
  if (lengths.is_traced()) return;
  each_length(without_padding(lengths), [&](std::int64_t length) {
    if (length < 0)
      throw ArgumentError(str("Dim ", name, ": lengths must not be negative, got ", length));
    checked_i32(length, str("Dim ", name), "a length");
  });
}

std::int64_t largest_length(const Tensor& lengths) {
  std::int64_t result = 0;
  each_length(lengths, [&](std::int64_t length) { result = std::max(result, length); });
  return result;
}

std::int64_t smallest_length(const Tensor& lengths) {
  std::int64_t result = largest_length(lengths);
  each_length(lengths, [&](std::int64_t length) { result = std::min(result, length); });
  return result;
}

Tensor lengths_as_i32(const Tensor& lengths) {
  ModeScope plain({});
  return cast(without_padding(lengths), i32);
}

Ref<DimNode> node_of_lengths(std::string name, const Tensor& lengths) {
  Ref<DimNode> node(new DimNode);
  node->name = std::move(name);
  node->kind = lengths.rank() ? DimKind::ragged : DimKind::dynamic;
  const Tensor kept = lengths_as_i32(lengths);
  node->size = largest_length(kept);
  node->lengths = kept.ref();
  node->length_dims = lengths.dims();
  node->is_full = smallest_length(kept) == node->size;
  return node;
}

Dim::Dim(std::string name, const Tensor& lengths) {
  check_lengths(name, lengths);
  if (is_tracing() || lengths.is_traced()) {
    *this = define_dim(name, lengths);
    return;
  }
  const Tensor seen = thread_mode.entries ? thread_mode.entries->visible(lengths) : lengths;
  *this = of_node(node_of_lengths(std::move(name), seen));
}

Tensor Dim::lengths() const {
  if (node_ && node_->lengths && !is_tracing()) {
    const Tensor lengths(canonical(*this).node_->lengths);
    // In a body with finished entries, these are the lengths of the dim as the body sees it. A new
    // header keeps them from being filled again, as the lengths of a captured tensor are.
    return thread_mode.entries ? with_dims_of(lengths, lengths.type()) : lengths;
  }
  if (is_undefined()) throw ArgumentError(str("Dim ", *this, " is undefined: it has no lengths"));
  return dim_lengths(*this);
}

Dim define_dim(const std::string& name, const Tensor& lengths) {
  return bind(define_dim_op, {lengths}, make_attrs(DefinedDimAttrs{name, {}})).dims()[1];
}
Dim dim_like(std::span<const Dim> from, const std::string& name, std::int64_t size) {
  if (std::ranges::all_of(from, is_static)) return Dim(name, size);
  return Dim(name, computed_plainly([&] { return full({}, size, i64); }));
}
Dim dim_like(std::span<const Dim> from, const std::string& name, const Tensor& lengths) {
  Dims undecided;
  for (const Dim& dim : canonical(Dims(from.begin(), from.end()))) {
    if (is_static(dim)) continue;
    // A dim from outside of all traces has lengths in every run.
    if (dim.is_ragged() || !dim.is_symbol()) return Dim(name, lengths);
    undecided.push_back(dim);
  }
  if (undecided.empty() || !(is_tracing() || lengths.is_traced())) return Dim(name, lengths);
  check_lengths(name, lengths);
  return bind(define_dim_op, {lengths}, make_attrs(DefinedDimAttrs{name, std::move(undecided)}))
      .dims()[1];
}
Tensor dim_lengths(const Dim& dim) {
  return bind(dim_lengths_op, {}, make_attrs(ReadDimAttrs{canonical(dim)}));
}
std::vector<std::size_t> capture_lengths(Graph& body, Tensors& captured, DimEnv outside,
                                         const Dims& kept_dims) {
  std::vector<std::size_t> unchanged;
  DimEnv names = DimEnv::renaming(std::move(outside));
  Dims known = body.schedule().free_symbols;  // and dims of captures; dims of a state may change
  for (std::size_t i = body.formal_count; i < body.inputs.size(); ++i)
    for_each_bound(body.types[body.inputs[i]], [&](const Dim& dim) { known.push_back(dim); });
  const auto is_known = [&](const Dim& dim) {
    return !dim.is_symbol() || std::any_of(known.begin(), known.end(), [&](const Dim& other) {
      return other.node() == dim.node();
    });
  };
  std::vector<OpRecord> kept;
  for (OpRecord& record : body.records) {
    if (record.op == &dim_lengths_op) {
      const Dim& dim = get<ReadDimAttrs>(record.attrs.get()).dim;
      if (dim.is_ragged() && is_known(dim)) {
        const Dim actual = names.resolve(dim);
        if (contains(kept_dims, actual)) unchanged.push_back(captured.size());
        captured.push_back(dim_lengths(actual));
        body.inputs.push_back(body.outputs_of(record)[0]);
        continue;
      }
    }
    kept.push_back(std::move(record));
  }
  body.records = std::move(kept);
  body.seal();
  return unchanged;
}
Tensor dim_token(const Dim& dim) {
  return bind(dim_token_op, {}, make_attrs(DimAttrs{canonical(dim)}));
}

bool is_static(const Dim& dim) {
  return dim.is_named() ? dim.node()->kind == DimKind::fixed : dim.has_size();
}

Tensor extent_of(const Dim& dim) {
  if (is_static(dim)) return full({}, dim.size(), i64);
  const Tensor lengths = cast(dim.lengths(), i64);
  return lengths.rank() ? maximum(max(lengths), 0) : lengths;
}

bool has_its_lengths(const TensorType& type, int axis) {
  const Dim& dim = type.dims()[axis];
  return dim.is_ragged() && std::all_of(dim.length_dims().begin(), dim.length_dims().end(),
                                        [&](const Dim& of) { return contains(type.dims(), of); });
}

bool is_masked(const TensorType& type, int axis) {
  const Dim& dim = type.dims()[axis];
  if (!dim.is_ragged() || (dim.has_size() && dim.node()->is_full)) return false;
  return has_its_lengths(type, axis);
}

bool lengths_run_over(const TensorType& type, const std::vector<int>& axes) {
  if (!type.is_ragged()) return false;
  for (int i = 0; i < type.rank(); ++i) {
    if (!is_masked(type, i)) continue;
    for (const Dim& of : type.dims()[i].length_dims())
      if (std::count(axes.begin(), axes.end(), find(type.dims(), of))) return true;
  }
  return false;
}

bool reduces_padding(const TensorType& type, const std::vector<int>& axes) {
  if (!type.is_ragged()) return false;
  return std::any_of(axes.begin(), axes.end(), [&](int axis) { return is_masked(type, axis); }) ||
         lengths_run_over(type, axes);
}

Tensor mask(const Dim& dim) {
  if (dim.is_undefined())
    throw ArgumentError(str("mask: dim ", dim, " is undefined: it has no lengths"));
  return bind(mask_op, {}, make_attrs(ReadDimAttrs{canonical(dim)}));
}

Tensor apart_from(const Tensor& x, const std::vector<int>& axes, Tensor masked) {
  if (!thread_mode.tape || masked.block() != x.block() || !x.type().is_ragged()) return masked;
  const auto is_reduced = [&](int axis) { return std::count(axes.begin(), axes.end(), axis) != 0; };
  for (int i = 0; i < x.rank(); ++i) {
    if (!has_its_lengths(x.type(), i)) continue;
    bool counts = is_reduced(i);
    for (const Dim& of : x.dims()[i].length_dims())
      counts = counts || is_reduced(find(x.dims(), of));
    if (counts) return identity(masked);
  }
  return masked;
}

namespace {
/// Transposes the mask to the order of x's dims. A plan fuses element-wise ops in one order only,
/// and a mask with all dims of x would set the order of the result.
Tensor in_order_of(const Tensor& valid, const Tensor& x) {
  Dims order;
  for (const Dim& dim : x.dims())
    if (find(valid.dims(), dim) >= 0) order.push_back(dim);
  return order == valid.dims() ? valid : transpose(valid, order);
}
}  // namespace

Tensor mask_padding(const Tensor& x, const NestedList& value) {
  check_defined("mask_padding", x);
  const auto padding = [&] {
    return as_function("mask_padding", [&] { return full({}, value, x.dtype()); });
  };
  Tensor result = x;
  for (int i = 0; i < x.rank(); ++i) {
    if (!is_masked(x.type(), i)) continue;
    const Tensor valid = in_order_of(mask(x.dims()[i]), x);
    result = where(valid, result, padding());
  }
  std::vector<int> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  return apart_from(x, all, std::move(result));
}

Tensor mask_padding_along(const Tensor& x, int axis) {
  const Tensor valid = in_order_of(mask(dim_at(x.type(), axis)), x);
  return where(valid, x, full({}, 0, x.dtype()));
}

namespace {
const Op* const kDimOps[] = {&dim_lengths_op, &define_dim_op, &dim_token_op, &mask_op};
}
std::span<const Op* const> dim_ops() { return kDimOps; }

}  // namespace reel
