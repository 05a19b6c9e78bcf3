#pragma once
// What a changed key means for a run that goes on: one table for every row of fields.def and the tables of parts.

#include <string>
#include <vector>

namespace kf::config {

enum class ResumeClass {
  free,      // moves no number of the run: intervals of logs and saves, names, threads, caches. Never asked about
  course,    // how the run goes on: rates, schedules, lengths, batches, precision, what is evaluated. Listed; the job's values count
  identity,  // what is learned, from what, and what is minimised. Refused, unless checkpoint.accept_changes names it
};

/// The class of "section.key", or of "kind.name", the table of a part. Keys that the table does not name are `identity` in [model] and
/// [data], as is what nobody has thought about yet; else what their section says.
ResumeClass resume_class(const std::string& key);

/// Whether a changed value makes the run longer or shorter: with more steps a finished run goes on.
bool is_run_length(const std::string& key);

/// The keys that the table names, without the sections: a test holds them against fields.def.
std::vector<std::string> resume_class_keys();

/// "free", "course", "identity", for pages and messages.
const char* to_text(ResumeClass value);

}  // namespace kf::config
