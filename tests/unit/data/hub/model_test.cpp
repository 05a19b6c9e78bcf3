// Models and tokenizers by name, from the stand-in server and from the cache.

#include <catch2/catch.hpp>

#include <chrono>

#include "core/credentials.h"
#include "core/error.h"
#include "core/hub_name.h"
#include "data/hub/cache.h"
#include "data/hub/client.h"
#include "data/hub/model.h"
#include "unit/data/hub/server.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using hub::ModelFiles;
using Names = std::vector<std::string>;

/// What a repository of models holds beside what is wanted of it.
void fill(const test::HubServer& server, const std::string& name) {
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
                           "README.md", "pytorch_model.bin", "onnx/model.onnx", "model-00001-of-00002.safetensors"}) {
    server.add_to(name, file, std::string("the content of ") + file);
  }
  server.add_to(name, "model-00002-of-00002.safetensors", std::string(700, 'w'));  // long enough for a sha256
  server.add_to(name, "model.safetensors.index.json",
                R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
}

Names names_in(const fs::path& folder) {
  Names out;
  for (const fs::path& path : glob(folder, "**")) {
    out.push_back(path.lexically_relative(folder).string());
  }
  return out;
}

/// The cache in a fresh folder, the hub where `endpoint` says.
struct Place {
  explicit Place(const std::string& endpoint)
      : environment({{"HF_HOME", dir.path().string()}, {"HF_ENDPOINT", endpoint}, {"HF_HUB_OFFLINE", "0"}}) {}
  test::TempDir dir;
  test::Environment environment;
};

}  // namespace

TEST_CASE("hub: names of models, and what tells them from paths", "[hub]") {
  const auto name = [](const char* text, bool words) {
    const std::optional<HubName> found = hub_name(text, words);
    return found ? found->name + "@" + found->revision : "";
  };
  CHECK(name("org/model", false) == "org/model@main");
  CHECK(name("org/model-1.5B@refs/pr/3", false) == "org/model-1.5B@refs/pr/3");
  CHECK(name("gpt2", false) == "gpt2@main");
  CHECK(name("bert-base-uncased", true) == "bert-base-uncased@main");
  CHECK(name("bert-base-uncased", false).empty());  // a run's name, more likely
  CHECK(name("hf:bert-base-uncased", false) == "bert-base-uncased@main");
  for (const char* path : {"", "/org/model", "./model", "../model", "org/model/step_3", "~/model", "tokenizer.json",
                           "org/model.safetensors", "lua:words", "org/", "/", "a b/c", "org/model@", "org/model@a b", "-x/y"}) {
    CAPTURE(path);
    CHECK(name(path, true).empty());
  }
}

TEST_CASE("hub: of a model only what is wanted is fetched, never what is pickled, and once", "[hub]") {
  const test::HubServer server;
  fill(server, "org/whole");
  const Place place(server.endpoint("ok"));
  const fs::path folder = hub::fetch_model({"org/whole"}, ModelFiles::config);
  CHECK(names_in(folder) == Names{"config.json", "generation_config.json"});
  CHECK(folder.parent_path().parent_path() == place.dir / "hub/models--org--whole");
  CHECK(hub::fetch_model({"org/whole"}, ModelFiles::tokenizer) == folder);
  CHECK(names_in(folder) == Names{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"});
  CHECK(hub::locate("org/whole", ModelFiles::weights) == folder);
  CHECK(names_in(folder) == Names{"config.json", "generation_config.json", "model-00001-of-00002.safetensors",
                                  "model-00002-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.json",
                                  "tokenizer_config.json"});
  CHECK(read_file(folder / "config.json") == "the content of config.json");
  CHECK(server.requests("/resolve/").size() == 7);
  hub::fetch_model({"org/whole"}, ModelFiles::weights);
  CHECK(server.requests("/revision/").size() == 3);  // one question a part
  CHECK(read_file(place.dir / "hub/models--org--whole/refs/main").size() == 40);
}

TEST_CASE("hub: a model of the cache needs no hub: offline, by its commit, and with a warning where the hub is gone", "[hub]") {
  const test::TempDir dir;
  const std::string commit(40, 'a');
  const fs::path snapshot = dir / "hub/models--org--cached/snapshots" / commit;
  const fs::path nothing = dir / "hub/models--org--part/snapshots" / commit;
  dir.write("hub/models--org--cached/refs/main", commit);
  dir.write(snapshot / "config.json", "{}");
  dir.write(snapshot / "tokenizer.json", "{}");
  dir.write("hub/models--org--part/refs/main", commit);
  dir.write(nothing / "config.json", "{}");
  const std::string closed = "http://127.0.0.1:1";
  {
    const test::Environment offline({{"HF_HOME", dir.path().string()}, {"HF_ENDPOINT", closed}, {"HF_HUB_OFFLINE", "1"}});
    CHECK(hub::fetch_model({"org/cached"}, ModelFiles::tokenizer) == snapshot);
    CHECK_THROWS_WITH(hub::fetch_model({"org/part"}, ModelFiles::tokenizer), Contains("holds only some of its files: no tokenizer"));
    CHECK_THROWS_WITH(hub::fetch_model({"org/cached"}, ModelFiles::weights), Contains("not all of config.json and the weights"));
    CHECK_THROWS_WITH(hub::fetch_model({"org/none"}, ModelFiles::config), Contains("holds no revision main"));
    CHECK_THROWS_WITH(hub::fetch_model({"org/cached", "v2"}, ModelFiles::config), Contains("holds no revision v2"));
  }
  const test::Environment online({{"HF_HOME", dir.path().string()}, {"HF_ENDPOINT", closed}, {"HF_HUB_OFFLINE", "0"}});
  CHECK(hub::fetch_model({"org/cached", commit}, ModelFiles::tokenizer) == snapshot);
  CHECK(hub::fetch_model({"org/cached"}, ModelFiles::config) == snapshot);
  CHECK_THROWS_WITH(hub::fetch_model({"org/part"}, ModelFiles::tokenizer), Contains("127.0.0.1") && Contains("HF_HUB_OFFLINE=1"));
}

TEST_CASE("hub: pickled weights are fetched where there are no safetensors", "[hub]") {
  const test::HubServer server;
  for (const char* file : {"config.json", "pytorch_model-00001-of-00001.bin", "training_args.bin"}) {
    server.add_to("org/pickled", file, std::string("the content of ") + file);
  }
  server.add_to("org/pickled", "pytorch_model.bin.index.json", R"({"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}})");
  server.add_to("org/one", "config.json", "{}");
  server.add_to("org/one", "pytorch_model.bin", "x");
  const Place place(server.endpoint("ok"));
  CHECK(names_in(hub::fetch_model({"org/pickled"}, ModelFiles::weights)) ==
        Names{"config.json", "pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"});
  CHECK(names_in(hub::fetch_model({"org/one"}, ModelFiles::weights)) == Names{"config.json", "pytorch_model.bin"});
}

TEST_CASE("hub: models that cannot be had say why", "[hub]") {
  const test::HubServer server;
  server.add_to("org/pickled", "config.json", "{}");
  server.add_to("org/pickled", "model.onnx", "x");
  server.add_to("org/data", "train.txt", "x");
  server.add_to("gpt2", "tokenizer.json", "{}");
  const Place place(server.endpoint("ok"));
  CHECK_THROWS_WITH(hub::fetch_model({"org/pickled"}, ModelFiles::weights),
                    Contains("model.safetensors") && Contains("pytorch_model.bin") && Contains("no weights"));
  CHECK_THROWS_WITH(hub::fetch_model({"org/pickled"}, ModelFiles::tokenizer), Contains("holds no tokenizer"));
  CHECK_THROWS_WITH(hub::fetch_model({"org/data"}, ModelFiles::config), Contains("has no config.json"));
  CHECK_THROWS_WITH(hub::locate("org/nowhere", ModelFiles::weights),
                    Contains("status 404") && Contains("no such model") && Contains("there is no file or folder \"org/nowhere\""));
  CHECK_THROWS_WITH(hub::fetch_model({"org/pickled", "absent"}, ModelFiles::config), Contains("status 404"));
  CHECK(hub::locate("no such thing", ModelFiles::weights) == "no such thing");
  CHECK(hub::locate(place.dir.path().string(), ModelFiles::weights) == place.dir.path());
  CHECK(names_in(hub::locate("gpt2", ModelFiles::tokenizer)) == Names{"tokenizer.json"});
}

TEST_CASE("hub: a hub that cannot be reached is given up after two tries, and the message says what to do", "[hub]") {
  const auto begin = std::chrono::steady_clock::now();
  const hub::Client client("http://user:sekrit@127.0.0.1:1", "", hub::Patience{});
  try {
    client.commit("org/set", "main");
    FAIL("nothing answers there");
  } catch (const hub::Unreachable& error) {
    CHECK_THAT(error.what(), Contains("http://127.0.0.1:1/api/datasets/org/set") && Contains("(tried 2 times)") &&
                                 Contains("https_proxy") && Contains("HF_ENDPOINT") && Contains("HF_HUB_OFFLINE=1"));
    CHECK_THAT(error.what(), !Contains("sekrit") && !Contains("user"));
  }
  // A second between the two; refusals come at once.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("credentials: URLs are shown without user, password and query", "[hub]") {
  CHECK(without_credentials("see http://me:pw@host:9/a?b and https://x@y, not a@b://c") ==
        "see http://host:9/a?b and https://y, not a@b://c");
  CHECK(without_credentials("http://a:p@ss@host/x") == "http://host/x");
  CHECK(without_credentials("http://host/a@b ://") == "http://host/a@b ://");
  CHECK(shown_url("https://u:p@cdn.host/file?X-Amz-Signature=abc") == "https://cdn.host/file");
}
