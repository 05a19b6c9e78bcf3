#include "checkpoint/manager.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <limits>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "support/checkpoints.h"
#include "support/temp_dir.h"
#include "support/tiny.h"
#include "unit/checkpoint/fake_run.h"
#include "unit/checkpoint/listing.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::listing;
using test::FakeModel;
using test::FakeOptimizer;
using Run = test::FakeRun;
using test::state_of;

namespace {

void flip_byte(const fs::path& path, std::size_t from_end = 1) {
  std::string bytes = read_file(path);
  bytes[bytes.size() - from_end] ^= 1;
  write_file_atomic(path, bytes);
}

/// Other text behind `before` in state.json, whose own checksum holds again.
void replace_in_state(const fs::path& checkpoint, const std::string& before, std::size_t size, const std::string& text) {
  std::string rest = read_file(checkpoint / "state.json");
  rest.erase(0, rest.find('\n') + 1);
  REQUIRE(rest.find(before) != std::string::npos);
  rest.replace(rest.find(before) + before.size(), size, text);
  write_file_atomic(checkpoint / "state.json", "{\"crc32\": \"" + hex32(extend_crc32(0, rest.data(), rest.size())) + "\",\n" + rest);
}

/// Runs `body` in a child process; its exit status, 128 + N when signal N ended it.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
    }
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Whoever opened it would wait for its writer.
void pipe_instead(const fs::path& file) {
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
}

}  // namespace

TEST_CASE("checkpoint: everything comes back bit for bit", "[checkpoint]") {
  const test::TempDir dir;
  FakeModel model;
  FakeOptimizer optimizer;
  model.fill(1.0 / 3);
  optimizer.step(0.1);
  optimizer.sum_ = -std::numeric_limits<double>::infinity();
  config::Table hook;
  hook["mean"] = config::Node(0.1);
  hook["count"] = config::Node(std::int64_t{7});
  hook["bytes"] = config::Node(std::string("\xff\x00\"", 3));
  CheckpointState state = state_of(10);
  state.finished = true;
  state.values["hooks/spike"] = config::Node(hook);
  config::Table job;
  job["optimizer.lr"] = config::Node(3e-4);
  state.job = config::Node(job);
  state.code = config::Node(hook);
  state.versions = config::Node(hook);
  state.mesh = config::Node(job);
  state.max_steps = 40;
  state.run.skipped = 3;
  at::rand({3});
  at::randn({1});  // leaves the second of a pair of normal numbers in the generator
  CheckpointManager checkpoints({.dir = dir / "a" / "checkpoints", .keep_last = 3, .keep_forever = {}});
  const fs::path path = test::save(checkpoints, state, model, optimizer);
  const at::Tensor uniform = at::rand({100});
  const at::Tensor normal = at::randn({100});

  CHECK(path == dir / "a" / "checkpoints" / "step_10");
  CHECK(listing(path) == "job.toml model.safetensors optimizer.safetensors state.json");
  CHECK(fs::read_symlink(dir / "a" / "checkpoints" / "latest") == "step_10");

  FakeModel other;
  FakeOptimizer fresh;
  const CheckpointState back = test::load(*checkpoints.newest(), other, fresh);
  CHECK(other.filled() == static_cast<double>(static_cast<float>(1.0 / 3)));
  CHECK(fresh.steps_ == 1);
  CHECK(fresh.sum_ == optimizer.sum_);
  CHECK(at::equal(fresh.moment_, optimizer.moment_));
  CHECK(at::equal(at::rand({100}), uniform));
  CHECK(at::equal(at::randn({100}), normal));
  for (const CheckpointState& read : {back, CheckpointReader(path).state()}) {
    CHECK(read.run.step == 10);
    CHECK(read.run.tokens == 1000);
    CHECK(read.run.skipped == 3);
    CHECK(read.max_steps == 40);
    CHECK(read.finished);
    CHECK(read.data_fingerprint == "files:1");
    CHECK(read.job_toml == state.job_toml);
    const auto text = [](const config::Node& node) { return config::to_json(node, config::JsonStyle::exact); };
    CHECK(text(config::Node(read.values)) == text(config::Node(state.values)));
    CHECK(text(read.job) == text(state.job));
    CHECK(text(read.code) == text(state.code));
    CHECK(text(read.versions) == text(state.versions));
    CHECK(text(read.mesh) == text(state.mesh));
  }
}

TEST_CASE("checkpoint: the first format is read, with the values that it kept in four places", "[checkpoint]") {
  const CheckpointReader reader(KF_SOURCE_DIR "/tests/e2e/version_1/checkpoints/step_4");
  const CheckpointState& state = reader.state();
  CHECK(state.run.step == 4);
  CHECK(state.run.tokens == 128);
  CHECK(state.finished);
  CHECK(state.max_steps == 10);
  std::vector<std::string> keys;
  for (const auto& [key, value] : state.values) {
    keys.push_back(key);
  }
  CHECK(join(keys, " ") == "hooks/counter parts/scheduler.halving train course eval wall stop");
  CHECK(value_at(state.values, kStop) == config::Node(std::string("enough")));
  CHECK(*value_at(state.values, kEval).table()->find("step") == config::Node(std::int64_t{4}));
  CHECK(value_at(state.values, kWall).table()->find("began") != nullptr);
  CHECK(value_at(state.values, kCourse).table()->find("eval") == nullptr);
  CHECK(*value_at(state.values, kCourse).table()->find("lr_scale") == config::Node(1.0));
  CHECK(*values_under(state.values, kHooks).at("counter").table()->find("seen") == config::Node(std::int64_t{4}));
  CHECK(reader.weights().shape("token_embedding.embedding.weight") == Shape{257, 8});
  CHECK(reader.moments().shape("exp_avg.token_embedding.embedding.weight") == Shape{257, 8});
}

TEST_CASE("checkpoint: tied weights are stored once, fp32 masters under bf16 values", "[checkpoint]") {
  const test::TempDir dir;
  FakeModel model(3, true, at::kBFloat16);
  FakeOptimizer optimizer;
  CheckpointManager checkpoints({.dir = dir.path(), .keep_last = 3, .keep_forever = {}});
  model.fill(1.0009765625);  // not a bf16 number
  const fs::path path = test::save(checkpoints, state_of(1), model, optimizer);
  const SafetensorsFile file(path / "model.safetensors");
  CHECK(join(file.names(), " ") == "embedding.weight norm.weight");
  FakeModel other(3, true, at::kBFloat16);
  test::load(path, other, optimizer);
  CHECK(other.parameters()[0]->master[0][0].item<double>() == 1.0009765625);
  CHECK(other.parameters()[0]->value[0][0].item<double>() == 1.0);
}

TEST_CASE("checkpoint: retention keeps the newest, milestones, named ones and latest", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path(), 2, [](std::int64_t step) { return step == 20; });
  run.save(10, "best");
  for (const std::int64_t step : {10, 20, 30, 40, 50}) {
    run.save(step);
  }
  CHECK(listing(dir.path()) == "best latest step_20 step_40 step_50");
  CHECK(run.newest() == 50);
  Run all(dir / "all", 0);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) {
    all.save(step);
  }
  CHECK(listing(dir / "all") == "latest step_1 step_2 step_3 step_4 step_5");
  Run one(dir / "one", 1);
  one.save(9);
  one.save(10);
  CHECK(listing(dir / "one") == "latest step_10");
}

TEST_CASE("checkpoint: a damaged folder takes no place among the last that are kept", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path(), 2);
  run.save(10);
  run.save(20);
  fs::resize_file(dir / "step_20" / "model.safetensors", 5);
  const std::size_t warnings = log::count(log::Level::warn);
  run.save(30);  // step_10 is the second one that a run could go on from
  CHECK(log::count(log::Level::warn) == warnings + 1);
  CHECK(listing(dir.path()) == "latest step_10 step_20 step_30");
  run.save(40);
  CHECK(listing(dir.path()) == "latest step_30 step_40");
}

TEST_CASE("checkpoint: a run that was set back keeps what it saves", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path(), 1);
  run.save(10);
  run.save(20);
  run.save(5);  // as after a resume from an older copy
  CHECK(listing(dir.path()) == "latest step_20 step_5");
  CHECK(run.newest() == 5);
}

TEST_CASE("checkpoint: names that would hide other things are refused", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  for (const char* name : {"latest", "step_3", "../x", ".hidden", "a/b"}) {
    CHECK_THROWS_WITH(run.save(1, name), Contains("cannot name a checkpoint"));
  }
  dir.write("mine/thesis.tex", "years of work");
  CHECK_THROWS_WITH(run.save(1, "mine"), Contains("exists and is no checkpoint"));
  CHECK(listing(dir.path()) == "mine");
  run.save(1, "best");
  run.save(2, "best");  // a hook's running best
  CHECK(CheckpointReader(dir / "best").state().run.step == 2);
  CHECK(run.newest() == -1);  // a named one is not where the run goes on
  CHECK(step_of("step_12") == 12);
  for (const char* name : {"step_", "step_x", "step_1x", "step_-1", "step_99999999999999999999", "steps_1"}) {
    CHECK_FALSE(step_of(name).has_value());
  }
}

TEST_CASE("checkpoint: the same step saved again leaves the folder alone, another content replaces it", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  run.save(3);
  const auto before = fs::last_write_time(dir / "step_3" / "state.json");
  test::save(run.checkpoints, state_of(3), run.model, run.optimizer);
  CHECK(fs::last_write_time(dir / "step_3" / "state.json") == before);
  CheckpointState finished = state_of(3);
  finished.finished = true;
  test::save(run.checkpoints, finished, run.model, run.optimizer);
  CHECK(CheckpointReader(dir / "step_3").state().finished);
  flip_byte(dir / "step_3" / "model.safetensors");
  test::save(run.checkpoints, finished, run.model, run.optimizer);
  CHECK(run.newest() == 3);
  CHECK(listing(dir.path()) == "latest step_3");
}

TEST_CASE("checkpoint: a damaged one is skipped for the newest good one, with the reason", "[checkpoint]") {
  struct Damage {
    const char* what;
    std::function<void(const fs::path&)> apply;
  };
  const std::vector<Damage> damages{
      {"truncated weights",
       [](const fs::path& p) { fs::resize_file(p / "model.safetensors", fs::file_size(p / "model.safetensors") - 1); }},
      {"empty weights", [](const fs::path& p) { fs::resize_file(p / "model.safetensors", 0); }},
      {"missing weights", [](const fs::path& p) { fs::remove(p / "model.safetensors"); }},
      {"missing optimizer", [](const fs::path& p) { fs::remove(p / "optimizer.safetensors"); }},
      {"missing job", [](const fs::path& p) { fs::remove(p / "job.toml"); }},
      {"no state", [](const fs::path& p) { fs::remove(p / "state.json"); }},
      {"truncated state", [](const fs::path& p) { fs::resize_file(p / "state.json", 100); }},
      {"empty state", [](const fs::path& p) { fs::resize_file(p / "state.json", 0); }},
      {"a flipped byte in the weights", [](const fs::path& p) { flip_byte(p / "model.safetensors"); }},
      {"a flipped byte in the moments", [](const fs::path& p) { flip_byte(p / "optimizer.safetensors"); }},
      {"a flipped byte in the job", [](const fs::path& p) { flip_byte(p / "job.toml", 3); }},
      {"a flipped byte in the state", [](const fs::path& p) { flip_byte(p / "state.json", 200); }},
      {"a flipped byte in the checksum", [](const fs::path& p) { flip_byte(p / "state.json", read_file(p / "state.json").size() - 14); }},
      {"an empty folder", [](const fs::path& p) { fs::remove_all(p), fs::create_directory(p); }},
      {"no folder", [](const fs::path& p) { fs::remove_all(p); }},
      {"a folder for the weights",
       [](const fs::path& p) { fs::remove(p / "model.safetensors"), fs::create_directory(p / "model.safetensors"); }},
      {"a folder for the state", [](const fs::path& p) { fs::remove(p / "state.json"), fs::create_directory(p / "state.json"); }},
      {"a pipe for the weights", [](const fs::path& p) { pipe_instead(p / "model.safetensors"); }},
      {"a pipe for the state", [](const fs::path& p) { pipe_instead(p / "state.json"); }},
      {"a checksum that is no number", [](const fs::path& p) { replace_in_state(p, "\"crc32\": \"", 8, "nonsense"); }},
      {"a newer format", [](const fs::path& p) { replace_in_state(p, "\"version\": ", 1, "99"); }},
      {"a file instead", [](const fs::path& p) { fs::remove_all(p), write_file_atomic(p, "x"); }},
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.what);
    const test::TempDir dir;
    Run run(dir.path());
    for (const std::int64_t step : {1, 2, 3}) {
      run.save(step);
    }
    damage.apply(dir / "step_3");
    const std::size_t warnings = log::count(log::Level::warn);
    CHECK(run.newest() == 2);
    CHECK(log::count(log::Level::warn) == warnings + 1);
    if (std::string_view(damage.what) == "a newer format") {
      CHECK_THROWS_WITH(CheckpointReader(dir / "step_3"), Contains("has version 99; this program reads versions 1 to"));
    }
    CHECK_THROWS_AS(test::load(dir / "step_3", run.model, run.optimizer), Error);
    run.save(3);
    CHECK(run.newest() == 3);
  }
}

TEST_CASE("checkpoint: a `latest` that a copy has made a folder is moved aside, not trusted and not lost", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  run.save(1);
  fs::remove(dir / "latest");
  fs::copy(dir / "step_1", dir / "latest");
  CHECK(run.newest() == 1);
  run.save(2);
  CHECK(fs::read_symlink(dir / "latest") == "step_2");
  CHECK(fs::exists(dir / "latest.1" / "state.json"));
}

TEST_CASE("checkpoint: a `latest` that names itself is passed over", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  run.save(1);
  fs::remove(dir / "latest");
  fs::create_symlink("latest", dir / "latest");
  CHECK(run.newest() == 1);
}

TEST_CASE("checkpoint: without `latest` the highest step counts, in numbers and not in letters", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path(), 0);
  CHECK(run.newest() == -1);
  run.save(9);
  run.save(100);
  fs::create_directory(dir / "step_x");
  fs::remove(dir / "latest");
  CHECK(run.newest() == 100);
}

TEST_CASE("checkpoint: when none is usable the run does not silently start over", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  run.save(1);
  flip_byte(dir / "step_1" / "model.safetensors");
  CHECK_THROWS_WITH(run.checkpoints.newest(), Contains("none of the checkpoints") && Contains("run.fresh = true"));
}

TEST_CASE("checkpoint: what a killed save left behind is removed by the next", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  dir.write(".step_7.tmp-123/model.safetensors", "half");
  dir.write(".step_6.tmp-123-old/model.safetensors", "half");
  fs::create_symlink("step_7", dir / ".latest.tmp-123");
  dir.write("notes.txt", "mine");
  CHECK(run.newest() == -1);
  run.save(8);
  CHECK(listing(dir.path()) == "latest notes.txt step_8");
}

TEST_CASE("checkpoint: the state of another optimizer is refused, not taken for fresh", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir.path());
  const fs::path path = run.save(1);
  FakeOptimizer other("momentum");
  CHECK_THROWS_WITH(test::load(path, run.model, other),
                    Contains("unknown to the optimizer (1): exp_avg.embedding.weight") && Contains("checkpoint.init_from"));
}

TEST_CASE("checkpoint: weights that do not fit are one error with every kind of fault", "[checkpoint]") {
  const test::TempDir dir;
  std::vector<std::pair<std::string, at::Tensor>> tensors{{"norm.weight", at::zeros({5})}};
  for (int i = 0; i < 12; ++i) {
    tensors.emplace_back("extra." + std::to_string(i), at::zeros({1}));
  }
  write_safetensors(dir / "w.safetensors", tensors);
  FakeModel model;
  model.fill(7);
  CHECK_THROWS_WITH(load_weights(dir / "w.safetensors", model),
                    Contains("w.safetensors does not hold the weights of this model") &&
                        Contains("missing in the file (1): embedding.weight") && Contains("unknown to the model (12): extra.0, ") &&
                        Contains(", ...") && !Contains("extra.9") &&
                        Contains("do not fit (1): norm.weight is (5) in the file, (3) in the model"));
  CHECK(model.filled() == 7);
  write_safetensors(dir / "i.safetensors", {{"embedding.weight", at::zeros({4, 3})}, {"norm.weight", at::zeros({3}, at::kInt)}});
  CHECK_THROWS_WITH(load_weights(dir / "i.safetensors", model), Contains("norm.weight is Int, not a real type"));
  CHECK_THROWS_WITH(load_weights(dir / "none", model), Contains("none does not exist"));
  CHECK(model.filled() == 7);
}

TEST_CASE("checkpoint: rows of the vocabulary that a file lacks are refused with the remedy, drawn anew, or the mean of its rows",
          "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor few = at::tensor({1., 2., 3., 3., 6., 9.}).view({2, 3});  // of 4 ids the first two; means of their rows 2, 4, 6
  const bool tied = GENERATE(true, false);
  write_safetensors(dir / "w.safetensors", {{"embedding.weight", few}, {"head.weight", few}, {"norm.weight", at::ones({3})}});
  FakeModel model(3, tied);
  model.fill(7);
  CHECK_THROWS_WITH(load_weights(dir / "w.safetensors", model, {{VocabRows::Fill::none, 4}}),
                    Contains("embedding.weight is (2, 3) in the file, (4, 3) in the model") &&
                        Contains("rows for 2 ids and model.vocab_size is 4") && Contains("checkpoint.init_vocab = \"mean\""));
  CHECK(model.filled() == 7);
  const auto rows = [&](const char* name) {
    for (const ParameterPtr& parameter : model.parameters()) {
      if (parameter->name == name) {
        return parameter->master.clone();
      }
    }
    return at::Tensor();
  };
  load_weights(dir / "w.safetensors", model, {{VocabRows::Fill::mean, 4}});
  const at::Tensor mean = at::tensor({1., 2., 3., 3., 6., 9., 2., 4., 6., 2., 4., 6.}).view({4, 3});
  CHECK(rows("embedding.weight").equal(mean.to(at::kFloat)));
  CHECK((tied || rows("head.weight").equal(mean.to(at::kFloat))));
  model.fill(7);
  load_weights(dir / "w.safetensors", model, {{VocabRows::Fill::init, 4}});
  CHECK(rows("embedding.weight").narrow(0, 2, 2).eq(7).all().item<bool>());
  CHECK(rows("embedding.weight").narrow(0, 0, 2).equal(few.to(at::kFloat)));
  const at::Tensor many = at::ones({6, 3});
  write_safetensors(dir / "w.safetensors", {{"embedding.weight", many}, {"head.weight", many}, {"norm.weight", at::ones({3})}});
  CHECK_THROWS_WITH(load_weights(dir / "w.safetensors", model, {{VocabRows::Fill::mean, 4}}), Contains("set model.vocab_size = 6"));
}

TEST_CASE("checkpoint: weights come from a file, a checkpoint or the folder of a run", "[checkpoint]") {
  const test::TempDir dir;
  Run run(dir / "checkpoints");
  run.save(4);
  for (const fs::path& source :
       {dir / "checkpoints", dir / "checkpoints" / "latest", dir / "checkpoints" / "step_4" / "model.safetensors"}) {
    FakeModel model;
    load_weights(source, model);
    CHECK(model.filled() == 4);
  }
  const at::Tensor twos = at::full({4, 3}, 2.0, at::kBFloat16);
  write_safetensors(dir / "golden.safetensors", {{"weights.embedding.weight", twos},
                                                 {"final.embedding.weight", at::zeros({9})},
                                                 {"weights.norm.weight", at::full({3}, 2.0, at::kDouble)}});
  FakeModel model;
  load_weights(dir / "golden.safetensors", model);
  CHECK(model.filled() == 2);
}

TEST_CASE("checkpoint: a tied weight may stand under either name, but not under two that differ", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor ones = at::ones({4, 3});
  const at::Tensor norm = at::ones({3});
  FakeModel model;
  for (const auto& tensors : std::vector<std::vector<std::pair<std::string, at::Tensor>>>{
           {{"head.weight", ones}, {"norm.weight", norm}},
           {{"embedding.weight", ones}, {"norm.weight", norm}},
           {{"embedding.weight", ones}, {"head.weight", ones}, {"norm.weight", norm}}}) {
    model.fill(0);
    write_safetensors(dir / "w.safetensors", tensors);
    load_weights(dir / "w.safetensors", model);
    CHECK(model.filled() == 1);
  }
  write_safetensors(dir / "w.safetensors", {{"embedding.weight", ones}, {"head.weight", ones.mul(2)}, {"norm.weight", norm}});
  CHECK_THROWS_WITH(load_weights(dir / "w.safetensors", model), Contains("are one weight in the model, but differ in the file"));
  FakeModel untied(3, false);
  write_safetensors(dir / "w.safetensors", {{"embedding.weight", ones}, {"norm.weight", norm}});
  CHECK_THROWS_WITH(load_weights(dir / "w.safetensors", untied), Contains("missing in the file (1): head.weight"));
}

namespace {

/// A file with the weights of a small model of these settings.
fs::path file_of(const fs::path& path, const config::Config& config) {
  write_safetensors(path, weights_of(*test::tiny_model(config, 1)));
  return path;
}

WeightPlaces head_from(HeadSource head) { return {{VocabRows::Fill::none, 0, head}}; }

at::Tensor weight_of(Model& model, const std::string& name) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name == name) {
      return parameter->master.detach();
    }
  }
  return {};
}

}  // namespace

TEST_CASE("checkpoint: a tied file can be untied, an untied one tied, and a head made anew", "[checkpoint]") {
  const test::TempDir dir;
  config::Config tied = test::tiny_config(), untied = tied, biased = tied;
  tied.model.tie_embeddings = true;
  biased.model.head_bias = true;
  const fs::path tied_file = file_of(dir / "tied.safetensors", tied), untied_file = file_of(dir / "untied.safetensors", untied);
  const std::string embedding = "token_embedding.embedding.weight", head = "output_head.proj.weight";

  const auto one = test::tiny_model(untied, 2);
  CHECK_THROWS_WITH(load_weights(tied_file, *one), Contains("missing in the file (1): output_head.proj.weight") &&
                                                       Contains("set model.tie_embeddings = true") &&
                                                       Contains("checkpoint.init_head = \"embedding\""));
  load_weights(tied_file, *one, head_from(HeadSource::embedding));
  CHECK(at::equal(weight_of(*one, head), weight_of(*one, embedding)));
  CHECK_FALSE(weight_of(*one, head).is_alias_of(weight_of(*one, embedding)));

  const auto two = test::tiny_model(untied, 2);
  const at::Tensor before = weight_of(*two, head).clone();
  load_weights(untied_file, *two, head_from(HeadSource::fresh));
  CHECK(at::equal(weight_of(*two, head), before));
  CHECK(at::equal(weight_of(*two, embedding), weight_of(*test::tiny_model(untied, 1), embedding)));

  const auto three = test::tiny_model(tied, 2);
  CHECK_THROWS_WITH(load_weights(untied_file, *three),
                    Contains("are one weight in the model, but differ in the file") && Contains("set model.tie_embeddings = false"));
  load_weights(untied_file, *three, head_from(HeadSource::embedding));
  CHECK(at::equal(weight_of(*three, embedding), weight_of(*test::tiny_model(untied, 1), embedding)));
  CHECK_THROWS_WITH(load_weights(untied_file, *three, head_from(HeadSource::fresh)), Contains("set model.tie_embeddings = false"));

  const auto four = test::tiny_model(biased, 2);
  CHECK_THROWS_WITH(load_weights(untied_file, *four), Contains("the file's head has no bias"));
  load_weights(untied_file, *four, head_from(HeadSource::fresh));
  CHECK_THROWS_WITH(load_weights(file_of(dir / "b.safetensors", biased), *two),
                    Contains("unknown to the model (1): output_head.proj.bias") && Contains("model.head_bias as in the file"));
}

TEST_CASE("checkpoint: a head or an embedding of another size is refused with a way on", "[checkpoint]") {
  const test::TempDir dir;
  config::Config config = test::tiny_config(), wider = config;
  wider.model.vocab_size += 2;
  const fs::path file = file_of(dir / "w.safetensors", config);
  CHECK_THROWS_WITH(load_weights(file, *test::tiny_model(wider, 2)),
                    Contains("set model.vocab_size to the rows of the file") && Contains("checkpoint.init_vocab"));
  auto whole_numbers = weights_of(*test::tiny_model(config, 1));
  for (auto& [name, tensor] : whole_numbers) {
    tensor = name == "token_embedding.embedding.weight" ? tensor.to(at::kInt) : tensor;
  }
  write_safetensors(dir / "int.safetensors", whole_numbers);
  CHECK_THROWS_WITH(load_weights(dir / "int.safetensors", *test::tiny_model(config, 2)),
                    Contains("token_embedding.embedding.weight is Int, not a real type") && !Contains("vocab_size"));
  // The head alone: of a file whose embedding was widened and whose head was not.
  auto tensors = weights_of(*test::tiny_model(wider, 1));
  for (auto& [name, tensor] : tensors) {
    tensor = name == "output_head.proj.weight" ? tensor.narrow(0, 0, config.model.vocab_size).clone() : tensor;
  }
  write_safetensors(dir / "half.safetensors", tensors);
  const auto model = test::tiny_model(wider, 2);
  CHECK_THROWS_WITH(load_weights(dir / "half.safetensors", *model), Contains("checkpoint.init_head = \"fresh\""));
  CHECK_NOTHROW(load_weights(dir / "half.safetensors", *model, head_from(HeadSource::fresh)));
}

TEST_CASE("checkpoint: a full disk fails loudly, leaves the rest alone, and the step can be saved later", "[checkpoint]") {
  const test::TempDir dir;
  const int status = in_child([&] {
    Run run(dir.path());
    run.save(1);
    FakeModel large(100'000);
    rlimit limit{64 * 1024, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      test::save(run.checkpoints, state_of(2), large, run.optimizer);
      return 1;
    } catch (const Error& e) {
      if (e.code() != Code::checkpoint || std::string(e.what()).find("File too large") == std::string::npos) {
        return 2;
      }
    }
    if (listing(dir.path()) != "latest step_1" || run.newest() != 1) {
      return 3;
    }
    limit.rlim_cur = RLIM_INFINITY;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    large.fill(2);
    test::save(run.checkpoints, state_of(2), large, run.optimizer);
    return CheckpointReader(*run.checkpoints.newest()).state().run.step == 2 ? 0 : 4;
  });
  CHECK(status == 0);
}
