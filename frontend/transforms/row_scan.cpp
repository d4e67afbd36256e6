#include "reel/frontend/transforms/row_scan.h"

#include <utility>
#include <vector>

namespace reel {

ScanSpec row_scan(const char* function, std::string name, const Dim& rows, const Tensors& xs) {
  ScanSpec scan;
  scan.function = function;
  scan.name = std::move(name);
  scan.spatial_dim = rows;
  for (const Tensor& x : xs) scan.xs.push_back(TreeLeaf::of(x));
  scan.state_paths = scan.returned_paths = [] { return std::vector<std::string>(); };
  return scan;
}

Tensors map_rows(ScanSpec scan, std::size_t results,
                 const std::function<Tensors(const Tensors& row)>& of_row) {
  scan.xs_paths = [count = scan.xs.size()] { return std::vector<std::string>(count, "row"); };
  scan.y_paths = scan.first_y_paths = [=] { return std::vector<std::string>(results, "row"); };
  scan.body = [&](const TreeLeaves& x, const TreeLeaves&) {
    ScanStep step;
    for (const Tensor& made : of_row(tensors_of(x))) step.y.push_back(TreeLeaf::of(made));
    return step;
  };
  return tensors_of(scan_leaves(scan).ys);
}

}  // namespace reel
