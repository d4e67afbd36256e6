#include "reel/distributed/all_reduce.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "reel/core/types/block.h"
#include "reel/core/types/tensor.h"
#include "reel/distributed/shard_tree.h"

namespace reel {
namespace {

/// Bytes of a bucket. Larger ones are no faster, and take buffers of their size.
constexpr std::int64_t kBucketBytes = std::int64_t{4} << 20;
/// All ranks gather buckets up to this size, counted over all nodes: one exchange instead of two.
constexpr std::int64_t kGatheredBytes = 128 << 10;
/// Elements that are reduced at once, so that inner nodes of the tree stay in the L1 cache.
constexpr std::int64_t kBlock = 2048;

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
/// NaN if either is NaN, as maximum().
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// Writes the reduction of two arrays into `into`: one node of the tree.
using Combine = void (*)(const void* left, const void* right, void* into, std::int64_t count);

template <class T, class Op>
void combine(const void* left, const void* right, void* into, std::int64_t count) {
  const auto* a = static_cast<const T*>(left);
  const auto* b = static_cast<const T*>(right);
  auto* out = static_cast<T*>(into);
  for (std::int64_t i = 0; i < count; ++i) out[i] = Op()(a[i], b[i]);
}

template <class Op>
Combine combine_with(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return combine<float, Op>;
    case DType::f64:
      return combine<double, Op>;
    case DType::i32:
      return combine<std::uint32_t, Op>;
    default:
      return combine<std::uint64_t, Op>;
  }
}
/// Sums of integers wrap around, so they are sums of unsigned ones; an order is of signed ones.
template <>
Combine combine_with<Max>(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return combine<float, Max>;
    case DType::f64:
      return combine<double, Max>;
    case DType::i32:
      return combine<std::int32_t, Max>;
    default:
      return combine<std::int64_t, Max>;
  }
}

Combine combine_for(DType dtype, Reduction how) {
  return how == Reduction::sum ? combine_with<Sum>(dtype) : combine_with<Max>(dtype);
}

/// Reduces nodes of the tree to its root.
class TreeReduction {
 public:
  TreeReduction(int shards, Combine combine, std::int64_t element_bytes)
      : combine_(combine), element_bytes_(element_bytes) {
    build({0, shards});
    scratch_ = std::make_unique_for_overwrite<char[]>(
        static_cast<std::size_t>((depth_ + 1) * kBlock * element_bytes));
  }

  /// given: nodes, by range, that together have all shards; each with its elements.
  struct Given {
    ShardRange range;
    const char* data;
  };
  /// Writes `count` elements of the root. The result may overlap with no given node.
  void run(const std::vector<Given>& given, char* result, std::int64_t count) {
    for (const Given& node : given) nodes_[place_of(node.range)].data = node.data;
    // Another rank has read the former result, so stores of an addition would wait for each of its
    // cache lines. A copy of some KiB writes whole lines without reading them: an all-reduce of 1e5
    // or 1e6 floats takes two thirds of the time.
    char* const block = scratch_.get() + depth_ * kBlock * element_bytes_;
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const std::int64_t size = std::min(kBlock, count - first);
      std::memcpy(result + first * element_bytes_, reduce(0, first, size, block, 0),
                  static_cast<std::size_t>(size * element_bytes_));
    }
  }

 private:
  struct Node {
    ShardRange range;
    std::size_t left = 0, right = 0;
    const char* data = nullptr;
  };
  std::size_t build(ShardRange range, std::int64_t depth = 1) {
    depth_ = std::max(depth_, depth);
    const std::size_t at = nodes_.size();
    nodes_.push_back({range});
    if (range.size() > 1) {
      const auto [left, right] = halves(range);
      const std::size_t l = build(left, depth + 1), r = build(right, depth + 1);
      nodes_[at].left = l;
      nodes_[at].right = r;
    }
    return at;
  }
  std::size_t place_of(ShardRange range) const {
    std::size_t at = 0;
    while (!(nodes_[at].range == range)) {
      const Node& node = nodes_[at];
      at = range.begin < nodes_[node.right].range.begin ? node.left : node.right;
    }
    return at;
  }
  const char* reduce(std::size_t at, std::int64_t first, std::int64_t count, char* into,
                     std::int64_t level) {
    const Node& node = nodes_[at];
    if (node.data) return node.data + first * element_bytes_;
    const char* const left = reduce(node.left, first, count, into, level);
    char* const other = scratch_.get() + level * kBlock * element_bytes_;
    const char* const right = reduce(node.right, first, count, other, level + 1);
    combine_(left, right, into, count);
    return into;
  }

  Combine combine_;
  std::int64_t element_bytes_, depth_ = 0;
  std::vector<Node> nodes_;
  std::unique_ptr<char[]> scratch_;
};

/// The arrays of all nodes one behind the other, as one long array. A bucket is a part of it.
class JoinedArrays {
 public:
  JoinedArrays(const ArraysToReduce& arrays, std::int64_t element_bytes)
      : arrays_(arrays), element_bytes_(element_bytes) {
    for (const std::int64_t size : arrays.sizes) begins_.push_back(total_), total_ += size;
  }
  std::int64_t total() const { return total_; }

  /// Calls fn(array, first element in it, first element in the part, elements) for each array that
  /// a part of the joined array touches.
  template <class F>
  void each_array(std::int64_t begin, std::int64_t count, const F& fn) const {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::int64_t from = std::max(begin, begins_[i]),
                         to = std::min(begin + count, begins_[i] + arrays_.sizes[i]);
      if (from < to) fn(i, from - begins_[i], from - begin, to - from);
    }
  }
  /// Returns the array that has the whole part; nothing if several have.
  const char* in_place(std::size_t node, std::int64_t begin, std::int64_t count) const {
    const char* found = nullptr;
    each_array(begin, count, [&](std::size_t i, std::int64_t at, std::int64_t, std::int64_t size) {
      if (size == count) found = arrays_.nodes[node][i] + at * element_bytes_;
    });
    return found;
  }
  char* result_in_place(std::int64_t begin, std::int64_t count) const {
    char* found = nullptr;
    each_array(begin, count, [&](std::size_t i, std::int64_t at, std::int64_t, std::int64_t size) {
      if (size == count) found = arrays_.results[i] + at * element_bytes_;
    });
    return found;
  }
  void read(std::size_t node, std::int64_t begin, std::int64_t count, char* into) const {
    each_array(
        begin, count, [&](std::size_t i, std::int64_t at, std::int64_t to, std::int64_t size) {
          std::memcpy(into + to * element_bytes_, arrays_.nodes[node][i] + at * element_bytes_,
                      static_cast<std::size_t>(size * element_bytes_));
        });
  }
  void write(std::int64_t begin, std::int64_t count, const char* from) const {
    each_array(begin, count,
               [&](std::size_t i, std::int64_t at, std::int64_t to, std::int64_t size) {
                 std::memcpy(arrays_.results[i] + at * element_bytes_, from + to * element_bytes_,
                             static_cast<std::size_t>(size * element_bytes_));
               });
  }

 private:
  const ArraysToReduce& arrays_;
  std::int64_t element_bytes_, total_ = 0;
  std::vector<std::int64_t> begins_;
};

/// Memory for an exchange, from the allocator of tensors: on huge pages, not cleared, and at hand
/// for the next call. New pages of the system took longer than the exchange.
class Buffer {
 public:
  /// Returns memory of `bytes`. Without its former contents, if these were fewer bytes.
  char* sized(std::int64_t bytes) {
    if (bytes > bytes_) {
      bytes_ = bytes;
      memory_ = Tensor();
      memory_ = Tensor(allocate_block(TensorType(f64, {(bytes + 7) / 8})));
    }
    return bytes ? memory_.data<char>() : nullptr;
  }

 private:
  Tensor memory_;
  std::int64_t bytes_ = 0;
};

class AllReduce {
 public:
  AllReduce(Transport& transport, const ArraysToReduce& arrays)
      : transport_(transport),
        element_bytes_(size_of(arrays.dtype)),
        joined_(arrays, element_bytes_),
        tree_(arrays.shards, combine_for(arrays.dtype, arrays.how), element_bytes_) {
    for (int r = 0; r < transport.size(); ++r) {
      nodes_.push_back(
          nodes_within(arrays.shards, shards_of_rank(arrays.shards, r, transport.size())));
      node_count_ += static_cast<std::int64_t>(nodes_.back().size());
    }
  }

  void run() {
    const std::int64_t most = kBucketBytes / element_bytes_;
    for (std::int64_t begin = 0; begin < joined_.total(); begin += most) {
      begin_ = begin;
      count_ = std::min(most, joined_.total() - begin);
      if (count_ * element_bytes_ * node_count_ <= kGatheredBytes || transport_.size() == 1)
        gather();
      else
        exchange();
    }
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(transport_.rank()); }
  int bytes_of(std::int64_t elements) const { return static_cast<int>(elements * element_bytes_); }

  void gather() {
    std::vector<std::int64_t> bytes;
    for (const auto& nodes : nodes_)
      bytes.push_back(bytes_of(count_ * static_cast<std::int64_t>(nodes.size())));
    const Shares shares = Shares::of(bytes);
    char* const all = received_.sized(shares.begin.back() + shares.bytes.back());
    for (std::size_t p = 0; p < nodes_[rank()].size(); ++p)
      joined_.read(p, begin_, count_,
                   all + shares.begin[rank()] + bytes_of(static_cast<std::int64_t>(p) * count_));
    if (transport_.size() > 1) transport_.all_gather(nullptr, all, shares);
    std::vector<TreeReduction::Given> given;
    for (std::size_t r = 0; r < nodes_.size(); ++r)
      for (std::size_t p = 0; p < nodes_[r].size(); ++p)
        given.push_back({nodes_[r][p],
                         all + shares.begin[r] + bytes_of(static_cast<std::int64_t>(p) * count_)});
    char* const result = result_.sized(bytes_of(count_));
    tree_.run(given, result, count_);
    joined_.write(begin_, count_, result);
  }

  /// Returns the elements of the bucket that a rank reduces: equal numbers of whole cache lines.
  std::pair<std::int64_t, std::int64_t> share_of(std::size_t rank) const {
    const auto ranks = static_cast<std::int64_t>(nodes_.size());
    const std::int64_t size = ((count_ + ranks - 1) / ranks + 15) / 16 * 16;
    const std::int64_t begin = std::min(count_, static_cast<std::int64_t>(rank) * size);
    return {begin, std::min(count_, begin + size) - begin};
  }

  void exchange() {
    const auto own_nodes = static_cast<std::int64_t>(nodes_[rank()].size());
    const std::int64_t mine = share_of(rank()).second;
    std::vector<std::int64_t> sent, received, gathered;
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      sent.push_back(bytes_of(share_of(r).second * own_nodes));
      received.push_back(bytes_of(mine * static_cast<std::int64_t>(nodes_[r].size())));
      gathered.push_back(bytes_of(share_of(r).second));
    }
    Shares sends = Shares::of(sent);
    const char* const send = packed(sends);
    const char* const own = send + sends.begin[rank()];
    // This rank's own share stays where it is.
    sends.bytes[rank()] = received[rank()] = 0;
    const Shares receives = Shares::of(received);
    char* const all = received_.sized(receives.begin.back() + receives.bytes.back());
    transport_.all_to_all(send, sends, all, receives);
    std::vector<TreeReduction::Given> given;
    for (std::size_t r = 0; r < nodes_.size(); ++r)
      for (std::size_t p = 0; p < nodes_[r].size(); ++p)
        given.push_back({nodes_[r][p], (r == rank() ? own : all + receives.begin[r]) +
                                           bytes_of(static_cast<std::int64_t>(p) * mine)});
    char* const in_place = joined_.result_in_place(begin_, count_);
    char* const result = in_place ? in_place : result_.sized(bytes_of(count_));
    tree_.run(given, result + bytes_of(share_of(rank()).first), mine);
    transport_.all_gather(nullptr, result, Shares::of(gathered));
    if (!in_place) joined_.write(begin_, count_, result);
  }

  /// Returns the bucket's pieces by rank, and of each piece the nodes. One node that is in one
  /// array already has this order.
  const char* packed(const Shares& sends) {
    const std::size_t nodes = nodes_[rank()].size();
    if (nodes == 1)
      if (const char* const in_place = joined_.in_place(0, begin_, count_)) return in_place;
    char* const buffer = sent_.sized(sends.begin.back() + sends.bytes.back());
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      const auto [begin, count] = share_of(r);
      for (std::size_t p = 0; p < nodes; ++p)
        joined_.read(p, begin_ + begin, count,
                     buffer + sends.begin[r] + bytes_of(static_cast<std::int64_t>(p) * count));
    }
    return buffer;
  }

  Transport& transport_;
  std::int64_t element_bytes_;
  JoinedArrays joined_;
  TreeReduction tree_;
  std::vector<std::vector<ShardRange>> nodes_;  ///< by rank
  std::int64_t node_count_ = 0;
  std::int64_t begin_ = 0, count_ = 0;  ///< of the present bucket
  Buffer sent_, received_, result_;
};

}  // namespace

void all_reduce(Transport& transport, const ArraysToReduce& arrays) {
  AllReduce(transport, arrays).run();
}

void reduce_scatter(Transport& transport, DType dtype, const char* arrays, char* result,
                    std::int64_t size) {
  const std::int64_t element_bytes = size_of(dtype);
  const int ranks = transport.size();
  TreeReduction tree(ranks, combine_for(dtype, Reduction::sum), element_bytes);
  // The buckets of all ranks together are as long as one bucket of all_reduce().
  const std::int64_t most = std::max<std::int64_t>(1, kBucketBytes / element_bytes / ranks);
  Buffer sends, receives;
  for (std::int64_t begin = 0; begin < size; begin += most) {
    const std::int64_t count = std::min(most, size - begin);
    const auto bytes = static_cast<int>(count * element_bytes);
    const Shares shares =
        Shares::of(std::vector<std::int64_t>(static_cast<std::size_t>(ranks), bytes));
    char* const sent = sends.sized(std::int64_t{bytes} * ranks);
    char* const received = receives.sized(std::int64_t{bytes} * ranks);
    for (int r = 0; r < ranks; ++r)
      std::memcpy(sent + r * static_cast<std::ptrdiff_t>(bytes),
                  arrays + (r * size + begin) * element_bytes, static_cast<std::size_t>(bytes));
    transport.all_to_all(sent, shares, received, shares);
    std::vector<TreeReduction::Given> given;
    for (int r = 0; r < ranks; ++r)
      given.push_back({{r, r + 1}, received + shares.begin[static_cast<std::size_t>(r)]});
    tree.run(given, result + begin * element_bytes, count);
  }
}

}  // namespace reel
