#include "config/plan/context_parallel.h"

#include <algorithm>

#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

bool is_cut(const Job& job) { return job.config.distributed.cp > 1; }

/// Into how many a sequence is cut.
std::int64_t pieces_of(const DistributedConfig& d) { return d.cp_order == "zigzag" ? 2 * d.cp : d.cp; }

void pieces_have_positions(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  const std::int64_t pieces = pieces_of(d);
  const auto check = [&](const std::string& key, std::int64_t length) {
    if (length < pieces) {
      findings.problem({key, "distributed.cp", "distributed.cp_order"},
                       format("{} ({}) is too short for distributed.cp = {}: distributed.cp_order = \"{}\" cuts sequences into {} pieces",
                              key, length, d.cp, d.cp_order, pieces));
    }
  };
  check("train.seq_len", job.config.train.seq_len);
  for (std::size_t i = 0; i < job.config.phases.size(); ++i) {
    if (const std::optional<std::int64_t>& length = job.config.phases[i].seq_len) {
      check(format("phases[{}].seq_len", i), *length);
    }
  }
}

/// Parts of scripts see this rank's positions alone, and would take them for all.
void attention_asks_other_ranks(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const auto refuse = [&](const std::string& key, const std::string& name, const std::string& native) {
    findings.problem(
        {key, "distributed.cp"},
        format("{} = \"{}\" sees the positions of one rank alone, and distributed.cp = {} has the others on other ranks; use {}, or "
               "distributed.cp = 1",
               key, name, job.config.distributed.cp, native));
  };
  if (m.model_type != "transformer") {
    refuse("model.model_type", m.model_type, "\"transformer\"");
  } else if (m.block != "standard") {
    refuse("model.block", m.block, "\"standard\"");
  } else if (m.attention != "gqa" && m.attention != "mla") {
    refuse("model.attention", m.attention, "\"gqa\" or \"mla\"");
  }
}

void kernels_take_masks(const Job& job, Findings& findings) {
  const std::string& backend = job.config.model.sdpa_backend;
  if (backend != "auto" && backend != "math") {
    findings.problem(
        {"model.sdpa_backend", "distributed.cp"},
        format("model.sdpa_backend = \"{}\" names one kernel, and the positions of distributed.cp = {} need several; use \"auto\" or "
               "\"math\"",
               backend, job.config.distributed.cp));
  }
}

/// Each rank counts its tokens of a sequence, which must be as many as every other's.
void balance_over_sequences(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const std::int64_t length = job.config.train.seq_len;
  if (m.num_experts > 0 && m.moe_sequence_aux_loss_weight > 0 && m.moe_sequence_aux_scope == "sequence" &&
      length % pieces_of(job.config.distributed) != 0) {
    findings.problem({"model.moe_sequence_aux_scope", "train.seq_len", "distributed.cp"},
                     format("model.moe_sequence_aux_scope = \"sequence\" needs ranks that have as many tokens of a sequence each: "
                            "train.seq_len ({}) must be divisible by {}; or use \"batch\"",
                            length, pieces_of(job.config.distributed)));
  }
}

void rings_where_it_can(const Job& job, Findings& findings) {
  const std::string why = why_no_ring(job.config);
  if (job.config.distributed.cp_method == "ring" && !why.empty()) {
    findings.warn({"distributed.cp_method", "distributed.cp"},
                  format("distributed.cp_method = \"ring\" works as \"all_gather\" here: {}", why));
  }
}

/// Rules for jobs that cut sequences alone.
template <Rule rule>
void where_cut(const Job& job, Findings& findings) {
  if (is_cut(job) && job.world != 1) {
    rule(job, findings);
  }
}

}  // namespace

std::vector<Rule> context_rules() {
  return {where_cut<pieces_have_positions>, where_cut<attention_asks_other_ranks>, where_cut<kernels_take_masks>,
          where_cut<balance_over_sequences>, where_cut<rings_where_it_can>};
}

}  // namespace kf::config
