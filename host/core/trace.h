#pragma once
// What threads do, with times: named ranges, for the profile of a few steps. Where nobody records, a range is one load.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// phase: of a step ("forward"). layer: a piece of the model ("attention" in "layers.3"). call: of a script. op: an operator inside of
/// these. origin: what backward works for, by the layer's whole label.
enum class TraceKind : std::uint8_t { phase, layer, call, op, origin };

/// A scope with a name; scopes of a thread nest. The texts must live as long as the constructor runs.
class TraceRange {
 public:
  /// "layers", 3 is "layers.3".
  explicit TraceRange(TraceKind kind, const char* name, std::int64_t number = -1) {
    if (recorded.load(std::memory_order_relaxed)) {
      open(kind, name, nullptr, number);
    }
  }
  /// "recipe.lua:3: hook 'x'", "step_end" is "recipe.lua:3: hook 'x', step_end"; `more` may be null, and begin with words that join it.
  TraceRange(TraceKind kind, const char* name, const char* more) {
    if (recorded.load(std::memory_order_relaxed)) {
      open(kind, name, more, -1);
    }
  }
  ~TraceRange() {
    if (depth_ != 0) {
      close();
    }
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  friend class TraceRecorder;
  void open(TraceKind kind, const char* name, const char* more, std::int64_t number);
  void close() const;

  static inline std::atomic<bool> recorded{false};
  std::uint32_t depth_ = 0;  // of its thread's stack, with it; 0: nobody records
};

/// A name at its place: below which others a range with it was open. Numbers of places are a thread's own.
struct TracePlace {
  std::string name;
  TraceKind kind = TraceKind::phase;
  std::uint32_t parent = 0;  // its place; the first place, 0, is the root, outside of all ranges
  std::string phase;         // the innermost phase that it is in, or is
  std::string label;         // the layers and calls that it is in, or is: "layers.3.attention"; operators have that of what they are in
};

/// A range that is over. Nanoseconds of a clock that never goes back.
struct TraceEvent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t own = 0;  // without the ranges inside of it
  std::uint32_t place = 0;
};

/// What a thread has done since it was asked last, each range behind those inside of it.
struct ThreadEvents {
  std::int64_t thread = 0;         // as the system numbers it
  std::vector<TracePlace> places;  // all so far
  std::vector<TraceEvent> events;
};

/// Records the ranges of all threads while one exists. One at a time.
class TraceRecorder {
 public:
  /// A count of the calling thread that rises as it builds a graph: by it `enter_origin` finds where a node of the graph was made.
  using Count = std::uint64_t (*)();

  explicit TraceRecorder(Count count = nullptr);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  static std::int64_t now();  // ns
  /// The range of an operator on this thread, for who learns of its end by a call.
  static void begin_op(const char* name);
  static void end_op();
  /// From here to the next call, or to the end of the range around, this thread works for the place where `count` was reached: backward of
  /// a layer. A negative count has no place, and changes nothing.
  static void enter_origin(std::int64_t count);
  /// The place that this thread is in.
  static std::uint32_t place();
  /// Where backward came from is forgotten: the graph is gone.
  static void forget_origins();

  /// All that is over and was not yet taken, of threads that have any, and of the calling one.
  static std::vector<ThreadEvents> take();
};

}  // namespace kf
