#include "data/tokenizer/sentencepiece_model.h"

#include "core/error.h"
#include "data/tokenizer/protobuf.h"
#include "data/tokenizer/unicode.h"

namespace kf::spm {
namespace {

// Numbers of fields: sentencepiece_model.proto.
SpmPiece parse_piece(std::string_view bytes, const std::string& where) {
  SpmPiece out;
  for (ProtobufReader in(bytes, where); in.next();) {
    if (in.field() == 1) {
      out.text = in.bytes();
    } else if (in.field() == 2) {
      out.score = in.real();
    } else if (in.field() == 3) {
      KF_CHECK(in.integer() >= 1 && in.integer() <= 6, Code::data, "{}: the piece {} is of the unknown type {}", where,
               kf::quoted(out.text), in.integer());
      out.type = static_cast<PieceType>(in.integer());
    }
  }
  return out;
}

void parse_trainer(std::string_view bytes, ModelSpec& out, const std::string& where) {
  for (ProtobufReader in(bytes, where); in.next();) {
    switch (in.field()) {
      case 3:
        KF_CHECK(in.integer() >= 1 && in.integer() <= 4, Code::data, "{}: trainer_spec.model_type {} is none of unigram, bpe, word, char",
                 where, in.integer());
        out.type = static_cast<ModelType>(in.integer());
        break;
      case 24: out.whitespace_as_suffix = in.integer() != 0; break;
      case 35: out.byte_fallback = in.integer() != 0; break;
      case 44: out.unk_surface = in.bytes(); break;
      case 45: out.unk_piece = in.bytes(); break;
      case 46: out.bos_piece = in.bytes(); break;
      case 47: out.eos_piece = in.bytes(); break;
      case 48: out.pad_piece = in.bytes(); break;
      default: break;  // how it was trained
    }
  }
}

NormalizerSpec parse_normalizer(std::string_view bytes, const std::string& where) {
  NormalizerSpec out;
  for (ProtobufReader in(bytes, where); in.next();) {
    if (in.field() == 2) {
      out.charsmap = in.bytes();
    } else if (in.field() == 3) {
      out.add_dummy_prefix = in.integer() != 0;
    } else if (in.field() == 4) {
      out.remove_extra_whitespaces = in.integer() != 0;
    } else if (in.field() == 5) {
      out.escape_whitespaces = in.integer() != 0;
    }
  }
  return out;
}

}  // namespace

ModelSpec parse_model(std::string_view bytes, const std::string& where) {
  ModelSpec out;
  for (ProtobufReader in(bytes, where); in.next();) {
    if (in.field() == 1) {
      out.pieces.push_back(parse_piece(in.bytes(), where));
    } else if (in.field() == 2) {
      parse_trainer(in.bytes(), out, where);
    } else if (in.field() == 3) {
      out.normalizer = parse_normalizer(in.bytes(), where);
    } else if (in.field() == 5) {
      out.denormalizer = parse_normalizer(in.bytes(), where);
      out.denormalizes = !out.denormalizer.charsmap.empty();
    }
  }
  KF_CHECK(!out.pieces.empty(), Code::data, "{}: holds no pieces: this is no SentencePiece model (nor JSON, nor ranks of tiktoken)", where);
  return out;
}

SpmNormalizer::SpmNormalizer(const ModelSpec& spec, const NormalizerSpec& rules, const std::string& where)
    : rules_(rules), whitespace_as_suffix_(spec.whitespace_as_suffix), charsmap_(rules.charsmap, where) {
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.pieces[id].type == PieceType::user_defined) {
      symbols_.add(spec.pieces[id].text, static_cast<std::uint32_t>(id));
    }
  }
}

SpmNormalizer::Step SpmNormalizer::step(std::string_view text) const {
  if (const Trie::Match symbol = symbols_.longest(text); symbol.size > 0) {
    return {text.substr(0, symbol.size), symbol.size};
  }
  if (const Charsmap::Match match = charsmap_.longest(text); match.size > 0) {
    return {match.normal, match.size};
  }
  const unicode::Decoded c = unicode::decode(text.data(), text.data() + text.size());
  return {c.cp == unicode::kInvalid ? unicode::kReplacement : text.substr(0, c.size), c.size};
}

std::string SpmNormalizer::apply(std::string_view text) const {
  const bool squeeze = rules_.remove_extra_whitespaces;
  while (squeeze && !text.empty()) {
    const Step first = step(text);
    if (first.normal != " ") {
      break;
    }
    text.remove_prefix(first.size);
  }
  std::string out;
  if (text.empty()) {
    return out;
  }
  const std::string_view blank = rules_.escape_whitespaces ? kBlank : " ";
  out.reserve(text.size() + text.size() / 2);
  if (rules_.add_dummy_prefix && !whitespace_as_suffix_) {
    out += blank;
  }
  bool after_blank = squeeze;
  while (!text.empty()) {
    Step next = step(text);
    while (after_blank && next.normal.starts_with(' ')) {
      next.normal.remove_prefix(1);
    }
    for (const char c : next.normal) {
      c == ' ' ? out += blank : out += c;
    }
    if (!next.normal.empty()) {
      after_blank = squeeze && next.normal.ends_with(' ');
    }
    text.remove_prefix(next.size);
  }
  while (squeeze && out.ends_with(blank)) {
    out.resize(out.size() - blank.size());
  }
  if (rules_.add_dummy_prefix && whitespace_as_suffix_) {
    out += blank;
  }
  return out;
}

}  // namespace kf::spm
