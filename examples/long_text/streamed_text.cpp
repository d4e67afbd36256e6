#include "streamed_text.h"

#include "../training/user_error.h"

using namespace reel;

void StreamedText::write(const std::string& path, const std::vector<std::uint8_t>& symbols,
                         std::int64_t readers) {
  const std::int64_t steps = std::ssize(symbols) / readers;
  std::vector<int> rows;
  rows.reserve(static_cast<std::size_t>(steps * readers));
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::int64_t reader = 0; reader < readers; ++reader)
      rows.push_back(
          symbols[static_cast<std::size_t>(std::ssize(symbols) * reader / readers + step)]);
  save_npy(path, tensor(rows, {steps, readers}));
}

StreamedText::StreamedText(const std::string& path, Dim batch, Dim time)
    : symbols_(path, {std::move(batch)}), time_(std::move(time)), one_("one", 1) {
  if (symbols_.steps() <= time_.size())
    throw UserError(path + " has " + std::to_string(symbols_.steps()) +
                    " symbols for each reader, but --length " + std::to_string(time_.size()) +
                    " needs at least " + std::to_string(time_.size() + 1));
  last_ = symbols_.next(one_);
}

std::pair<Tensor, Tensor> StreamedText::next() {
  if (symbols_.left() < time_.size()) {
    symbols_.seek(0);
    last_ = symbols_.next(one_);
  }
  const Tensor target = symbols_.next(time_);
  const Tensor last = std::exchange(last_, slice(target, time_, time_.size() - 1, {}, one_));
  const Tensor text = where(range(time_) == 0, squeeze(last, {one_}), shift(target, time_, 1));
  return {text, target};
}
