#include "core/trace.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kf::test {
namespace {

std::uint64_t made = 0;  // nodes of a graph
std::uint64_t nodes_made() { return made; }

const TracePlace& place_of(const ThreadEvents& thread, const TraceEvent& event) { return thread.places.at(event.place); }

/// "phase label: name" of the ranges that are over, in the order of their ends.
std::vector<std::string> words_of(const ThreadEvents& thread) {
  std::vector<std::string> out;
  for (const TraceEvent& event : thread.events) {
    const TracePlace& place = place_of(thread, event);
    out.push_back(place.phase + " " + place.label + ": " + place.name);
  }
  return out;
}

/// Of this thread alone.
ThreadEvents taken() {
  std::vector<ThreadEvents> all = TraceRecorder::take();
  REQUIRE(all.size() == 1);
  return all[0];
}

}  // namespace

TEST_CASE("trace: ranges nest, know their phase and layer, and their own time", "[trace]") {
  const TraceRecorder recorder;
  {
    const TraceRange forward(TraceKind::phase, "forward");
    {
      const TraceRange layer(TraceKind::layer, "layers", 3);
      const TraceRange attention(TraceKind::layer, "attention");
      TraceRecorder::begin_op("mm");
      TraceRecorder::end_op();
      const TraceRange call(TraceKind::call, "recipe.lua:3", "forward");
      const TraceRange inner(TraceKind::layer, "linear");
    }
    const TraceRange joined(TraceKind::call, "recipe.lua:7", ", load");
  }
  const ThreadEvents events = taken();
  CHECK(words_of(events) == std::vector<std::string>{
                                "forward layers.3.attention: mm",
                                "forward layers.3.attention > recipe.lua:3, forward > linear: linear",
                                "forward layers.3.attention > recipe.lua:3, forward: recipe.lua:3, forward",
                                "forward layers.3.attention: attention",
                                "forward layers.3: layers.3",
                                "forward recipe.lua:7, load: recipe.lua:7, load",
                                "forward : forward",
                            });
  const TraceEvent& whole = events.events.back();
  std::int64_t own = 0;
  for (const TraceEvent& event : events.events) {
    CHECK(event.begin >= whole.begin);
    CHECK(event.end <= whole.end);
    CHECK(event.own >= 0);
    own += event.own;
  }
  CHECK(own == whole.end - whole.begin);
}

TEST_CASE("trace: backward works for the place where its node was made", "[trace]") {
  made = 10;
  const TraceRecorder recorder(nodes_made);
  {
    const TraceRange forward(TraceKind::phase, "forward");
    ++made;  // 10: in no layer
    for (int layer = 0; layer < 2; ++layer) {
      const TraceRange range(TraceKind::layer, "layers", layer);
      made += 2;  // 11, 12 and 13, 14
    }
  }
  (void)TraceRecorder::take();
  {
    const TraceRange backward(TraceKind::phase, "backward");
    for (const std::int64_t node : {14, 13, -1, 12, 11, 10}) {
      TraceRecorder::enter_origin(node);
      TraceRecorder::begin_op("node");
      TraceRecorder::end_op();
    }
  }
  CHECK(words_of(taken()) == std::vector<std::string>{"backward layers.1: node", "backward layers.1: node", "backward layers.1: node",
                                                      "backward layers.1: layers.1", "backward layers.0: node", "backward layers.0: node",
                                                      "backward layers.0: layers.0", "backward : node", "backward : backward"});
}

TEST_CASE("trace: what is done again in backward belongs to its layer, and so does its own backward", "[trace]") {
  made = 0;
  const TraceRecorder recorder(nodes_made);
  {
    const TraceRange forward(TraceKind::phase, "forward");
    const TraceRange layer(TraceKind::layer, "layers", 5);
    ++made;  // 0: the node that does the layer again
  }
  (void)TraceRecorder::take();
  {
    const TraceRange backward(TraceKind::phase, "backward");
    TraceRecorder::enter_origin(0);
    TraceRecorder::begin_op("again");
    {
      const TraceRange again(TraceKind::phase, "recompute");
      const TraceRange mlp(TraceKind::layer, "mlp");
      ++made;  // 1
    }
    {
      const TraceRange inner(TraceKind::phase, "backward");
      TraceRecorder::enter_origin(1);
      TraceRecorder::begin_op("node");
      TraceRecorder::end_op();
    }
    TraceRecorder::end_op();
  }
  CHECK(words_of(taken()) == std::vector<std::string>{"recompute layers.5.mlp: mlp", "recompute layers.5: recompute",
                                                      "backward layers.5.mlp: node", "backward layers.5.mlp: layers.5.mlp",
                                                      "backward layers.5: backward", "backward layers.5: again",
                                                      "backward layers.5: layers.5", "backward : backward"});
}

TEST_CASE("trace: threads have events of their own, and nothing is recorded outside of a recording", "[trace]") {
  { const TraceRange nobody(TraceKind::phase, "before"); }
  {
    const TraceRecorder recorder;
    std::thread([] { const TraceRange range(TraceKind::phase, "beside"); }).join();
    const std::vector<ThreadEvents> all = TraceRecorder::take();
    const auto beside = std::find_if(all.begin(), all.end(), [](const ThreadEvents& thread) { return !thread.events.empty(); });
    REQUIRE(beside != all.end());
    CHECK(words_of(*beside) == std::vector<std::string>{"beside : beside"});
    CHECK_THROWS(TraceRecorder());
  }
  { const TraceRange nobody(TraceKind::phase, "after"); }
  const TraceRecorder again;
  CHECK(taken().events.empty());
}

TEST_CASE("trace: a range that outlives its recording ends for nobody", "[trace]") {
  {
    std::optional<TraceRecorder> recorder(std::in_place);
    const TraceRange range(TraceKind::phase, "longer");
    recorder.reset();
  }
  const TraceRecorder again;
  CHECK(taken().events.empty());
}

}  // namespace kf::test
