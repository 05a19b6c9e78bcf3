#include "data/cache/manifest.h"

#include <nlohmann/json.hpp>

#include <limits>

#include "core/error.h"

namespace kf::cache {
namespace {

using json = nlohmann::ordered_json;

json array_json(const ArrayInfo& array) { return {{"dtype", array.descr}, {"count", array.count}, {"xxh3_128", array.hash}}; }

ArrayInfo array_from(const json& value) {
  ArrayInfo out{value.at("dtype"), value.at("count"), value.at("xxh3_128")};
  width_of(out.descr);
  KF_CHECK(out.count >= 0 && out.count < std::int64_t{1} << 56, Code::data, "an array of {} values", out.count);
  return out;
}

json counts_json(const Counts& counts) {
  return {{"documents", counts.documents}, {"tokens", counts.tokens}, {"text_bytes", counts.text_bytes}};
}

Counts counts_from(const json& value) {
  const Counts out{value.at("documents"), value.at("tokens"), value.at("text_bytes")};
  for (const std::int64_t count : {out.documents, out.tokens, out.text_bytes}) {
    KF_CHECK(count >= 0 && count < std::int64_t{1} << 48, Code::data, "{} where a count belongs", count);  // sums of them fit
  }
  return out;
}

json notes_json(const Notes& notes) {
  return {{"empty", notes.empty},
          {"dropped_by_transforms", notes.dropped},
          {"special_names", notes.special_names},
          {"skipped", {{"count", notes.skipped}, {"first", notes.skipped_reasons}}}};
}

Notes notes_from(const json& value) {
  const json& skipped = value.at("skipped");
  return {value.at("empty"), value.at("dropped_by_transforms"), value.at("special_names"), skipped.at("count"), skipped.at("first")};
}

json shard_json(const Shard& shard) {
  json pieces = json::array();
  for (const Piece& piece : shard.pieces) {
    pieces.push_back({piece.file, piece.begin, piece.end});
  }
  json files = json::array();
  for (const auto& [file, counts] : shard.files) {
    files.push_back({file, counts.documents, counts.tokens, counts.text_bytes});
  }
  json out = counts_json(shard.counts);
  out["max_id"] = shard.max_id;
  out["ids"] = array_json(shard.ids);
  out["ends"] = array_json(shard.ends);
  out["hashes"] = array_json(shard.hashes);
  if (!shard.mask.descr.empty()) {
    out["mask"] = array_json(shard.mask);
  }
  out["notes"] = notes_json(shard.notes);
  out["pieces"] = pieces;
  out["files"] = files;
  return out;
}

void check_shape(const Shard& shard) {
  KF_CHECK(shard.ids.count == shard.counts.tokens && shard.ends.count == shard.counts.documents &&
               shard.hashes.count == shard.counts.documents && (shard.mask.descr.empty() || shard.mask.count == shard.counts.tokens),
           Code::data, "the arrays of a shard do not fit together");
  KF_CHECK((shard.ids.descr == "<u2" || shard.ids.descr == "<u4") && shard.ends.descr == "<i8" && shard.hashes.descr == "<u8" &&
               (shard.mask.descr.empty() || shard.mask.descr == "|u1"),
           Code::data, "a shard's arrays have other types than caches do");
}

Shard shard_from(const json& value) {
  Shard out;
  for (const json& piece : value.at("pieces")) {
    out.pieces.push_back({piece.at(0), piece.at(1), piece.at(2)});
  }
  for (const json& file : value.at("files")) {
    out.files.emplace_back(file.at(0).get<std::size_t>(), Counts{file.at(1), file.at(2), file.at(3)});
  }
  out.counts = counts_from(value);
  out.notes = notes_from(value.at("notes"));
  out.max_id = value.at("max_id");
  out.ids = array_from(value.at("ids"));
  out.ends = array_from(value.at("ends"));
  out.hashes = array_from(value.at("hashes"));
  if (value.contains("mask")) {
    out.mask = array_from(value.at("mask"));
  }
  check_shape(out);
  return out;
}

/// Every number is whole, and none below 0 but the -1 of "no largest id": checked before anything is converted.
bool check_number(int /*depth*/, json::parse_event_t event, json& value) {
  if (event == json::parse_event_t::value && value.is_number()) {
    const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max()
                                                 : value.is_number_integer() && value.get<std::int64_t>() == -1;
    KF_CHECK(fits, Code::data, "{} where a count belongs", value.dump());
  }
  return true;
}

/// Runs `f` on the parsed text; whatever is wrong names the file.
template <class F>
auto parsed(const std::string& text, const fs::path& file, F f) {
  try {
    return f(json::parse(text, check_number));
  } catch (const nlohmann::json::exception& error) {
    fail(Code::data, "{} is damaged: {}", file, error.what());
  } catch (const Error& error) {
    fail(Code::data, "{} is damaged: {}", file, error.what());
  }
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  documents += other.documents;
  tokens += other.tokens;
  text_bytes += other.text_bytes;
  return *this;
}

Notes& Notes::operator+=(const Notes& other) {
  constexpr std::size_t kReasons = 5;
  empty += other.empty;
  dropped += other.dropped;
  special_names += other.special_names;
  skipped += other.skipped;
  for (std::size_t i = 0; i < other.skipped_reasons.size() && skipped_reasons.size() < kReasons; ++i) {
    skipped_reasons.push_back(other.skipped_reasons[i]);
  }
  return *this;
}

std::string shard_file(const char* what, std::size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 5 ? 5 - digits.size() : 0, '0');
  return format("{}-{}.npy", what, digits);
}

std::string to_json(const Shard& shard) { return shard_json(shard).dump(); }

Shard shard_from_json(const std::string& text, const fs::path& file) {
  return parsed(text, file, [](const json& value) { return shard_from(value); });
}

std::string to_json(const Manifest& manifest) {
  const auto lines = [](const json& list) {
    std::string out = "[";
    for (std::size_t i = 0; i < list.size(); ++i) {
      out += (i == 0 ? "\n    " : ",\n    ") + list[i].dump();
    }
    return out + "\n  ]";
  };
  json sources = json::array();
  for (std::size_t i = 0; i < manifest.parts.sources.size(); ++i) {
    const KeySource& source = manifest.parts.sources[i];
    json line{{"name", source.name}, {"size", source.size}, {"kind", source.kind}, {"hash", source.hash}};
    line.update(counts_json(manifest.per_source[i]));
    sources.push_back(std::move(line));
  }
  json shards = json::array();
  for (const Shard& shard : manifest.shards) {
    shards.push_back(shard_json(shard));
  }
  json counts = counts_json(manifest.counts);
  counts.update(notes_json(manifest.notes));
  const json tokenizer{{"description", manifest.parts.tokenizer_description}, {"hash", manifest.parts.tokenizer}};
  return format(
      "{\n  \"format\": {},\n  \"key\": {},\n  \"tokenizer\": {},\n  \"options\": {},\n  \"counts\": {},\n  \"sources\": {},\n  "
      "\"shards\": {}\n}\n",
      kFormat, json(manifest.key).dump(), tokenizer.dump(), json(manifest.parts.options).dump(), counts.dump(), lines(sources),
      lines(shards));
}

Manifest manifest_from_json(const std::string& text, const fs::path& file) {
  return parsed(text, file, [&](const json& value) {
    KF_CHECK(value.at("format") == kFormat, Code::data, "its format is {}, and this program reads {}", value.at("format").dump(), kFormat);
    Manifest out;
    out.key = value.at("key");
    out.parts.tokenizer = value.at("tokenizer").at("hash");
    out.parts.tokenizer_description = value.at("tokenizer").at("description");
    out.parts.options = value.at("options").get<std::map<std::string, std::string>>();
    out.counts = counts_from(value.at("counts"));
    out.notes = notes_from(value.at("counts"));
    for (const json& source : value.at("sources")) {
      out.parts.sources.push_back({source.at("name"), source.at("size"), source.at("kind"), source.at("hash")});
      out.per_source.push_back(counts_from(source));
    }
    Counts total;
    for (const json& shard : value.at("shards")) {
      out.shards.push_back(shard_from(shard));
      total += out.shards.back().counts;
    }
    KF_CHECK(total == out.counts, Code::data, "its shards hold {} documents and {} tokens, not {} and {}", total.documents, total.tokens,
             out.counts.documents, out.counts.tokens);
    KF_CHECK(key_of(out.parts) == out.key, Code::data, "the key does not follow from its parts");
    return out;
  });
}

}  // namespace kf::cache
