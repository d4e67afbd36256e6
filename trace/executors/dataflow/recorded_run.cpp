#include "reel/trace/executors/dataflow/recorded_run.h"

#include <algorithm>
#include <ostream>

#include "reel/core/base/str.h"

namespace reel {

std::vector<ActivationCount> activation_counts(const RecordedRun& run) {
  std::vector<ActivationCount> counts;
  for (const RecordedRun::NodeTotal& total : run.node_totals) counts.push_back(total.count);
  return counts;
}

int most_in_flight(const RecordedRun& run, int frame) {
  std::vector<int> in_flight(run.instances.size(), 0);
  int most = 0;
  for (const IterationEvent& event : run.iterations) {
    const auto instance = static_cast<std::size_t>(event.instance);
    if (run.instances[instance].frame != frame) continue;
    in_flight[instance] += event.begins ? 1 : -1;
    most = std::max(most, in_flight[instance]);
  }
  return most;
}

std::string tag_of(const RecordedRun& run, int instance, std::int64_t iteration) {
  std::string result;
  const FrameInstance* around = &run.instances[static_cast<std::size_t>(instance)];
  while (around->parent >= 0) {
    result = result.empty() ? str(iteration) : str(iteration, '.', result);
    iteration = around->parent_iteration;
    around = &run.instances[static_cast<std::size_t>(around->parent)];
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const RecordedRun& run) {
  for (const Activation& activation : run.activations) {
    out << run.graph->nodes[static_cast<std::size_t>(activation.node)].name;
    const std::string tag = tag_of(run, activation.instance, activation.iteration);
    if (!tag.empty()) out << " [" << tag << ']';
    if (activation.is_dead) out << " dead";
    if (activation.has_failed) out << " failed";
    out << '\n';
  }
  return out;
}

}  // namespace reel
