#include "reel/distributed/collective_ops.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/distributed/shard_tree.h"

namespace reel {
namespace {

using detail::OperandPaths;

struct CollectiveAttrs {
  std::int64_t arrays = 1;  ///< operands of each node
  std::int64_t shards = 0;  ///< of the tree; 0: one for each rank
  std::int64_t root = 0;
  Dim ranks;  ///< of gathered tensors
  OperandPaths paths;
  SourceId source = kNoSource;  ///< for messages; not part of the identity

  template <class F>
  static void fields(F&& f) {
    f("arrays", &CollectiveAttrs::arrays);
    f("shards", &CollectiveAttrs::shards);
    f("root", &CollectiveAttrs::root);
    f("ranks", &CollectiveAttrs::ranks);
    f("paths", &CollectiveAttrs::paths);
  }
};

/// Checks a kernel's call with the other ranks, then runs `exchange`. No other thread uses MPI
/// meanwhile. If this rank cannot finish, for lack of memory, the others get the reason.
///
/// name: all that ranks must agree on besides the operands. checked: the type that ranks compare,
/// if it is not the operand's.
template <class F>
void run_checked(const KernelArgs& args, std::string name, const F& exchange,
                 const TensorType* checked = nullptr) {
  const auto& attrs = args.attr<CollectiveAttrs>();
  Transport& transport = Transport::active(name);
  const std::unique_lock<std::mutex> lock = transport.lock();
  Call call{std::move(name), {}, &attrs.paths, attrs.source};
  for (std::size_t i = 0; i < static_cast<std::size_t>(attrs.arrays); ++i)
    call.types.push_back(checked ? checked : &args.input(i).type());
  transport.check(call);
  try {
    exchange(transport, attrs);
  } catch (const ArgumentError&) {
    throw;  // of sizes, on all ranks alike
  } catch (const std::exception& error) {
    transport.fail(error.what());
    throw;
  }
}

/// Reduces the arrays of each dtype together.
void reduce_arrays(KernelArgs& args, Reduction how, Transport& transport,
                   const CollectiveAttrs& attrs) {
  const auto arrays = static_cast<std::size_t>(attrs.arrays);
  const std::size_t nodes = args.in.size() / arrays;
  const int shards = attrs.shards ? static_cast<int>(attrs.shards) : transport.size();
  for (const DType dtype : {f32, f64, i32, i64}) {
    ArraysToReduce of{dtype, how, shards, std::vector<std::vector<const char*>>(nodes), {}, {}};
    for (std::size_t i = 0; i < arrays; ++i) {
      if (args.types[i].dtype() != dtype) continue;
      for (std::size_t p = 0; p < nodes; ++p)
        of.nodes[p].push_back(args.input(p * arrays + i).data<char>());
      of.results.push_back(args.make(i).data<char>());
      of.sizes.push_back(args.types[i].numel());
    }
    if (!of.sizes.empty()) all_reduce(transport, of);
  }
}

void reduce(KernelArgs& args, Reduction how) {
  const std::int64_t shards = args.attr<CollectiveAttrs>().shards;
  std::string name = how == Reduction::max ? std::string("all_reduce (max)")
                     : shards              ? str("all_reduce (sum of ", shards, " shards)")
                                           : std::string("all_reduce (sum)");
  run_checked(args, std::move(name), [&](Transport& transport, const CollectiveAttrs& attrs) {
    reduce_arrays(args, how, transport, attrs);
  });
}

void types_of_arrays(TypeArgs& args) {
  for (std::int64_t i = 0; i < args.attr<CollectiveAttrs>().arrays; ++i)
    args.out.push_back(args.in[static_cast<std::size_t>(i)]);
}

/// The outputs of an application with cotangents that reach an input, and these cotangents.
struct Arriving {
  std::vector<std::size_t> outputs;
  Tensors cotangents;
  OperandPaths paths;
};
Arriving arriving(Vjp& at) {
  const auto& attrs = at.attr<CollectiveAttrs>();
  const auto arrays = static_cast<std::size_t>(attrs.arrays);
  Arriving result;
  for (std::size_t i = 0; i < arrays; ++i) {
    bool is_needed = false;
    for (std::size_t k = i; k < at.input_count(); k += arrays) is_needed = is_needed || at.needs(k);
    if (!is_needed || !at.has_cotangent(i)) continue;
    result.outputs.push_back(i);
    result.cotangents.push_back(at.cotangent(i));
    if (!attrs.paths.empty()) result.paths.push_back(str("cotangent of ", attrs.paths[i]));
  }
  return result;
}

/// Each rank's sum depends on every operand alike, so its cotangent is the sum of all ranks'.
void sum_vjp(Vjp& at) {
  const auto arrays = static_cast<std::size_t>(at.attr<CollectiveAttrs>().arrays);
  const Arriving from = arriving(at);
  const Tensors sums = detail::all_reduce(from.cotangents, Reduction::sum, from.paths);
  for (std::size_t k = 0; k < sums.size(); ++k)
    for (std::size_t i = from.outputs[k]; i < at.input_count(); i += arrays)
      if (at.needs(i)) at.add(i, sums[k]);
}

/// Ties share the cotangent, as in the gradient of max; if NaN is the result, all NaN share it.
void max_vjp(Vjp& at) {
  const Arriving from = arriving(at);
  Tensors chosen, added = from.cotangents;
  OperandPaths paths = from.paths;
  for (const std::size_t i : from.outputs) {
    const Tensor& x = at.input(i);
    chosen.push_back(logical_or(equal(x, at.output(i)), isnan(x)));
    added.push_back(cast(chosen.back(), x.dtype()));
    if (!paths.empty()) paths.push_back(str("ties of ", at.attr<CollectiveAttrs>().paths[i]));
  }
  const Tensors sums = detail::all_reduce(added, Reduction::sum, paths);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const Tensor share = sums[k] / maximum(sums[chosen.size() + k], 1);
    at.add(from.outputs[k], where(chosen[k], share, 0));
  }
}

// No collective tells axes: all ranks take part in a call with all of its rows, once.
const Op all_reduce_sum_op{
    .name = "all_reduce_sum",
    .type = types_of_arrays,
    .kernel = [](KernelArgs& args) { reduce(args, Reduction::sum); },
    .vjp = sum_vjp,
    .has_effect = true,
};

const Op all_reduce_max_op{
    .name = "all_reduce_max",
    .type = types_of_arrays,
    .kernel = [](KernelArgs& args) { reduce(args, Reduction::max); },
    .vjp = max_vjp,
    .reads = {.inputs = kAll, .outputs = kAll},
    .has_effect = true,
};

const Op broadcast_op{
    .name = "broadcast",
    .type = types_of_arrays,
    .kernel =
        [](KernelArgs& args) {
          const auto root = static_cast<int>(args.attr<CollectiveAttrs>().root);
          run_checked(args, str("broadcast (from rank ", root, ")"),
                      [&](Transport& transport, const CollectiveAttrs&) {
                        for (std::size_t i = 0; i < args.in.size(); ++i) {
                          const auto bytes = static_cast<std::size_t>(args.types[i].bytes());
                          char* const data = args.make(i).data<char>();
                          if (transport.rank() == root)
                            std::copy_n(args.input(i).data<char>(), bytes, data);
                          transport.broadcast(data, bytes, root);
                        }
                      });
        },
    .vjp =
        [](Vjp& at) {
          const bool is_root =
              Transport::active("broadcast").rank() == at.attr<CollectiveAttrs>().root;
          const Arriving from = arriving(at);
          const Tensors sums = detail::all_reduce(from.cotangents, Reduction::sum, from.paths);
          for (std::size_t k = 0; k < sums.size(); ++k)
            at.add(from.outputs[k], is_root ? sums[k] : zeros(at.input_type(from.outputs[k])));
        },
    .has_effect = true,
};

const Op all_gather_op{
    .name = "all_gather",
    .type =
        [](TypeArgs& args) {
          Dims dims = args.in[0].dims();
          dims.insert(dims.begin(), args.attr<CollectiveAttrs>().ranks);
          args.out.push_back(args.in[0].with(dims));
        },
    .kernel =
        [](KernelArgs& args) {
          run_checked(args, "all_gather", [&](Transport& transport, const CollectiveAttrs&) {
            const std::int64_t bytes = args.input(0).type().bytes();
            const Shares shares = Shares::of(
                std::vector<std::int64_t>(static_cast<std::size_t>(transport.size()), bytes));
            transport.all_gather(args.input(0).data<char>(), args.make().data<char>(), shares);
          });
        },
    .vjp =
        [](Vjp& at) {
          const OperandPaths& paths = at.attr<CollectiveAttrs>().paths;
          at.add(0, detail::scatter_ranks(at.cotangent(), str("cotangent of ", paths[0])));
        },
    .has_effect = true,
};

TensorType with_rows(const TensorType& type, const Dim& rows) {
  Dims dims = type.dims();
  dims[0] = rows;
  return type.with(dims);
}

/// Returns the rows of all ranks, and the places of this rank's own among them.
Tensors rows_of_all(const Tensor& x, Transport& transport) {
  const auto own = static_cast<std::size_t>(transport.rank());
  const auto ranks = static_cast<std::size_t>(transport.size());
  const std::int64_t mine = x.type().sizes()[0];
  std::vector<std::int64_t> counts(ranks);
  transport.all_gather(&mine, counts.data(),
                       Shares::of(std::vector<std::int64_t>(ranks, sizeof mine)));
  std::int64_t before = 0, all = 0, row_bytes = size_of(x.dtype());
  for (std::size_t i = 1; i < x.type().sizes().size(); ++i) row_bytes *= x.type().sizes()[i];
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r < own) before += counts[r];
    all += counts[r];
    counts[r] *= row_bytes;
  }
  const Tensor rows(allocate_block(with_rows(x.type(), Dim(all))));
  transport.all_gather(x.data<char>(), rows.data<char>(), Shares::of(counts));
  const Tensor places(allocate_block(TensorType(i64, {x.dims()[0]})));
  std::iota(places.data<std::int64_t>(), places.data<std::int64_t>() + mine, before);
  return {rows, places};
}

/// Results: as rows_of_all(). Ranks may have different numbers of rows.
const Op gather_rows_op{
    .name = "gather_rows",
    .type =
        [](TypeArgs& args) {
          args.out.push_back(with_rows(args.in[0], Dim::unknown()));
          args.out.push_back(TensorType(i64, {args.in[0].dims()[0]}));
        },
    .kernel =
        [](KernelArgs& args) {
          const TensorType without_rows = with_rows(args.input(0).type(), Dim(0));
          run_checked(
              args, "all_gather of rows",
              [&](Transport& transport, const CollectiveAttrs&) {
                *args.decided = rows_of_all(args.input(0), transport);
              },
              &without_rows);
        },
    .vjp =
        [](Vjp& at) {
          if (!at.has_cotangent(0)) return;
          const OperandPaths& paths = at.attr<CollectiveAttrs>().paths;
          const Tensor sum = detail::all_reduce({at.cotangent(0)}, Reduction::sum,
                                                {str("cotangent of ", paths[0])})[0];
          at.add(0, gather(sum, at.output(1), 0));
        },
    .reads = {.outputs = 0b10},
    .kernel_decides_types = true,
    .has_effect = true,
};

const Op reduce_scatter_op{
    .name = "reduce_scatter",
    .type =
        [](TypeArgs& args) {
          const Dims& dims = args.in[0].dims();
          args.out.push_back(args.in[0].with(Dims(dims.begin() + 1, dims.end())));
        },
    .kernel =
        [](KernelArgs& args) {
          run_checked(args, "reduce_scatter", [&](Transport& transport, const CollectiveAttrs&) {
            reduce_scatter(transport, args.types[0].dtype(), args.input(0).data<char>(),
                           args.make().data<char>(), args.types[0].numel());
          });
        },
    .vjp =
        [](Vjp& at) {
          const OperandPaths& paths = at.attr<CollectiveAttrs>().paths;
          const Tensor all = detail::gather_ranks(at.cotangent(), str("cotangent of ", paths[0]));
          const Dim& ranks = at.input_type(0).dims()[0];
          at.add(0, ranks.is_named() ? rename(all, 0, ranks) : all);
        },
    .has_effect = true,
};

std::string name_of_operand(const OperandPaths& paths, std::size_t i) {
  return paths.empty() || paths[i].empty() ? "the operand" : paths[i];
}

void check_operands(const char* function, const Tensors& tensors, const OperandPaths& paths) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_defined(function, tensors[i]);
    if (tensors[i].type().is_list())
      throw StructureError(
          str(function, ": ", name_of_operand(paths, i), " is a TensorArray; stack() it first"));
  }
}

Tensors bind_collective(const Op& op, const Tensors& inputs, CollectiveAttrs attrs) {
  attrs.source = source_here();
  return bind_all(op, inputs, make_attrs(std::move(attrs)));
}

CollectiveAttrs attrs_of(std::size_t arrays, const OperandPaths& paths) {
  CollectiveAttrs attrs;
  attrs.arrays = static_cast<std::int64_t>(arrays);
  attrs.paths = paths;
  return attrs;
}

}  // namespace

namespace detail {

void check_numbers(const char* function, const Tensors& tensors, const OperandPaths& paths) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].dtype() == boolean)
      throw DTypeError(str(function, ": ", name_of_operand(paths, i), " is ", tensors[i].type(),
                           "; booleans are not reduced: cast them, as in cast(x, i32)"));
}

Tensors all_reduce(const Tensors& tensors, Reduction how, const OperandPaths& paths) {
  check_operands("all_reduce", tensors, paths);
  check_numbers("all_reduce", tensors, paths);
  if (tensors.empty() || Transport::active("all_reduce").size() == 1) return tensors;
  return bind_collective(how == Reduction::sum ? all_reduce_sum_op : all_reduce_max_op, tensors,
                         attrs_of(tensors.size(), paths));
}

Tensors all_reduce_nodes(const std::vector<Tensors>& nodes, int shards, const OperandPaths& paths) {
  Tensors inputs;
  for (const Tensors& node : nodes) inputs.insert(inputs.end(), node.begin(), node.end());
  check_operands("all_reduce", nodes[0], paths);
  if (Transport::active("all_reduce").size() == 1) return nodes[0];
  CollectiveAttrs attrs = attrs_of(nodes[0].size(), paths);
  attrs.shards = shards;
  return bind_collective(all_reduce_sum_op, inputs, std::move(attrs));
}

Tensors broadcast_from(int root, const Tensors& tensors, const OperandPaths& paths) {
  check_operands("broadcast", tensors, paths);
  const int size = Transport::active("broadcast").size();
  if (root < 0 || root >= size)
    throw ArgumentError(str("broadcast: there is no rank ", root, " among ", size));
  if (tensors.empty() || size == 1) return tensors;
  CollectiveAttrs attrs = attrs_of(tensors.size(), paths);
  attrs.root = root;
  return bind_collective(broadcast_op, tensors, std::move(attrs));
}

Tensor gather_ranks(const Tensor& x, const std::string& path) {
  check_operands("all_gather", {x}, {path});
  CollectiveAttrs attrs = attrs_of(1, {path});
  const int size = Transport::active("all_gather").size();
  attrs.ranks = x.type().is_named() ? canonical(Dim("rank", size)) : Dim(size);
  return bind_collective(all_gather_op, {x}, std::move(attrs))[0];
}

Tensor gather_rows(const Tensor& x, const std::string& path) {
  check_operands("all_gather", {x}, {path});
  if (Transport::active("all_gather").size() == 1) return x;
  return bind_collective(gather_rows_op, {x}, attrs_of(1, {path}))[0];
}

Tensor scatter_ranks(const Tensor& x, const std::string& path) {
  check_operands("reduce_scatter", {x}, {path});
  return bind_collective(reduce_scatter_op, {x}, attrs_of(1, {path}))[0];
}

}  // namespace detail
}  // namespace reel
