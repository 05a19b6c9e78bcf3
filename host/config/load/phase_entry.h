#pragma once
// What a registered phase gives, under the entry of `phases` that names it.

#include <string>

#include "config/schema/config.h"
#include "config/schema/part.h"
#include "config/tree/node.h"

namespace kf::config {

/// Lays what registered phases give (PartInfo::entry) under the entries of `phases` in `merged` that name them, before all is read and
/// checked as if it stood there: a fault has the place of the phase's own table. What an entry gives itself wins; a key with its default
/// counts as left out, because the snapshot of a job has every key.
void lay_phases(Table& merged, const Catalog& catalog);

/// The same for `own`, which the factory of a phase gave: it is known when the phase is made and not before. `key` is the entry's
/// ("phases[0]"). Throws Code::script with what is wrong, behind `where`.
PhaseEntry lay_phase(const PhaseEntry& entry, const Table& own, const Catalog& catalog, const std::string& key, const std::string& where);

}  // namespace kf::config
