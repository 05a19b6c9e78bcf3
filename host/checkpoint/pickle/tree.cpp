// Whether the values of a pickle are a tree of a bounded size.

#include <algorithm>

#include "checkpoint/pickle/unpickle.h"
#include "core/error.h"

namespace kf::pickle {
namespace {

/// What is below a node; `size` is 0 until that is known.
struct Extent {
  std::uint64_t size = 0;
  std::uint32_t depth = 0;
  bool open = false;  // on the path from the root
};

/// A node on the path, and how many of its items were looked at.
struct Visit {
  Id id;
  std::size_t next = 0;
};

Extent closed(const std::vector<Extent>& extents, const Node& node, std::uint64_t most) {
  Extent out{1, 0, false};
  for (const Id item : node.items) {
    out.size = std::min(most + 1, out.size + extents[item].size);
    out.depth = std::max(out.depth, extents[item].depth + 1);
  }
  return out;
}

}  // namespace

void check_tree(const std::vector<Node>& nodes, Id root, const Place& place, const Limits& limits) {
  std::vector<Extent> extents(nodes.size());
  std::vector<Visit> path{{root}};  // no recursion: a hostile pickle is as deep as it likes
  extents.at(root).open = true;
  while (!path.empty()) {
    Visit& top = path.back();
    const Node& node = nodes[top.id];
    if (top.next < node.items.size()) {
      const Id item = node.items[top.next++];
      KF_CHECK(!extents[item].open, Code::checkpoint, "{}: the pickle holds {} that contains itself", place.file,
               words_for(nodes[item].kind));
      if (extents[item].size == 0) {
        extents[item].open = true;
        path.push_back({item});
      }
      continue;
    }
    extents[top.id] = closed(extents, node, limits.tree);
    path.pop_back();
  }
  KF_CHECK(extents[root].depth <= limits.depth, Code::checkpoint,
           "{}: the pickle's containers lie {} deep in each other, at most {} are read", place.file, extents[root].depth, limits.depth);
  KF_CHECK(extents[root].size <= limits.tree, Code::checkpoint,
           "{}: the pickle stands for more than {} values, by naming the same ones again and again", place.file, limits.tree);
}

}  // namespace kf::pickle
