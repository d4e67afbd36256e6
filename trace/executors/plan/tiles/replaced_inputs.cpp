#include "reel/trace/executors/plan/tiles/replaced_inputs.h"

#include <utility>

namespace reel {

TileProgram::ReplacedInputs::ReplacedInputs(const Graph& body, const PlannedTypes& types,
                                            const std::vector<std::int64_t>& space,
                                            const std::vector<TileCell>& cells,
                                            const std::vector<std::vector<int>>& cells_of_input)
    : body_(body),
      types_(types),
      space_(space),
      cells_(cells),
      cells_of_input_(cells_of_input),
      input_of_(body.types.size(), -1),
      maker_(body.types.size()) {
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    input_of_[body.inputs[i]] = static_cast<int>(i);
  for (std::size_t r = 0; r < body.records.size(); ++r)
    for (const ValueId v : body.outputs_of(body.records[r])) maker_[v] = r;
}

void TileProgram::ReplacedInputs::find(TileProgram& to) const {
  std::vector<std::vector<int>> written(body_.outputs.size());
  for (std::size_t c = 0; c < cells_.size(); ++c)
    if (cells_[c].output >= 0) written[at(cells_[c].output)].push_back(static_cast<int>(c));
  std::vector<PoolKey> pools;
  std::vector<int> in_pool, out_pool;
  for (std::size_t i = 0; i < body_.inputs.size(); ++i)
    in_pool.push_back(pool_of(body_.inputs[i], cells_of_input_[i], pools));
  for (std::size_t k = 0; k < written.size(); ++k)
    out_pool.push_back(pool_of(body_.outputs[k], written[k], pools));
  to.pools_.resize(pools.size());
  std::vector<std::vector<int>> last_reads(pools.size());
  for (std::size_t i = 0; i < in_pool.size(); ++i) {
    if (in_pool[i] < 0) continue;
    to.pools_[at(in_pool[i])].inputs.push_back(static_cast<std::uint32_t>(i));
    last_reads[at(in_pool[i])].push_back(cell(cells_of_input_[i][0]).last_read);
  }
  for (std::size_t p = 0; p < pools.size(); ++p)
    to.pools_[p].last_reads = FirstBelow(last_reads[p]);
  for (std::size_t k = 0; k < written.size(); ++k) {
    OutputPlace place{.pool = out_pool[k]};
    if (place.pool >= 0) {
      place.made_by = cell(written[k][0]).made_by;
      const int i = updated_input(body_.outputs[k]);
      if (i >= 0 && in_pool[at(i)] == place.pool &&
          cell(cells_of_input_[at(i)][0]).last_read <= place.made_by)
        place.updated = i;
    }
    for (std::size_t i = 0; i < in_pool.size(); ++i)
      if ((in_pool[i] < 0 || place.pool < 0) && may_replace(k, written[k], i))
        place.others.push_back(static_cast<std::uint32_t>(i));
    to.output_places_.push_back(std::move(place));
  }
  std::vector<std::uint8_t> is_updated(in_pool.size());
  for (const OutputPlace& place : to.output_places_) {
    if (place.updated < 0 || std::exchange(is_updated[at(place.updated)], 1)) {
      to.updated_.clear();
      break;
    }
    to.updated_.push_back(place.updated);
  }
}

/// Returns the input that a value is an update of, as in w - ..., or (m * a) + ...: the first
/// operand of the first operand, and so on; -1 if there is none near, or if the input alone is
/// read on the way, as in tanh(w).
int TileProgram::ReplacedInputs::updated_input(ValueId v) const {
  constexpr int kMaxSteps = 16;
  bool is_update = false;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (input_of_[v] >= 0) return is_update ? input_of_[v] : -1;
    const auto in = body_.inputs_of(body_.records[maker_[v]]);
    is_update = is_update || in.size() > 1;
    v = in[0];
  }
  return -1;
}

/// Returns the index of a value's pool, made if necessary; -1 if it is in none.
int TileProgram::ReplacedInputs::pool_of(ValueId v, const std::vector<int>& cells,
                                         std::vector<PoolKey>& pools) const {
  if (cells.size() != 1 || cell(cells[0]).lie.offset != 0) return -1;
  const Steps& steps = cell(cells[0]).lie.steps;
  PoolKey key{types_.types[v].node(), {steps.begin(), steps.end()}};
  for (std::size_t axis = 0; axis < space_.size(); ++axis)
    if (space_[axis] <= 1) key.steps[axis] = 0;
  for (std::size_t p = 0; p < pools.size(); ++p)
    if (pools[p].type == key.type && pools[p].steps == key.steps) return static_cast<int>(p);
  pools.push_back(std::move(key));
  return static_cast<int>(pools.size()) - 1;
}

/// Returns true if output k may overwrite input i: each element is read last by the step that
/// overwrites it, or before.
bool TileProgram::ReplacedInputs::may_replace(std::size_t k, const std::vector<int>& written,
                                              std::size_t i) const {
  if (!(types_.types[body_.outputs[k]] == types_.types[body_.inputs[i]])) return false;
  for (const int r : cells_of_input_[i]) {
    for (const int w : written) {
      // Parts of one type with different offsets have no element in common.
      if (!same_steps(cell(r).lie.steps, cell(w).lie.steps) ||
          (cell(r).lie.offset == cell(w).lie.offset && cell(r).last_read > cell(w).made_by))
        return false;
    }
  }
  return true;
}

bool TileProgram::ReplacedInputs::same_steps(const Steps& a, const Steps& b) const {
  for (std::size_t axis = 0; axis < space_.size(); ++axis)
    if (space_[axis] > 1 && a[axis] != b[axis]) return false;
  return true;
}

}  // namespace reel
