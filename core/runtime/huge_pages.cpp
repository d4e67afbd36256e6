#include "reel/core/runtime/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace reel {

void ask_for_huge_pages(void* block, std::size_t bytes) {
  if (alignment_of_block(bytes) == kHugePage)
    madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

void* map_huge_pages(std::size_t bytes) {
  // The system chooses an address at any page; the parts before and behind the aligned range are
  // released.
  void* mapped =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  if (before) munmap(begin, before);
  begin += before;
  munmap(begin + bytes, kHugePage - before);
  madvise(begin, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return begin;
}

}  // namespace reel
