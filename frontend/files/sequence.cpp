#include "reel/frontend/files/sequence.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/held.h"
#include "reel/core/base/str.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/files/npy_header.h"
#include "reel/frontend/files/sequence_reads.h"
#include "reel/frontend/files/stored_type.h"

namespace reel {
namespace {

constexpr const char* kSequenceName = "Sequence";

std::atomic<std::int64_t> windows_ahead{0}, windows_when_asked{0};

}  // namespace

SequenceReads sequence_reads() { return {windows_ahead, windows_when_asked}; }

struct Sequence::Reader {
  StoredFile file;
  NpyHeader header;
  TensorType all;  ///< type of the whole array
  std::int64_t position = 0;
  // Read ahead: `ahead_count` time steps from `ahead_first` on, with plain dims.
  std::future<Tensor> ahead;
  std::int64_t ahead_first = 0, ahead_count = 0;

  Reader(const std::string& path, const Dims& step_dims)
      : file(path, "Sequence"), header(read_npy_header(file)), all(type_of_all(step_dims)) {
    if (header.is_fortran_order && header.sizes.size() > 1)
      throw IoError(str(file.name(),
                        " is in Fortran's order, in which the elements of a step are not "
                        "contiguous; write it again with numpy.ascontiguousarray"));
  }

  TensorType type_of_all(Dims dims) const {
    if (header.sizes.empty())
      throw ShapeError(str(file.name(), " holds a scalar, which has no steps"));
    if (!dims.empty()) dims.insert(dims.begin(), Dim("steps", header.sizes[0]));
    return stored_type(header.format.dtype, header.sizes, dims, file.name());
  }
  TensorType type_of(const Dim& time) const {
    Dims dims = all.dims();
    dims[0] = time;
    return all.with(dims);
  }
  Tensor read(std::int64_t first, const Dim& time) const {
    const Tensor window(allocate_block(type_of(time)));
    read_into(window.data<char>(), first, time.size());
    return window;
  }
  Tensor read(const std::vector<std::int64_t>& steps, const Dim& rows) const {
    const Tensor window(allocate_block(type_of(rows)));
    const auto bytes = static_cast<std::int64_t>(step_numel() * reel::size_of(all.dtype()));
    char* to = window.data<char>();
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      const std::int64_t first = steps[begin];
      do ++end;
      while (end < steps.size() && steps[end] == first + static_cast<std::int64_t>(end - begin));
      read_into(to, first, static_cast<std::int64_t>(end - begin));  // consecutive steps at once
      to += static_cast<std::int64_t>(end - begin) * bytes;
    }
    return window;
  }
  std::uint64_t step_numel() const {
    return static_cast<std::uint64_t>(header.sizes[0] ? all.numel() / header.sizes[0] : 0);
  }
  void read_into(void* to, std::int64_t first, std::int64_t count) const {
    const std::uint64_t step = step_numel();
    read_elements(
        file,
        header.data_begin + static_cast<std::uint64_t>(first) * step * size_of(header.format.dtype),
        static_cast<std::uint64_t>(count) * step, header.format, to, "it");
  }
  /// Reads ahead if there is memory and a thread for it; otherwise next() reads.
  void read_ahead(std::int64_t first, std::int64_t count) noexcept {
    ahead_first = first;
    ahead_count = std::min(count, header.sizes[0] - first);
    if (ahead_count <= 0) return;
    try {
      const Dim time = all.is_named() ? Dim("steps", ahead_count) : Dim(ahead_count);
      ahead = std::async(std::launch::async, [this, first, time] { return read(first, time); });
    } catch (...) {
      ahead = {};
    }
  }
  /// Returns the time steps that were read ahead if they are the requested ones, otherwise, or if
  /// reading failed, an empty Tensor.
  Tensor take_ahead(std::int64_t first, std::int64_t count) {
    if (!ahead.valid()) return {};
    const bool is_asked_for = ahead_first == first && ahead_count == count;
    try {
      const Tensor steps = ahead.get();
      return is_asked_for ? steps : Tensor();
    } catch (...) {  // the caller reads again, and throws its own error
      return {};
    }
  }
};

Sequence::Sequence(const std::string& path, const Dims& step_dims)
    : reader_(std::make_unique<Reader>(path, step_dims)) {}
Sequence::~Sequence() = default;
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;

std::int64_t Sequence::steps() const { return held(reader_, kSequenceName).header.sizes[0]; }
std::int64_t Sequence::position() const { return held(reader_, kSequenceName).position; }

void Sequence::seek(std::int64_t position) {
  Reader& reader = held(reader_, kSequenceName);
  if (position < 0 || position > steps())
    throw IndexError(str(reader.file.name(), ": there is no step ", position, " of ", steps()));
  reader.position = position;
}

Tensor Sequence::take(const std::vector<std::int64_t>& numbers, const Dim& rows) const {
  const Reader& reader = held(reader_, kSequenceName);
  if (!rows.has_size() || rows.is_ragged() ||
      rows.size() != static_cast<std::int64_t>(numbers.size()))
    throw ArgumentError(str(reader.file.name(), ": take needs a dim with the size ", numbers.size(),
                            ", the number of steps, got ", rows));
  for (const std::int64_t step : numbers)
    if (step < 0 || step >= steps())
      throw IndexError(str(reader.file.name(), ": there is no step ", step, " of ", steps()));
  const ModeScope plain({});  // file contents belong to no trace
  return reader.read(numbers, rows);
}

Tensor Sequence::next(const Dim& time) {
  Reader& reader = held(reader_, kSequenceName);
  if (!time.has_size() || time.is_ragged())
    throw ArgumentError(str(reader.file.name(), ": next needs a dim with one size, got ", time));
  const std::int64_t count = time.size(), first = reader.position;
  if (count > left())
    throw IndexError(str(reader.file.name(), ": ", count, " steps are asked for, and ", left(),
                         " are left of ", steps()));
  const ModeScope plain({});  // file contents belong to no trace
  Tensor window;
  if (const Tensor ahead = reader.take_ahead(first, count); ahead.is_defined()) {
    window = Tensor(allocate_view(reader.type_of(time), ahead.ref(), ahead.data<void>()));
    ++windows_ahead;
  } else {
    window = reader.read(first, time);
    ++windows_when_asked;
  }
  reader.position = first + count;  // nothing throws from here on
  reader.read_ahead(reader.position, count);
  return window;
}

}  // namespace reel
