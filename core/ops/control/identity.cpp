// Ops that return their input: print, ensure_shape, stop_gradient, identity and others.
#include <iostream>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/control/share_input.h"
#include "reel/core/ops/loop/printed_entries.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/partial_shape.h"
#include "reel/core/types/print.h"

namespace reel {

bool PartialShape::allows(const Dims& dims) const {
  if (!has_rank_) return true;
  if (dims.size() != dims_.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool says_something = dims_[i].is_named() || dims_[i].has_size();
    if (says_something && !(dims[i] == dims_[i])) return false;
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const PartialShape& shape) {
  if (!shape.has_rank()) return out << "of unknown rank";
  return out << shape.dims();
}

namespace {

void same_type(TypeArgs& a) { a.out.push_back(a.in[0]); }
/// Shares the storage under a new identity: a tape must see another value than the input.
void alias_input(KernelArgs& a) { a.alias(0, 0); }

OpSamples some_samples() {
  static const Dim& batch = *new Dim("batch", 2);
  static const Dim& time = *new Dim("time", tensor({3, 1}, {batch}));
  return {{{{TensorType(f32, {2, 3})}}},
          {{{TensorType(f32, {batch, time})}}},
          {{{TensorType(f32, {0, 3})}}}};
}

struct PrintAttrs {
  std::string label;
  template <class F>
  static void fields(F&& f) {
    f("label", &PrintAttrs::label);
  }
};

/// Inputs: x [iteration] [masks...]; see PrintedEntries.
const Op print_op{
    .name = "print",
    .type = same_type,
    .kernel =
        [](KernelArgs& a) {
          std::string label = a.attr<PrintAttrs>().label;
          if (a.in.size() > 1)
            label += str(label.empty() ? "" : ", ", "iteration ", *a.input(1).data<std::int64_t>());
          Tensors running;
          for (std::size_t i = 2; i < a.in.size(); ++i) running.push_back(a.input(i));
          TextStream text;  // written at once: iterations may print on several threads
          if (!label.empty()) text << label << ": ";
          const Tensor& x = a.input(0);
          print_running(text, is_unranked(x) ? ranked_value(x) : x, running);
          text << '\n';
          std::cout << text.str() << std::flush;
          share_input(a);
        },
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .samples =
        [] {
          OpSamples samples = some_samples();
          for (OpSample& sample : samples)
            sample.attrs = make_attrs(PrintAttrs{"a sample of print"});
          return samples;
        },
    .takes_lists = 0b1,
    .takes_unranked = true,
    .has_effect = true,
    .returns_input = true,
};

const Op stop_gradient_op{
    .name = "stop_gradient",
    .type = same_type,
    .kernel = share_input,
    .storage = OpStorage::input,
    .no_vjp = "lets no gradient through",
    .samples = some_samples,
    .pointwise = true,
    .takes_lists = 0b1,
    .takes_unranked = true,
    .returns_input = true,
};

/// Makes an op that returns its input as another value.
constexpr Op same_value(std::string_view name, bool is_identity) {
  return {.name = name,
          .type = same_type,
          .kernel = share_input,
          .storage = OpStorage::input,
          .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
          .samples = some_samples,
          .pointwise = true,
          .is_identity = is_identity,
          .takes_lists = 0b1,
          .takes_unranked = true,
          .returns_input = true};
}

}  // namespace

const Op identity_op = same_value("identity", true);

namespace {

const Op state_op = same_value("state", false);

struct NameAttrs {
  std::string name;
  template <class F>
  static void fields(F&& f) {
    f("name", &NameAttrs::name);
  }
};

const Op checkpoint_name_op{
    .name = "checkpoint_name",
    .type = same_type,
    .kernel = share_input,
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .samples =
        [] {
          OpSamples samples = some_samples();
          for (OpSample& sample : samples) sample.attrs = make_attrs(NameAttrs{"gates"});
          return samples;
        },
    .pointwise = true,
    .takes_lists = 0b1,
    .takes_unranked = true,
    .returns_input = true,
};

struct ShapeAttrs {
  Dims dims;
  template <class F>
  static void fields(F&& f) {
    f("dims", &ShapeAttrs::dims);
  }
};

const Op ensure_shape_op{
    .name = "ensure_shape",
    .type =
        [](TypeArgs& a) {
          const Dims& wanted = a.attr<ShapeAttrs>().dims;
          const TensorType& x = a.in[0];
          Dims dims = x.dims();
          bool fits = wanted.size() == dims.size();
          for (std::size_t i = 0; fits && i < dims.size(); ++i) {
            const bool says_something = wanted[i].is_named() || wanted[i].has_size();
            if (!says_something || dims[i] == wanted[i]) continue;
            fits = !dims[i].has_size() && !dims[i].is_named();
            dims[i] = wanted[i];
          }
          if (!fits)
            throw ShapeError(str("ensure_shape: ", x, " does not have the shape ",
                                 PartialShape(wanted),
                                 "; give a shape that every x has, with unknown for sizes that may "
                                 "differ: ensure_shape checks x and does not change it",
                                 one_dim_hint(wanted, x.dims())));
          a.out.push_back(x.with(dims));
        },
    .kernel = alias_input,
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {2, 3})}}, make_attrs(ShapeAttrs{{unknown, 3}})}};
        },
    .pointwise = true,
};

/// Returns x with less specific dims; the run determines their sizes.
const Op relax_shape_op{
    .name = "relax_shape",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0].with(a.attr<ShapeAttrs>().dims)); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = a.input(0);
          a.decided->push_back(Tensor(allocate_view(x.type(), x.ref(), x.data<char>())));
        },
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {2, 3})}}, make_attrs(ShapeAttrs{{unknown, 3}})}};
        },
    .kernel_decides_types = true,
    .pointwise = true,
    .fails = fails_without_memory,
};

}  // namespace

Tensor print(const Tensor& x, const std::string& label) {
  check_defined("print", x);
  const Tensors entries = PrintedEntries::inputs_for(x.type());
  if (entries.empty()) return bind(print_op, {x}, make_attrs(PrintAttrs{label}));
  std::vector<OpInput> inputs{x};
  inputs.insert(inputs.end(), entries.begin(), entries.end());
  return bind_all(print_op, inputs, make_attrs(PrintAttrs{label}))[0];
}
Tensor stop_gradient(const Tensor& x) { return bind(stop_gradient_op, {x}); }
Tensor identity(const Tensor& x) { return bind(identity_op, {x}); }
std::string_view checkpoint_name_of(const OpRecord& record) {
  if (record.op != &checkpoint_name_op) return {};
  return get<NameAttrs>(record.attrs.get()).name;
}
Tensor checkpoint_name(const Tensor& x, const std::string& name) {
  return bind(checkpoint_name_op, {x}, make_attrs(NameAttrs{name}));
}
Tensor ensure_shape(const Tensor& x, const PartialShape& shape) {
  check_defined("ensure_shape", x);
  if (!shape.has_rank()) return x;
  if (is_unranked(x)) return as_ranked(x, canonical(shape.dims()));
  return bind(ensure_shape_op, {x}, make_attrs(ShapeAttrs{canonical(shape.dims())}));
}
Tensor relax_shape(const Tensor& x, const PartialShape& shape) {
  Dims dims = x.dims();
  if (!is_tracing() || dims.empty() || x.type().is_named() || x.type().is_list()) return x;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!shape.has_rank() || !shape.dims()[i].has_size()) dims[i] = Dim::unknown();
  return bind(relax_shape_op, {x}, make_attrs(ShapeAttrs{dims}));
}

Tensor as_state(const Tensor& x) { return bind(state_op, {x}); }

namespace {
const Op* const kIdentityOps[] = {&print_op,           &stop_gradient_op, &identity_op,   &state_op,
                                  &checkpoint_name_op, &ensure_shape_op,  &relax_shape_op};
}
std::span<const Op* const> identity_ops() { return kIdentityOps; }

}  // namespace reel
