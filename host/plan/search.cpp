#include "plan/search.h"

#include <algorithm>
#include <limits>
#include <map>
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

/// Every mesh of `world` ranks whose tp is at most `node`.
std::vector<PerAxis> all_meshes(std::int64_t world, std::int64_t node, bool experts) {
  std::vector<PerAxis> out;
  for (const std::int64_t tp : divisors(world)) {
    for (const std::int64_t pp : tp > node ? std::vector<std::int64_t>{} : divisors(world / tp)) {
      for (const std::int64_t cp : divisors(world / tp / pp)) {
        const std::int64_t data = world / tp / pp / cp;
        for (const std::int64_t ep : experts ? divisors(data) : std::vector<std::int64_t>{1}) {
          for (const std::int64_t shard : divisors(data / ep)) {
            out.push_back({pp, data / ep / shard, shard, cp, ep, tp});
          }
        }
      }
    }
  }
  return out;
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

namespace {

class Search {
 public:
  Search(const config::Loaded& loaded, const Weights& weights, const Gpu& gpu, std::int64_t world, std::size_t most)
      : loaded_(loaded), weights_(weights), gpu_(gpu), world_(world), most_(most), sequences_(update_sequences(loaded.config, world)) {}

  /// Of one mesh, every size of a micro-batch.
  void look(const PerAxis& degrees) {
    const std::int64_t readers = degrees.dp_replicate * degrees.dp_shard * degrees.ep;
    const config::Config& job = loaded_.config;
    const bool other_workers = job.diloco.interval > 0 && degrees.dp_replicate != job.distributed.dp_replicate;  // learns something else
    if (sequences_ % readers != 0 || degrees.pp > job.model.n_layers || other_workers) {
      return;
    }
    config::Config config = loaded_.config;
    set_degrees(config.distributed, degrees);
    config.train.global_batch_size.reset();
    config.train.batch_schedule.clear();
    const std::int64_t mine = sequences_ / readers;
    config.train.batch_size = 1;
    config.train.grad_accum_steps = mine;
    if (!refusal(config, loaded_, world_).empty()) {
      return;  // the rules do not depend on how a rank's sequences are divided
    }
    const Layout layout = layout_of(config, degrees);
    StepPlanner planner(weights_, layout, gpu_);
    for (std::int64_t rows = 1; rows <= std::min<std::int64_t>(mine, kMostRows) && mine % rows == 0; rows *= 2) {
      config.train.batch_size = rows;
      config.train.grad_accum_steps = mine / rows;
      try_out(config, layout, planner);
    }
  }

  Found take() { return std::move(found_); }

 private:
  static constexpr std::int64_t kMostRows = 16;

  /// Where the model is cut hangs on the number of stages alone.
  Layout layout_of(const config::Config& config, const PerAxis& degrees) {
    const auto known = by_stages_.find(degrees.pp);
    if (known == by_stages_.end()) {
      return by_stages_.emplace(degrees.pp, Layout::of(config, world_)).first->second;
    }
    Layout out = known->second;
    out.mesh = Mesh(degrees);
    return out;
  }

  /// Memory first, which is cheaper to plan than time.
  void try_out(const config::Config& config, const Layout& layout, StepPlanner& planner) {
    Candidate one{
        layout.mesh.degrees(), config.train.batch_size, config.train.grad_accum_steps, fullest_rank(config, weights_, layout).total(), {}};
    ++found_.looked_at;
    if (one.memory > kUsableMemory * gpu_.memory) {
      ++found_.too_large;
      found_.least_memory = found_.least_memory == 0 ? one.memory : std::min(found_.least_memory, one.memory);
      return;
    }
    const bool full = found_.best.size() == most_;
    one.step = planner.plan(config, full ? found_.best.back().step.time.total : std::numeric_limits<double>::infinity());
    const auto faster = [](const Candidate& a, const Candidate& b) {
      return a.step.time.total != b.step.time.total ? a.step.time.total < b.step.time.total : a.memory < b.memory;
    };
    found_.best.insert(std::upper_bound(found_.best.begin(), found_.best.end(), one, faster), one);
    found_.best.resize(std::min(most_, found_.best.size()));
  }

  const config::Loaded& loaded_;
  const Weights& weights_;
  const Gpu& gpu_;
  std::int64_t world_;
  std::size_t most_;
  std::int64_t sequences_;
  std::map<std::int64_t, Layout> by_stages_;
  Found found_;
};

}  // namespace

Found search(const config::Loaded& loaded, const Weights& weights, const Gpu& gpu, std::int64_t world, std::size_t most,
             const SearchProgress& progress) {
  Search search(loaded, weights, gpu, world, most);
  const std::vector<PerAxis> meshes = all_meshes(world, gpu.node, loaded.config.model.num_experts > 0);
  for (std::size_t i = 0; i < meshes.size(); ++i) {
    search.look(meshes[i]);
    if (progress) {
      progress(static_cast<std::int64_t>(i + 1), static_cast<std::int64_t>(meshes.size()));
    }
  }
  return search.take();
}

}  // namespace kf::plan
