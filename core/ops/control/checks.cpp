// Ops that return their first input, and throw if values are wrong.
#include "reel/core/ops/control/checks.h"

#include <algorithm>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/control/share_input.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/loop/printed_entries.h"
#include "reel/core/ops/registry.h"
#include "reel/core/types/non_finite.h"
#include "reel/core/types/print.h"
#include "reel/core/types/valid_elements.h"

namespace reel {
namespace {

/// Returns the masks of running entries for a value in the body of scans. Entries of these scans
/// finish one by one.
Tensors running_entries(const TensorType& type) {
  Tensors result = PrintedEntries::inputs_for(type);
  if (!result.empty()) result.erase(result.begin());  // the iteration
  return result;
}

struct NumericsAttrs {
  std::string name;
  int order = 0;  ///< 0: checks a value; k: its k-th derivative's cotangent
  template <class F>
  static void fields(F&& f) {
    f("name", &NumericsAttrs::name);
    f("order", &NumericsAttrs::order);
  }
};

std::string subject_of(const NumericsAttrs& attrs, const TensorType& type) {
  const std::string name = attrs.name.empty() ? "" : str(" \"", attrs.name, '"');
  if (attrs.order == 0) return str("check_numerics", name, ": ", type);
  if (attrs.order == 1) return str("check_numerics", name, ": its gradient, ", type, ',');
  return str("check_numerics", name, ": its gradient of order ", attrs.order, ", ", type, ',');
}

void check(const NumericsAttrs& attrs, const Tensor& x, std::span<const Tensor> running) {
  if (const auto found = find_non_finite(x, running))
    throw NumericsError(str(subject_of(attrs, x.type()), ' ', found->all()));
}

extern const Op check_numerics_op;

/// Inputs: x [masks...]; see PrintedEntries.
const Op check_numerics_op{
    .name = "check_numerics",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const auto& attrs = a.attr<NumericsAttrs>();
          Tensors running;
          for (std::size_t i = 1; i < a.in.size(); ++i) running.push_back(a.input(i));
          if (a.input(0).block()->kind == BlockKind::list)
            each_element(a.input(0), [&](std::int64_t, const Tensor& element) {
              check(attrs, element, running);
            });
          else
            check(attrs, a.input(0), running);
          share_input(a);
        },
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          NumericsAttrs attrs = at.attr<NumericsAttrs>();
          ++attrs.order;
          const Tensor cotangent = at.cotangent();
          std::vector<OpInput> inputs{cotangent};
          for (std::size_t i = 1; i < at.input_count(); ++i) inputs.emplace_back(at.input(i));
          at.add(0, bind_all(check_numerics_op, inputs, make_attrs(std::move(attrs)))[0]);
        },
    .reads = {.inputs = kAll & ~1u},
    .samples =
        [] {
          static const Dim& batch = *new Dim("batch", 2);
          static const Dim& time = *new Dim("time", tensor({3, 1}, {batch}));
          const AttrsRef attrs = make_attrs(NumericsAttrs{"logits"});
          return OpSamples{{{{TensorType(f32, {2, 3})}}, attrs},
                           {{{TensorType(f32, {batch, time})}}, attrs},
                           {{{TensorType(f32, {0, 3})}}, attrs}};
        },
    .takes_lists = 0b1,
    .has_effect = true,
};

struct AssertAttrs {
  std::string text;
  int masks = 0;
  template <class F>
  static void fields(F&& f) {
    f("text", &AssertAttrs::text);
    f("masks", &AssertAttrs::masks);
  }
};

/// The elements of a condition that are false and count.
struct Failures {
  std::string first;  ///< the index of the first one
  std::int64_t count = 0;
};

Failures failures_of(const Tensor& condition, std::span<const Tensor> running) {
  const bool* const values = condition.data<bool>();
  const std::int64_t count = condition.type().numel();
  Failures result;
  if (std::all_of(values, values + count, [](bool value) { return value; })) return result;
  const ValidElements is_valid(condition.type(), running);
  const std::vector<std::int64_t>& sizes = condition.type().sizes();
  std::vector<std::int64_t> index(sizes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i]) continue;
    std::int64_t rest = i;
    for (std::size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      index[axis] = rest % sizes[axis];
    if (!is_valid(index)) continue;
    if (!result.count++) result.first = index_text(condition.type(), index);
  }
  return result;
}

/// Inputs: condition [masks...] [values...].
const Op assert_op{
    .name = "assert_that",
    .type =
        [](TypeArgs& a) {
          if (a.in[0].dtype() != boolean)
            throw DTypeError(str("assert_that: the condition must be boolean, got ", a.in[0],
                                 "; compare it with a number, e.g. x > 0"));
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& attrs = a.attr<AssertAttrs>();
          const auto first_value = 1 + static_cast<std::size_t>(attrs.masks);
          Tensors running;
          for (std::size_t i = 1; i < first_value; ++i) running.push_back(a.input(i));
          if (const Failures failures = failures_of(a.input(0), running); failures.count) {
            TextStream text;
            text << "assert_that: " << attrs.text;
            if (!failures.first.empty()) text << "\nfalse at " << failures.first;
            if (failures.count > 1) text << ", the first of " << failures.count << " elements";
            for (std::size_t i = first_value; i < a.in.size(); ++i) {
              text << "\nvalue " << i - first_value << ": ";
              print_running(text, a.input(i), running);
            }
            throw AssertionError(text.str());
          }
          share_input(a);
        },
    .storage = OpStorage::input,
    .no_vjp = "checks a condition",
    .samples =
        [] {
          static const Dim& batch = *new Dim("batch", 2);
          static const Dim& time = *new Dim("time", tensor({3, 1}, {batch}));
          const AttrsRef attrs = make_attrs(AssertAttrs{"a sample"});
          return OpSamples{
              {{{TensorType(boolean, {2, 3}), 1, 1, false}, {TensorType(f32, {2, 3})}}, attrs},
              {{{TensorType(boolean, {batch, time}), 1, 1, false}}, attrs}};
        },
    .has_effect = true,
};

}  // namespace

bool is_check(const Op& op) { return &op == &check_numerics_op || &op == &assert_op; }

Tensor check_numerics(const Tensor& x, const std::string& name) {
  check_defined("check_numerics", x);
  if (!is_float(x.dtype())) return x;
  std::vector<OpInput> inputs{x};
  const Tensors running = running_entries(x.type());
  inputs.insert(inputs.end(), running.begin(), running.end());
  return bind_all(check_numerics_op, inputs, make_attrs(NumericsAttrs{name}))[0];
}

Tensor assert_that(const Tensor& condition, const std::string& text, const Tensors& values) {
  check_defined("assert_that", condition);
  for (const Tensor& value : values) check_defined("assert_that", value);
  std::vector<OpInput> inputs{condition};
  const Tensors running = running_entries(condition.type());
  inputs.insert(inputs.end(), running.begin(), running.end());
  inputs.insert(inputs.end(), values.begin(), values.end());
  return bind_all(assert_op, inputs,
                  make_attrs(AssertAttrs{text, static_cast<int>(running.size())}))[0];
}

namespace {
const Op* const kCheckOps[] = {&check_numerics_op, &assert_op};
}
std::span<const Op* const> check_ops() { return kCheckOps; }

}  // namespace reel
