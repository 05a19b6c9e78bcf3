#include "checkpoint/weights_at.h"

#include <ATen/ATen.h>

#include <utility>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/foreign/gguf.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/reader.h"
#include "config/huggingface/huggingface.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

WeightsAt open_checkpoint(const fs::path& path) {
  const auto reader = std::make_shared<CheckpointReader>(path);
  return {WeightsAt::Kind::checkpoint, path, named(reader->weights()), read_state(path), reader};
}

std::vector<LazyTensor> lazy(const NamedTensors& tensors) {
  std::vector<LazyTensor> out;
  for (const std::string& name : tensors.names) {
    const TensorKind kind = tensors.ranged->kind(name);
    out.push_back({name, kind.type, kind.shape, [&tensors, name] { return tensors.get(name); }});
  }
  return out;
}

FileDigest write_text(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(text);
  return file.commit();
}

void write_checkpoint(const fs::path& folder, const NamedTensors& tensors, StateFile content) {
  content.state.values = {};
  content.optimizer_integers.clear();
  content.optimizer_reals.clear();
  content.files.clear();
  content.files[kModelFile] = write_safetensors(folder / kModelFile, lazy(tensors), {{"format", "pt"}});
  content.files[kOptimizerFile] = write_safetensors(folder / kOptimizerFile, std::vector<LazyTensor>());
  content.files[kJobFile] = write_text(folder / kJobFile, content.state.job_toml);
  write_text(folder / kStateFile, to_text(content));
}

/// Whether another file than the weights: config.json, tokenizer, generation_config.json, ...
bool stands_beside(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  for (const char* weights : {".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".gguf", ".h5"}) {
    if (name.ends_with(weights)) {
      return false;
    }
  }
  return entry.is_regular_file();
}

void write_huggingface(const fs::path& folder, const NamedTensors& tensors, const fs::path& like) {
  for (const fs::directory_entry& entry : fs::directory_iterator(like)) {
    if (stands_beside(entry)) {
      write_text(folder / entry.path().filename(), read_file(entry.path()));
    }
  }
  write_safetensors(folder / "model.safetensors", lazy(tensors), {{"format", "pt"}});
}

}  // namespace

WeightsAt open_weights(const fs::path& source) {
  return as_checkpoint_error([&]() -> WeightsAt {
    KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
    if (!fs::is_directory(source)) {
      if (gguf::is_gguf_file(source)) {
        const gguf::OpenFile file(source);
        return {WeightsAt::Kind::file, source, file.as_ours(file.tensors()), {}, {}};
      }
      const auto stored = std::make_shared<const StoredTensors>(source);
      return {WeightsAt::Kind::file, source, named(*stored), {}, std::const_pointer_cast<StoredTensors>(stored)};
    }
    if (config::is_huggingface_folder(source) && !path_exists(source / kStateFile)) {
      return {WeightsAt::Kind::huggingface, source, open_huggingface(source), {}, {}};
    }
    return open_checkpoint(find_checkpoint(source, check_sizes));  // every byte is checked when it is opened
  });
}

void note_spoiled(Spoiled& out, const std::string& name, const at::Tensor& bad) {
  if (const auto count = bad.sum().item<std::int64_t>(); count > 0) {
    out.push_back(format("{} ({} of {})", name, count, bad.numel()));
  }
}

NamedTensors in_type(NamedTensors tensors, at::ScalarType type, Spoiled& too_large) {
  const auto kind = [kind = tensors.ranged->kind, type](const std::string& name) {
    TensorKind found = kind(name);
    found.type = c10::isFloatingType(found.type) ? type : found.type;
    return found;
  };
  tensors.get = [get = tensors.get, kind, &too_large](const std::string& name) {
    const at::Tensor before = get(name);
    at::Tensor after = before.to(kind(name).type);
    if (after.scalar_type() != before.scalar_type() && c10::isFloatingType(after.scalar_type())) {
      note_spoiled(too_large, name, after.isinf().logical_and_(before.isfinite()));
    }
    return after;
  };
  tensors.ranged->kind = kind;
  return tensors;
}

void write_weights(const fs::path& given, const NamedTensors& tensors, const WeightsAt& like) {
  as_checkpoint_error([&] {
    const fs::path plain = given.lexically_normal(), named = plain.has_filename() ? plain : plain.parent_path();
    const fs::path target = named.has_parent_path() ? named : "." / named;
    KF_CHECK(!fs::exists(fs::symlink_status(target)), Code::checkpoint, "{} exists; choose another name, or remove it", target);
    fs::create_directories(target.parent_path());
    if (target.extension() == ".safetensors") {
      write_safetensors(target, lazy(tensors), {{"format", "pt"}});
      return;
    }
    KF_CHECK(like.kind != WeightsAt::Kind::file, Code::checkpoint,
             "{} is a file by itself, which says nothing of a model: {} must end with .safetensors, too", like.path, target);
    PendingFolder folder(target);
    like.state ? write_checkpoint(folder.path(), tensors, *like.state) : write_huggingface(folder.path(), tensors, like.path);
    folder.commit();
  });
}

}  // namespace kf
