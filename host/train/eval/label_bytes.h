#pragma once
// How much text a row of labels stands for: what bits per byte divide by.

#include <cstdint>
#include <span>

#include "data/tokenizer/tokenizer.h"

namespace kf {

/// Bytes of text behind the counted labels (those from 0 on) of a row; special ids stand for none. A run of labels is decoded behind the
/// token before it, since what an id stands for may depend on that (SentencePiece drops the space of a text's first word). Throws as
/// Tokenizer::decode does.
std::int64_t label_bytes(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens, std::span<const std::int64_t> labels);

}  // namespace kf
