#include "checkpoint/writer.h"

#include <cstdio>
#include <set>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/cpu_rng.h"
#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/files/safetensors.h"
#include "checkpoint/state_file.h"
#include "checkpoint/together.h"
#include "config/tree/json.h"
#include "core/group_sync.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

FileDigest write_text(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(text);
  return file.commit();
}

/// `stem`.safetensors, or a rank's of many.
std::string file_name(const std::string& stem, const Group& files) {
  if (files.size() == 1) {
    return stem + ".safetensors";
  }
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05lld-of-%05lld", static_cast<long long>(files.rank()) + 1,
                static_cast<long long>(files.size()));
  return stem + numbers + ".safetensors";
}

StagedSave::File lay_out(std::vector<TensorPiece> pieces) {
  StagedSave::File file;
  std::set<std::string> taken;
  for (const TensorPiece& piece : pieces) {
    taken.insert(piece.name);
  }
  for (TensorPiece& piece : pieces) {
    if (piece.range.numel() == 0 && !piece.range.covers(piece.shape)) {
      continue;  // this rank has none of it
    }
    StoredTensor& stored = file.index[piece.name];
    std::string name = piece.name;
    for (std::size_t number = stored.parts.size() + 1; !stored.parts.empty() && !taken.insert(name).second; ++number) {
      name = format("{}#{}", piece.name, number);
    }
    stored.shape = piece.shape;
    stored.parts.push_back({{}, name, piece.range});
    file.tensors.emplace_back(std::move(name), std::move(piece.tensor));
  }
  return file;
}

/// What a rank has written.
struct Written {
  std::map<std::string, FileDigest> files;
  PieceIndex model, optimizer;
};

/// Writes the tensors of one file, and says where their parts lie.
PieceIndex write_file(const fs::path& folder, const std::string& name, const StagedSave::File& file,
                      const std::map<std::string, std::string>& metadata, Written& out) {
  std::vector<StoredBytes> where;
  out.files[name] = write_safetensors(folder / name, file.tensors, metadata, &where);
  std::map<std::string, StoredBytes> by_name;
  for (std::size_t i = 0; i < where.size(); ++i) {
    by_name[file.tensors[i].first] = where[i];
  }
  PieceIndex index = file.index;
  for (auto& [tensor, stored] : index) {
    for (StoredPiece& part : stored.parts) {
      part.file = name;
      part.bytes = by_name.at(part.name);
    }
  }
  return index;
}

Written write_tensors(const fs::path& folder, const StagedSave& staged, const Group& files) {
  Written out;
  out.model = write_file(folder, file_name("model", files), staged.model, {{"format", "pt"}}, out);
  out.optimizer = write_file(folder, file_name("optimizer", files), staged.optimizer, {}, out);
  return out;
}

/// For the first rank.
std::string to_text(const Written& written) {
  Table table;
  table["files"] = to_node(written.files);
  table["model"] = to_node(written.model);
  table["optimizer"] = to_node(written.optimizer);
  return config::to_json(Node(std::move(table)));
}

/// What all ranks have written.
Written gather(const std::vector<std::string>& told, const fs::path& folder) {
  Written all;
  for (const std::string& text : told) {
    const Node root = config::parse_json(text, "what a rank has written");
    const Table& table = *root.table();
    all.files.merge(digests_from(*table.find("files"), folder));
    add(all.model, piece_index_from(*table.find("model"), folder));
    add(all.optimizer, piece_index_from(*table.find("optimizer"), folder));
  }
  check_complete(all.model, folder);
  check_complete(all.optimizer, folder);
  return all;
}

/// Writes what is the first rank's; returns the text of state.json, which comes last.
std::string write_rest(const fs::path& folder, const Snapshot& rest, const Group& files, Written all) {
  const auto write_index = [&](const char* name, const PieceIndex& index) {
    all.files[name] = write_text(folder / name, config::to_json(to_node(index), config::JsonStyle::plain, 1) + "\n");
  };
  if (files.size() > 1) {
    write_index(kModelIndex, all.model);
    write_index(kOptimizerIndex, all.optimizer);
  }
  all.files[kJobFile] = write_text(folder / kJobFile, rest.state.job_toml);
  std::string text =
      to_text(StateFile{rest.state, rest.cpu_rng, rest.optimizer_integers, rest.optimizer_reals, std::move(all.files), rest.left_out});
  write_text(folder / kStateFile, text);
  return text;
}

bool holds_state(const fs::path& checkpoint, const std::string& state_text) {
  return path_exists(checkpoint / kStateFile) && checkpoint_fault(checkpoint).empty() && read_file(checkpoint / kStateFile) == state_text;
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointManager& checkpoints, std::string frozen_from)
    : checkpoints_(checkpoints), frozen_from_(std::move(frozen_from)) {}

Snapshot CheckpointWriter::snapshot(const CheckpointState& state, Model& model, const Optimizer& optimizer, const Placements& placements) {
  return as_checkpoint_error([&] {
    if (!frozen_from_.empty()) {
      check_frozen_whole(model, placements);
    }
    if (!left_out_) {
      left_out_ = frozen_from_.empty() ? LeftOut() : frozen_weights(model, frozen_from_);
    }
    const OptimizerState moments = optimizer.state();
    Snapshot out{pieces_of(model, placements), {}, state, moments.integers, moments.reals, cpu_rng_state(), *left_out_};
    std::erase_if(out.weights, [&](const TensorPiece& weight) { return left_out_->contains(weight.name); });
    const MomentPlaces places(model, placements);
    for (const auto& [name, tensor] : moments.tensors) {
      out.moments.push_back(places.piece(name, tensor));
    }
    return out;
  });
}

StagedSave CheckpointWriter::stage(Snapshot snapshot) {
  StagedSave out;
  out.model = lay_out(std::exchange(snapshot.weights, {}));
  out.optimizer = lay_out(std::exchange(snapshot.moments, {}));
  out.rest = std::move(snapshot);
  return out;
}

fs::path CheckpointWriter::write(const StagedSave& staged, Group& files, const std::string& name) {
  const std::int64_t step = staged.rest.state.run.step;
  fs::path target = checkpoints_.place(step, name);
  const bool leads = files.rank() == 0;
  const auto all = [&](const std::function<std::string()>& body) { return together(files, [&] { return as_checkpoint_error(body); }); };
  std::optional<PendingFolder> folder;  // the first rank's
  const std::string pending = all([&]() -> std::string {
                                if (!leads) {
                                  return {};
                                }
                                checkpoints_.make_room(target);
                                folder.emplace(target);
                                return folder->path().filename().string();
                              }).front();
  const fs::path inside = target.parent_path() / pending;
  const std::vector<std::string> told = all([&] { return to_text(write_tensors(inside, staged, files)); });
  all([&]() -> std::string {
    if (leads) {
      const std::string text = write_rest(inside, staged.rest, files, gather(told, inside));
      if (!holds_state(target, text)) {
        GroupSync::flush();
        folder->commit();
      }
      if (name.empty()) {
        checkpoints_.publish(step, staged.outdated);
      }
    }
    return {};
  });
  return target;
}

fs::path CheckpointWriter::save(const CheckpointState& state, Model& model, const Optimizer& optimizer, Group& files,
                                const std::string& name) {
  StagedSave staged = stage(snapshot(state, model, optimizer));
  if (name.empty()) {
    staged.outdated = checkpoints_.outdated_by(state);
  }
  return write(staged, files, name);
}

}  // namespace kf
