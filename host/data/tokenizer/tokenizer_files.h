#pragma once
// The files of tokenizers, as a folder for others holds them.

#include <map>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

/// What belongs to the tokenizer at `given`: the file itself and what is read beside it; of a folder, the files of tokenizers and
/// templates, config.json and generation_config.json. None where there is nothing.
std::vector<fs::path> tokenizer_files(const fs::path& given);

/// tokenizer.json and tokenizer_config.json, by name, of the tokenizer of bytes, so that Hugging Face's libraries have the same ids.
std::map<std::string, std::string> byte_tokenizer_files();

/// A tokenizer_config.json ("" for none yet) that says the template of chats, as readers before chat_template.jinja look for it.
std::string with_chat_template(const std::string& tokenizer_config, const std::string& chat_template);

}  // namespace kf
