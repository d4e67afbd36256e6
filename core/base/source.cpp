#include "reel/core/base/source.h"

#include <unwind.h>

#include <array>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reel/core/base/forward_op.h"
#include "reel/core/base/thread_store.h"
#include "reel/core/base/update_mark.h"

namespace reel {
namespace {

/// A frame of the stack: its return address, the start of the frame that it called, and the list of
/// calls from here outwards.
struct Frame {
  std::uintptr_t address, inner_end;
  SourceId source = kNoSource;
};

/// Lists of addresses and marks, each stored as its first address or mark and the remaining list.
/// Lists with equal ends share them, for example all places in one function.
class Sources {
 public:
  SourceId add(std::uintptr_t address, SourceId outer, std::string_view forward_op = {},
               std::string_view update = {}) {
    const std::lock_guard lock(mutex_);
    const Link link{address, outer, forward_op, update};
    const auto [found, is_new] =
        numbers_.try_emplace(link, static_cast<SourceId>(links_.size() + 1));
    const SourceId source = found->second;
    if (is_new) try {
        links_.push_back(link);
      } catch (...) {  // numbers are indices of links_
        numbers_.erase(found);
        throw;
      }
    return source;
  }
  std::vector<std::uintptr_t> list(SourceId source) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uintptr_t> result;
    if (source > links_.size()) return result;
    for (; source != kNoSource; source = links_[source - 1].outer)
      if (links_[source - 1].address)
        result.push_back(links_[source - 1].address - 1);  // inside the call, not behind it
    return result;
  }
  std::vector<std::string_view> forward_ops(SourceId source) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string_view> result;
    if (source > links_.size()) return result;
    for (; source != kNoSource; source = links_[source - 1].outer)
      if (!links_[source - 1].forward_op.empty()) result.push_back(links_[source - 1].forward_op);
    return result;
  }
  std::string_view update(SourceId source) const {
    const std::lock_guard lock(mutex_);
    if (source == kNoSource || source > links_.size()) return {};
    return links_[source - 1].update;
  }

 private:
  struct Link {
    std::uintptr_t address;  ///< 0 for a mark
    SourceId outer;
    std::string_view forward_op, update;  ///< the name of a mark; else empty
    bool operator==(const Link&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Link& link) const {
      return (link.address ^ link.outer ^ std::hash<std::string_view>()(link.forward_op)) *
             0x9E3779B97F4A7C15ull;
    }
  };
  mutable std::mutex mutex_;
  std::unordered_map<Link, SourceId, Hash> numbers_;
  std::vector<Link> links_;
};

Sources& sources() {
  static Sources& all = *new Sources;  // destructors of global objects may still record
  return all;
}

/// Walks up the stack to a frame that the previous walk has seen. Reading unwind tables takes some
/// 100 ns a frame; consecutive ops differ in few frames.
class Walk {
 public:
  SourceId run() {
    _Unwind_Backtrace(visit, this);
    std::vector<Frame>& before = last_;
    SourceId source = known_ < before.size() ? before[known_].source : kNoSource;
    for (std::size_t i = count_; i-- > 0;)
      source = fresh_[i].source = sources().add(fresh_[i].address, source);
    before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(known_));
    before.insert(before.begin(), fresh_.begin(), fresh_.begin() + count_);
    return source;
  }

 private:
  static constexpr std::size_t kMaxFrames = 64;

  /// Returns the frames of this thread's previous walk, the innermost first; null at the thread's
  /// end.
  static std::vector<Frame>* last() { return ThreadStore<std::vector<Frame>, Walk>::get(); }
  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* walk) {
    return static_cast<Walk*>(walk)->visit({_Unwind_GetIP(context), _Unwind_GetCFA(context)});
  }
  _Unwind_Reason_Code visit(const Frame& frame) {
    const std::vector<Frame>& before = last_;
    while (at_ < before.size() && before[at_].inner_end < frame.inner_end) ++at_;
    if (at_ < before.size() && before[at_].inner_end == frame.inner_end &&
        before[at_].address == frame.address && is_still_there(at_)) {
      known_ = at_;
      return _URC_END_OF_STACK;
    }
    known_ = before.size();
    if (!frame.address || count_ == kMaxFrames) return _URC_END_OF_STACK;
    fresh_[count_++] = frame;
    return _URC_NO_REASON;
  }
  /// Returns true if the frames from `first` outwards still have their return addresses. Frames
  /// around an equal frame are equal if these are.
  __attribute__((no_sanitize("address"))) bool is_still_there([[maybe_unused]] std::size_t first) {
#ifdef __x86_64__
    const std::vector<Frame>& before = last_;
    for (std::size_t i = first; i < before.size(); ++i)
      if (*reinterpret_cast<const std::uintptr_t*>(before[i].inner_end - sizeof(std::uintptr_t)) !=
          before[i].address)
        return false;
    return true;
#else
    return false;  // other processors store them elsewhere
#endif
  }

  std::array<Frame, kMaxFrames> fresh_;
  std::size_t count_ = 0, at_ = 0;
  std::vector<Frame> none_;  ///< at the thread's end, when frames are not stored
  std::vector<Frame>& last_ = last() ? *last() : none_;
  std::size_t known_ = last_.size();  ///< from this index on, frames equal the previous walk's
};

}  // namespace

SourceId source_here() {
  if (detail::open_source != kNoSource) return detail::open_source;
  return Walk().run();
}

std::vector<std::uintptr_t> addresses_of(SourceId source) { return sources().list(source); }

SourceId in_gradient_of(SourceId source, std::string_view name) {
  return source == kNoSource ? source : sources().add(0, source, name);
}
std::vector<std::string_view> forward_ops_of(SourceId source) {
  return sources().forward_ops(source);
}

SourceId in_update_of(SourceId source, std::string_view name) {
  return sources().add(0, source, {}, name);
}
std::string_view update_of(SourceId source) { return sources().update(source); }

}  // namespace reel
