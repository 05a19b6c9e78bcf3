// Runs that take a checkpoint in part: other names, other layers, another optimizer.

#include <catch2/catch.hpp>

#include <filesystem>

#include "e2e/toy.h"

using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;

namespace {

using Words = std::vector<std::string>;

Finished train(const Toy& toy, const std::string& name, Words more) {
  more.push_back("--run.name=" + name);
  Finished done = toy.train(more);
  UNSCOPED_INFO(done.out << done.err);
  return done;
}

std::string diff(const Toy& toy, const std::string& a, const std::string& b) {
  const Finished done = toy.host({"checkpoint", "diff", a, b, "--limit", "0"});
  UNSCOPED_INFO(done.out << done.err);
  return done.out;
}

/// A run that moves its weights by nothing that fp32 holds.
const Words kStill{"--optimizer.lr=1e-30", "--optimizer.weight_decay=0", "--train.max_steps=1"};

Words still(Words more) {
  more.insert(more.end(), kStill.begin(), kStill.end());
  return more;
}

}  // namespace

TEST_CASE("loading: a body comes from a file and the head is new, what is missing and unknown is listed", "[checkpoint][loading]") {
  const Toy toy;
  REQUIRE(train(toy, "base", {"--train.max_steps=4"}).status == 0);
  const Words from{"--checkpoint.init_from=runs/base"};
  const auto with = [&](const std::string& name, Words more) {
    more.insert(more.end(), from.begin(), from.end());
    return train(toy, name, still(more));
  };
  const Finished head = with("head", {"--checkpoint.exclude_from_loading=[\"output_head.*\"]"});
  REQUIRE(head.status == 0);
  CHECK_THAT(head.err, Contains("checkpoint.exclude_from_loading leaves out output_head.proj.weight"));
  CHECK_THAT(diff(toy, "runs/base", "runs/head"), Contains("output_head.proj.weight") && Contains("1 weights moved"));
  REQUIRE(train(toy, "first", still({})).status == 0);
  CHECK_THAT(diff(toy, "runs/first", "runs/head"), !Contains("output_head"));  // drawn by seed and name, as in a new run

  const Finished more = with("more", {"--model.n_layers=3"});
  CHECK(more.status == 6);
  CHECK_THAT(more.err, Contains("missing in the file (") && Contains("layers.2."));
  const Finished lax = with("lax", {"--model.n_layers=3", "--checkpoint.strict=false"});
  REQUIRE(lax.status == 0);
  CHECK_THAT(lax.err, Contains("are missing there and keep their first values: layers.2."));
  CHECK_THAT(diff(toy, "runs/base", "runs/lax"), Contains("only in B: layers.2.") && Contains("0 weights moved"));
  const Finished less = with("less", {"--model.n_layers=1", "--checkpoint.strict=false"});
  REQUIRE(less.status == 0);
  CHECK_THAT(less.err, Contains("unknown to the model and were left out: layers.1."));
  CHECK(with("shape", {"--model.dim=16", "--checkpoint.strict=false"}).status == 6);
  CHECK_THAT(with("typo", {"--checkpoint.exclude_from_loading=[\"output_haed.*\"]"}).err, Contains("no weight is called"));
}

TEST_CASE("loading: layers are grown by rule, and nothing stays without values", "[checkpoint][loading]") {
  const Toy toy;
  REQUIRE(train(toy, "base", {"--train.max_steps=4"}).status == 0);
  const auto grown = [&](const std::string& rule) {
    const Finished done =
        train(toy, rule, still({"--checkpoint.init_from=runs/base", "--model.n_layers=4", "--checkpoint.init_layers=" + rule}));
    CHECK(done.status == 0);
    return done.err;
  };
  CHECK_THAT(grown("copy_last"), Contains("copies of the last one"));
  CHECK_THAT(grown("interleave"), Contains("each is repeated"));
  CHECK_THAT(grown("fresh"), Contains("drawn by train.seed"));
  const std::string copied = diff(toy, "runs/copy_last", "runs/interleave");
  CHECK_THAT(copied, Contains("layers.1.") && !Contains("layers.0.") && !Contains("layers.2.") && !Contains("layers.3."));
  REQUIRE(train(toy, "first", still({"--model.n_layers=4"})).status == 0);
  const std::string fresh = diff(toy, "runs/first", "runs/fresh");
  CHECK_THAT(fresh, Contains("layers.1.") && !Contains("layers.2.") && !Contains("layers.3."));
  CHECK(train(toy, "exact", still({"--checkpoint.init_from=runs/base", "--model.n_layers=4"})).status == 6);
}

TEST_CASE("loading: names of a file are changed by rules", "[checkpoint][loading]") {
  const Toy toy;
  REQUIRE(train(toy, "base", {"--train.max_steps=2"}).status == 0);
  const std::string job = toy.read("toy.toml");
  std::string text = job;
  text.replace(text.find("[checkpoint]\ninterval = 5\n"), 26, "");
  const std::string base = text + "\n[checkpoint]\ninit_from = \"runs/base\"\n";
  const auto run = [&](const std::string& rules, const std::string& name) {
    toy.write("toy.toml", base + "name_map = " + rules + "\n");
    return train(toy, name, still({}));
  };
  const Finished swapped = run(
      R"([{from = '^layers\.0\.', to = "layers.x."}, {from = '^layers\.1\.', to = "layers.0."}, {from = 'layers\.x\.', to = "layers.1."}])",
      "swapped");
  REQUIRE(swapped.status == 0);
  CHECK_THAT(swapped.err, Contains("checkpoint.name_map: "));
  REQUIRE(run(R"([{from = 'layers\.([01])', to = "layers.$1"}])", "same").status == 0);
  CHECK_THAT(diff(toy, "runs/base", "runs/same"), Contains("0 weights moved"));
  CHECK_THAT(diff(toy, "runs/base", "runs/swapped"), Contains("layers.0.") && Contains("layers.1.") && !Contains("embedding"));
  CHECK_THAT(run(R"([{from = 'layers\.0', to = "layers.1"}])", "twice").err, Contains("gives tensors one name"));
  const Finished broken = run(R"([{from = '(', to = ""}])", "broken");
  CHECK(broken.status == 2);
  CHECK_THAT(broken.err, Contains("checkpoint.name_map[0].from"));
}

TEST_CASE("loading: another optimizer keeps step, data and what both know of a weight", "[checkpoint][loading]") {
  const Toy toy;
  REQUIRE(train(toy, "run", {"--train.max_steps=5", "--scheduler.total_steps=10"}).status == 0);
  const Words more{"--optimizer.name=lion", "--scheduler.total_steps=10", "--optimizer.lr=1e-4"};
  const Finished refused = train(toy, "run", more);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("optimizer.name"));
  Words accepted = more;
  accepted.push_back("--checkpoint.accept_changes=[\"optimizer.name\"]");
  const Finished lion = train(toy, "run", accepted);
  REQUIRE(lion.status == 0);
  CHECK_THAT(lion.err, Contains("kept exp_avg of") && Contains("stays behind: exp_avg_sq of") && Contains("step 5"));
  CHECK(toy.series("run", "loss").size() == 10);
  // A first moment without the second one and its count of steps would be no state of adamw.
  const Finished back = train(toy, "run", {"--train.max_steps=12", "--checkpoint.accept_changes=[\"optimizer.name\"]"});
  REQUIRE(back.status == 0);
  CHECK_THAT(back.err, Contains("kept nothing; stays behind: exp_avg of"));
}

TEST_CASE("loading: load_path leaves the optimizer, the data or the random numbers where they are", "[checkpoint][loading]") {
  const Toy toy;
  REQUIRE(train(toy, "base", {"--train.max_steps=5", "--scheduler.total_steps=10"}).status == 0);
  const auto on = [&](const std::string& name, const std::string& parts) {
    return train(toy, name,
                 {"--checkpoint.load_path=runs/base", "--scheduler.total_steps=10", "--checkpoint.exclude_from_loading=" + parts});
  };
  const Finished whole = on("whole", "[]"), none = on("none", "[\"optimizer\"]"), moments = on("moments", "[\"optimizer.moments\"]"),
                 data = on("data", "[\"data\", \"rng\"]");
  for (const Finished* done : {&whole, &none, &moments, &data}) {
    INFO(done->err);
    CHECK(done->status == 0);
  }
  CHECK_THAT(none.err, Contains("it begins anew"));
  CHECK_THAT(data.err, Contains("the data begin anew"));
  const auto loss = [&](const std::string& name) { return toy.series(name, "loss"); };
  CHECK(loss("whole").at(6) == loss("none").at(6));  // the same weights and data
  CHECK(loss("whole").at(8) != loss("none").at(8));
  CHECK(loss("none").at(8) == loss("moments").at(8));  // adamw keeps nothing else
  CHECK(loss("whole").at(6) != loss("data").at(6));
  // What it has saved itself is loaded whole.
  REQUIRE(train(toy, "parts",
                {"--checkpoint.load_path=runs/base", "--scheduler.total_steps=10", "--train.max_steps=7",
                 "--checkpoint.exclude_from_loading=[\"optimizer\", \"data\"]"})
              .status == 0);
  REQUIRE(on("parts", "[\"optimizer\", \"data\"]").status == 0);
  REQUIRE(on("straight", "[\"optimizer\", \"data\"]").status == 0);
  CHECK(loss("parts") == loss("straight"));
}

TEST_CASE("loading: ranks fill gaps as one does, and go on with another optimizer", "[checkpoint][loading][ranks]") {
  const Toy toy;
  const auto on_ranks = [&](int ranks, const std::string& name, Words more) {
    Words args{"--nproc", std::to_string(ranks), "toy.toml", "--run.name=" + name};
    args.insert(args.end(), more.begin(), more.end());
    Finished done = toy.host(args);
    UNSCOPED_INFO(done.out << done.err);
    return done;
  };
  REQUIRE(on_ranks(2, "base", {"--train.max_steps=5", "--scheduler.total_steps=10"}).status == 0);
  const Words gaps = still({"--checkpoint.init_from=runs/base", "--model.n_layers=3", "--checkpoint.strict=false",
                            "--checkpoint.exclude_from_loading=[\"token_embedding.*\"]"});
  REQUIRE(train(toy, "one", gaps).status == 0);
  REQUIRE(on_ranks(3, "three", gaps).status == 0);
  CHECK_THAT(diff(toy, "runs/one", "runs/three"), Contains("the same: 0 weights moved"));
  for (const std::string optimizer : {"lion", "muon", "schedule_free_adamw"}) {
    Words words{"--optimizer.name=" + optimizer, "--scheduler.total_steps=10", "--optimizer.lr=1e-4", "--checkpoint.load_path=runs/base",
                "--checkpoint.accept_changes=[\"optimizer.name\"]"};
    const Finished done = on_ranks(2, optimizer, words);
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains("stays behind: "));
  }
}
