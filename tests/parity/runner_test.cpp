// The runner itself: it must see what is wrong, and compare by the rules of the golden folders' README.

#include <ATen/ATen.h>

#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "parity/case.h"
#include "support/process.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

namespace kf::parity {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Four updates of a linear schedule without warm-up: 1, 0.75, 0.5, 0.25, 0.
std::string schedule(const std::string& name, const std::string& factors, const std::string& more = "") {
  return R"({"name": ")" + name +
         R"(", "config": {"name": "linear", "warmup_steps": 0, "min_lr_ratio": 0.0}, "max_steps": 4, "factors": )" + factors + more + "}";
}

test::Finished run_parity(const test::TempDir& temp, const std::string& cases, const std::string& area = "schedulers") {
  temp.write("cases.json", R"({"area": ")" + area + R"(", "format": {"tolerance": "1e-12 abs"}, "cases": [)" + cases + "]}");
  return test::run({KF_PARITY, temp.path().string()});
}

Case case_of(const std::string& json, const std::string& area = "metrics", const std::string& format = "{}") {
  const Node fields = parse_json(json, "case"), about = parse_json(format, "format");
  return Case(area, ".", *fields.table(), std::make_shared<const Table>(*about.table()));
}

}  // namespace

TEST_CASE("parity: a right case is ok, a wrong number fails by name with its place, and the exit status says so", "[parity]") {
  const test::TempDir temp;
  const std::string right = schedule("right", "[1.0, 0.75, 0.5, 0.25, 0.0]");
  const test::Finished good = run_parity(temp, right);
  CHECK(good.status == 0);
  CHECK(has(good.out, "schedulers/right  ok"));
  CHECK(has(good.out, "1 passed, 0 failed, 0 skipped\n"));

  const test::Finished bad = run_parity(temp, right + "," + schedule("wrong", "[1.0, 0.75, 0.5, 0.2500001, 0.0]"));
  CHECK(bad.status == 1);
  CHECK(has(bad.out, "schedulers/right  ok"));
  CHECK(has(bad.out, "schedulers/wrong  FAIL"));
  CHECK(has(bad.out, "factors[3]"));
  CHECK(has(bad.out, "1 passed, 1 failed, 0 skipped\n"));
}

TEST_CASE("parity: what the README leaves out is skipped, what is not built or not known fails by name", "[parity]") {
  const test::TempDir temp;
  const test::Finished skipped = run_parity(temp, schedule("left_out", "[]", R"(, "compare": "none", "reason": "says why")"));
  CHECK(skipped.status == 0);
  CHECK(has(skipped.out, "schedulers/left_out  skipped  says why"));
  CHECK(has(skipped.out, "0 passed, 0 failed, 1 skipped\n"));

  for (const char* area : {"somewhere", "data"}) {
    const test::Finished unknown = run_parity(temp, R"({"name": "new", "kind": "unheard_of"})", area);
    CHECK(unknown.status == 1);
    CHECK(has(unknown.out, std::string(area) + "/new  FAIL"));
  }
  const test::Finished missing = test::run({KF_PARITY, (temp / "nowhere").string()});
  CHECK(missing.status == 1);
  CHECK(has(missing.out, "0 passed, 1 failed, 0 skipped\n"));
  CHECK(test::run({KF_PARITY}).status == 2);
}

TEST_CASE("parity: a right table replaces fields of expected, else of the case; nested tables merge, lists are replaced", "[parity]") {
  const Case test = case_of(R"({"name": "x", "use": "right", "coef": 3, "series": {"loss": [1, 2], "lr": [5]},
      "expected": {"norm": 1.0, "coef": 2.0, "deep": {"a": 1, "b": 2}},
      "right": {"norm": 9.0, "coef": null, "deep": {"b": 7}, "series": {"loss": [4]}, "extra": true}})");
  CHECK(number(*test.expected("norm"), "norm") == 9.0);
  CHECK(test.expected("coef") == nullptr);  // null: not compared
  CHECK(same(*test.expected("deep"), parse_json(R"({"a": 1, "b": 7})", "deep")));
  CHECK(same(test.at("series"), parse_json(R"({"loss": [4], "lr": [5]})", "series")));
  CHECK(integer(test.at("coef"), "coef") == 3);
  CHECK(boolean(*test.expected("extra"), "extra"));
}

TEST_CASE("parity: right counts only where use says so, and a list replaces expected", "[parity]") {
  CHECK(number(*case_of(R"({"name": "x", "expected": {"a": 1}, "right": {"a": 2}})").expected("a"), "a") == 1);
  const Case list_case = case_of(R"({"name": "x", "use": "right", "expected": [1], "right": [2, 3]})");
  CHECK(integers(list_case.at("expected"), "expected") == std::vector<std::int64_t>{2, 3});
  const Case config = case_of(
      R"({"name": "x", "use": "right", "accepted": true, "diff": {"a": 1}, "right": {"accepted": false, "keywords": ["k"]}})", "config");
  CHECK_FALSE(boolean(config.at("accepted"), "accepted"));
  CHECK(config.get("diff") == nullptr);
}

TEST_CASE("parity: names that are not compared may hold wildcards", "[parity]") {
  const Case test = case_of(R"({"name": "x", "not_compared": ["clipped.*", "loss_at_init"]})");
  CHECK(test.left_out("clipped.p0"));
  CHECK(test.left_out("loss_at_init"));
  CHECK_FALSE(test.left_out("norm"));
}

TEST_CASE("parity: a tied head is found under either of its names, and under both where they agree", "[parity]") {
  const std::string embedding = "token_embedding.embedding.weight", head = "output_head.proj.weight";
  const fs::path golden = fs::path(KF_SOURCE_DIR) / "tests/parity/data/model";
  const Node json = parse_json(read_file(golden / "cases.json"), "cases.json");
  Table cases = *json.table();
  for (const Node& entry : *cases.find("cases")->array()) {
    if (*entry.table()->find("name") == Node(std::string("tied"))) {
      cases["cases"] = Node(Array{entry});
      break;
    }
  }
  const SafetensorsFile file(golden / "tied.safetensors");
  const auto finished = [&](bool under_embedding, bool under_head, double off) {
    const test::TempDir temp;
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (const std::string& name : file.names()) {
      const bool shared = name.ends_with(embedding);
      if (!shared || under_embedding) {
        tensors.emplace_back(name, file.tensor(name));
      }
      if (shared && under_head) {
        tensors.emplace_back(name.substr(0, name.size() - embedding.size()) + head, file.tensor(name) + off);
      }
    }
    write_safetensors(temp.path() / "tied.safetensors", tensors);
    temp.write("cases.json", config::to_json(Node(cases)));
    return test::run({KF_PARITY, temp.path().string()});
  };
  for (const auto& [first, second] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
    CAPTURE(first, second);
    const test::Finished good = finished(first, second, 0);
    CHECK(good.status == 0);
    CHECK(has(good.out, "model/tied  ok"));
  }
  const test::Finished bad = finished(true, true, 1);
  CHECK(bad.status == 1);
  CHECK(has(bad.out, "differ in the case"));
}

TEST_CASE("parity: tolerance texts are read clause by clause", "[parity]") {
  const std::vector<Clause> clauses =
      parse_tolerance("fp32: logits 1e-5 abs + 1e-4 rel; losses 1e-5; gradients 1e-5 abs + 2e-3 rel; integers exact");
  REQUIRE(clauses.size() == 4);
  CHECK(clauses[0].subject == "fp32: logits");
  CHECK(clauses[0].bound.abs == 1e-5);
  CHECK(clauses[0].bound.rel == 1e-4);
  CHECK(clauses[1].bound.abs == 1e-5);
  CHECK(clauses[1].bound.rel == 0);
  CHECK(clauses[3].bound.abs == 0);
  const std::vector<Clause> training = parse_tolerance("grad_norm[s]: max(1e-4 + 1e-3 rel, 20*noise_norm[s]); l2 of final 1e-3 rel");
  REQUIRE(training.size() == 2);
  CHECK(training[0].bound.abs == 1e-4);
  CHECK(training[0].bound.rel == 1e-3);
  CHECK(training[1].bound.rel == 1e-3);
}

TEST_CASE("parity: the tightest of several bounds counts, and the case's own text comes before the area's", "[parity]") {
  const Case own = case_of(R"({"name": "x", "tolerance": "losses 1e-3"})", "model", R"({"tolerance": "losses 1"})");
  CHECK(own.tolerance("losses").allowed(5) == 1e-3);
  CHECK(own.tolerance("losses", {{1e-6, 1e-6}}).allowed(1) == Approx(2e-6));
  const Case area = case_of(R"({"name": "x"})", "model", R"({"tolerance": "2e-2 abs"})");
  CHECK(area.tolerance("anything").allowed(0) == 2e-2);
  CHECK_THROWS(case_of(R"({"name": "x"})").tolerance("losses"));
}

}  // namespace kf::parity
