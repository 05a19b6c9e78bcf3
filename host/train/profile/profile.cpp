#include "train/profile/profile.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "core/trace.h"
#include "parallel/quiet_torch.h"
#include "train/profile/device_kernels.h"
#include "train/profile/memory_text.h"
#include "train/profile/memory_watch.h"
#include "train/profile/op_ranges.h"
#include "train/profile/place_costs.h"
#include "train/profile/trace_file.h"

namespace kf {
namespace {

constexpr std::int64_t kStreams = std::int64_t{1} << 30;                           // above the numbers of threads
constexpr const char* kCategories[] = {"phase", "layer", "call", "op", "origin"};  // by TraceKind

std::int64_t clock_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The earliest of all ranks' clocks, for all of them.
std::int64_t common_time(const World& world) {
  std::int64_t out = std::numeric_limits<std::int64_t>::max();
  for (const std::string& told : world.all().tell(std::to_string(clock_time()))) {
    out = std::min<std::int64_t>(out, std::stoll(told));
  }
  return out;
}

void wait_for(at::Device device) {
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeDevice(guard.getDevice().index());
  }
}

/// "backward layers.1.mlp (aten::mm)"
std::string words_of(const TracePlace& place) {
  std::vector<std::string> words;
  for (const std::string& word : {place.phase, place.label}) {
    if (!word.empty()) {
      words.push_back(word);
    }
  }
  const std::string op = place.kind == TraceKind::op ? format(" ({})", place.name) : "";
  return (words.empty() ? "the step itself" : join(words, " ")) + op;
}

}  // namespace

fs::path profile_file(const ProfileOptions& options, const char* ending) {
  const std::int64_t last = options.end - 1;
  const std::string steps = options.first == last ? format("step_{}", last) : format("steps_{}_to_{}", options.first, last);
  return options.folder / format("{}.rank_{}.{}", steps, options.world.rank(), ending);
}

struct Profile::Window {
  Window(const ProfileOptions& options, Model& model, const Optimizer& optimizer, std::int64_t zero)
      : file(profile_file(options, "json"), options.world.rank()),
        to_trace(clock_time() - TraceRecorder::now() - zero),
        from_clock(-zero),
        recorder(OpRanges::nodes_made),
        memory(std::make_shared<MemoryWatch>(model, optimizer, options.device)) {
    file.name_process(format("rank {}", options.world.rank()));
    if (options.device.is_cuda()) {
      kernels.emplace();
    }
    reports.emplace(c10::DebugInfoKind::PROFILER_STATE, memory);
    ops.emplace();
  }

  void write(const ThreadEvents& events, bool trains);
  void write(const StepMemory& held, const std::vector<TracePlace>& places);
  void write_kernels();
  std::string text() const;

  TraceFile file;
  const std::int64_t to_trace;    // what the times of ranges lack,
  const std::int64_t from_clock;  // and those of the system's clock
  const std::int64_t thread = syscall(SYS_gettid);
  std::set<std::int64_t> named;
  PlaceCosts costs;
  StepMemory most;  // of the step with the highest peak,
  std::int64_t most_step = 0;
  std::string most_place;
  std::int64_t step = 0;
  std::int64_t began = 0;
  TraceRecorder recorder;
  std::shared_ptr<MemoryWatch> memory;
  std::optional<DeviceKernels> kernels;
  QuietTorch quiet{QuietTorch::kErrors};       // it warns of blocks that it gave out before it was to count them: MemoryWatch knows its own
  std::optional<c10::DebugInfoGuard> reports;  // goes before `kernels` is read
  std::optional<OpRanges> ops;
};

void Profile::Window::write(const ThreadEvents& events, bool trains) {
  if (!events.events.empty() && named.insert(events.thread).second) {
    file.name_thread(events.thread, trains ? "training" : events.places[events.events.back().place].name);
  }
  for (const TraceEvent& event : events.events) {
    const TracePlace& place = events.places[event.place];
    file.range(events.thread, place.name, kCategories[static_cast<std::size_t>(place.kind)], event.begin + to_trace, event.end + to_trace);
  }
  costs.add(events, trains);
}

void Profile::Window::write(const StepMemory& held, const std::vector<TracePlace>& places) {
  for (const StepMemory::Moment& moment : held.course) {
    TraceFile::Numbers numbers;
    for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
      numbers.emplace_back(kMemoryKinds[kind], moment.held[kind]);
    }
    file.counter("memory", moment.time + to_trace, numbers);
  }
  if (sum_of(held.peak) > sum_of(most.peak)) {
    most = held;
    most_step = step;
    most_place = words_of(places[held.peak_place]);
  }
}

void Profile::Window::write_kernels() {
  ops.reset();
  reports.reset();
  if (!kernels) {
    return;
  }
  for (const DeviceKernel& kernel : kernels->take()) {
    if (named.insert(kStreams + kernel.stream).second) {
      file.name_thread(kStreams + kernel.stream, format("stream {}", kernel.stream));
    }
    file.range(kStreams + kernel.stream, kernel.name, "kernel", kernel.begin + from_clock, kernel.end + from_clock);
  }
}

std::string Profile::Window::text() const { return costs.text() + (most_step > 0 ? '\n' + memory_table(most, most_step, most_place) : ""); }

Profile::Profile(ProfileOptions options, Model& model, Optimizer& optimizer)
    : options_(std::move(options)), model_(model), optimizer_(optimizer) {}

Profile::~Profile() {
  if (window_ == nullptr && !over_) {
    log::warn("nothing was profiled: no step of this process was one of profiling.start_step ({}) to profiling.end_step ({}), without it",
              options_.first, options_.end);
  }
  finish();
}

void Profile::begin(std::int64_t step) {
  if (window_ == nullptr) {
    const std::int64_t zero = common_time(options_.world);
    try {
      window_ = std::make_unique<Window>(options_, model_, optimizer_, zero);
    } catch (const Error& e) {
      over_ = true;
      log::warn("there will be no profile: {}", e.what());
      return;
    }
  }
  wait_for(options_.device);
  window_->step = step;
  window_->memory->begin_step();
  window_->began = TraceRecorder::now();
}

void Profile::micro_ended() {
  if (window_ != nullptr) {
    window_->memory->backward_ended();
  }
}

void Profile::end() noexcept {
  if (window_ == nullptr) {
    return;
  }
  try {
    wait_for(options_.device);
    const std::int64_t ended = TraceRecorder::now();
    window_->costs.add_step(ended - window_->began);
    std::vector<TracePlace> places(1);  // of this thread
    for (const ThreadEvents& events : TraceRecorder::take()) {
      window_->write(events, events.thread == window_->thread);
      if (events.thread == window_->thread) {
        places = events.places;
      }
    }
    window_->file.range(window_->thread, format("step {}", window_->step), "step", window_->began + window_->to_trace,
                        ended + window_->to_trace, format("\"step\":{}", window_->step));
    window_->write(window_->memory->end_step(places), places);
    window_->file.flush();
    TraceRecorder::forget_origins();
    if (!covers(window_->step + 1)) {
      finish();
    }
  } catch (const std::exception& e) {
    log::warn("the profile ends here: {}", e.what());
    window_.reset();
    over_ = true;
  }
}

/// Files and tables, of as many steps as there were.
void Profile::finish() noexcept {
  if (window_ == nullptr) {
    return;
  }
  over_ = true;
  const std::unique_ptr<Window> window = std::move(window_);
  try {
    window->write_kernels();
    window->file.close();
    const std::string text = window->text();
    write_file_atomic(profile_file(options_, "txt"), text);
    if (options_.world.leads()) {
      log::info("the profile is in {} (for ui.perfetto.dev or chrome://tracing) and {}", window->file.path(),
                profile_file(options_, "txt"));
    }
    if (options_.prints && options_.world.leads()) {
      std::cout << '\n' << text << std::flush;
    }
  } catch (const std::exception& e) {
    log::warn("the profile is not whole: {}", e.what());
  }
}

}  // namespace kf
