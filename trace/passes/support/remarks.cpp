#include "reel/trace/passes/support/remarks.h"

#include "reel/core/base/str.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

void LoopRemarks::say(Kind kind, const Op& op, const std::vector<TensorType>& in,
                      const std::vector<TensorType>& out, const std::string& how) {
  if (op.gains_from_batching)
    say(kind, str(op.name, '(', join(in), ") -> ", join(out), ", ", how));
  else
    counted_[{kind, how}][std::string(op.name)] += 1;
}

LoopRemarks::All LoopRemarks::finish() {
  for (const auto& [group, names] : counted_) {
    std::vector<std::string> texts;
    for (const auto& [name, count] : names)
      texts.push_back(count > 1 ? str(name, " (", count, ')') : name);
    say(group.first, str(join(texts), ", ", group.second));
  }
  return std::make_shared<const std::vector<LoopRemark>>(std::move(remarks_));
}

}  // namespace reel
