// distributed/world.h — World, the ranks of a program that mpirun started.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/distributed/collective_trees.h"
#include "reel/distributed/distributed_error.h"
#include "reel/distributed/shard_tree.h"
#include "reel/distributed/sharded.h"

REEL_API_BEGIN
namespace reel {

/// Options of World.
struct WorldOptions {
  /// Shards of a batch, for all ranks together. Results depend on this number, but not on the
  /// number of ranks. At least one for each rank.
  int shards = 8;
  /// Time limit of a collective: how long ranks wait for a rank that computes, hangs or is out of
  /// reach.
  std::chrono::duration<double> timeout = std::chrono::minutes(10);
};

/// All ranks of a program: processes that run the same program on parts of the data. Starts MPI,
/// and ends it in the destructor. Without mpirun there is one rank, and MPI is not started.
///
///   const World world;
///   Model model = world.broadcast(Model::init(...));
///   auto step = jit([&](Model model, Adam<Model> adam, const Sharded<Batch>& batch) {
///     auto [loss, gradient] = world.value_and_grad(loss_of)(model, batch);
///     adam.update(model, gradient);
///     return std::tuple{model, adam, loss};
///   });
///
/// All ranks must make the same calls of the members marked "Collective", with operands of the same
/// types, in the same order. Otherwise all of them throw DistributedError, which names the call of
/// each rank. If a rank makes no call within WorldOptions::timeout, or cannot finish one for lack
/// of memory, the others throw it.
///
/// If an exception leaves the scope of a World, or no handler catches it, or the program exits
/// there, then all ranks end, and mpirun returns an exit code that is not 0.
///
/// A program has at most one World. Const members are thread-safe, but threads must not make
/// collective calls at once, since their order would then differ between ranks.
class World {
 public:
  /// Throws ArgumentError if there is a World, if there was one under mpirun, if shards are fewer
  /// than ranks, or if the timeout is not positive; DistributedError if options differ between
  /// ranks.
  explicit World(const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Returns the number of this process among all, from 0 on.
  int rank() const;
  /// Returns the number of processes.
  int size() const;
  /// Returns the number of this process among those on this machine.
  int local_rank() const;
  /// Returns the number of shards of a batch, for all ranks together.
  int shards() const { return options_.shards; }

  /// Waits until all ranks have called it. Collective. Throws TraceError in a trace.
  void barrier() const;
  /// Returns true if the value is true on all ranks. Collective. Throws TraceError in a trace.
  bool all(bool value) const;

  // The following are ops on tensors: eager and traced, in bodies of loops, with gradients of any
  // order. Gradients differentiate the sum of all ranks' results, so a result that reaches the loss
  // on one rank must reach it on all. In traces they run in the order of the program in every
  // executor, and are never dropped. Throw StructureError for a TensorArray, DTypeError for sums of
  // booleans, DistributedError for ragged dims if lengths differ between ranks.

  /// Returns the tree of the root, on all ranks. Numbers and strings in it stay. Collective.
  template <class Tree>
  Tree broadcast(const Tree& tree, int root = 0) const {
    return detail::with_tree_tensors(tree,
                                     detail::broadcast_tree(detail::tree_tensors(tree), root));
  }
  /// Returns the sums or maxima over all ranks, leaf by leaf. Sums are added in a fixed order. Rows
  /// of IndexedSlices, and of gradients of an EmbeddingTable, are gathered. Collective.
  template <class Tree>
  Tree all_reduce(const Tree& tree, Reduction how = Reduction::sum) const {
    return detail::with_tree_tensors(tree,
                                     detail::all_reduce_tree(detail::tree_tensors(tree), how));
  }
  /// Returns the mean over all ranks, weighted by the counts: the number of items in the mean
  /// that is a rank's tree. count: a floating scalar. NaN if all counts are 0. Collective. Throws
  /// ShapeError or DTypeError for another count, DTypeError for leaves that are not floating.
  template <class Tree>
  Tree all_reduce_mean(const Tree& tree, const Tensor& count) const {
    return detail::with_tree_tensors(
        tree, detail::all_reduce_mean_tree(detail::tree_tensors(tree), count));
  }
  /// Returns the tensors of all ranks one behind another along an axis. Named dims: the axis gets a
  /// new dim of the same name. Collective. Throws ShapeError for a ragged dim. With one
  /// rank: x.
  Tensor all_gather(const Tensor& x, const Axis& axis) const;
  /// Returns this rank's part along an axis of the sum over all ranks. Named dims as above.
  /// Collective. Throws ShapeError if the number of ranks does not divide the size, or for a ragged
  /// dim; TraceError if only the run knows the size.
  Tensor reduce_scatter(const Tensor& x, const Axis& axis) const;

  /// Cuts a batch into shards along an axis, and returns the shards of this rank. They are
  /// consecutive. Ranks have equal numbers of shards, or numbers that differ by one. Leaves that
  /// lack the axis are in every shard. Shards have equal sizes, or sizes that differ by one; some
  /// are empty if there are fewer items than shards. Every rank must have the whole batch, and cuts
  /// its part without a copy if the axis is the first.
  ///
  /// A list of batches gives a list of their shards, so that all ranks make the same number of
  /// steps. Throws ShapeError if no leaf has the axis, if its sizes differ between leaves, or if it
  /// is ragged; StructureError for a TensorArray; TraceError if only the run knows the size.
  template <class Tree>
  auto shard(const Tree& batch, const Axis& axis = 0) const {
    if constexpr (detail::IsInstance<Tree, std::vector>::value &&
                  !std::is_same_v<Tree, std::vector<Tensor>>) {
      std::vector<Sharded<typename Tree::value_type>> result;
      for (const auto& one : batch) result.push_back(shard(one, axis));
      return result;
    } else {
      const ShardRange own = shards_of_rank(options_.shards, rank(), size());
      Sharded<Tree> result{{}, own.begin, options_.shards};
      const TreeLeaves leaves = flatten(batch);
      const Tensors tensors = tensors_of(leaves);
      for (int s = own.begin; s < own.end; ++s)
        result.parts.push_back(unflatten(batch, with_tensors(leaves, cut(tensors, axis, s))));
      return result;
    }
  }

  /// value_and_grad(f)(model, rest...) returns std::pair{loss, gradient with respect to model}. The
  /// loss is the sum of all shards' totals over the sum of their weights, as Weighted::mean(): 0,
  /// with a gradient of zeros, if nothing counts.
  ///
  /// f: (model, rest...) -> Weighted{total, weight}, or std::pair{Weighted, auxiliary}: the sum of
  /// the losses of a shard's items, and the number of items, a floating scalar. It is called for
  /// each shard of this rank: arguments that are Sharded are replaced by their parts. With an
  /// auxiliary, the result is std::pair{std::pair{loss, Sharded<auxiliary>}, gradient}. Random
  /// numbers in f have a key of their own for each shard. Collective.
  ///
  /// Each shard's gradient is computed alone, and shards are added in a fixed binary tree. Ensures:
  /// the same bits for any number of ranks, on processors of one kind. Rows of the gradient
  /// of an EmbeddingTable are gathered, in the order of the shards.
  template <class F>
  auto value_and_grad(F f) const {
    return detail::sharded_value_and_grad(std::move(f), detail::NoneFrozen());
  }
  /// value_and_grad(f, optimiser)(model, rest...) returns the same, with a gradient of zeros, or of
  /// no table rows, for the parameters that are frozen in the optimiser. It is neither computed nor
  /// exchanged. All ranks must freeze the same parameters. Collective. Throws StructureError if the
  /// model differs in structure from the optimiser's parameters.
  template <class F, class Params>
  auto value_and_grad(F f, const Optimiser<Params>& optimiser) const {
    return detail::sharded_value_and_grad(std::move(f), optimiser);
  }

 private:
  struct Faults;  // world.cpp

  void check_options() const;
  Tensors cut(const Tensors& tensors, const Axis& axis, int shard) const;
  void end_after_error();

  WorldOptions options_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Faults> faults_;  ///< null for one rank
  int exceptions_;                  ///< in flight when the World began
};

}  // namespace reel
REEL_API_END
