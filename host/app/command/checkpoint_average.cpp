#include <iostream>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/soup.h"
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

}  // namespace

int checkpoint_average(const Arguments& args) {
  const OptionList list = parse_options(spelled_out(args), {"kf-host checkpoint average", {"--out", "--dtype"}, {}, false});
  KF_CHECK(list.words.size() >= 2 && list.has("--out"), Code::config, "two sources or more, and -o OUT\n{}", usage::kCheckpoint);
  std::vector<WeightsAt> all;
  for (const std::string& word : list.words) {
    all.push_back(open_weights(word));
  }
  NamedTensors mean = soup(all);
  if (list.has("--dtype")) {
    mean = in_type(std::move(mean), type_named(list.last("--dtype")));
  }
  write_weights(list.last("--out"), mean, all.back());
  std::cout << list.last("--out") << ": the mean of " << all.size() << " sources, " << mean.names.size() << " tensors\n";
  return 0;
}

int checkpoint_convert(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint convert", {"--dtype", "--experts"}, {}, false});
  KF_CHECK(list.words.size() == 2, Code::config, "what, and where to: CHECKPOINT OUT\n{}", usage::kCheckpoint);
  const WeightsAt source = open_weights(list.words[0]);
  NamedTensors tensors = source.tensors;
  if (list.has("--experts")) {
    check_word("--experts", list.last("--experts"), {"packed", "each"});
    tensors = with_experts(std::move(tensors), list.last("--experts") == "packed" ? ExpertForm::packed : ExpertForm::each, source.path);
  }
  if (list.has("--dtype")) {
    tensors = in_type(std::move(tensors), type_named(list.last("--dtype")));
  }
  write_weights(list.words[1], tensors, source);
  std::cout << list.words[1] << ": " << tensors.names.size() << " tensors of " << source.path.string() << '\n';
  return 0;
}

}  // namespace kf
