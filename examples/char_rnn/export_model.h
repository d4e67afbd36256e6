// examples/char_rnn/export_model.h — writes a trained model in the format of ONNX.
#pragma once

#include <string>

/// Writes the model in a checkpoint as a function of a text of any length:
///   text: i32 {time}, state -> logits: f32 {time, symbols}, next_state.
/// A program that writes calls it with one symbol at a time, and passes the state on. Throws
/// UserError for a checkpoint without a text model, IoError for files.
void export_model(const std::string& checkpoint, const std::string& path);
