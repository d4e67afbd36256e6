#include "reel/core/ops/loop/capture_list.h"

#include <unordered_map>

namespace reel {

std::vector<int> CaptureList::add(const Tensors& captured) {
  std::vector<int> places;
  std::unordered_map<const TensorBlock*, int> known;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    known.emplace(tensors_[i].block(), static_cast<int>(i));
  for (const Tensor& tensor : captured) {
    const auto [place, is_new] = known.emplace(tensor.block(), static_cast<int>(tensors_.size()));
    if (is_new) tensors_.push_back(tensor);
    places.push_back(place->second);
  }
  return places;
}

}  // namespace reel
