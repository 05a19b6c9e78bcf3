#include "train/loop/incidents.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>

#include "checkpoint/cpu_rng.h"
#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr const char* kIncidentFile = "incident.json";
constexpr const char* kWeights = "weights.json";
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

std::string name_of(std::int64_t step) { return format("step_{}", step); }

/// The script of the run as its folder holds it, which a later start may change.
void copy_code(const fs::path& run, const fs::path& to) {
  fs::remove_all(to);
  if (path_exists(run / "run.json") && path_exists(run / "code")) {
    fs::create_directories(to);
    fs::copy_file(run / "run.json", to / "run.json");
    fs::copy(run / "code", to / "code", fs::copy_options::recursive);
  }
}

void write_json(const fs::path& file, Table table) {
  write_file_atomic(file, config::to_json(Node(std::move(table)), config::JsonStyle::exact) + "\n");
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(out.mutable_data_ptr(), text.data(), text.size());
  return out;
}

template <class T>
T member(const Table& table, const char* name, const fs::path& file) {
  const Node* const found = table.find(name);
  const T* const value = found != nullptr ? std::get_if<T>(&found->value) : nullptr;
  KF_CHECK(value != nullptr, Code::checkpoint, "{}: '{}' is missing or of another type", file, name);
  return *value;
}

Node read_json(const fs::path& file) {
  try {
    Node out = config::parse_json(read_regular_file(file, kMostBytes), file.string(), config::JsonStyle::exact);
    KF_CHECK(out.table() != nullptr, Code::checkpoint, "{} holds no table", file);
    return out;
  } catch (const Error& e) {
    throw Error(Code::checkpoint, e.what());
  }
}

}  // namespace

std::map<std::string, std::string> weight_digests(Model& model) {
  std::map<std::string, std::string> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (const at::Tensor kept = parameter->kept(); kept.defined()) {
      const at::Tensor bytes = kept.detach().cpu().contiguous();
      out[parameter->name] = hex32(extend_crc32(0, bytes.const_data_ptr(), bytes.nbytes()));
    }
  }
  return out;
}

Incidents::Incidents(fs::path folder, std::int64_t most, std::string job, const World& world)
    : folder_(std::move(folder)), most_(folder_.empty() ? 0 : most), job_(std::move(job)), rank_(world.rank()), ranks_(world.size()) {
  std::error_code none;
  for (fs::directory_iterator entry(folder_, none), end; !none && entry != end; entry.increment(none)) {
    if (const std::string name = entry->path().filename().string(); name.starts_with("step_")) {
      kept_.insert(name);
    }
  }
}

bool Incidents::takes(std::int64_t step) const { return static_cast<std::int64_t>(kept_.size()) < most_ || kept_.contains(name_of(step)); }

void Incidents::keep(const Incident& incident, Model& model, const std::vector<Batch>& batches) {
  const fs::path folder = folder_ / name_of(incident.step);
  kept_.insert(name_of(incident.step));
  try {
    fs::create_directories(folder);
    write(folder, incident, model, batches);
    log::warn("step {}: what it was made of is kept; `kf-host replay {}` runs it again and says where its numbers go wrong", incident.step,
              folder);
  } catch (const std::exception& e) {
    log::warn("step {}: what it was made of could not be kept: {}", incident.step, e.what());
  }
}

std::string Incidents::rank_file(const char* name, const char* ending) const {
  return rank_ == 0 ? format("{}.{}", name, ending) : format("{}.rank-{}.{}", name, rank_, ending);
}

void Incidents::write(const fs::path& folder, const Incident& incident, Model& model, const std::vector<Batch>& batches) const {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    const auto add = [&](const char* name, const at::Tensor& tensor) {
      if (tensor.defined()) {
        tensors.emplace_back(format("micro_{}.{}", micro, name), tensor);
      }
    };
    add("tokens", batches[micro].tokens);
    add("labels", batches[micro].labels);
    add("doc_ids", batches[micro].doc_ids);
  }
  tensors.emplace_back("cpu_rng", bytes_of(cpu_rng_state()));
  write_safetensors(folder / rank_file("batch", "safetensors"), tensors, {});
  Table digests;
  for (const auto& [name, crc] : weight_digests(model)) {
    digests[name] = Node(crc);
  }
  write_json(folder / rank_file("weights", "json"), std::move(digests));
  if (rank_ != 0) {
    return;
  }
  write_file_atomic(folder / "job.toml", job_);
  copy_code(folder_.parent_path(), folder / kIncidentCode);
  Table out;
  out["step"] = Node(incident.step);
  out["why"] = Node(incident.why);
  out["loss"] = Node(incident.loss);
  out["grad_norm"] = Node(incident.grad_norm);
  out["lr"] = Node(incident.lr);
  out["tokens"] = Node(incident.tokens);
  out["checkpoint"] = Node(incident.checkpoint);
  out["ranks"] = Node(ranks_);
  write_json(folder / kIncidentFile, std::move(out));
}

Incident read_incident(const fs::path& folder) {
  const fs::path file = folder / kIncidentFile;
  KF_CHECK(path_exists(file), Code::checkpoint,
           "{} is no incident of a run: those lie in RUN/incidents/step_N, where a step's numbers were not finite", folder);
  const Node node = read_json(file);
  const Table& table = *node.table();
  Incident out;
  out.step = member<std::int64_t>(table, "step", file);
  out.why = member<std::string>(table, "why", file);
  out.loss = member<double>(table, "loss", file);
  out.grad_norm = member<double>(table, "grad_norm", file);
  out.lr = member<double>(table, "lr", file);
  out.tokens = member<std::int64_t>(table, "tokens", file);
  out.checkpoint = member<std::string>(table, "checkpoint", file);
  KF_CHECK(out.step > 0, Code::checkpoint, "{}: step {} is no number of an update", file, out.step);
  KF_CHECK(member<std::int64_t>(table, "ranks", file) == 1, Code::config,
           "{}: it is of a run of {} ranks; only incidents of one rank can be run again so far", file,
           member<std::int64_t>(table, "ranks", file));
  return out;
}

std::map<std::string, std::string> read_weight_digests(const fs::path& folder) {
  std::map<std::string, std::string> out;
  if (!path_exists(folder / kWeights)) {
    return out;
  }
  const Node node = read_json(folder / kWeights);
  for (const auto& [name, crc] : *node.table()) {
    const auto* const text = std::get_if<std::string>(&crc.value);
    KF_CHECK(text != nullptr, Code::checkpoint, "{}: the digest of '{}' is no text", folder / kWeights, name);
    out[name] = *text;
  }
  return out;
}

}  // namespace kf
