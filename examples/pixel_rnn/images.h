// images.h — pictures with labels, as the MNIST family of data sets has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Images {
  std::size_t count, height, width;
  std::vector<std::uint8_t> pixels;  ///< {count, height, width}, 0 is the ground
  std::vector<std::uint8_t> labels;  ///< {count}
};

/// NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte in a folder, packed (.gz) or as they are.
/// Throws UserError for files that are missing, damaged, or do not belong together.
/// Source: LeCun, Cortes & Burges, the MNIST database, "File formats".
Images read_images(const std::string& folder, const std::string& name);
