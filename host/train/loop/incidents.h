#pragma once
// Steps whose numbers went wrong, kept so that they can be run again (`kf-host replay`).
//
// <run>/incidents/step_N/incident.json   {"step": 31, "why": "...", "loss": "NaN", "grad_norm": "NaN", "lr": 0.001, "tokens": 126976,
//                                         "checkpoint": "", "ranks": 1}
//                       /weights.json     crc32 of the bytes of every weight (the masters) before that update, by state-dict name
//                       /batch.safetensors  micro_0.tokens, micro_0.labels, micro_0.doc_ids, ..., and cpu_rng, the generator's state
//                       /job.toml         the resolved job
//                       /source           run.json and code/ of the run, where it has a script: as it was then
// With more ranks each writes weights.rank-K.json and batch.rank-K.safetensors.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "data/sequence/batch.h"
#include "model/model.h"
#include "parallel/world.h"

namespace kf {

/// An update that was not made because its loss or its gradient was not finite.
struct Incident {
  std::int64_t step = 0;  // its number, from 1
  std::string why;
  double loss = 0, grad_norm = 0, lr = 0;
  std::int64_t tokens = 0;
  std::string checkpoint;  // of another run, that this one began with; "" where there is none
};

/// The folder inside of an incident's that has the script.
inline constexpr const char* kIncidentCode = "source";

/// crc32 of the bytes of every weight that this rank trains or holds, as 8 hexadecimal digits, by state-dict name.
std::map<std::string, std::string> weight_digests(Model& model);

class Incidents {
 public:
  /// `folder`: of all of them; empty: none are kept. `most`: how many the run keeps at most, those of earlier processes included. `job`:
  /// the resolved job, as TOML.
  Incidents(fs::path folder, std::int64_t most, std::string job, const World& world);

  /// Whether there is room for that of this step, or it is there already: what happens again is written anew.
  bool takes(std::int64_t step) const;
  /// Writes it; the weights are those before the update. What cannot be written is a warning: the run has other worries.
  void keep(const Incident& incident, Model& model, const std::vector<Batch>& batches);

 private:
  std::string rank_file(const char* name, const char* ending) const;
  void write(const fs::path& folder, const Incident& incident, Model& model, const std::vector<Batch>& batches) const;

  fs::path folder_;
  std::int64_t most_;
  std::string job_;
  std::int64_t rank_, ranks_;
  std::set<std::string> kept_;  // names of their folders
};

/// What a folder of an incident says. Throws Code::checkpoint naming the file.
Incident read_incident(const fs::path& folder);
/// Those of the rank that leads; empty where they were not kept.
std::map<std::string, std::string> read_weight_digests(const fs::path& folder);

}  // namespace kf
