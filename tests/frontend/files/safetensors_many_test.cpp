// Files with many tensors: time and memory to open one grow linearly with its header.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "reel/core/ops.h"
#include "reel/frontend/files/safetensors_header.h"
#include "reel/frontend/files/training_checkpoint.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class SafetensorsManyTest : public InOwnFolder {
 protected:
  SafetensorsManyTest() : InOwnFolder("many.safetensors") {}

  void write_header(const std::string& header, std::size_t data_bytes) const {
    const std::uint64_t length = header.size();
    write(path, std::string(reinterpret_cast<const char*>(&length), 8) + header +
                    std::string(data_bytes, '\1'));
  }
  static std::string entries(int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i)
      header += str(i ? "," : "", "\"layer.", i, "\":{\"dtype\":\"U8\",\"shape\":[1],",
                    "\"data_offsets\":[", i, ',', i + 1, "]}");
    return header + '}';
  }
  /// Returns the bytes read and names compared to open the file.
  std::uint64_t work_to_open() const {
    const StoredFile file(path, "test");
    SafetensorsHeader header;
    read_safetensors_header(file, header);
    return header.work;
  }
};

// The parser once searched all earlier tensors for each tensor: 40,000 took 25 s.
TEST_F(SafetensorsManyTest, OpeningIsNearlyLinear) {
  constexpr int kFew = 2'000, kTimes = 16;
  write_header(entries(kFew), kFew);
  const std::uint64_t few = work_to_open();
  write_header(entries(kTimes * kFew), kTimes * kFew);
  EXPECT_LT(work_to_open(), 2 * kTimes * few);
}

TEST_F(SafetensorsManyTest, OpeningMetadataIsNearlyLinear) {
  const auto metadata = [](int count) {
    std::string header = "{\"__metadata__\":{";
    for (int i = 0; i < count; ++i) header += str(i ? "," : "", '"', i, "\":\"\"");
    return header + "}}";
  };
  constexpr int kFew = 2'000, kTimes = 16;
  write_header(metadata(kFew), 0);
  const std::uint64_t few = work_to_open();
  write_header(metadata(kTimes * kFew), 0);
  EXPECT_LT(work_to_open(), 2 * kTimes * few);
}

TEST_F(SafetensorsManyTest, AHundredThousandAreSavedAndLoaded) {
  constexpr int kCount = 100'000;
  std::vector<Tensor> saved, loaded(kCount, zeros({1}));
  for (int i = 0; i < kCount; ++i) saved.push_back(full({1}, i));
  save_checkpoint(path, saved);
  EXPECT_EQ(SafetensorsFile(path).names().size(), static_cast<std::size_t>(kCount));
  load_checkpoint(path, loaded);
  for (const int i : {0, 1, 9, 10, 12345, kCount - 1})
    EXPECT_EQ(loaded[static_cast<std::size_t>(i)].item<float>(), static_cast<float>(i));
  // The error of a model with other names is also made once for all of them.
  std::map<std::string, std::vector<Tensor>> other{{"other", loaded}};
  EXPECT_THROW(load_checkpoint(path, other), IoError);
}

/// The peak memory of the process since reset(), and its present memory; 0 if the system does not
/// report it.
struct ResidentMemory {
  static double field(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (double kib = 0; word == name && status >> kib) return kib * 1024;
    return 0;
  }
  static bool reset() { return bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }
  static double most() { return field("VmHWM:"); }
  static double now() { return field("VmRSS:"); }
};

TEST_F(SafetensorsManyTest, AHeaderTakesAtMostFourTimesItsSize) {
  std::string shape = "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1";
  for (int i = 0; i < 4'000'000; ++i) shape += ",1";
  std::string keys = "{\"__metadata__\":{\"\":\"\"";
  for (int i = 0; i < 500'000; ++i) keys += str(",\"", i, "\":\"\"");
  const std::pair<std::string, std::size_t> headers[] = {
      {entries(120'000), 120'000},
      {keys + "}}", 0},
      {"{\"__metadata__\":{\"text\":\"" + std::string(8'000'000, 'x') + "\"}}", 0}};
  for (const auto& [header, data_bytes] : headers) {
    write_header(header, data_bytes);
    if (!ResidentMemory::reset()) GTEST_SKIP() << "the system does not say how much memory is used";
    const double before = ResidentMemory::now();
    const SafetensorsFile file(path);
    EXPECT_LE(ResidentMemory::most() - before, 4 * static_cast<double>(header.size()))
        << header.substr(0, 60);
  }
  write_header(shape + "]}}", 1);
  ResidentMemory::reset();
  const double before = ResidentMemory::now();
  EXPECT_NE(
      message_of<IoError>([&] { SafetensorsFile{path}; }).find("has 4000001 axes, more than 64"),
      std::string::npos);
  EXPECT_LE(ResidentMemory::most() - before, 4 * static_cast<double>(shape.size()));
}

}  // namespace
}  // namespace reel
