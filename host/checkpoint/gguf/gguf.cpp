#include "checkpoint/gguf/gguf.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "checkpoint/foreign/gguf_names.h"
#include "checkpoint/gguf/architecture.h"
#include "checkpoint/gguf/vocabulary.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using gguf::TensorRule;
using gguf::Type;

constexpr std::uint32_t kQuantizationVersion = 2;

std::uint32_t file_type(Type type) {
  switch (type) {
    case Type::f32: return 0;
    case Type::f16: return 1;
    case Type::q8_0: return 7;
    case Type::bf16: return 32;
  }
  return 0;
}

/// Vectors stay fp32, and so do matrices whose rows are no whole blocks.
Type type_of(const at::Tensor& tensor, Type asked, std::size_t& left) {
  if (tensor.dim() < 2) {
    return Type::f32;
  }
  if (asked == Type::q8_0 && tensor.size(-1) % gguf::kBlock != 0) {
    ++left;
    return Type::f16;
  }
  return asked;
}

at::Tensor as_theirs(const at::Tensor& ours, const TensorRule& rule) {
  at::Tensor out = ours.to(at::kFloat);
  if (rule.add_one) {
    out = out + 1;
  }
  if (rule.paired_heads > 0) {
    KF_CHECK(out.size(0) % (2 * rule.paired_heads) == 0, Code::checkpoint, "'{}' has {} rows, which are no {} heads of two halves",
             rule.ours, out.size(0), rule.paired_heads);
    out = out.unflatten(0, {rule.paired_heads, 2, -1}).transpose(1, 2).flatten(0, 2);
  }
  return out;
}

void add_tensors(const GgufModel& model, const std::vector<TensorRule>& rules, Type type, gguf::File& out) {
  std::map<std::string, const at::Tensor*> weights;
  for (const auto& [name, tensor] : model.weights) {
    weights[name] = &tensor;
  }
  std::size_t left = 0;
  for (const TensorRule& rule : rules) {
    const auto found = weights.find(rule.ours);
    if (found == weights.end()) {
      continue;
    }
    const at::Tensor& weight = *found->second;
    out.add_tensor(rule.theirs, weight.sizes().vec(), type_of(weight, type, left), [&weight, rule] { return as_theirs(weight, rule); });
    weights.erase(found);
  }
  KF_CHECK(weights.empty(), Code::checkpoint, "the weight '{}' has no place in a GGUF file", weights.begin()->first);
  if (left > 0) {
    log::info("{} matrices have rows of no whole blocks of {} numbers, which Q8_0 needs: they are F16", left, gguf::kBlock);
  }
}

}  // namespace

void write_gguf(const fs::path& path, const GgufModel& model, Type type) {
  const at::NoGradGuard no_grad;
  const gguf::Architecture architecture = gguf::architecture_of(model.config);
  gguf::Vocabulary vocabulary = gguf::read_vocabulary(model.tokenizer_file, model.tokenizer, model.config.model.vocab_size);
  vocabulary.begins_with_bos = model.begins_with_bos;
  vocabulary.chat_template = model.chat_template.empty() ? vocabulary.chat_template : model.chat_template;
  gguf::File out;
  out.add("general.architecture", architecture.name);
  out.add("general.type", "model");
  out.add("general.name", model.name);
  out.add("general.file_type", file_type(type));
  if (type == Type::q8_0) {
    out.add("general.quantization_version", kQuantizationVersion);
  }
  write_settings(architecture, model.config.model, out);
  write(vocabulary, out);
  if (const std::vector<float> divisors = gguf::frequency_divisors(model.config.model); !divisors.empty()) {
    out.add_tensor(std::string(gguf::kDivisors), {static_cast<std::int64_t>(divisors.size())}, Type::f32,
                   [divisors] { return at::tensor(divisors); });
  }
  add_tensors(model, architecture.tensors, type, out);
  out.write(path);
}

}  // namespace kf
