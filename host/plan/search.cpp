#include "plan/search.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "config/plan/batch_plan.h"
#include "config/plan/budget.h"
#include "config/rules/validate.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::plan {
namespace {

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i == 0) {
      out.push_back(i);
      if (i != n / i) {
        out.push_back(n / i);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

using Visit = std::function<void(const PerAxis&)>;

/// Every mesh of `left` ranks whose tp is at most `node`.
void each_mesh(std::int64_t world, std::int64_t node, bool experts, const Visit& visit) {
  for (const std::int64_t tp : divisors(world)) {
    for (const std::int64_t pp : tp > node ? std::vector<std::int64_t>{} : divisors(world / tp)) {
      for (const std::int64_t cp : divisors(world / tp / pp)) {
        const std::int64_t data = world / tp / pp / cp;
        for (const std::int64_t ep : experts ? divisors(data) : std::vector<std::int64_t>{1}) {
          for (const std::int64_t shard : divisors(data / ep)) {
            visit({pp, data / ep / shard, shard, cp, ep, tp});
          }
        }
      }
    }
  }
}

void set_degrees(config::DistributedConfig& d, const PerAxis& degrees) {
  d.pp = degrees.pp;
  d.dp_replicate = degrees.dp_replicate;
  d.dp_shard = degrees.dp_shard;
  d.cp = degrees.cp;
  d.ep = degrees.ep;
  d.tp = degrees.tp;
}

}  // namespace

std::string Candidate::settings() const {
  std::vector<std::string> words;
  for (const Axis axis : kAxes) {
    words.push_back(format("--distributed.{}={}", name_of(axis), degrees[axis]));
  }
  words.push_back(format("--train.batch_size={}", batch_size));
  words.push_back(format("--train.grad_accum_steps={}", micros));
  return join(words, " ");
}

std::int64_t update_sequences(const config::Config& config, std::int64_t world) {
  return config::tokens_per_step(config, config::data_ranks(config.distributed, world)) / config.train.seq_len;
}

std::string refusal(const config::Config& config, const config::Loaded& loaded, std::int64_t world) {
  config::Report report;
  config::validate({config, loaded.merged, {}, world, false, true}, report);
  return report.problems.empty() ? "" : report.problems.front().message;
}

Found search(const config::Loaded& loaded, const Weights& weights, const Gpu& gpu, std::int64_t world, std::size_t most) {
  const std::int64_t sequences = update_sequences(loaded.config, world);
  const double usable = kUsableMemory * gpu.memory;
  Found out;
  const auto look = [&](const config::Config& config, const PerAxis& degrees) {
    const Layout layout = Layout::of(config, world);
    Candidate found{degrees, config.train.batch_size, config.train.grad_accum_steps, fullest_rank(config, weights, layout).total(), {}};
    ++out.looked_at;
    if (found.memory > usable) {
      ++out.too_large;
      out.least_memory = out.least_memory == 0 ? found.memory : std::min(out.least_memory, found.memory);
      return;
    }
    found.step = plan_step(config, weights, layout, gpu);
    out.best.push_back(std::move(found));
  };
  each_mesh(world, gpu.node, loaded.config.model.num_experts > 0, [&](const PerAxis& degrees) {
    const std::int64_t readers = degrees.dp_replicate * degrees.dp_shard * degrees.ep;
    if (sequences % readers != 0) {
      return;
    }
    config::Config config = loaded.config;
    set_degrees(config.distributed, degrees);
    config.train.global_batch_size.reset();
    config.train.batch_schedule.clear();
    const std::int64_t mine = sequences / readers;
    for (std::int64_t rows = 1; rows <= std::min<std::int64_t>(mine, 16); rows *= 2) {
      config.train.batch_size = rows;
      config.train.grad_accum_steps = mine / rows;
      if (mine % rows != 0 || (rows == 1 && !refusal(config, loaded, world).empty())) {
        break;  // the rules do not depend on how a rank's sequences are divided
      }
      look(config, degrees);
    }
  });
  const std::size_t count = std::min(most, out.best.size());
  std::partial_sort(out.best.begin(), out.best.begin() + static_cast<std::ptrdiff_t>(count), out.best.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.step.time.total != b.step.time.total ? a.step.time.total < b.step.time.total : a.memory < b.memory;
                    });
  out.best.resize(count);
  return out;
}

}  // namespace kf::plan
