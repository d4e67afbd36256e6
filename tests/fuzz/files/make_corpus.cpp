// make_corpus FOLDER: writes valid files to FOLDER/npy and FOLDER/safetensors, as a start for
// fuzzing.
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reel/frontend/files/npy_header.h"
#include "reel/frontend/files/safetensors_header.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_safetensors(const fs::path& folder) {
  std::vector<TensorToStore> tensors;
  std::deque<std::vector<std::int64_t>> all_sizes;
  std::map<std::string, std::string> metadata;
  const auto add = [&](const char* name, StoredDType dtype, std::vector<std::int64_t> given) {
    const std::vector<std::int64_t>& sizes = all_sizes.emplace_back(std::move(given));
    std::uint64_t bytes = size_of(dtype);
    for (const std::int64_t size : sizes) bytes *= static_cast<std::uint64_t>(size);
    const std::uint64_t begin = tensors.empty() ? 0 : tensors.back().end;
    tensors.push_back({name, dtype, sizes, begin, begin + bytes});
    write(folder / name,
          print_safetensors_header(tensors, metadata) + std::string(begin + bytes, '\1'));
  };
  write(folder / "nothing", print_safetensors_header(tensors, metadata));
  add("scalar", StoredDType::f32, {});
  add("matrix", StoredDType::f64, {2, 3});
  add("empty", StoredDType::i64, {0, 4});
  add("boolean", StoredDType::boolean, {3});
  add("half", StoredDType::f16, {2});
  add("narrow", StoredDType::u8, {1, 1, 1});
  add("unreadable", StoredDType::u64, {1});
  metadata = {{"key", "value"}, {"\u00fc \"quoted\"", ""}};
  add("metadata", StoredDType::i32, {2});
}

void write_npy(const fs::path& folder) {
  write(folder / "scalar", print_npy_header(StoredDType::f32, {}) + std::string(4, '\1'));
  write(folder / "vector", print_npy_header(StoredDType::boolean, {3}) + std::string(3, '\1'));
  write(folder / "empty", print_npy_header(StoredDType::i64, {0, 4}));
  const std::string narrow = print_npy_header(StoredDType::u8, {2, 2}) + std::string(4, '\1');
  write(folder / "narrow", narrow);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bytes = narrow;
    return bytes.replace(bytes.find(from), from.size(), to);
  };
  write(folder / "fortran", with("False", "True "));
  write(folder / "big_endian", with("|u1', 'fortran_order': False, 'shape': (2, 2), }",
                                    ">f2', 'fortran_order': False, 'shape': (2,), } "));
}

}  // namespace
}  // namespace reel

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  reel::write_npy(std::filesystem::path(arguments[1]) / "npy");
  reel::write_safetensors(std::filesystem::path(arguments[1]) / "safetensors");
}
