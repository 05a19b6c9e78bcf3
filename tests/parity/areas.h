#pragma once
// One function an area: runs a case and compares. What it throws is the case's failure.

#include "parity/compare.h"

namespace kf::parity {

/// `--host`: the program that training cases run.
struct Settings {
  fs::path host;     // kf-host
  fs::path configs;  // the shipped presets
};

void run_model(const Case& test, Comparison& out);
void run_huggingface(const Case& test, Comparison& out);
void run_peft(const Case& test, Comparison& out);
void run_moe(const Case& test, Comparison& out);
void run_init(const Case& test, Comparison& out);
void run_optimizers(const Case& test, Comparison& out);
void run_schedulers(const Case& test, Comparison& out);
void run_data(const Case& test, Comparison& out);
void run_metrics(const Case& test, Comparison& out, const Settings& settings);
void run_config(const Case& test, Comparison& out, const Settings& settings);
void run_training(const Case& test, Comparison& out, const Settings& settings);

}  // namespace kf::parity
