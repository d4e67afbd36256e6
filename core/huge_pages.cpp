#include "reel/core/huge_pages.h"

#include <sys/mman.h>

namespace reel {

void ask_for_huge_pages(void* block, std::size_t bytes) {
  if (alignment_of_block(bytes) == kHugePage)
    madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

}  // namespace reel
