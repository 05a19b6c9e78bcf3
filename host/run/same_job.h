#pragma once
// Whether all ranks are about to train the same thing.

#include <string>
#include <vector>

#include "bindings/script/script.h"
#include "config/schema/config.h"

namespace kf {

class Group;

/// Version, commit and torch of this program.
std::string running_program();

/// Throws Code::communication, on all ranks, where a rank is another `program` than rank 0, or has read another text under the same name
/// than it (a script, a module). A file that only some ranks read is none of these.
void check_same_program(const std::string& program, const std::vector<CodeFile>& code, Group& all);

/// Throws Code::config, on all ranks, where a rank resolved another job than rank 0, naming the first setting that differs.
void check_same_job(const config::Config& config, Group& all);

}  // namespace kf
