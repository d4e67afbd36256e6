#include "reel/autodiff/run_again.h"

namespace reel {

void add_cotangents_of(Vjp& at, RecordingTape& tape, const Tensors& outputs, const Tensors& sources,
                       const std::vector<std::size_t>& places) {
  Tensors targets, cotangents, presences, row_numbers;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!at.has_cotangent(k)) continue;
    targets.push_back(outputs[k]);
    cotangents.push_back(at.cotangent(k));
  }
  const Tensors gradients = tape.gradient(targets, cotangents, sources, &presences, &row_numbers);
  for (std::size_t k = 0; k < places.size(); ++k)
    if (row_numbers[k].is_defined())
      at.add_rows(places[k], gradients[k], row_numbers[k]);
    else if (gradients[k].is_defined() && presences[k].is_defined())
      at.add(places[k], gradients[k], presences[k]);
    else if (gradients[k].is_defined())
      at.add(places[k], gradients[k]);
}

}  // namespace reel
