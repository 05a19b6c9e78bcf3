#pragma once
// What turns the token ids of a job into text.

#include <memory>

#include "config/schema/config.h"
#include "data/tokenizer/tokenizer.h"
#include "registry/registries.h"

namespace kf {

/// What turns the job's token ids into text; null where nothing does: pre-tokenized files (.npy, .bin) without data.tokenizer_path, or a
/// vocabulary too small for bytes.
std::unique_ptr<Tokenizer> tokenizer_of(const config::Config& config, const Registries& registries);

/// Whether any of the evaluation data is documents of text.
bool reads_text(const config::EvalConfig& eval);

}  // namespace kf
