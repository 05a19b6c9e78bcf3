#pragma once
// Names of machines as Slurm writes them: "node[01-03,7],login", and how many tasks each has: "2(x3),1".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The machines of a list, in its order. Throws Code::communication for what is no such list, or more than a million machines.
std::vector<std::string> expand_nodes(std::string_view list);

/// By machine. Throws Code::communication.
std::vector<std::int64_t> expand_counts(std::string_view list);

/// The machine of each task, where those of a machine follow each other (Slurm's "block", its default). Empty where the two lists do not
/// belong together.
std::vector<std::string> hosts_of_tasks(const std::vector<std::string>& nodes, const std::vector<std::int64_t>& counts);

}  // namespace kf
