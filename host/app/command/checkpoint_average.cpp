#include <iostream>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/soup.h"
#include "core/log.h"
#include "core/text.h"

namespace kf {
namespace {

/// "-o OUT" as "--out OUT".
Arguments spelled_out(Arguments args) {
  for (std::string& arg : args) {
    arg = arg == "-o" ? "--out" : arg;
  }
  return args;
}

at::ScalarType type_named(const std::string& word) {
  check_word("--dtype", word, {"fp32", "bf16", "fp16"});
  if (word == "fp32") {
    return at::kFloat;
  }
  return word == "bf16" ? at::kBFloat16 : at::kHalf;
}

/// After all was written: `weights` are known then.
void warn_spoiled(const std::string& file, const std::string& what, const Spoiled& weights) {
  if (!weights.empty()) {
    log::warn("{}:{}", file, list_names(what.c_str(), weights));
  }
}

void warn_too_large(const OptionList& list, const std::string& file, const Spoiled& weights) {
  const std::string type = list.last("--dtype");
  warn_spoiled(file,
               format("have numbers that are too large for {} and became infinite{}", type, type == "fp16" ? "; bf16 holds them" : ""),
               weights);
}

}  // namespace

int checkpoint_average(const Arguments& args) {
  const OptionList list = parse_options(spelled_out(args), {"kf-host checkpoint average", {"--out", "--dtype"}, {}, false});
  KF_CHECK(list.words.size() >= 2 && list.has("--out"), Code::config, "two sources or more, and -o OUT\n{}", usage::kCheckpoint);
  std::vector<WeightsAt> all;
  for (const std::string& word : list.words) {
    all.push_back(open_weights(word));
  }
  Spoiled not_finite, too_large;
  NamedTensors mean = soup(all, not_finite);
  if (list.has("--dtype")) {
    mean = in_type(std::move(mean), type_named(list.last("--dtype")), too_large);
  }
  write_weights(list.last("--out"), mean, all.back());
  warn_spoiled(list.last("--out"), "have NaN or infinite numbers in the sources, which the mean then has, too", not_finite);
  warn_too_large(list, list.last("--out"), too_large);
  std::cout << list.last("--out") << ": the mean of " << all.size() << " sources, " << mean.names.size() << " tensors\n";
  return 0;
}

int checkpoint_convert(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint convert", {"--dtype", "--experts"}, {}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "what, and where to: CHECKPOINT OUT\n{}", usage::kCheckpoint);
  const WeightsAt source = open_weights(list.words[0]);
  Spoiled too_large;
  NamedTensors tensors = source.tensors;
  if (list.has("--experts")) {
    check_word("--experts", list.last("--experts"), {"packed", "each"});
    tensors = with_experts(tensors, list.last("--experts") == "packed" ? ExpertForm::packed : ExpertForm::each, source.path);
  }
  if (list.has("--dtype")) {
    tensors = in_type(std::move(tensors), type_named(list.last("--dtype")), too_large);
  }
  write_weights(list.words[1], tensors, source);
  warn_too_large(list, list.words[1], too_large);
  std::cout << list.words[1] << ": " << tensors.names.size() << " tensors of " << source.path.string() << '\n';
  return 0;
}

}  // namespace kf
