// examples/pixel_rnn/images.h — labelled pictures in the format of the MNIST family of data sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Images {
  std::size_t count, height, width;
  std::vector<std::uint8_t> pixels;  ///< {count, height, width}, 0 is the background
  std::vector<std::uint8_t> labels;  ///< {count}
};

/// Reads NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte from a folder, packed (.gz) or not.
/// Throws UserError for files that are missing, damaged, or do not belong together. Source: LeCun,
/// Cortes & Burges, the MNIST database, "File formats".
Images read_images(const std::string& folder, const std::string& name);
