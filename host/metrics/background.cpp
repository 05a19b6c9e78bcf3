#include "metrics/background.h"

#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

class BackgroundSink final : public Sink {
 public:
  BackgroundSink(std::unique_ptr<Sink> sink, std::size_t queue, std::string name)
      : sink_(std::move(sink)), most_(queue), name_(std::move(name)), thread_([this] { work(); }) {}

  ~BackgroundSink() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (failure_ != nullptr) {
      log_failure(std::exchange(failure_, nullptr));
    }
  }
  BackgroundSink(const BackgroundSink&) = delete;
  BackgroundSink& operator=(const BackgroundSink&) = delete;

  void begin(const RunInfo& run) override {
    call([&run](Sink& sink) { sink.begin(run); });
  }
  void row(const StepRow& row) override {
    post([row](Sink& sink) { sink.row(row); });
    news_ = true;
  }
  void eval(const EvalResult& result) override {
    post([result](Sink& sink) { sink.eval(result); });
    news_ = true;
  }
  void text(const TextSample& sample) override {
    post([sample](Sink& sink) { sink.text(sample); });
    news_ = true;
  }
  void histograms(const Histograms& all) override {
    post([all](Sink& sink) { sink.histograms(all); });
    news_ = true;
  }
  void before_save() override {
    call([](Sink& sink) { sink.before_save(); });
  }
  void saved(std::int64_t step, const fs::path& checkpoint) override {
    post([step, checkpoint](Sink& sink) { sink.saved(step, checkpoint); });
    changed_.notify_all();
  }
  void rewind(std::int64_t step) override {
    post([step](Sink& sink) { sink.rewind(step); });
    changed_.notify_all();
  }
  void step_over(std::int64_t step) override {
    if (std::exchange(news_, false)) {
      post([step](Sink& sink) { sink.step_over(step); });
      changed_.notify_all();
    }
  }
  void end(const RunResult& result) override {
    call([&result](Sink& sink) { sink.end(result); });
  }
  std::string fault() const override {
    const std::lock_guard lock(mutex_);
    return fault_;
  }
  config::Node state() override {
    config::Node state;
    call([&state](Sink& sink) { state = sink.state(); });
    return state;
  }
  void load(const config::Node& state) override {
    call([&state](Sink& sink) { sink.load(state); });
  }

 private:
  using Task = std::function<void(Sink&)>;

  /// Leaves the task to the thread, which is woken by what ends a step: twice a step would cost twice.
  void post(Task task) {
    std::unique_lock lock(mutex_);
    throw_failure();
    if (tasks_.size() >= most_) {
      changed_.notify_all();
      if (!std::exchange(warned_, true)) {
        log::warn("the sink {} is slower than the run: {} events wait for it, and now training waits, too", name_, tasks_.size());
      }
      changed_.wait(lock, [this] { return tasks_.size() < most_; });
    }
    tasks_.push_back(std::move(task));
  }

  /// Waits until the thread has done it, also where something failed before: the sink must still hear of the end.
  void call(Task task) {
    std::unique_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
    throw_failure();
  }

  void throw_failure() {
    if (failure_ != nullptr) {
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
  }

  void work() {
    const sched_param none{};
    ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);  // to be woken must not take the processor from who trains
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return over_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;
      }
      busy_ = true;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.notify_all();  // there is room again
      lock.unlock();
      std::exception_ptr failure = failure_of(task);
      task = nullptr;
      std::string fault = sink_->fault();
      lock.lock();
      fault_ = std::move(fault);
      if (failure_ != nullptr && failure != nullptr) {
        log_failure(std::move(failure));
      } else if (failure != nullptr) {
        failure_ = std::move(failure);
      }
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::exception_ptr failure_of(const Task& task) {
    try {
      task(*sink_);
    } catch (const std::exception&) {
      return std::current_exception();
    }
    return nullptr;
  }

  void log_failure(std::exception_ptr failure) const {
    try {
      std::rethrow_exception(std::move(failure));
    } catch (const std::exception& e) {
      log::error("in the sink {}: {}", name_, e.what());
    }
  }

  std::unique_ptr<Sink> sink_;  // the thread's
  std::size_t most_;
  std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;      // in order; without the one that is under way
  std::exception_ptr failure_;  // not yet told
  std::string fault_;           // of the sink, behind the last task
  bool news_ = false;           // since the last step_over; the caller's
  bool busy_ = false;
  bool over_ = false;
  bool warned_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Sink> in_background(std::unique_ptr<Sink> sink, std::size_t queue, std::string name) {
  KF_CHECK(queue > 0, Code::other, "the sink {} needs a queue of at least one event", name);
  return std::make_unique<BackgroundSink>(std::move(sink), queue, std::move(name));
}

}  // namespace kf
