#pragma once
// Names of models on the Hugging Face hub, and what tells them from paths. Data sets have keys of their own (hf_dataset_name), whose values
// are no paths.

#include <optional>
#include <string>
#include <string_view>

namespace kf {

struct HubName {
  std::string name;               // "ORG/NAME", or "gpt2"
  std::string revision = "main";  // a branch, tag or commit
};

/// "ORG/NAME", "gpt2", either with "@REVISION"; "hf:" in front says that it is no path. Nothing for other texts, for what has the suffix of
/// a file, and for ORG/NAME where a folder ORG lies in the working folder: then a path is meant. A single word without "hf:" is a name only
/// where `words` are allowed (tokenizers) or where it is one of GPT-2's, which have no owner. Whether a path of that name exists is the
/// caller's question.
std::optional<HubName> hub_name(std::string_view text, bool words);

/// A data set's name taken apart: "ORG/NAME@REVISION"; without "@" the revision is "". Whether it can be a name is not looked at.
HubName data_set_name(std::string_view text);

/// Whether a branch, tag or commit can be called so.
bool is_revision(std::string_view text);

}  // namespace kf
