// core/base/version.h — the version of these headers, for #if. The build reads it here.
#pragma once

/// Releases with the same major and minor number are compatible.
#define REEL_VERSION_MAJOR 0
#define REEL_VERSION_MINOR 2
#define REEL_VERSION_PATCH 0
/// One number that grows: 10000 major + 100 minor + patch.
#define REEL_VERSION (REEL_VERSION_MAJOR * 10000 + REEL_VERSION_MINOR * 100 + REEL_VERSION_PATCH)
