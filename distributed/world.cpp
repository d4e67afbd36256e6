#include "reel/distributed/world.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/distributed/faults.h"

namespace reel {
namespace {

/// Calls that are no ops: they run while a trace is recorded, not when it runs.
void check_eager(const char* function) {
  if (is_tracing())
    throw TraceError(str(function, ": is no op, so it cannot be part of a trace; call it outside"));
}

void check_size(const char* function, const Tensor& x, int place) {
  if (!x.dims()[static_cast<std::size_t>(place)].has_size())
    throw TraceError(str(function, ": ", axis_name(x.type(), place),
                         " has a size that only the run knows, so it cannot be cut; state it, as "
                         "in ensure_shape(x, {...})"));
}

void check_ragged(const char* function, const Tensor& x) {
  if (x.type().is_ragged())
    throw ShapeError(
        str(function, ": ", x.type(),
            " has a ragged dim, whose lengths may differ between ranks; pad it first"));
}

}  // namespace

struct World::Faults {
  FaultHandlers handlers;
};

World::World(const WorldOptions& options)
    : options_(options), exceptions_(std::uncaught_exceptions()) {
  if (!(options.timeout.count() > 0))
    throw ArgumentError(
        str("World: timeout is ", options.timeout.count(), " s, but must be positive"));
  transport_ = std::make_unique<Transport>(options.timeout);
  if (transport_->size() > 1) faults_ = std::make_unique<Faults>();
  print_binding(transport_->rank(), transport_->size());
  check_options();
  if (options.shards < transport_->size())
    throw ArgumentError(str("World: shards is ", options.shards, ", but there are ",
                            transport_->size(), " ranks; each needs at least one shard"));
}

/// Options that differ between ranks are an error of all, not of the one that they do not fit.
void World::check_options() const {
  const Call call{
      str("World (", options_.shards, " shards, timeout of ", options_.timeout.count(), " s)"),
      {},
      nullptr,
      source_here()};
  const auto lock = transport_->lock();
  transport_->check(call);
}

World::~World() {
  if (transport_->size() == 1) return;
  if (std::uncaught_exceptions() > exceptions_ || transport_->is_broken()) {
    end_after_error();
    return;
  }
  try {
    const Call end{"the end of World", {}, nullptr, source_here()};
    const auto lock = transport_->lock();
    transport_->check(end);
  } catch (const std::exception& error) {
    print_with_rank(transport_->rank(), error.what());
    transport_->abort();
  }
}

/// A handler of the program prints the exception after this. All ranks end when the program does,
/// or after ten seconds, if it does not.
void World::end_after_error() {
  static constexpr std::chrono::seconds kForMessage{10};
  print_with_rank(transport_->rank(), transport_->is_broken()
                                          ? "ends all ranks, since one did not come in time"
                                          : "ends all ranks, since an exception left its World");
  // Reads the debug information, which may take a second, so that messages of exceptions are fast.
  (void)text_of("", source_here());
  faults_->handlers.expect_end();
  (void)faults_.release();
  Transport* const transport = transport_.release();  // MPI_Finalize would wait for all ranks
  try {
    std::thread([transport] {
      std::this_thread::sleep_for(kForMessage);
      transport->abort();
    }).detach();
  } catch (const std::system_error&) {  // no memory for a thread
    transport->abort();
  }
}

int World::rank() const { return transport_->rank(); }
int World::size() const { return transport_->size(); }
int World::local_rank() const { return transport_->local_rank(); }

void World::barrier() const {
  check_eager("barrier");
  const Call call{"barrier", {}, nullptr, source_here()};
  const auto lock = transport_->lock();
  transport_->check(call);
}

bool World::all(bool value) const {
  check_eager("all");
  const Call call{"all", {}, nullptr, source_here()};
  const auto lock = transport_->lock();
  transport_->check(call);
  return transport_->all(value);
}

Tensor World::all_gather(const Tensor& x, const Axis& axis) const {
  const int place = axis.in(x, "all_gather");
  check_ragged("all_gather", x);
  if (size() == 1) return x;
  const Tensor gathered = detail::gather_ranks(x, "");
  std::vector<int> positions(static_cast<std::size_t>(gathered.rank()));
  std::iota(positions.begin(), positions.end(), 0);
  std::rotate(positions.begin(), positions.begin() + 1, positions.begin() + 1 + place);
  const Tensor moved =
      transpose(gathered, Axes(std::vector<Axis>(positions.begin(), positions.end())));
  const Dim& dim = x.dims()[static_cast<std::size_t>(place)];
  if (!dim.is_named()) return merge_dims(moved, {place, place + 1});
  return merge_dims(moved, {place, place + 1}, Dim(dim.name()));
}

Tensor World::reduce_scatter(const Tensor& x, const Axis& axis) const {
  const int place = axis.in(x, "reduce_scatter");
  detail::check_numbers("reduce_scatter", {x}, {});
  check_ragged("reduce_scatter", x);
  check_size("reduce_scatter", x, place);
  const Dim& dim = x.dims()[static_cast<std::size_t>(place)];
  if (dim.size() % size() != 0)
    throw ShapeError(
        str("reduce_scatter: ", size(), " ranks do not divide ", axis_name(x.type(), place)));
  const Dims parts = dim.is_named()
                         ? Dims{Dim("rank", size()), Dim(dim.name(), dim.size() / size())}
                         : Dims{size(), dim.size() / size()};
  const Tensor split = split_dim(x, place, parts);
  std::vector<int> positions(static_cast<std::size_t>(split.rank()));
  std::iota(positions.begin(), positions.end(), 0);
  std::rotate(positions.begin(), positions.begin() + place, positions.begin() + place + 1);
  return detail::scatter_ranks(
      transpose(split, Axes(std::vector<Axis>(positions.begin(), positions.end()))), "");
}

namespace {

/// Cuts a shard out of the leaves of a batch.
class Cut {
 public:
  Cut(const Axis& axis, int shard, int shards) : axis_(axis), shard_(shard), shards_(shards) {}

  Tensor operator()(const Tensor& x) {
    if (!x.is_defined()) return x;
    if (x.type().is_list())
      throw StructureError("shard: a leaf is a TensorArray; stack() it first");
    const Dim* const named = axis_.dim();
    if (named ? !contains(x.dims(), *named) : x.rank() == 0) return x;
    const int place = axis_.in(x, "shard");
    check_whole(x, place);
    const Dim& whole = x.dims()[static_cast<std::size_t>(place)];
    const std::int64_t begin = first_of(shard_, whole.size()),
                       end = first_of(shard_ + 1, whole.size());
    if (!whole.is_named()) return slice(x, place, begin, end);
    return slice(x, place, begin, end, shard_dim(whole, end - begin));
  }
  bool has_cut() const { return first_.is_defined(); }

 private:
  std::int64_t first_of(std::int64_t shard, std::int64_t size) const {
    return size / shards_ * shard + size % shards_ * shard / shards_;
  }
  void check_whole(const Tensor& x, int place) {
    const Dim& whole = x.dims()[static_cast<std::size_t>(place)];
    if (whole.is_ragged())
      throw ShapeError(str("shard: ", axis_name(x.type(), place),
                           " is ragged; cut along the dim of its entries instead"));
    check_size("shard", x, place);
    if (!has_cut()) first_ = x, first_place_ = place;
    const std::int64_t expected = first_.type().sizes()[static_cast<std::size_t>(first_place_)];
    if (whole.size() != expected)
      throw ShapeError(
          str("shard: ", axis_name(x.type(), place), " has the size ", whole.size(), ", but ",
              axis_name(first_.type(), first_place_), " has ", expected,
              "; all leaves with the axis are cut alike, so name the dim of the items, "
              "or leave other tensors out of the batch"));
  }
  /// Returns the dim of a shard: one for all leaves that have the dim.
  Dim shard_dim(const Dim& whole, std::int64_t size) {
    for (const auto& [of, dim_of_shard] : shard_dims_)
      if (of == whole) return dim_of_shard;
    return shard_dims_.emplace_back(whole, Dim(whole.name(), size)).second;
  }

  Axis axis_;
  int shard_, shards_;
  Tensor first_;  ///< the first leaf with the axis
  int first_place_ = 0;
  std::vector<std::pair<Dim, Dim>> shard_dims_;
};

}  // namespace

Tensors World::cut(const Tensors& tensors, const Axis& axis, int shard) const {
  Tensors result;
  Cut cut(axis, shard, options_.shards);
  for (const Tensor& x : tensors) result.push_back(cut(x));
  if (!cut.has_cut())
    throw ShapeError(axis.dim() ? str("shard: no leaf of the batch has the dim ", *axis.dim())
                                : std::string("shard: no leaf of the batch has an axis"));
  return result;
}

namespace detail {
void check_shards(const std::vector<OwnShards>& arguments) {
  const Transport& transport = Transport::active("value_and_grad");
  for (const OwnShards& own : arguments) {
    const ShardRange expected = shards_of_rank(own.of, transport.rank(), transport.size());
    if (own.of < transport.size() || own.first != expected.begin || own.count != expected.size() ||
        own.of != arguments[0].of)
      throw ArgumentError(str("value_and_grad: an argument has the shards ", own.first, " to ",
                              own.first + own.count - 1, " of ", own.of, ", but rank ",
                              transport.rank(), " of ", transport.size(), " has ", expected.begin,
                              " to ", expected.end - 1, " of ", arguments[0].of,
                              "; get them from World::shard()"));
  }
}
}  // namespace detail
}  // namespace reel
