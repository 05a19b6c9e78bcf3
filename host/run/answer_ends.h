#pragma once
// Which ids end an answer of a model of our own.

#include <cstdint>
#include <vector>

#include "config/schema/config.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

/// What ended documents in training: data.eos_id, else the tokenizer's own; and with chats the special token that ends an
/// answer in data.message_format or data.chat_template. None where nothing says so. `tokenizer` may be null.
std::vector<std::int64_t> answer_ends(const config::Config& config, const Tokenizer* tokenizer);

}  // namespace kf
