#include "bench/attach_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "attach/client.h"
#include "attach/server.h"
#include "bindings/script/live_prompt.h"
#include "builtins/builtins.h"
#include "support/temp_dir.h"
#include "train/loop/hook.h"

namespace kf::bench {
namespace {

/// The fastest of some rounds, nanoseconds of one call.
template <class Body>
double fastest(int times, Body&& body) {
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      body();
    }
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times);
  }
  return best;
}

}  // namespace

void bench_attach() {
  const test::TempDir folder;
  attach::Server server(folder.path());
  std::size_t heard = 0;
  const double idle = fastest(1000000, [&] { heard += server.take().size(); });
  Registries registries = native_registries();
  Script script(registries, {}, {});
  LivePrompt prompt(script);
  HookContext context;
  const double chunk = fastest(200, [&] { heard += prompt.run("return ctx.step", context).output.size(); });
  std::atomic<bool> over{false};
  std::thread boundary([&] {  // a run whose steps take no time
    while (!over) {
      for (const attach::Said& said : server.take()) {
        server.answer(said.client, {prompt.run(said.text, context).output});
      }
    }
  });
  attach::Client client(folder.path());
  const double trip = fastest(200, [&] { heard += client.ask(attach::Frame::Kind::chunk, "return ctx.step").output.size(); });
  over = true;
  boundary.join();
  std::printf("  attach: %.1f ns a boundary where nobody speaks; a chunk takes %.1f us, %.1f us from the prompt and back (%zu)\n", idle,
              chunk / 1000, trip / 1000, heard);
}

}  // namespace kf::bench
