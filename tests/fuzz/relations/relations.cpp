#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/tests/fuzz/relations/relation.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {

const std::vector<Relation>& all_relations() {
  static const std::vector<Relation> relations{
      permuted_rows_relation(), entry_alone_relation(),  padding_relation(),
      forms_relation(),         vmap_and_map_relation(), cut_loops_relation(),
      dims_inside_relation(),   captures_relation(),     order_of_sizes_relation(),
  };
  return relations;
}

const Relation* relation_of(const std::string& name_or_kind) {
  for (const Relation& relation : all_relations())
    if (name_or_kind.substr(0, name_or_kind.find(':')) == relation.name) return &relation;
  return nullptr;
}

std::optional<Finding> check_relation(const Relation& relation, const Program& program,
                                      Statistics* statistics) {
  if (statistics && statistics->begins) statistics->begins(relation.name);
  Trial trial(relation, program);
  Outcome outcome = Outcome::holds;
  std::optional<Finding> finding;
  try {
    outcome = relation.check(trial);
  } catch (const OutsideDomain&) {
    outcome = Outcome::does_not_apply;
  } catch (const FoundError& found) {
    finding = found.finding;
  } catch (const std::exception& error) {
    finding = {str(relation.name, ": throws: ", gist(error.what())), error.what()};
  }
  if (statistics) statistics->relations += outcome == Outcome::holds;
  return finding;
}

std::optional<Finding> check_relations(std::uint64_t seed, const Rules& rules,
                                       Statistics* statistics) {
  // A stream of its own: programs do not depend on relations.
  Random random(seed ^ 0x52656c6174696f6e);
  Statistics own;
  if (statistics) own.begins = statistics->begins;
  std::vector<const Relation*> left;
  for (const Relation& relation : all_relations()) left.push_back(&relation);
  std::optional<Finding> finding;
  while (own.relations < kRelationsOfAProgram && !left.empty() && !finding) {
    const auto drawn = left.begin() + random.below(left.size());
    const Relation& relation = **drawn;
    left.erase(drawn);
    finding = check_relation(relation, relation.draw(seed, rules), &own);
  }
  if (statistics) statistics->relations += own.relations;
  return finding;
}

}  // namespace reel::fuzz
