#pragma once
// Where in a model a part stands.

#include <cstdint>
#include <memory>

namespace kf {

class RopeTables;

struct Place {
  std::int64_t layer = -1;            // index of the block, from 0; -1 outside the blocks
  std::int64_t dim = 0;               // C: width of what it gets and gives
  std::int64_t hidden = 0;            // mlp: inner width
  std::shared_ptr<RopeTables> ropes;  // the rotary tables that the layers of a model share; never null inside a block
};

}  // namespace kf
