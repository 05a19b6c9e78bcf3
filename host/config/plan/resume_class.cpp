#include "config/plan/resume_class.h"

#include <map>
#include <string_view>

#include "config/schema/schema.h"

namespace kf::config {
namespace {

using enum ResumeClass;

struct Entry {
  ResumeClass all;                                      // of the section's keys,
  std::map<std::string_view, ResumeClass> others = {};  // but these
};

/// By section; parts stand here under their kind, since their own keys are known to nobody else.
const std::map<std::string_view, Entry>& table() {
  static const std::map<std::string_view, Entry> all{
      {"run", {free}},
      {"model",
       {identity,
        {{"preset", free},  // what it stands for is compared key by key
         {"scale", free},
         {"sdpa_backend", course},
         {"attn_fp32", course},
         {"act_fp32", course},
         {"dropout_embed", course},
         {"dropout_attn", course},
         {"dropout_resid", course},
         {"moe_capacity_factor", course},
         {"moe_bias_rate", course},
         {"moe_bias_schedule", course},
         {"moe_router_fp32", course},
         {"moe_impl", course}}}},
      {"train",
       {course,
        {{"seq_len", identity},
         {"seed", identity},  // the order of the data, and dropout
         {"data_seed", identity},
         {"loss_fn", identity},
         {"z_loss_weight", identity},
         {"mtp_loss_weight", identity},
         {"allow_nondivisible_batch", free},
         {"activation_checkpointing", free},
         {"remat_save", free},
         {"remat_every", free},
         {"run_ahead", free},
         {"shutdown_timeout_sec", free},
         {"nccl_health_check_interval", free}}}},
      {"optimizer", {course, {{"name", identity}}}},
      {"scheduler", {course}},
      {"data",
       {identity,
        {{"num_workers", free},
         {"pin_memory", free},
         {"prefetch_factor", free},
         {"cache_dir", free},
         {"hf_streaming", free},
         {"max_record_bytes", free},
         {"check_ids", free},
         {"mix_temperature", course},
         {"phases", course},
         {"epochs", course},
         {"anneal_weights", course},
         {"anneal_start_step", course},
         {"reuse_batches", course}}}},
      {"eval", {course, {{"interval", free}, {"batch_size", free}, {"at_start", free}, {"mtp_head", free}}}},
      {"distributed", {course, {{"nccl_timeout_sec", free}, {"backend", free}, {"plan", free}, {"prefetch", free}}}},
      {"diloco", {course, {{"min_workers", free}, {"timeout_sec", free}}}},
      {"checkpoint",
       {free, {{"init_from", course}, {"init_vocab", course}, {"init_weights", course}, {"init_head", course}, {"init_layers", course}}}},
      {"adapter", {identity, {{"dropout", course}, {"path", course}}}},
      {"metrics", {free}},
      {"averaging", {course}},
      {"generate", {free}},
      {"profiling", {free}},
      {"phases", {course}},
      {"hooks", {course}},
      // Kinds of parts; those that make model, data or loss are identity, as everything that is not named.
      {"scheduler.", {course}},
      {"optimizer.", {course}},
      {"phase.", {course}},
      {"hook.", {course}},
      {"metric.", {free}},
      {"sink.", {free}},
      {"sampler.", {free}},
      {"ckpt_strategy.", {free}},
      {"parallel_plan.", {free}},
  };
  return all;
}

ResumeClass in_table(std::string_view section, std::string_view name) {
  const auto at = table().find(section);
  if (at == table().end()) {
    return identity;
  }
  const auto other = at->second.others.find(name);
  return other != at->second.others.end() ? other->second : at->second.all;
}

}  // namespace

ResumeClass resume_class(const std::string& key) {
  const Row* const row = find_row(key);
  if (row == nullptr) {
    return in_table(key.substr(0, key.find('.')) + ".", {});
  }
  return row->section.empty() ? in_table(row->name, {}) : in_table(row->section, row->name);
}

bool is_run_length(const std::string& key) { return key == "train.max_steps" || key == "train.max_tokens" || key == "data.epochs"; }

std::vector<std::string> resume_class_keys() {
  std::vector<std::string> out;
  for (const auto& [section, entry] : table()) {
    for (const auto& [name, unused] : entry.others) {
      out.push_back(std::string(section) + "." + std::string(name));
    }
  }
  return out;
}

const char* to_text(ResumeClass value) { return value == free ? "free" : value == course ? "course" : "identity"; }

}  // namespace kf::config
