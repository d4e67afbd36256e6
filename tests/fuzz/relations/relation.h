// tests/fuzz/relations/relation.h — Relation, an equality between runs that each program of its
// domain must have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/tests/fuzz/checks.h"
#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

class Trial;  // trial.h

/// Tells if a program is in the domain of a relation.
enum class Outcome { holds, does_not_apply };

/// A relation. Its file says which programs are its domain, and how exact it is.
struct Relation {
  const char* name;
  /// Throws FoundError if the relation does not hold.
  Outcome (*check)(Trial& trial);
  /// Draws the programs of the relation.
  Program (*draw)(std::uint64_t seed, const Rules& rules);
};

Relation permuted_rows_relation();
Relation entry_alone_relation();
Relation padding_relation();
Relation forms_relation();
Relation vmap_and_map_relation();
Relation cut_loops_relation();
Relation dims_inside_relation();
Relation captures_relation();
Relation order_of_sizes_relation();

const std::vector<Relation>& all_relations();
/// Returns the relation of this name, or with findings of this kind; null if there is none.
const Relation* relation_of(const std::string& name_or_kind);

/// The number of relations that each program draws.
inline constexpr int kRelationsOfAProgram = 3;

/// Checks one relation on a program. Returns the finding, if there is one. Counts relations that
/// apply.
std::optional<Finding> check_relation(const Relation& relation, const Program& program,
                                      Statistics* statistics = nullptr);

/// Checks three relations that apply to the programs of a seed, drawn from the seed. Fewer if fewer
/// apply. Returns the first finding.
std::optional<Finding> check_relations(std::uint64_t seed, const Rules& rules,
                                       Statistics* statistics = nullptr);

}  // namespace reel::fuzz
