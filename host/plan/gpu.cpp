#include "plan/gpu.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "config/load/toml.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/input_file.h"
#include "core/text.h"

namespace kf::plan {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;

/// Peaks, memories and links: the data sheets of NVIDIA's SXM modules, dense, links one way, networks as in the DGX of each. Shares of the
/// peak: the largest rate of bf16 products over many shapes, Bekman, "Machine Learning Engineering", Maximum Achievable Matmul FLOPS. Of
/// attention: what the abstracts of FlashAttention-2 (50 to 73 % of an A100) and of FlashAttention-3 (35 % of an H100, by the former) say;
/// of a B200 an assumption.
std::vector<Gpu> table() {
  return {
      {.name = "a100",
       .fp32 = 19.5 * kTera,
       .tf32 = 156 * kTera,
       .bf16 = 312 * kTera,
       .fp8 = 312 * kTera,  // has no fp8: products are bf16's
       .product_share = 271.2 / 312,
       .attention_share = 0.6,
       .units = 108,
       .memory = 80 * kGiga,
       .memory_bandwidth = 2039 * kGiga,
       .node_bandwidth = 300 * kGiga,
       .network_bandwidth = 25 * kGiga},
      {.name = "b200",
       .fp32 = 75 * kTera,
       .tf32 = 1125 * kTera,
       .bf16 = 2250 * kTera,
       .fp8 = 4500 * kTera,
       .product_share = 1745.0 / 2250,
       .units = 148,
       .memory = 180 * kGiga,
       .memory_bandwidth = 8000 * kGiga,
       .node_bandwidth = 900 * kGiga,
       .network_bandwidth = 50 * kGiga},
      {.name = "h100",
       .fp32 = 67 * kTera,
       .tf32 = 494.5 * kTera,
       .bf16 = 989 * kTera,
       .fp8 = 1979 * kTera,
       .product_share = 794.5 / 989,
       .units = 132,
       .memory = 80 * kGiga,
       .memory_bandwidth = 3350 * kGiga,
       .node_bandwidth = 450 * kGiga,
       .network_bandwidth = 50 * kGiga},
      {.name = "h200",
       .fp32 = 67 * kTera,
       .tf32 = 494.5 * kTera,
       .bf16 = 989 * kTera,
       .fp8 = 1979 * kTera,
       .product_share = 794.5 / 989,
       .units = 132,
       .memory = 141 * kGiga,
       .memory_bandwidth = 4800 * kGiga,
       .node_bandwidth = 450 * kGiga,
       .network_bandwidth = 50 * kGiga},
  };
}

struct Key {
  const char* name;
  double Gpu::*member;
};
constexpr std::array<Key, 13> kKeys{{{"fp32_flops", &Gpu::fp32},
                                     {"tf32_flops", &Gpu::tf32},
                                     {"bf16_flops", &Gpu::bf16},
                                     {"fp8_flops", &Gpu::fp8},
                                     {"product_share", &Gpu::product_share},
                                     {"attention_share", &Gpu::attention_share},
                                     {"units", &Gpu::units},
                                     {"memory", &Gpu::memory},
                                     {"memory_bandwidth", &Gpu::memory_bandwidth},
                                     {"node_bandwidth", &Gpu::node_bandwidth},
                                     {"network_bandwidth", &Gpu::network_bandwidth},
                                     {"node_latency", &Gpu::node_latency},
                                     {"network_latency", &Gpu::network_latency}}};

const Gpu* find(const std::vector<Gpu>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Gpu& gpu) { return gpu.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// Reads one file; faults are collected, so that all of them are said.
class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path), all_(table()) {}

  Gpu read() {
    const std::optional<config::Table> tree = config::parse_toml(read_file(path_), path_.string(), config::Origin::Kind::toml, report_);
    Gpu gpu;
    if (tree) {
      gpu = start(*tree);
      for (const auto& [key, node] : *tree) {
        take(gpu, key, node);
      }
      if (tree->find("like") == nullptr) {
        find_missing();
      }
    }
    if (!report_.problems.empty()) {
      throw Error(Code::config, config::to_text(report_));
    }
    return gpu;
  }

 private:
  void fault(const config::Node& node, const std::string& message) { report_.problems.push_back({node.origin, message}); }

  Gpu start(const config::Table& tree) {
    Gpu gpu;
    const config::Node* const like = tree.find("like");
    if (like != nullptr) {
      const std::string* const name = std::get_if<std::string>(&like->value);
      const Gpu* const known = name != nullptr ? find(all_, *name) : nullptr;
      if (known != nullptr) {
        gpu = *known;
      } else {
        fault(*like, format("like ({}) must be one of {}", config::to_text(*like), join(gpu_names(), ", ")));
      }
    }
    gpu.name = path_.stem().string();
    return gpu;
  }

  void take_name(Gpu& gpu, const config::Node& node) {
    if (const std::string* const text = std::get_if<std::string>(&node.value)) {
      gpu.name = *text;
    } else {
      fault(node, "name must be a text");
    }
  }

  void take_node(Gpu& gpu, const config::Node& node) {
    const std::int64_t* const count = std::get_if<std::int64_t>(&node.value);
    if (count != nullptr && *count >= 1) {
      gpu.node = *count;
    } else {
      fault(node, format("node ({}) must be a number of accelerators, 1 or more", config::to_text(node)));
    }
  }

  void take(Gpu& gpu, const std::string& key, const config::Node& node) {
    if (key == "like") {
      return;
    }
    if (key == "name") {
      take_name(gpu, node);
      return;
    }
    if (key == "node") {
      take_node(gpu, node);
      return;
    }
    const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& known) { return key == known.name; });
    if (found == kKeys.end()) {
      fault(node, unknown(key));
      return;
    }
    seen_.insert(key);
    const double* const real = std::get_if<double>(&node.value);
    const std::int64_t* const whole = std::get_if<std::int64_t>(&node.value);
    const double value = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : 0;
    if (!(value > 0 && value < 1e30)) {
      fault(node, format("{} ({}) must be a number above 0", key, config::to_text(node)));
    } else if (key.ends_with("_share") && value > 1) {
      fault(node, format("{} ({}) must be at most 1: it is a share of the peak", key, value));
    } else {
      gpu.*found->member = value;
    }
  }

  static std::string unknown(const std::string& key) {
    std::vector<std::string> names{"name", "like", "node"};
    for (const Key& known : kKeys) {
      names.emplace_back(known.name);
    }
    const std::string near = nearest(key, names);
    return format("unknown key {}{}", key, near.empty() ? "; have: " + join(names, ", ") : "; did you mean " + near + "?");
  }

  void find_missing() {
    for (const char* key : {"bf16_flops", "memory", "memory_bandwidth", "node_bandwidth", "network_bandwidth"}) {
      if (!seen_.contains(key)) {
        report_.problems.push_back({{config::Origin::Kind::toml, path_.string(), 1, 1, ""},
                                    format("{} is missing; say it, or `like` with one of {}", key, join(gpu_names(), ", "))});
      }
    }
  }

  fs::path path_;
  std::vector<Gpu> all_;
  std::set<std::string> seen_;
  config::Report report_;
};

/// What follows from bf16, where a file does not say it.
Gpu completed(Gpu gpu) {
  gpu.tf32 = gpu.tf32 > 0 ? gpu.tf32 : gpu.bf16 / 2;
  gpu.fp32 = gpu.fp32 > 0 ? gpu.fp32 : gpu.tf32;
  gpu.fp8 = gpu.fp8 > 0 ? gpu.fp8 : gpu.bf16;
  return gpu;
}

}  // namespace

std::vector<std::string> gpu_names() {
  std::vector<std::string> out;
  for (const Gpu& gpu : table()) {
    out.push_back(gpu.name);
  }
  return out;
}

Gpu gpu_named(const std::string& name_or_file) {
  const std::vector<Gpu> all = table();
  if (const Gpu* const known = find(all, lower(name_or_file))) {
    return *known;
  }
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(name_or_file, ignored);
  const std::string near = nearest(name_or_file, gpu_names());
  KF_CHECK(is_file, Code::config, "--gpu {}: neither a known accelerator ({}) nor a TOML file that describes one{}", name_or_file,
           join(gpu_names(), ", "), near.empty() ? "" : "; did you mean " + near + "?");
  return completed(Reader(name_or_file).read());
}

}  // namespace kf::plan
