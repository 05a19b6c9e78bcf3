#include "http/task_pool.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <httplib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

using kf::http::is_crowded;
using kf::http::TaskPool;

TEST_CASE("http: a full queue holds up who accepts, and drops nothing", "[http]") {
  const TaskPool pool(2, 3);
  const std::unique_ptr<httplib::TaskQueue> queue(pool.queue(/*joins=*/true));
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<int> accepted = 0, done = 0;
  std::thread accepting([&] {
    for (int i = 0; i < 20; ++i) {
      queue->enqueue([answered, &done] {
        answered.wait();
        ++done;
      });
      ++accepted;
    }
  });
  while (pool.waiting() < 3 || accepted < 5) {
    std::this_thread::yield();
  }
  CHECK(accepted == 5);  // two are answered, three wait, and the next one is not taken
  answer.set_value();
  accepting.join();
  while (done < 20) {
    std::this_thread::yield();
  }
  queue->shutdown();
  CHECK(pool.ends(std::chrono::milliseconds(0)));
}

TEST_CASE("http: descriptors that select() does not know are seen before they are there", "[http]") {
  CHECK_FALSE(is_crowded(FD_SETSIZE / 2));
  CHECK(is_crowded(FD_SETSIZE + 1));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  std::vector<int> open;
  while (limit.rlim_cur >= FD_SETSIZE && (open.empty() || open.back() < FD_SETSIZE - 10)) {
    open.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(open.back() >= 0);
  }
  if (!open.empty()) {
    CHECK(is_crowded(20));
    CHECK_FALSE(is_crowded(5));
  }
  for (const int descriptor : open) {
    ::close(descriptor);
  }
}
