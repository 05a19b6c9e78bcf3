// Every optimizer against its published formula, written out over doubles.

#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include "builtins/builtins.h"
#include "optim/adam_mini.h"
#include "optim/muon.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

constexpr double kLr = 1e-2;
constexpr int kSteps = 6;
constexpr std::int64_t kRows = 3, kColumns = 4;

using Numbers = std::vector<double>;

at::Tensor start_of(const std::string& name) { return at::randn({kRows, kColumns}, at::detail::createCPUGenerator(name.size())); }

Numbers gradient_at(int step) {
  Numbers out;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    out.push_back(static_cast<double>(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 2.3 * step) * (step == 3 ? 4 : 1))));
  }
  return out;
}

/// What a formula keeps of one number.
struct Cell {
  double m = 0, v = 0, before = 0;
};

/// Moves p by the gradient g in update t (from 1) with weight decay `decay`; `cells` persist.
using Formula = std::function<void(Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double decay)>;

double mean_square(const Numbers& x) {
  double sum = 0;
  for (const double v : x) {
    sum += v * v;
  }
  return sum / static_cast<double>(x.size());
}

/// The direction of Adam, all biases corrected.
Numbers adam(const Numbers& g, std::vector<Cell>& cells, int t, double b1, double b2, double eps, double root = 0, bool nesterov = false) {
  Numbers out;
  for (std::size_t i = 0; i < g.size(); ++i) {
    Cell& c = cells[i];
    c.m = b1 * c.m + (1 - b1) * g[i];
    c.v = b2 * c.v + (1 - b2) * g[i] * g[i];
    const double mean =
        nesterov ? b1 * c.m / (1 - std::pow(b1, t + 1)) + (1 - b1) * g[i] / (1 - std::pow(b1, t)) : c.m / (1 - std::pow(b1, t));
    out.push_back(mean / (std::sqrt(c.v / (1 - std::pow(b2, t)) + root) + eps));
  }
  return out;
}

void move(Numbers& p, const Numbers& u, double lr, double decay) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = p[i] * (1 - lr * decay) - lr * u[i];
  }
}

/// Runs the registered optimizer and the formula side by side.
void compare(const config::OptimizerConfig& o, const Formula& formula, double tolerance = 2e-6) {
  config::Config config = tiny_config();
  config.optimizer = o;
  config.optimizer.lr = kLr;
  config.model.n_heads = 1;
  config.model.head_dim = kColumns;
  const Registries registries = native_registries();
  const ParameterPtr weight = free_weight("w", start_of(o.name));
  const auto optimizer = make_part(registries.optimizer, o.name, config, registries, decay_groups({weight}, config.optimizer));
  Numbers p(static_cast<std::size_t>(kRows * kColumns));
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = weight->master.flatten()[static_cast<std::int64_t>(i)].item<double>();
  }
  std::vector<Cell> cells(p.size());
  for (int t = 1; t <= kSteps; ++t) {
    const Numbers g = gradient_at(t);
    weight->set_gradient(at::tensor(g, at::kDouble).to(at::kFloat).view({kRows, kColumns}));
    const double lr = kLr * (t == kSteps ? 0.5 : 1);  // a schedule is on
    optimizer->step(lr);
    cells.resize(p.size());
    formula(p, g, cells, t, lr);
    const at::Tensor expected = at::tensor(p, at::kDouble).view({kRows, kColumns});
    CAPTURE(o.name, t);
    CHECK((weight->master.detach().to(at::kDouble) - expected).abs().max().item<double>() < tolerance);
  }
}

config::OptimizerConfig settings(const std::string& name) {
  config::OptimizerConfig o;
  o.name = name;
  o.weight_decay = 0.1;
  return o;
}

}  // namespace

TEST_CASE("optimizers: with eps = 0 a weight without a gradient stays what it is", "[optim][H3]") {
  const std::string name =
      GENERATE("adamw", "muon", "schedule_free_adamw", "cautious_adamw", "mars", "adopt", "adam_mini", "rmsprop", "soap", "sophia_h");
  CAPTURE(name);
  config::Config config = tiny_config();
  config.optimizer.name = name;
  config.optimizer.eps = 0;
  config.optimizer.weight_decay = 0;
  config.optimizer.fused = GENERATE(true, false);
  const Registries registries = native_registries();
  const ParameterPtr table = free_weight("table", start_of("w"));
  table->role = Role::embedding;
  const at::Tensor before = table->master.detach()[0].clone();
  const auto optimizer = make_part(registries.optimizer, name, config, registries, decay_groups({table}, config.optimizer));
  for (int step = 1; step <= 3; ++step) {
    const at::Tensor gradient = at::tensor(gradient_at(step), at::kDouble).to(at::kFloat).view({kRows, kColumns}).clone();
    gradient[0].zero_();
    table->set_gradient(gradient);
    optimizer->step(kLr);
  }
  CHECK(table->master.isfinite().all().item<bool>());
  if (name != "soap") {  // its bases mix rows
    CHECK(at::allclose(table->master.detach()[0], before));
  }
}

TEST_CASE("adamw: the moments, the extras and the corrected decay follow their formulas", "[optim]") {
  config::OptimizerConfig o = settings("adamw");
  o.fused = GENERATE(true, false);
  o.eps_root = GENERATE(0.0, 1e-3);
  o.nesterov = GENERATE(true, false);
  o.adamc = GENERATE(true, false);
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    move(p, adam(g, cells, t, o.betas[0], o.betas[1], o.eps, o.eps_root, o.nesterov), lr, o.weight_decay * (o.adamc ? lr / kLr : 1));
  });
}

TEST_CASE("adamw: an update whose RMS is too large is scaled down, decay included", "[optim]") {
  config::OptimizerConfig o = settings("adamw");
  o.update_rms_clip = 0.05;
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    Numbers u = adam(g, cells, t, o.betas[0], o.betas[1], o.eps);
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] += o.weight_decay * p[i];
    }
    const double factor = std::max(1.0, std::sqrt(mean_square(u)) / o.update_rms_clip);
    CHECK(factor > 1);
    for (double& value : u) {
      value /= factor;
    }
    move(p, u, lr, 0);
  });
}

TEST_CASE("adamw: an update whose norm leaves the recent ones is capped", "[optim]") {
  config::OptimizerConfig o = settings("adamw");
  o.update_norm_window = 4;
  o.update_norm_sigma = 0.01;
  o.betas = {0.0, 0.9};  // without momentum the norm goes up and down
  Numbers norms;
  bool capped = false;
  compare(o, [&, o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    Numbers u = adam(g, cells, t, o.betas[0], o.betas[1], o.eps);
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] += o.weight_decay * p[i];
    }
    const double norm = std::sqrt(mean_square(u) * static_cast<double>(u.size()));
    if (norms.size() >= 2) {
      const auto first = norms.size() > 4 ? norms.end() - 4 : norms.begin();
      const auto count = static_cast<double>(norms.end() - first);
      double mean = 0, variance = 0;
      std::for_each(first, norms.end(), [&](double n) { mean += n / count; });
      std::for_each(first, norms.end(), [&](double n) { variance += (n - mean) * (n - mean) / count; });
      const double cap = mean + o.update_norm_sigma * std::max(std::sqrt(variance), 1e-6);
      capped = capped || norm > cap;
      for (double& value : u) {
        value *= std::min(1.0, cap / norm);
      }
    }
    norms.push_back(norm);
    move(p, u, lr, 0);
  });
  CHECK(capped);
}

TEST_CASE("sgd: momentum as in torch, decay apart from it", "[optim]") {
  config::OptimizerConfig o = settings("sgdm");
  o.sgd_momentum = GENERATE(0.0, 0.9);
  const bool nesterov = GENERATE(true, false);
  o.nesterov = nesterov && o.sgd_momentum > 0;
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int, double lr) {
    Numbers u = g;
    for (std::size_t i = 0; i < g.size(); ++i) {
      cells[i].m = o.sgd_momentum * cells[i].m + g[i];
      u[i] = o.nesterov ? g[i] + o.sgd_momentum * cells[i].m : cells[i].m;
    }
    move(p, u, lr, o.weight_decay);
  });
}

TEST_CASE("cautious_adamw: what disagrees with the gradient stays, the rest makes up for it", "[optim]") {
  const config::OptimizerConfig o = settings("cautious_adamw");
  bool masked = false;
  compare(o, [&, o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    Numbers u = adam(g, cells, t, o.betas[0], o.betas[1], o.eps);
    double agree = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      agree += u[i] * g[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] = u[i] * g[i] > 0 ? u[i] / (agree / static_cast<double>(u.size()) + 1e-8) : 0;
    }
    masked = masked || agree < static_cast<double>(u.size());
    move(p, u, lr, o.weight_decay);
  });
  CHECK(masked);
}

TEST_CASE("mars: the gradient is corrected by the one before and bounded", "[optim]") {
  config::OptimizerConfig o = settings("mars");
  o.betas = {0.95, 0.99};
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    Numbers c = g;
    for (std::size_t i = 0; i < g.size(); ++i) {
      c[i] += 0.025 * o.betas[0] / (1 - o.betas[0]) * (g[i] - cells[i].before);
      cells[i].before = g[i];
    }
    const double norm = std::sqrt(mean_square(c) * static_cast<double>(c.size()));
    for (double& value : c) {
      value /= std::max(1.0, norm);
    }
    move(p, adam(c, cells, t, o.betas[0], o.betas[1], o.eps), lr, o.weight_decay);
  });
}

TEST_CASE("adopt: gradients are normalised by what came before, and the first update moves nothing", "[optim]") {
  const config::OptimizerConfig o = settings("adopt");
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    if (t > 1) {
      Numbers u;
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double limit = std::pow(t - 1, 0.25);
        cells[i].m = o.betas[0] * cells[i].m + (1 - o.betas[0]) * std::clamp(g[i] / std::max(std::sqrt(cells[i].v), o.eps), -limit, limit);
        u.push_back(cells[i].m);
      }
      move(p, u, lr, o.weight_decay);
    }
    for (std::size_t i = 0; i < g.size(); ++i) {
      cells[i].v = t == 1 ? g[i] * g[i] : o.betas[1] * cells[i].v + (1 - o.betas[1]) * g[i] * g[i];
    }
  });
}

TEST_CASE("rmsprop: as torch.optim.RMSprop with momentum, decay apart", "[optim]") {
  const config::OptimizerConfig o = settings("rmsprop");
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int, double lr) {
    Numbers u;
    for (std::size_t i = 0; i < g.size(); ++i) {
      cells[i].v = o.betas[1] * cells[i].v + (1 - o.betas[1]) * g[i] * g[i];
      cells[i].m = 0.9 * cells[i].m + g[i] / (std::sqrt(cells[i].v) + o.eps);
      u.push_back(cells[i].m);
    }
    move(p, u, lr, o.weight_decay);
  });
}

TEST_CASE("adam_mini: the numbers of a row share a second moment, those of a head share one", "[optim]") {
  const config::OptimizerConfig o = settings("adam_mini");
  compare(o, [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int t, double lr) {
    Numbers u(g.size());
    for (std::size_t row = 0; row < static_cast<std::size_t>(kRows); ++row) {
      const std::size_t first = row * static_cast<std::size_t>(kColumns);
      double square = 0;
      for (std::size_t i = first; i < first + static_cast<std::size_t>(kColumns); ++i) {
        square += g[i] * g[i] / static_cast<double>(kColumns);
      }
      cells[first].v = o.betas[1] * cells[first].v + (1 - o.betas[1]) * square;
      for (std::size_t i = first; i < first + static_cast<std::size_t>(kColumns); ++i) {
        cells[i].m = o.betas[0] * cells[i].m + (1 - o.betas[0]) * g[i];
        u[i] = cells[i].m / (1 - std::pow(o.betas[0], t)) / (std::sqrt(cells[first].v / (1 - std::pow(o.betas[1], t))) + o.eps);
      }
    }
    move(p, u, lr, o.weight_decay);
  });
  CHECK(rows_of_block(*free_weight("layers.0.attention.q_proj.weight", at::ones({8, 4})), 4) == 4);
  CHECK(rows_of_block(*free_weight("layers.0.mlp.up_proj.weight", at::ones({8, 4})), 4) == 1);
  CHECK(rows_of_block(*free_weight("norm.weight", at::ones({8})), 4) == 0);
}

TEST_CASE("muon: scale, decay and momentum by the settings", "[optim]") {
  config::OptimizerConfig o = settings("muon");
  o.muon_nesterov = GENERATE(true, false);
  o.muon_scale = GENERATE("spectral", "rms");
  o.muon_weight_decay = GENERATE(std::optional<double>(), std::optional<double>(0.5));
  compare(
      o,
      [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int, double lr) {
        Numbers ahead(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) {
          cells[i].m = o.muon_momentum * cells[i].m + g[i];
          ahead[i] = o.muon_nesterov ? g[i] + o.muon_momentum * cells[i].m : cells[i].m;
        }
        const at::Tensor orthogonal = newton_schulz(at::tensor(ahead, at::kDouble).view({kRows, kColumns}), o.muon_ns_steps).flatten();
        const double scale = o.muon_scale == "rms" ? o.muon_rms * std::sqrt(static_cast<double>(kColumns)) : 1.0;
        Numbers u;
        for (std::size_t i = 0; i < g.size(); ++i) {
          u.push_back(scale * orthogonal[static_cast<std::int64_t>(i)].item<double>());
        }
        move(p, u, lr, o.muon_weight_decay.value_or(o.weight_decay));
      },
      5e-5);
}

TEST_CASE("scion: hidden matrices step to the spectral ball, the head to its sign", "[optim]") {
  const config::OptimizerConfig o = settings("scion");
  compare(
      o,
      [o](Numbers& p, const Numbers& g, std::vector<Cell>& cells, int, double lr) {
        Numbers m;
        for (std::size_t i = 0; i < g.size(); ++i) {
          cells[i].m = o.betas[0] * cells[i].m + (1 - o.betas[0]) * g[i];
          m.push_back(cells[i].m);
        }
        const at::Tensor orthogonal = newton_schulz(at::tensor(m, at::kDouble).view({kRows, kColumns}), o.muon_ns_steps).flatten();
        Numbers u;
        for (std::size_t i = 0; i < g.size(); ++i) {
          u.push_back(50 * std::sqrt(static_cast<double>(kRows) / kColumns) * orthogonal[static_cast<std::int64_t>(i)].item<double>());
        }
        move(p, u, lr, o.weight_decay);
      },
      2e-3);
}

}  // namespace kf::test
