// kf-host plan through the real program, and docs/parallelism.md's tables against it.

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <sstream>

#include "config/tree/json.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Contains;
using kf::config::Node;
using kf::test::Finished;
using kf::test::Toy;

namespace {

Node json_of(const Finished& done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return kf::config::parse_json(done.out, "the plan");
}

double number(const Node& tree, const std::string& key) {
  const Node* const node = kf::config::find_node(*tree.table(), key);
  REQUIRE(node != nullptr);
  const auto* const whole = std::get_if<std::int64_t>(&node->value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(node->value);
}

/// A job small enough for a test and large enough for a plan.
std::vector<std::string> plan(std::vector<std::string> more) {
  std::vector<std::string> all{"plan", "llama3.1-8b", "--train.seq_len=4096", "--train.batch_size=1", "--train.mixed_precision=bf16"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("plan: a layout's memory, traffic, pipeline and time are printed without a device", "[plan]") {
  const Toy toy;
  const Finished done = toy.host(plan({"--world", "32", "--distributed.tp=4", "--distributed.pp=2", "--train.grad_accum_steps=8"}));
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("layout      32 h100 on 4 machines of 8: pp 2, dp_shard 4, tp 4"));
  CHECK_THAT(done.out, Contains("parameters  8.03 B, of which 8.03 B train"));
  CHECK_THAT(done.out, Contains("memory      ") && Contains("optimizer (adamw)") && Contains("activations"));
  CHECK_THAT(done.out, Contains("hidden states gathered") && Contains("gradients summed") && Contains("network"));
  CHECK_THAT(done.out, Contains("pipeline    1f1b, 8 micro-batches"));
  CHECK_THAT(done.out, Contains("tokens/s, MFU"));
}

TEST_CASE("plan: --json has the same numbers for scripts, and parts that add up", "[plan]") {
  const Toy toy;
  const Node tree = json_of(toy.host(plan({"--world", "8", "--gpu", "h200", "--json"})));
  CHECK(number(tree, "parameters") == 8030261248);
  CHECK(number(tree, "layout.dp_shard") == 8);
  const double parts = number(tree, "step.computing") + number(tree, "step.messages") + number(tree, "step.bubble") +
                       number(tree, "step.sharing") + number(tree, "step.update");
  CHECK(parts == Approx(number(tree, "step.seconds")));
  CHECK(number(tree, "step.tokens") == 8 * 4096);
  CHECK(number(tree, "memory.available") == 141e9);
  CHECK(number(tree, "memory.bytes") > 8030261248.0 * 16 / 8);
}

TEST_CASE("plan: --search prints layouts that fit, as settings that the same command takes", "[plan]") {
  const Toy toy;
  toy.write("job.toml",
            "model = { preset = \"llama3.1-8b\" }\n"
            "train = { seq_len = 4096, batch_size = 1, grad_accum_steps = 8, mixed_precision = \"bf16\" }\n"
            "[distributed]\ntp = 2\npp = 2\n");  // which the settings must undo where a layout has neither
  const auto plan = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "job.toml"});
    return more;
  };
  const Node tree = json_of(toy.host(plan({"--world", "16", "--search", "--json"})));
  const Node* const best = tree.table()->find("best");
  REQUIRE(best->array()->size() == 10);
  const Node& first = best->array()->front();
  const double seconds = number(first, "step.seconds");
  CHECK(seconds <= number(best->array()->back(), "step.seconds"));
  std::istringstream words(std::get<std::string>(first.table()->find("settings")->value));
  std::vector<std::string> settings{"--world", "16", "--json"};
  for (std::string word; words >> word;) {
    settings.push_back(word);
  }
  CHECK(number(json_of(toy.host(plan(settings))), "step.seconds") == Approx(seconds));
}

TEST_CASE("plan: what cannot be planned is an error that says what to give", "[plan]") {
  const Toy toy;
  const auto refused = [&](std::vector<std::string> more, const std::string& words) {
    const Finished done = toy.host(plan(std::move(more)));
    CAPTURE(done.out);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains(words));
  };
  refused({}, "Give --world N");
  refused({"--train.batch_size=0"}, "train.batch_size");  // of the job itself: said first
  refused({"--world", "0"}, "--world: 0 is not between 1");
  refused({"--world", "8", "--gpu", "v100"}, "a100, b200, h100, h200");
  refused({"--world", "12", "--distributed.tp=8"}, "--distributed.tp");
  refused({"--world", "8", "--serach"}, "did you mean '--search'?");
  toy.write("gpu.toml", "like = \"h100\"\nmemmory = 1\n");
  refused({"--world", "8", "--gpu", "gpu.toml"}, "gpu.toml:2");
}

TEST_CASE("plan: warnings name what does not fit, links that are slow, and small matrices", "[plan]") {
  const Toy toy;
  const Finished large = toy.host(plan({"--world", "1"}));
  CHECK_THAT(large.out, Contains("warning: does not fit: the fullest rank needs"));
  const Finished far = toy.host(plan({"--world", "16", "--distributed.tp=16", "--model.n_kv_heads=32"}));
  CHECK_THAT(far.out, Contains("warning: distributed.tp = 16 goes across machines of 8"));
  CHECK_THAT(far.out, Contains("multiplies small matrices"));
}

namespace {

struct Row {
  double seconds = 0, off = 0;  // planned; how far from the published figure, in percent
};

/// The rows of the page's table of published figures: "| 1 | ... | published | planned | off |".
std::vector<Row> rows_of(const fs::path& page) {
  std::ifstream in(page);
  REQUIRE(in);
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    inside = line.starts_with("| row ") || (inside && line.starts_with("|"));
    if (!inside) {
      continue;
    }
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '|');) {
      cells.push_back(cell);
    }
    if (cells.size() >= 8 && cells[1].find_first_not_of(" 0123456789") == std::string::npos && cells[1].find_first_of("0123456789") < 9) {
      rows.push_back({std::stod(cells[cells.size() - 2]), std::stod(cells[cells.size() - 1])});
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("plan: every row of the page's published figures is what its command says", "[plan][docs]") {
  const Toy toy;
  const fs::path page = fs::path(KF_SOURCE_DIR) / "docs/parallelism.md";
  fs::create_symlink(fs::path(KF_SOURCE_DIR) / "examples", toy / "examples");
  std::vector<std::string> commands;
  std::ifstream in(page);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("kf-host plan ") && line.find("# row ") != std::string::npos) {
      commands.push_back(line);
    }
  }
  const std::vector<Row> rows = rows_of(page);
  REQUIRE(rows.size() >= 15);
  REQUIRE(commands.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(commands[i]);
    std::istringstream words(commands[i].substr(0, commands[i].find('#')));
    std::vector<std::string> arguments{"--json"};
    std::string word;
    words >> word;  // kf-host
    while (words >> word) {
      arguments.insert(arguments.end() - 1, word);
    }
    const double planned = number(json_of(toy.host(arguments)), "step.seconds");
    CHECK(planned == Approx(rows[i].seconds).epsilon(0.01));  // written with three digits
  }
}
