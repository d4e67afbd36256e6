#include "reel/frontend/pictures/update_boxes.h"

#include <algorithm>

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/base/update_mark.h"

namespace reel {

GraphDrawer::UpdateBoxes::UpdateBoxes(GraphDrawer& drawer, const Graph& graph, int around,
                                      const Ends& inputs)
    : drawer_(drawer),
      graph_(graph),
      around_(around),
      values_(graph.types.size(), {around, {}, {}}) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) set_end(graph.inputs[i], around, inputs[i]);
}

int GraphDrawer::UpdateBoxes::box_of(const OpRecord& record) {
  const std::string_view optimiser = update_of(record.source);
  if (optimiser.empty()) return around_;
  const auto [found, is_new] = open_.try_emplace(record.source, -1);
  if (is_new) {
    found->second = drawer_.add(Kind::box, around_, Role::update, str("update of ", optimiser), {});
    drawer_.at(found->second).source = source_text(record.source);
  }
  return found->second;
}

GraphDrawer::End GraphDrawer::UpdateBoxes::end_in(ValueId value, int box) {
  Value& of = values_[value];
  if (of.box == box) return of.end;
  End outside = of.end;
  if (of.box != around_ && outside.node >= 0) {
    if (of.left.node < 0)
      of.left = drawer_.leave(of.box, Role::result, str("result ", outputs_[of.box]++),
                              graph_.types[value], of.end);
    std::erase_if(open_, [&](const auto& open) { return open.second == of.box; });
    outside = of.left;
  }
  if (box == around_ || outside.node < 0) return outside;
  const auto [found, is_new] = entered_.try_emplace({value, box});
  if (is_new) {
    const PictureNode& from = drawer_.at(outside.node);
    const std::string name = from.kind == Kind::input ? from.label : str("input ", inputs_[box]++);
    found->second = drawer_.enter(box, Role::argument, name, graph_.types[value], outside, around_);
  }
  return found->second;
}

void GraphDrawer::UpdateBoxes::add_count(int box, const std::optional<PictureNode::Count>& count) {
  if (box == around_ || !count) return;
  auto& sum = drawer_.at(box).count;
  if (!sum) sum.emplace();
  sum->calls = std::max(sum->calls, count->calls);
  sum->nanoseconds += count->nanoseconds;
}

}  // namespace reel
