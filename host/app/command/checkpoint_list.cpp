#include <iostream>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "checkpoint/catalog.h"
#include "checkpoint/files/safetensors.h"
#include "config/tree/gguf.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

std::string age_of(const CheckpointEntry& entry) {
  return human_seconds(std::chrono::duration<double>(std::chrono::system_clock::now() - entry.saved).count());
}

std::string state_of(const CheckpointEntry& entry, bool verified) {
  const std::string place = entry.latest ? "latest, " : "";
  if (!entry.fault.empty()) {
    return place + "fault: " + entry.fault;
  }
  return place + (verified ? "verified" : "whole");
}

std::string four_places(double value) { return fixed(value, 4); }

template <class T>
std::string known(const std::optional<T>& number, const char* unknown, std::string (*text)(T)) {
  return number ? text(*number) : unknown;
}

void print_text(const std::vector<CheckpointEntry>& entries, bool verified) {
  std::vector<std::vector<std::string>> rows{{"name", "step", "tokens", "eval loss", "size", "age", "state"}};
  std::uint64_t bytes = 0;
  for (const CheckpointEntry& entry : entries) {
    rows.push_back({entry.path.filename().string(), known<std::int64_t>(entry.step, "?", to_text),
                    known<std::int64_t>(entry.tokens, "?", grouped), known<double>(entry.eval_loss, "-", four_places),
                    human_bytes(static_cast<double>(entry.bytes)), age_of(entry), state_of(entry, verified)});
    bytes += entry.bytes;
  }
  std::cout << text_table(rows, {1, 2, 3, 4, 5}) << entries.size() << (entries.size() == 1 ? " checkpoint, " : " checkpoints, ")
            << human_bytes(static_cast<double>(bytes)) << " in " << entries.front().path.parent_path().string() << '\n';
}

void print_json(const std::vector<CheckpointEntry>& entries) {
  config::Array rows;
  for (const CheckpointEntry& entry : entries) {
    config::Table row;
    row["path"] = config::Node(entry.path.string());
    row["step"] = entry.step ? config::Node(*entry.step) : config::Node();
    row["tokens"] = entry.tokens ? config::Node(*entry.tokens) : config::Node();
    row["eval_loss"] = entry.eval_loss ? config::Node(*entry.eval_loss) : config::Node();
    row["bytes"] = config::Node(static_cast<std::int64_t>(entry.bytes));
    row["saved"] = config::Node(static_cast<std::int64_t>(std::chrono::system_clock::to_time_t(entry.saved)));
    row["latest"] = config::Node(entry.latest);
    row["fault"] = config::Node(entry.fault);
    rows.emplace_back(std::move(row));
  }
  config::Table out;
  out["checkpoints"] = config::Node(std::move(rows));
  std::cout << config::to_json(config::Node(std::move(out))) << '\n';
}

/// A file by itself has no checksum: its header must be the format's, and tell of every byte.
bool verify_file(const fs::path& path) {
  try {
    const std::size_t tensors =
        gguf::is_gguf_file(path) ? gguf::read_header(MappedFile(path).bytes(), path).tensors.size() : SafetensorsFile(path).names().size();
    std::cout << path.string() << ": " << tensors << " tensors as the header says; it has no checksum\n";
    return true;
  } catch (const Error& e) {
    std::cout << path.string() << ": " << e.what() << '\n';
    return false;
  }
}

}  // namespace

int checkpoint_list(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint list", {"--format"}, {"--verify"}, false});
  KF_CHECK(list.words.size() == 1, Code::config, "one RUN, or a folder of checkpoints\n{}", usage::kCheckpoint);
  if (list.has("--format")) {
    check_word("--format", list.last("--format"), {"text", "json"});
  }
  const bool verifies = list.has("--verify");
  const std::vector<CheckpointEntry> entries = checkpoints_in(list.words[0], verifies ? Look::bytes : Look::sizes);
  list.last("--format") == "json" ? print_json(entries) : print_text(entries, verifies);
  return 0;
}

int checkpoint_verify(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint verify", {}, {}, false});
  KF_CHECK(!list.words.empty(), Code::config, "which CHECKPOINT or RUN?\n{}", usage::kCheckpoint);
  bool whole = true;
  for (const std::string& word : list.words) {
    if (fs::is_regular_file(word)) {
      whole = verify_file(word) && whole;
      continue;
    }
    for (const CheckpointEntry& entry : checkpoints_in(word, Look::bytes)) {
      whole = whole && entry.fault.empty();
      std::cout << entry.path.string() << ": "
                << (entry.fault.empty() ? "every byte is what was written, " + human_bytes(static_cast<double>(entry.bytes)) : entry.fault)
                << '\n';
    }
  }
  return whole ? 0 : static_cast<int>(Code::checkpoint);
}

}  // namespace kf
