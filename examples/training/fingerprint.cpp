#include "fingerprint.h"

#include <cstdint>
#include <cstdio>

std::string fingerprint(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char print[32];
  std::snprintf(print, sizeof print, "%016llx", static_cast<unsigned long long>(hash));
  return print;
}
