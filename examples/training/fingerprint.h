// examples/training/fingerprint.h — fingerprint, by which a checkpoint recognises its data.
#pragma once

#include <string>
#include <string_view>

/// Returns sixteen letters that differ for different bytes.
std::string fingerprint(std::string_view bytes);
