#pragma once
// Which worker of a run a process belongs to, where workers come and go (kf-host --workers N).

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "parallel/launched.h"

namespace kf {

struct WorkerPlace {
  std::string where;         // they meet: a folder on a disk that all see, or HOST:PORT
  std::int64_t worker = 0;   // this one
  std::int64_t workers = 1;  // how many there should be
  bool here = true;          // all of them are on this machine
};

/// Variables by which a worker's processes learn it.
std::map<std::string, std::string> variables_of(const WorkerPlace& place);
/// The reverse; nothing where the process belongs to no worker. Throws Code::config for variables that nobody has set so.
std::optional<WorkerPlace> worker_place(const Variables& variable);
/// What this process starts belongs to no worker.
void hide_worker_place();

/// "--workers N" and what goes with it: how this worker is started again.
std::vector<std::string> words_of(const WorkerPlace& place);

}  // namespace kf
