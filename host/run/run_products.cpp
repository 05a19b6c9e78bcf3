#include "run/run_products.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <map>
#include <utility>
#include <vector>

#include "config/plan/kernel_set.h"
#include "core/log.h"
#include "core/processor.h"
#include "core/text.h"
#include "kernels/product/choose_products.h"

namespace kf {
namespace {

/// What decides which kernel is faster.
std::string machine() { return format("{}, {}, {} threads", processor_name(), at::get_cpu_capability(), at::get_num_threads()); }

std::vector<WeightShape> weight_shapes(Model& model) {
  std::vector<WeightShape> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::vector<std::int64_t>& shape = parameter->shape;
    if (shape.size() >= 2) {  // of stacked experts (E, out, in) one
      out.push_back({shape[shape.size() - 2], shape.back()});
    }
  }
  return out;
}

/// As choose_products. Runs of one process, as the trials of a sweep may be, measure the same products once.
const ProductChoice& measured(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType compute,
                              const std::string& machine) {
  static std::map<std::string, ProductChoice> known;  // on the training thread alone
  std::string key = format("{}: {} rows, type {}", machine, rows, static_cast<int>(compute));
  for (const WeightShape& shape : shapes) {
    key += format(", {} x {}", shape.out, shape.in);
  }
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(std::move(key), choose_products(shapes, rows, compute)).first->second;
}

bool flag(const config::Node& table, const std::string& name) {
  const config::Node* const node = table.table()->find(name);
  const bool* const value = node == nullptr ? nullptr : std::get_if<bool>(&node->value);
  return value != nullptr && *value;
}

bool is_of(const config::Node& kept, const std::string& machine) {
  const config::Node* const node = kept.table() == nullptr ? nullptr : kept.table()->find("machine");
  const std::string* const value = node == nullptr ? nullptr : std::get_if<std::string>(&node->value);
  return value != nullptr && *value == machine;
}

Products products_in(const config::Node& kept) {
  return {.fp32_onednn = flag(kept, "fp32_onednn"),
          .bf16_widened = flag(kept, "bf16_widened"),
          .fp32_small = flag(kept, "fp32_small"),
          .bf16_small = flag(kept, "bf16_small"),
          .fp32_own_tn = flag(kept, "fp32_own_tn"),
          .fp32_own = flag(kept, "fp32_own")};
}

}  // namespace

Products kept_products(const config::Node& kept) { return is_of(kept, machine()) ? products_in(kept) : Products(); }

config::Node choose_run_products(Model& model, const config::TrainConfig& train, at::ScalarType compute, const config::Node& kept) {
  set_products({});
  if (config::kernel_set(train) == config::KernelSet::plain || train.cpu_products == "plain" || model.parameters().empty() ||
      !model.parameters().front()->value.is_cpu()) {
    return {};
  }
  const std::string here = machine();
  if (is_of(kept, here)) {
    set_products(products_in(kept));
    return kept;
  }
  const ProductChoice& choice = measured(weight_shapes(model), train.batch_size * train.seq_len, compute, here);
  if (choice.reason.empty()) {
    return {};
  }
  set_products(choice.products);
  log::info("matrix products: {}{}", choice.reason,
            kept.is_null() ? "" : "; another machine than the checkpoint's, so last bits may differ");
  config::Table table;
  table["machine"] = config::Node(here);
  table["fp32_onednn"] = config::Node(choice.products.fp32_onednn);
  table["bf16_widened"] = config::Node(choice.products.bf16_widened);
  table["fp32_small"] = config::Node(choice.products.fp32_small);
  table["bf16_small"] = config::Node(choice.products.bf16_small);
  table["fp32_own_tn"] = config::Node(choice.products.fp32_own_tn);
  table["fp32_own"] = config::Node(choice.products.fp32_own);
  return config::Node(std::move(table));
}

}  // namespace kf
