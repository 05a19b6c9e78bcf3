// Workers that come and go: here each is a thread, with a world of one rank.

#include "parallel/meeting.h"

#include <ATen/ATen.h>

#include <array>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "parallel/meeting_store.h"
#include "support/free_port.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;

namespace {

/// What ended a worker's thread; "" for its end.
using Ends = std::vector<std::string>;

template <class Body>
Ends run_workers(std::int64_t count, const Body& body) {
  Ends ends(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int64_t worker = 0; worker < count; ++worker) {
    threads.emplace_back([&, worker] {
      try {
        body(worker);
      } catch (const std::exception& e) {
        ends[static_cast<std::size_t>(worker)] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return ends;
}

/// A folder, or a store that is kept here.
class Place {
 public:
  Place() {
    if (GENERATE(false, true)) {
      where_ = "127.0.0.1:" + std::to_string(free_port());
      keeper_.emplace(where_, 3);
    }
    INFO(where_);
  }
  const std::string& where() const { return where_; }

 private:
  TempDir folder_;
  std::string where_ = folder_.path().string();
  std::optional<MeetingKeeper> keeper_;
};

/// A number, of which an exchange makes one more than the mean.
struct Worker {
  Worker(const std::string& where, std::int64_t worker, std::int64_t workers = 3, std::int64_t least = 1,
         milliseconds patience = std::chrono::seconds(60))
      : number(static_cast<float>(worker + 1)), meeting({where, worker, workers, true}, {"job", least, patience}, own) {}

  std::int64_t join(std::int64_t step, std::int64_t exchanges = 0) {
    const auto carry = [this](Group& group) {
      const at::Tensor value = at::full({1}, number);
      const at::Tensor past = at::tensor({progress.exchanges, progress.mark}, at::kLong);
      group.broadcast(value, 0);
      group.broadcast(past, 0);
      number = value.item<float>();
      progress.exchanges = past[0].item<std::int64_t>();
      progress.mark = past[1].item<std::int64_t>();
    };
    give = carry;
    progress = {step, exchanges, 0};
    progress.step = meeting.join(progress, carry, carry);
    return progress.step;
  }
  bool exchange(std::int64_t step) {
    float next = 0;
    progress.step = step;
    const bool counts = meeting.hold(progress, [&](Group& there) {
      const at::Tensor sum = at::full({1}, number);
      there.sum(sum);
      members = there.size();
      next = sum.item<float>() / static_cast<float>(members) + 1;
    });
    if (counts) {
      number = next;
      ++progress.exchanges;
      progress.mark = meeting.mark();
      meeting.hand_on(give);
    }
    return counts;
  }

  const World own;
  float number;
  std::int64_t members = 0;  // of the last exchange
  WorkerProgress progress;
  Meeting meeting;
  Meeting::Carry give;
};

}  // namespace

TEST_CASE("meeting: what names a store and what a folder", "[meeting]") {
  CHECK(is_meeting_store("node-1:29500"));
  CHECK(is_meeting_store("10.0.0.1:1"));
  for (const char* folder : {"meet", "./a:1", "/shared/meet:2", ":1", "a:", "a:b", ""}) {
    CHECK_FALSE(is_meeting_store(folder));
  }
}

TEST_CASE("meeting: a store has one keeper, and its end is said", "[meeting]") {
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  std::optional<MeetingKeeper> keeper(std::in_place, where, 2);
  CHECK_THROWS_WITH(MeetingKeeper(where, 2), Contains("is in use, so worker 0 cannot keep") && Contains("--meet HOST:PORT"));
  MeetingStore first(where, 0), second(where, 1);
  CHECK(first.others_live(2));
  CHECK(first.living(1) == second.self());
  keeper.reset();
  CHECK_THROWS_WITH(first.last(), Contains(where + ", where workers meet, is gone, and with it worker 0's command"));
}

TEST_CASE("meeting: workers that stay exchange with all, each time", "[meeting]") {
  const Place place;
  std::array<float, 3> first{}, second{};
  const Ends ends = run_workers(3, [&](std::int64_t id) {
    Worker worker(place.where(), id);
    worker.join(0);
    worker.exchange(1);
    first[static_cast<std::size_t>(id)] = worker.number;
    worker.exchange(2);
    second[static_cast<std::size_t>(id)] = worker.number;
  });
  CHECK(ends == Ends(3));
  CHECK(first == std::array<float, 3>{3, 3, 3});
  CHECK(second == std::array<float, 3>{4, 4, 4});
}

TEST_CASE("meeting: one that ends stops nobody, and comes back with the state of the others", "[meeting]") {
  const Place place;
  std::array<float, 3> numbers{};
  std::array<std::int64_t, 3> steps{};
  const Ends ends = run_workers(3, [&](std::int64_t id) {
    {
      Worker worker(place.where(), id);
      worker.join(0);
      worker.exchange(1);
      if (id < 2) {
        std::int64_t step = 1;
        do {  // the process that comes back is not the one that was there: at least once there are two
          worker.exchange(++step);
        } while (worker.members == 2);
        numbers[static_cast<std::size_t>(id)] = worker.number;
        steps[static_cast<std::size_t>(id)] = step;
        return;
      }
    }
    Worker again(place.where(), id);
    const std::int64_t began = again.join(0);
    again.exchange(began + 1);
    numbers[2] = again.number;
    steps[2] = began + 1;
  });
  CHECK(ends == Ends(3));
  CHECK(steps[0] >= 3);
  CHECK((steps[1] == steps[0] && steps[2] == steps[0]));
  CHECK((numbers[1] == numbers[0] && numbers[2] == numbers[0]));
}

TEST_CASE("meeting: what a lost worker was part of is done once more without it", "[meeting]") {
  const Place place;
  std::array<float, 3> numbers{};
  const Ends ends = run_workers(3, [&](std::int64_t id) {
    Worker worker(place.where(), id);
    worker.join(0);
    if (id == 1) {
      worker.meeting.hold({1, 0, 0}, [](Group& there) {
        there.barrier();
        throw std::runtime_error("lost");
      });
    }
    at::Tensor sum;
    worker.meeting.hold({1, 0, 0}, [&](Group& there) {
      if (there.size() == 3) {
        there.barrier();
      }
      sum = at::full({1}, worker.number);
      there.sum(sum);
    });
    numbers[static_cast<std::size_t>(id)] = sum.item<float>();
  });
  CHECK(ends == Ends{"", "lost", ""});
  CHECK(numbers == std::array<float, 3>{4, 0, 4});  // 1 + 3
}

TEST_CASE("meeting: too few are the end, by name", "[meeting]") {
  const Place place;
  std::array<std::string, 3> why;
  const Ends ends = run_workers(3, [&](std::int64_t id) {
    Worker worker(place.where(), id, 3, 2, std::chrono::seconds(2));
    worker.join(0);
    worker.exchange(1);
    if (id == 1) {
      while (worker.exchange(2)) {
      }
      why[1] = worker.meeting.ended();
    }
  });
  CHECK(ends == Ends(3));
  CHECK_THAT(why[1], Contains("1 of 3 workers are there (worker 1), fewer than diloco.min_workers (2)"));
}

TEST_CASE("meeting: workers that all begin anew go on with the state of the one that came farthest", "[meeting]") {
  const Place place;
  std::array<std::int64_t, 3> began{};
  std::array<float, 3> numbers{};
  for (const std::int64_t farthest : {1, 2}) {  // the second time in the folder of the first
    const Ends ends = run_workers(3, [&](std::int64_t id) {
      Worker worker(place.where(), id);
      began[static_cast<std::size_t>(id)] = id == farthest ? worker.join(20, 2) : worker.join(30, id % 2);
      numbers[static_cast<std::size_t>(id)] = worker.number;
    });
    CHECK(ends == Ends(3));
    CHECK(began == std::array<std::int64_t, 3>{20, 20, 20});
    const auto number = static_cast<float>(farthest + 1);
    CHECK(numbers == std::array<float, 3>{number, number, number});
  }
}

TEST_CASE("meeting: workers with the same exchanges behind them go on from where each has stopped", "[meeting]") {
  const Place place;
  std::array<std::int64_t, 3> began{};
  const Ends ends = run_workers(3, [&](std::int64_t id) {
    Worker worker(place.where(), id);
    began[static_cast<std::size_t>(id)] = worker.join(20 + id, 2);
  });
  CHECK(ends == Ends(3));
  CHECK(began == std::array<std::int64_t, 3>{20, 21, 22});
}

TEST_CASE("meeting: another job, and a run that is over, are refused by name", "[meeting]") {
  const Place place;
  const World own;
  const auto nothing = [](Group&) {};
  const auto of = [&](std::int64_t worker) { return WorkerPlace{place.where(), worker, 2, true}; };
  {
    Meeting first(of(0), {"job", 1, milliseconds(100)}, own);
    CHECK_THROWS_WITH(Meeting(of(1), {"another job", 1, milliseconds(100)}, own),
                      Contains("worker 1 has another job, or is another program"));
    CHECK(first.join({}, nothing, nothing) == 0);
    first.finish(30);
  }
  Meeting late(of(1), {"job", 1, milliseconds(100)}, own);
  CHECK_THROWS_WITH(late.join({}, nothing, nothing), Contains("the other workers have completed the run, 30 steps, before worker 1"));
}
