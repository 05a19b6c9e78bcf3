#include "config/plan/resume_class.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

#include "config/schema/schema.h"

using namespace kf::config;

TEST_CASE("resume class: every key that the table names is one, and every section has its say", "[resume]") {
  for (const std::string& key : resume_class_keys()) {
    CAPTURE(key);
    CHECK(find_row(key) != nullptr);
  }
  // A new section begins as identity: whoever adds one decides here what it means.
  const std::set<std::string> decided{"run",        "model",   "train",     "optimizer", "scheduler", "data",    "eval",  "distributed",
                                      "checkpoint", "metrics", "averaging", "generate",  "profiling", "adapter", "diloco"};
  for (const Section& section : sections()) {
    CAPTURE(section.name);
    CHECK(decided.contains(section.name));
  }
}

TEST_CASE("resume class: what moves no number is free, rates and lengths are the course, the rest is what the run is", "[resume]") {
  for (const char* key : {"run.name", "metrics.log_interval", "checkpoint.interval", "data.num_workers", "eval.interval", "generate.top_k",
                          "train.activation_checkpointing", "sink.mine", "metric.mine"}) {
    CAPTURE(key);
    CHECK(resume_class(key) == ResumeClass::free);
  }
  for (const char* key : {"optimizer.lr", "scheduler.warmup_steps", "train.max_steps", "train.batch_size", "data.epochs", "hooks", "phases",
                          "model.dropout_attn", "eval.dataset_path", "hook.mine", "scheduler.mine"}) {
    CAPTURE(key);
    CHECK(resume_class(key) == ResumeClass::course);
  }
  for (const char* key : {"model.dim", "data.dataset_path", "train.seq_len", "train.loss_fn", "optimizer.name", "mlp.mine", "dataset.mine",
                          "loss.mine", "nobody.knows"}) {
    CAPTURE(key);
    CHECK(resume_class(key) == ResumeClass::identity);
  }
}
