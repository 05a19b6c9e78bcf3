#pragma once
// The reference's parts by name, and a few with fields of their own: what the settings are checked against in these tests.

#include <string>
#include <vector>

#include "config/load/load.h"

namespace kf::test {

inline config::PartInfo part(std::string name, std::vector<config::PartField> fields = {}) {
  return {std::move(name), "A part.", "native", std::move(fields)};
}

inline config::PartField field(std::string name, config::PartField::Type type, std::optional<config::Node> fallback = {}) {
  config::PartField out;
  out.name = std::move(name);
  out.type = type;
  out.fallback = std::move(fallback);
  return out;
}

inline config::Catalog reference_catalog() {
  using Type = config::PartField::Type;
  config::PartField power = field("power", Type::real, config::Node(0.5));
  power.min = 0;
  power.max = 1;
  power.doc = "Exponent.";
  config::PartField mode = field("mode", Type::string, config::Node(std::string("soft")));
  mode.choices = {"soft", "hard"};
  return {
      {"model", {part("transformer")}},
      {"block", {part("standard")}},
      {"attention", {part("gqa"), part("mla")}},
      {"norm", {part("rmsnorm"), part("layernorm")}},
      {"mlp",
       {part("swiglu"), part("standard_gelu"), part("standard_relu"), part("gelu_tanh"), part("relu2"), part("swiglu_oai"), part("xielu"),
        part("tanh_mlp", {mode, field("widths", Type::list, config::Node(config::Array()))})}},
      {"router",
       {part("softmax_topk"), part("sigmoid_topk"), part("softmax"), part("sigmoid"), part("softmax_normed"), part("sqrtsoftplus")}},
      {"loss", {part("cross_entropy"), part("chunked_cross_entropy")}},
      {"optimizer", {part("adamw"), part("lion"), part("schedule_free_adamw"), part("muon")}},
      {"scheduler",
       {part("cosine"), part("linear"), part("wsd"), part("constant"), part("rex"), part("none"), part("inv"), part("power"),
        part("inverse_sqrt", {power, field("shift", Type::integer)})}},
      {"hook", {part("guard"), part("norms")}},
      {"ckpt_strategy", {part("interval"), part("power2")}},
      {"sampler", {part("sample")}},
  };
}

}  // namespace kf::test
