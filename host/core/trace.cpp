#include "core/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

struct Key {
  std::uint32_t parent;
  TraceKind kind;
  std::string_view name;
};
struct OwnKey {
  std::uint32_t parent;
  TraceKind kind;
  std::string name;
};
struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(key.name) ^
           ((std::size_t{key.parent} * 4 + static_cast<std::size_t>(key.kind)) * 0x9E3779B97F4A7C15U);
  }
  std::size_t operator()(const OwnKey& key) const { return (*this)(Key{key.parent, key.kind, key.name}); }
};
struct KeyEqual {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return a.parent == b.parent && a.kind == b.kind && std::string_view(a.name) == std::string_view(b.name);
  }
};

/// Of one thread, which alone opens and closes; `take` reads beside it.
class ThreadTrace {
 public:
  ThreadTrace() { places_.emplace_back(); }

  std::uint32_t open(TraceKind kind, std::string_view name, TraceRecorder::Count count, std::uint32_t origin = 0);
  void close(std::uint32_t depth, TraceRecorder::Count count);
  void close_op(TraceRecorder::Count count);
  void enter_origin(std::uint64_t reached, TraceRecorder::Count count);
  std::uint32_t place() const { return stack_.empty() ? 0 : stack_.back().place; }
  void forget_origins() { origins_.clear(); }

  bool take(ThreadEvents& out) {
    const std::lock_guard lock(mutex_);
    out.thread = thread_;
    out.places = places_;
    out.events = std::exchange(events_, {});
    return !out.events.empty();
  }
  /// From a recording before.
  void forget_events() {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

 private:
  struct Open {
    std::uint32_t place;
    TraceKind kind;
    std::uint32_t origin;  // opened by enter_origin, for this place
    std::int64_t begin = 0;
    std::int64_t inside = 0;  // in ranges that are over
  };
  struct Origin {
    std::uint64_t from;  // nodes of this count and later ones
    std::uint32_t place;
  };
  std::uint32_t place_of(std::uint32_t parent, TraceKind kind, std::string_view name);
  void note_origin(TraceRecorder::Count count);
  void pop(TraceRecorder::Count count);

  const std::int64_t thread_ = syscall(SYS_gettid);
  std::vector<Open> stack_;
  std::vector<Origin> origins_;  // ascending
  std::unordered_map<OwnKey, std::uint32_t, KeyHash, KeyEqual> known_;
  std::mutex mutex_;  // of the rest
  std::vector<TracePlace> places_;
  std::vector<TraceEvent> events_;
};

std::mutex all_mutex;
std::vector<std::shared_ptr<ThreadTrace>>& all() {
  static auto* const threads = new std::vector<std::shared_ptr<ThreadTrace>>();  // threads may end later than static objects
  return *threads;
}
std::atomic<TraceRecorder::Count> counter{nullptr};
std::atomic<std::int64_t> since{0};  // events that began before belong to no recording

ThreadTrace& own() {
  thread_local const std::shared_ptr<ThreadTrace> mine = [] {
    auto made = std::make_shared<ThreadTrace>();
    const std::lock_guard lock(all_mutex);
    all().push_back(made);
    return made;
  }();
  return *mine;
}

/// Whether nodes that are made in such a range are told from those around: operators make many, and backward of backward few.
bool has_nodes(TraceKind kind) { return kind != TraceKind::op && kind != TraceKind::origin; }

/// `above`: the label of what a range is in; `in_call`: that of a call.
std::string label_below(const std::string& above, bool in_call, TraceKind kind, const std::string& name) {
  switch (kind) {
    case TraceKind::layer: return above.empty() ? name : above + (in_call ? " > " : ".") + name;
    case TraceKind::call: return above.empty() ? name : above + " > " + name;
    case TraceKind::origin: return name;
    case TraceKind::phase:
    case TraceKind::op: break;
  }
  return above;
}

std::uint32_t ThreadTrace::place_of(std::uint32_t parent, TraceKind kind, std::string_view name) {
  if (const auto found = known_.find(Key{parent, kind, name}); found != known_.end()) {
    return found->second;
  }
  TracePlace made{std::string(name), kind, parent, {}, {}};
  std::uint32_t named = parent;  // by the label
  while (places_[named].kind == TraceKind::op || (places_[named].kind == TraceKind::phase && named != 0)) {
    named = places_[named].parent;
  }
  made.phase = kind == TraceKind::phase ? made.name : places_[parent].phase;
  made.label = label_below(places_[parent].label, places_[named].kind == TraceKind::call, kind, made.name);
  const auto number = static_cast<std::uint32_t>(places_.size());
  known_.emplace(OwnKey{parent, kind, made.name}, number);
  const std::lock_guard lock(mutex_);
  places_.push_back(std::move(made));
  return number;
}

/// Nodes that are made from here on are made here.
void ThreadTrace::note_origin(TraceRecorder::Count count) {
  if (count == nullptr) {
    return;
  }
  const std::uint64_t from = count();
  if (!origins_.empty() && origins_.back().from == from) {
    origins_.back().place = place();
  } else {
    origins_.push_back({from, place()});
  }
}

std::uint32_t ThreadTrace::open(TraceKind kind, std::string_view name, TraceRecorder::Count count, std::uint32_t origin) {
  stack_.push_back({place_of(place(), kind, name), kind, origin});
  if (has_nodes(kind)) {
    note_origin(count);
  }
  stack_.back().begin = TraceRecorder::now();
  return static_cast<std::uint32_t>(stack_.size());
}

void ThreadTrace::pop(TraceRecorder::Count count) {
  const Open open = stack_.back();
  stack_.pop_back();
  const std::int64_t end = TraceRecorder::now();
  const std::int64_t took = end - open.begin;
  if (!stack_.empty()) {
    stack_.back().inside += took;
  }
  if (open.begin >= since.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    events_.push_back({open.begin, end, took - open.inside, open.place});
  }
  if (has_nodes(open.kind)) {
    note_origin(count);
  }
}

void ThreadTrace::close(std::uint32_t depth, TraceRecorder::Count count) {
  while (stack_.size() >= depth) {
    pop(count);
  }
}

void ThreadTrace::close_op(TraceRecorder::Count count) {
  while (!stack_.empty() && stack_.back().kind == TraceKind::origin) {
    pop(count);
  }
  if (!stack_.empty() && stack_.back().kind == TraceKind::op) {
    pop(count);
  }
}

void ThreadTrace::enter_origin(std::uint64_t reached, TraceRecorder::Count count) {
  const auto after = std::upper_bound(origins_.begin(), origins_.end(), reached,
                                      [](std::uint64_t value, const Origin& origin) { return value < origin.from; });
  const std::uint32_t origin = after == origins_.begin() ? 0 : std::prev(after)->place;
  const bool inside = !stack_.empty() && stack_.back().kind == TraceKind::origin;
  if (inside && stack_.back().origin == origin) {
    return;
  }
  if (inside) {
    pop(count);
  }
  if (const std::string label = places_[origin].label; !label.empty()) {
    open(TraceKind::origin, label, count, origin);
  }
}

}  // namespace

void TraceRange::open(TraceKind kind, const char* name, const char* more, std::int64_t number) {
  const TraceRecorder::Count count = counter.load(std::memory_order_relaxed);
  if (more == nullptr && number < 0) {
    depth_ = own().open(kind, name, count);
    return;
  }
  if (more == nullptr) {
    depth_ = own().open(kind, std::string(name) + "." + std::to_string(number), count);
    return;
  }
  const bool joined = *more == '\0' || *more == ' ' || *more == ',';  // some bring their own
  depth_ = own().open(kind, std::string(name) + (joined ? "" : ", ") + more, count);
}

void TraceRange::close() const { own().close(depth_, counter.load(std::memory_order_relaxed)); }

TraceRecorder::TraceRecorder(Count count) {
  KF_CHECK(!TraceRange::recorded.load(), Code::other, "ranges are recorded already");
  {
    const std::lock_guard lock(all_mutex);
    for (const auto& thread : all()) {
      thread->forget_events();
    }
  }
  forget_origins();
  counter = count;
  since = now();
  TraceRange::recorded = true;
}

TraceRecorder::~TraceRecorder() {
  TraceRange::recorded = false;
  since = std::numeric_limits<std::int64_t>::max();  // ranges that are still open end for nobody
  counter = nullptr;
}

std::int64_t TraceRecorder::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void TraceRecorder::begin_op(const char* name) { own().open(TraceKind::op, name, nullptr); }
void TraceRecorder::end_op() { own().close_op(counter.load(std::memory_order_relaxed)); }

void TraceRecorder::enter_origin(std::int64_t count) {
  if (count >= 0) {
    own().enter_origin(static_cast<std::uint64_t>(count), counter.load(std::memory_order_relaxed));
  }
}

std::uint32_t TraceRecorder::place() { return own().place(); }
void TraceRecorder::forget_origins() { own().forget_origins(); }

std::vector<ThreadEvents> TraceRecorder::take() {
  const ThreadTrace& asking = own();
  const std::lock_guard lock(all_mutex);
  std::vector<ThreadEvents> out;
  for (const auto& thread : all()) {
    if (ThreadEvents events; thread->take(events) || thread.get() == &asking) {
      out.push_back(std::move(events));
    }
  }
  std::erase_if(all(), [](const auto& thread) { return thread.use_count() == 1; });  // that of a thread that is gone
  return out;
}

}  // namespace kf
