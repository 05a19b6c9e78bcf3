// MB/s of a tokenizer on a text: bench_tokenizer TOKENIZER FILE [THREADS]. Prints MB/s by the clock and by the time of the
// processors, of the fastest of some rounds, the ids and their checksum,
// so that other programs can be compared on the same text (tests/bench/tokenizers). Documents are as the file has them: parts of 64 kB at
// line breaks, as a builder of a cache would pass them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"

namespace {

constexpr std::size_t kDocument = 65536;
constexpr int kRounds = 5;

std::vector<std::string_view> documents(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t stop = text.size() <= kDocument ? text.size() : std::min(text.find('\n', kDocument), text.size() - 1) + 1;
    out.push_back(text.substr(0, stop));
    text.remove_prefix(stop);
  }
  return out;
}

struct Total {
  std::uint64_t ids = 0;
  std::uint64_t checksum = 0;
};

/// Every `step`-th document from `first` on.
Total encode(const kf::Tokenizer& tokenizer, const std::vector<std::string_view>& all, std::size_t first, std::size_t step) {
  Total total;
  std::vector<std::uint32_t> ids;
  for (std::size_t i = first; i < all.size(); i += step) {
    ids.clear();
    tokenizer.append(all[i], ids, {});
    total.ids += ids.size();
    for (const std::uint32_t id : ids) {
      total.checksum += id;
    }
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_tokenizer TOKENIZER FILE [THREADS]\n");
    return 2;
  }
  try {
    const auto tokenizer = kf::open_tokenizer(argv[1]);
    const std::string text = kf::read_file(argv[2]);
    const auto all = documents(text);
    const std::size_t threads = argc > 3 ? static_cast<std::size_t>(std::max(1, std::atoi(argv[3]))) : 1;
    double best = 1e30;
    double best_cpu = 1e30;  // of all threads together: what counts on a machine that others use, too
    Total total;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Total> parts(threads);
      const auto start = std::chrono::steady_clock::now();
      const std::clock_t cpu = std::clock();
      {
        std::vector<std::jthread> workers;
        for (std::size_t t = 1; t < threads; ++t) {
          workers.emplace_back([&, t] { parts[t] = encode(*tokenizer, all, t, threads); });
        }
        parts[0] = encode(*tokenizer, all, 0, threads);
      }
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      best_cpu = std::min(best_cpu, static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
      total = {};
      for (const Total& part : parts) {
        total.ids += part.ids;
        total.checksum += part.checksum;
      }
    }
    const double megabytes = static_cast<double>(text.size()) / 1e6;
    std::printf("%.1f %.1f %llu %llu\n", megabytes / best, megabytes / best_cpu, static_cast<unsigned long long>(total.ids),
                static_cast<unsigned long long>(total.checksum));
  } catch (const kf::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
