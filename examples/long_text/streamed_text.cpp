#include "streamed_text.h"

#include "../training/user_error.h"

using namespace reel;

void check_windows(const std::string& text, std::int64_t symbols, std::int64_t length) {
  if (symbols > length) return;
  throw UserError(text + " has " + std::to_string(symbols) +
                  " symbols for each reader, but --length " + std::to_string(length) +
                  " needs at least " + std::to_string(length + 1));
}

void StreamedText::write(const std::string& path, const std::vector<std::uint8_t>& symbols,
                         std::int64_t readers) {
  const std::int64_t steps = std::ssize(symbols) / readers;
  std::vector<int> rows;
  rows.reserve(static_cast<std::size_t>(steps * readers));
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::int64_t reader = 0; reader < readers; ++reader)
      rows.push_back(symbols[static_cast<std::size_t>(steps * reader + step)]);
  save_npy(path, tensor(rows, {steps, readers}));
}

StreamedText::StreamedText(const std::string& path, Dim batch, Dim time)
    : symbols_(path, {std::move(batch)}), time_(std::move(time)), one_("one", 1) {
  check_windows(path, symbols_.steps(), time_.size());
  last_ = read(one_);
}

std::pair<Tensor, Tensor> StreamedText::next() {
  const Tensor target = read(time_);
  const Tensor last = std::exchange(last_, slice(target, time_, time_.size() - 1, {}, one_));
  const Tensor text = where(range(time_) == 0, squeeze(last, {one_}), shift(target, time_, 1));
  return {text, target};
}

/// Returns the next symbols of each reader, even across the end of the file.
Tensor StreamedText::read(const Dim& time) {
  const std::int64_t left = symbols_.left();
  if (left >= time.size()) return read_on(time);
  const Tensor rest = read_on(Dim(time.name(), left));
  symbols_.seek(0);
  ++passes_;
  return concat({rest, read_on(Dim(time.name(), time.size() - left))}, 0, time);
}

/// Returns the next steps of the file. After each pass over the file, readers move on by one
/// column.
Tensor StreamedText::read_on(const Dim& time) {
  const Tensor steps = symbols_.next(time);
  const Dim& batch = steps.dims()[1];
  return gather(steps, mod(range(batch) + passes_, static_cast<int>(batch.size())), batch);
}
