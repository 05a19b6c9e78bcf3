#include "checkpoint/export/export.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "checkpoint/huggingface/import.h"
#include "config/huggingface/huggingface.h"
#include "config/load/load.h"
#include "core/error.h"
#include "model/transformer/build.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

/// The folders with models that the original library wrote: those of the tests, and of KF_HF_MODELS, if that names a folder of more.
std::vector<fs::path> model_folders() {
  std::vector<fs::path> out;
  const char* const more = std::getenv("KF_HF_MODELS");
  for (const fs::path& root : {fs::path(KF_TEST_DATA) / "hf", fs::path(more != nullptr ? more : "")}) {
    std::error_code error;
    for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
      if (config::is_huggingface_folder(it->path())) {
        out.push_back(it->path());
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

config::Config settings_of(const fs::path& folder) {
  config::Table model, train, job;
  model["preset"] = config::Node(folder.string());
  train["seq_len"] = config::Node(std::int64_t{8});
  job["model"] = config::Node(std::move(model));
  job["train"] = config::Node(std::move(train));
  config::Request request;
  request.recipe = config::Node(std::move(job), {config::Origin::Kind::recipe, folder.string(), 0, 0, {}});
  request.files_must_exist = false;
  return config::load_or_fail(request, native_registries().catalog()).config;
}

std::shared_ptr<Model> loaded(const config::Config& config, const fs::path& folder) {
  std::shared_ptr<Model> model = build_model(config, native_registries());
  materialize(*model, at::kCPU, at::kFloat, 0);
  load_huggingface(folder, *model);
  return model;
}

std::string type_of_weights(const fs::path& folder) {
  const NamedTensors all = open_huggingface(folder);
  return all.get(all.names.front()).scalar_type() == at::kBFloat16 ? "bfloat16" : "float32";
}

Exported exported(const fs::path& into, const config::Config& config, Model& model, const fs::path& source, const ExportOptions& options) {
  const std::vector<std::pair<std::string, at::Tensor>> weights = weights_of(model);
  ExportFiles files;
  files.source = source;
  return export_model(into, config.model, model, weights_in(weights), files, options);
}

/// A folder with nothing but the config.json.
fs::path config_alone(const test::TempDir& dir, const fs::path& folder) {
  fs::create_directories(dir / "source");
  fs::copy_file(folder / "config.json", dir / "source/config.json");
  return dir / "source";
}

/// The names by which text models have tensors of a model that also sees; "" for what does the seeing.
std::string text_name(const std::string& name) {
  for (const char* seeing : {"vision_tower.", "vision_model.", "multi_modal_projector.", "embed_vision."}) {
    if (name.find(seeing) != std::string::npos) {
      return "";
    }
  }
  if (name.rfind("model.language_model.", 0) == 0) {
    return "model." + name.substr(21);
  }
  return name.rfind("language_model.", 0) == 0 ? name.substr(15) : name;
}

/// What differs between two folders' tensors, by name and bit.
std::string differences(const NamedTensors& a, const NamedTensors& b) {
  std::string out;
  const std::set<std::string> there(b.names.begin(), b.names.end());
  std::set<std::string> named;
  for (const std::string& stored : a.names) {
    const std::string name = text_name(stored);
    if (name.empty()) {
      continue;
    }
    named.insert(name);
    if (there.count(name) == 0) {
      out += " -" + name;
      continue;
    }
    at::Tensor x = a.get(stored), y = b.get(name);
    if (name == "model.decoder.embed_positions.weight") {  // its first rows are of no position
      x = x.slice(0, 2);
      y = y.slice(0, 2);
    }
    if (x.scalar_type() != y.scalar_type() || !at::equal(x, y)) {
      out += " !" + name;
    }
  }
  for (const std::string& name : b.names) {
    out += named.count(name) == 0 ? " +" + name : "";
  }
  return out;
}

}  // namespace

TEST_CASE("export: what was imported is written again to the bit, in every family", "[export]") {
  for (const fs::path& folder : model_folders()) {
    CAPTURE(folder);
    const test::TempDir dir;
    const config::Config config = settings_of(folder);
    const auto model = loaded(config, folder);
    ExportOptions options;
    options.dtype = type_of_weights(folder);
    std::string failure;
    try {
      const Exported done = exported(dir / "out", config, *model, config_alone(dir, folder), options);
      CHECK(done.config.of_source);
    } catch (const Error& error) {
      failure = error.what();
    }
    CHECK(failure.empty());
    if (failure.empty()) {
      CHECK(differences(open_huggingface(folder), open_huggingface(dir / "out")).empty());
    }
  }
}

TEST_CASE("export: a weight past the end of float16 is refused by name, and nothing is written", "[export]") {
  const test::TempDir dir;
  const config::Config config = test::tiny_config();
  const std::shared_ptr<Model> model = build_model(config, native_registries());
  materialize(*model, at::kCPU, at::kFloat, 0);
  {
    const at::NoGradGuard no_grad;
    weights_of(*model).front().second.view({-1})[0] = -1e5;
  }
  ExportOptions options;
  options.dtype = "float16";
  CHECK_THROWS_WITH(exported(dir / "out", config, *model, {}, options),
                    Contains("embed_tokens.weight") && Contains("magnitude 100000") && Contains("use bfloat16 (or float32)"));
  CHECK(fs::is_empty(dir.path()));
  options.dtype = "bfloat16";
  CHECK_NOTHROW(exported(dir / "out", config, *model, {}, options));
}

TEST_CASE("export: settings without a source become a family that reads to the same", "[export]") {
  for (const fs::path& folder : model_folders()) {
    CAPTURE(folder);
    const test::TempDir dir;
    const config::Config config = settings_of(folder);
    const auto model = loaded(config, folder);
    std::string failure;
    try {
      ExportOptions options;
      options.dtype = "float32";
      const Exported done = exported(dir / "out", config, *model, {}, options);
      const auto again = loaded(settings_of(dir / "out"), dir / "out");
      const auto before = weights_of(*model), after = weights_of(*again);
      REQUIRE(before.size() == after.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        CAPTURE(before[i].first);
        CHECK(at::equal(before[i].second, after[i].second));
      }
      if (std::getenv("KF_SAY") != nullptr) {
        std::ifstream in(dir / "out/config.json");
        WARN(folder.filename().string() << " -> " << done.config.family << " " << std::string(std::istreambuf_iterator<char>(in), {}));
      }
    } catch (const Error& error) {
      failure = error.what();
    }
    CHECK(failure.empty());
  }
}
