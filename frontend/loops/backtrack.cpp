#include "reel/frontend/loops/backtrack.h"

#include <limits>

#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/tree/tensor_array.h"

namespace reel::detail {
namespace {

/// An index outside every beam.
constexpr std::int64_t kNowhere = std::numeric_limits<std::int32_t>::max();

/// True for a tensor that has a value for each step.
bool is_value(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
         !leaf.tensor.type().is_list();
}

/// Throws unless the tensor has integers, which gather can look up.
void check_places(const char* role, const Tensor& x) {
  if (!x.is_defined())
    throw ArgumentError(str("backtrack: ", role, " is an empty Tensor: assign to it first"));
  if (x.dtype() != i32 && x.dtype() != i64)
    throw DTypeError(
        str("backtrack: ", role, " are places in the beam, which are integers, got ", x.type()));
}

void check_has(const std::string& role, const TensorType& type, const Dim& dim) {
  if (!contains(type.dims(), dim))
    throw ShapeError(str("backtrack: ", role, " ", type, " has no dim ", dim,
                         lacking_dim_hint(dim, type.dims())));
}

/// Throws for a tensor without beam, but with a dim of its name other than `steps`: the tensor
/// would count as the same for all hypotheses, which is not the intention.
void check_beams(const std::string& role, const TensorType& type, const Dim& steps,
                 const Dim& beam) {
  if (contains(type.dims(), beam)) return;
  for (const Dim& dim : type.dims())
    if (dim.is_named() && dim.name() == beam.name() && !(dim == steps))
      throw ShapeError(str("backtrack: ", role, " ", type, " has another dim called ", beam.name(),
                           " than the beam that is given, ", beam,
                           lacking_dim_hint(beam, type.dims())));
}

void check_dims(const TreeLeaves& ys, const Tensor& backrefs, const Dim& steps, const Dim& beam,
                const PathsFn& paths) {
  for (const Dim* dim : {&steps, &beam})
    if (!dim->is_named())
      throw ShapeError(str("backtrack: ", dim == &steps ? "steps" : "beam", " is the plain size ",
                           *dim, "; give a Dim that backrefs ", backrefs.type(), " has"));
  check_places("backrefs", backrefs);
  check_has("backrefs", backrefs.type(), steps);
  check_has("backrefs", backrefs.type(), beam);
  if (contains(steps.length_dims(), beam))
    throw ShapeError(str("backtrack: ", steps, " has a length for each hypothesis along ", beam,
                         ", but hypotheses descend from each other; give it lengths over the "
                         "entries that are searched separately"));
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (is_value(ys[i])) {
      check_has(paths()[i], ys[i].tensor.type(), steps);
      check_beams(paths()[i], ys[i].tensor.type(), steps, beam);
    } else if (ys[i].kind == TreeLeaf::Kind::tensor)
      throw StructureError(str("backtrack: ", paths()[i],
                               ys[i].tensor.is_defined() ? " is an array" : " is an empty Tensor",
                               "; ys are tensors with ", steps,
                               ", or arrays where backrefs are one"));
  }
}

/// Returns the places in the beam of the last step, for all entries.
Tensor first_places(const Tensor& backrefs, const Dim& steps, const Dim& beam,
                    const std::optional<Tensor>& hypotheses) {
  if (hypotheses) check_places("hypotheses", *hypotheses);
  const Tensor chosen = hypotheses ? cast(*hypotheses, i64) : range(beam, i64);
  if (contains(chosen.dims(), steps))
    throw ShapeError(str("backtrack: hypotheses ", (hypotheses ? *hypotheses : chosen).type(),
                         " have the dim ", steps, "; they are those of the last step"));
  Dims dims;
  for (const Dim& dim : backrefs.dims())
    if (dim != steps && dim != beam) dims.push_back(dim);
  for (const Dim& dim : chosen.dims())
    if (!contains(dims, dim)) dims.push_back(dim);
  return expand(chosen, dims);
}

}  // namespace

TreeLeaves backtrack_leaves(TreeLeaves ys, const Tensor& backrefs, const Dim& steps,
                            const Dim& beam, const std::optional<Tensor>& hypotheses,
                            const PathsFn& paths) {
  check_dims(ys, backrefs, steps, beam, paths);
  ScanSpec loop;
  loop.function = "backtrack";
  loop.name = "backtrack";
  loop.spatial_dim = steps;
  loop.is_reverse = true;
  loop.initial = {TreeLeaf::of(first_places(backrefs, steps, beam, hypotheses))};
  loop.xs = {TreeLeaf::of(cast(backrefs, i64))};
  for (const TreeLeaf& leaf : ys)
    if (is_value(leaf)) loop.xs.push_back(leaf);
  const auto names = [&](const char* root) {
    return [&loop, root] { return std::vector<std::string>(loop.xs.size(), root); };
  };
  loop.state_paths = names("places");
  loop.returned_paths = names("places");
  loop.xs_paths = names("ys");
  loop.first_y_paths = loop.y_paths = names("ys");
  loop.body = [&](const TreeLeaves& x, const TreeLeaves& s) {
    // Places do not wrap: a negative one does not count from the end, and one beyond an entry's own
    // end is made invalid.
    Tensor places = s[0].tensor;
    if (beam.is_ragged()) {
      places = mask_padding(places);
      places = where(places < cast(beam.lengths(), i64), places, kNowhere);
    }
    const auto taken = [&](const Tensor& of) {
      return TreeLeaf::of(contains(of.dims(), beam) ? gather(of, places, beam, {.from_end = false})
                                                    : of);
    };
    ScanStep step;
    for (std::size_t i = 1; i < x.size(); ++i) step.y.push_back(taken(x[i].tensor));
    step.state = {taken(x[0].tensor)};
    return step;
  };
  const TreeLeaves found = scan_leaves(loop).ys;
  std::size_t next = 0;
  for (TreeLeaf& leaf : ys)
    if (is_value(leaf)) leaf = found[next++];
  return ys;
}

TreeLeaves backtrack_arrays(TreeLeaves ys, const TensorArray& backrefs, const Dim& beam,
                            const std::optional<Tensor>& hypotheses, const PathsFn& paths) {
  const auto is_array = [](const TreeLeaf& leaf) {
    return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
           leaf.tensor.type().is_list();
  };
  const Dim steps("steps", backrefs.size());
  TreeLeaves stacked;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!is_array(ys[i])) continue;
    stacked.push_back(TreeLeaf::of(TensorArray::of_list(ys[i].tensor).stack(steps)));
    names.push_back(paths()[i]);
  }
  const TreeLeaves found = backtrack_leaves(std::move(stacked), backrefs.stack(steps), steps, beam,
                                            hypotheses, [&] { return names; });
  std::size_t next = 0;
  for (TreeLeaf& leaf : ys)
    if (is_array(leaf))
      leaf = TreeLeaf::of(TensorArray::unstack(found[next++].tensor, steps).list());
  return ys;
}

}  // namespace reel::detail
