#pragma once
// The reference's parts by name, and a few with fields of their own: what the settings are checked against in these tests.

#include <string>
#include <vector>

#include "config/load/load.h"

namespace kf::test {

inline config::PartInfo part(std::string name, std::vector<config::Row> fields = {}) {
  return {std::move(name), "A part.", "native", std::move(fields)};
}

inline config::Catalog reference_catalog() {
  const config::Row power = config::value_row("power", 0.5, config::between(0, 1), "Exponent.");
  const config::Row mode = config::value_row("mode", config::Text("soft"), config::one_of({"soft", "hard"}), "");
  const config::Row rate = config::value_row("rate", 0.5, config::inside(0, 1), "");
  config::Row shift = config::value_row("shift", config::Int(0), config::any(), "");
  shift.required = true;
  config::Row widths;
  widths.name = "widths";
  widths.type = config::Type::list;
  widths.fallback = config::Node(config::Array());
  return {
      {"model", {part("transformer")}},
      {"block", {part("standard")}},
      {"attention", {part("gqa"), part("mla")}},
      {"norm", {part("rmsnorm"), part("layernorm")}},
      {"mlp",
       {part("swiglu"), part("standard_gelu"), part("standard_relu"), part("gelu_tanh"), part("relu2"), part("swiglu_oai"), part("xielu"),
        part("tanh_mlp", {mode, widths})}},
      {"router",
       {part("softmax_topk"), part("sigmoid_topk"), part("softmax"), part("sigmoid"), part("softmax_normed"), part("sqrtsoftplus")}},
      {"adapter", {part("lora")}},
      {"loss", {part("cross_entropy"), part("chunked_cross_entropy")}},
      {"optimizer", {part("adamw"), part("lion"), part("schedule_free_adamw"), part("muon"), part("sophia_h")}},
      {"scheduler",
       {part("cosine"), part("linear"), part("wsd"), part("constant"), part("rex"), part("none"), part("inv"), part("power"),
        part("inverse_sqrt", {power, rate, shift})}},
      {"hook", {part("guard"), part("norms")}},
      {"ckpt_strategy", {part("interval"), part("power2")}},
      {"sampler", {part("sample")}},
      {"sink", {part("console"), part("jsonl"), part("csv")}},
  };
}

}  // namespace kf::test
