// examples/pixel_rnn/confusion.h — Confusion: counts which classes are taken for which.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

class Confusion {
 public:
  explicit Confusion(const std::vector<std::string>& classes)
      : classes_(classes), counts_(classes.size() * classes.size()) {}

  /// Counts one answer.
  void add(std::size_t right, std::size_t answer) { ++counts_[right * classes_.size() + answer]; }

  /// Returns the share of right answers; 0 if there are no answers.
  double accuracy() const;
  /// Returns the share of right answers for each class as text, a line for each.
  std::string print() const;
  /// Writes an SVG picture: a row for each class, a column for each answer. Throws UserError.
  void save(const std::string& path) const;

 private:
  std::size_t count(std::size_t right, std::size_t answer) const {
    return counts_[right * classes_.size() + answer];
  }
  std::size_t total(std::size_t right) const;

  std::vector<std::string> classes_;
  std::vector<std::size_t> counts_;  ///< {right, answer}
};
