// ctc_labels: returns labels unchanged after checking that none is the blank, and that the blank is
// in range.
#include "reel/core/ops/indexing/labels.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/padding_runs.h"

namespace reel {
namespace {

struct LabelAttrs {
  Dim vocab{0};
  std::int64_t blank = 0;
  std::string function;  ///< called by the user
  template <class F>
  static void fields(F&& f) {
    f("vocab", &LabelAttrs::vocab);
    f("blank", &LabelAttrs::blank);
    f("function", &LabelAttrs::function);
  }
};

void labels_kernel(KernelArgs& a) {
  const LabelAttrs& attrs = a.attr<LabelAttrs>();
  const Tensor& labels = a.input(0);
  const TensorType& type = labels.type();
  const std::int64_t size = attrs.vocab.size();
  const std::int64_t blank = attrs.blank < 0 ? attrs.blank + size : attrs.blank;
  // The size may have been unknown when the loss checked its arguments.
  if (blank < 0 || blank >= size)
    throw IndexError(str(attrs.function, ": blank must be a position along ", attrs.vocab, ", got ",
                         attrs.blank));
  std::vector<char> is_padding(type.is_ragged() ? static_cast<std::size_t>(type.numel()) : 0);
  for_each_padding(type, [&](std::int64_t first, std::int64_t count) {
    std::fill_n(is_padding.begin() + first, count, true);
  });
  visit(type.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < type.numel(); ++i) {
      const auto label = static_cast<std::int64_t>(labels.data<T>()[i]);
      if (label >= 0 && label < size && label != blank) continue;
      if (!is_padding.empty() && is_padding[static_cast<std::size_t>(i)]) continue;
      throw IndexError(str(attrs.function, ": label ", label, place_of_element(i, type),
                           label == blank ? str(" is the blank; labels are other positions along ")
                                          : str(" is no position along "),
                           attrs.vocab));
    }
  });
  a.alias(0, 0);
}

const Op ctc_labels_op{
    .name = "ctc_labels",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel = labels_kernel,
    .storage = OpStorage::input,
    .no_vjp = "labels are integers",
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const LabelAttrs first{Dim("vocab", 4), 0, "ctc_loss"}, last{Dim(4), -1, "ctc_loss"};
          return OpSamples{
              {{{TensorType(i32, {2, 3}), 0, 2, false}}, make_attrs(last)},
              {{{TensorType(i64, {dims[0], dims[1]}), 1, 3, false}}, make_attrs(first)},
              {{{TensorType(i32, {0}), 0, 3, false}}, make_attrs(last)}};
        },
};

}  // namespace

Tensor checked_labels(std::string function, const Tensor& labels, const Dim& vocab,
                      std::int64_t blank) {
  return bind(ctc_labels_op, {labels},
              make_attrs(LabelAttrs{canonical(vocab), blank, std::move(function)}));
}

namespace {
const Op* const kLabelOps[] = {&ctc_labels_op};
}
std::span<const Op* const> label_ops() { return kLabelOps; }

}  // namespace reel
