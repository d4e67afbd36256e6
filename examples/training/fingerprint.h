// fingerprint.h — fingerprint, by which a checkpoint knows its data.
#pragma once

#include <string>
#include <string_view>

/// Sixteen letters that differ for different bytes.
std::string fingerprint(std::string_view bytes);
