// examples/speech/alignment.h — draws how digits lie in a recording.
#pragma once

#include <reel/reel.h>

#include <string>

/// The span of a digit in a recording, in frames of the recogniser.
struct Span {
  int digit, begin, end;
};

/// Returns the spans of labels in their likeliest alignment. logits: {time, symbol}. labels: i32
/// {label_time}.
std::vector<Span> spans_of(const reel::Tensor& logits, const reel::Tensor& labels);

/// Writes an SVG picture: features over time, the probability of each digit, and the span of each
/// label below. features: {time, mel}. Throws UserError, which names path and reason.
void save_alignment(const std::string& path, const std::string& title, const reel::Tensor& features,
                    const reel::Tensor& logits, const reel::Tensor& labels);
