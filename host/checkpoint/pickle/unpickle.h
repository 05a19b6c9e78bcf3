#pragma once
// A restricted reader of Python's pickles, protocols 2 to 5: a list of instructions and a list of globals (globals.h) is followed, anything
// else is an error. No code can run: a pickle calls functions by name, and here these stay names.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/pickle/value.h"

namespace kf::pickle {

/// What a pickle may cost. A file of 100,000 tensors needs a hundredth of these.
struct Limits {
  std::uint64_t bytes = std::uint64_t{1} << 30;   // of the pickle
  std::uint64_t memory = std::uint64_t{1} << 30;  // of its values
  std::uint64_t memo = std::uint64_t{1} << 24;    // values that are kept to be named again
  std::uint64_t tree = std::uint64_t{1} << 26;    // values, where each is counted as often as it is named
  std::uint32_t depth = 64;                       // of containers in containers
};

/// Where a pickle lies: for messages, which name a byte of it by its place in the file.
struct Place {
  std::string file;
  std::uint64_t offset = 0;
};

/// A pickle's values; they point into the bytes that it was read from.
struct Unpickled {
  std::vector<Node> nodes;
  Id root = 0;
  std::uint64_t length = 0;  // bytes of the pickle: another may follow

  Value value() const { return {nodes, root}; }
};

/// Throws Code::checkpoint naming the file, the byte, and the instruction or global that is not understood or what is wrong with it.
Unpickled unpickle(std::span<const std::byte> bytes, const Place& place, const Limits& limits = {});

/// Throws unless what `root` stands for is a tree within the limits: nothing that contains itself, nothing that is small in the file and
/// endless when it is walked.
void check_tree(const std::vector<Node>& nodes, Id root, const Place& place, const Limits& limits);

}  // namespace kf::pickle
