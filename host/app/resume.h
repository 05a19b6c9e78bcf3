#pragma once
// A run is continued under its name. This decides whether it may be, from where, and what changed since.

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manager.h"
#include "config/config.h"

namespace kf {

/// A key whose value is not the one that the checkpoint was made with.
struct Difference {
  std::string key;
  std::string before;  // as JSON
  std::string after;
};

/// Every key of the job with its value, and the own tables of parts as "kind.name": what a checkpoint keeps to compare a later job with.
/// run.*, checkpoint.dir and checkpoint.load_path are left out, since they do not change what is computed.
/// `script` is the digest of the script that the job comes from.
config::Table job_values(const config::Config& config, const std::string& script = {});

/// In the order of `after`. A key that `before` lacks had its default: an older program did not know it.
std::vector<Difference> differences(const config::Table& before, const config::Table& after);

struct Resume {
  enum class Kind { fresh, resume, complete };
  Kind kind = Kind::fresh;
  fs::path checkpoint;
  std::vector<Difference> changed;
};

/// What to do with the newest checkpoint of the run. An unfinished run goes on; a finished one is complete, or goes on when nothing but
/// max_steps (and the script's text) changed. Throws Code::config naming run.fresh for another model or data source, other data files, or a
/// finished run that differs.
Resume decide_resume(const std::optional<fs::path>& newest, const config::Config& config, const std::string& script, std::int64_t max_steps,
                     const std::string& data_fingerprint);

}  // namespace kf
