#pragma once
// What a rank does in these tests, by name: the same on a thread and in a process.

#include <string>

namespace kf {
class Group;
}

namespace kf::test {

/// Runs it; the result is what this rank has to say: the bits of its tensors, usually.
std::string run_program(const std::string& name, Group& all);

}  // namespace kf::test
