// core/types/empty_tensor.h — words of errors about an empty Tensor.
#pragma once

namespace reel {

inline constexpr const char* kEmptyTensorRepair =
    "; assign a tensor to it first, and do not use one that was moved";
inline constexpr const char* kGivenEmptyTensor =
    "was given an empty Tensor; assign a tensor to it first, and do not use one that was moved";

}  // namespace reel
