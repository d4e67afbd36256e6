#include "reel/trace/executors/dataflow/recorded_run.h"

#include <algorithm>
#include <ostream>

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

std::ostream& operator<<(std::ostream& out, const RecordedRun& run) {
  for (const Activation& activation : run.activations) {
    out << run.graph->nodes[static_cast<std::size_t>(activation.node)].name;
    if (run.instances[static_cast<std::size_t>(activation.instance)].frame) {
      out << " [";
      const char* before = "";
      std::vector<std::int64_t> tags{activation.iteration};
      for (int i = activation.instance; run.instances[static_cast<std::size_t>(i)].parent > 0;
           i = run.instances[static_cast<std::size_t>(i)].parent)
        tags.push_back(run.instances[static_cast<std::size_t>(i)].parent_iteration);
      std::reverse(tags.begin(), tags.end());
      for (const std::int64_t tag : tags) {
        out << before << tag;
        before = ".";
      }
      out << ']';
    }
    if (activation.is_dead) out << " dead";
    if (activation.has_failed) out << " failed";
    out << '\n';
  }
  return out;
}

}  // namespace reel
