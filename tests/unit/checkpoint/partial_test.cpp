// Weights without a model: means, differences, other names and other forms; files that are read in ranges.

#include <ATen/ATen.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "checkpoint/difference.h"
#include "checkpoint/file_check.h"
#include "checkpoint/files/load_rules.h"
#include "checkpoint/soup.h"
#include "checkpoint/weights_at.h"
#include "core/error.h"
#include "parallel/thread_ranks.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using Catch::Matchers::Contains;

namespace {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

WeightsAt written(const fs::path& path, const Tensors& tensors) {
  write_safetensors(path, tensors);
  return open_weights(path);
}

}  // namespace

TEST_CASE("loading: layers of a grown model by their rule", "[checkpoint][loading]") {
  const auto layers = [](LayerRule rule, std::int64_t have, std::int64_t want) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < want; ++i) {
      out.push_back(layer_of(rule, i, have, want));
    }
    return out;
  };
  using Layers = std::vector<std::int64_t>;
  CHECK(layers(LayerRule::copy_last, 2, 4) == Layers{0, 1, 1, 1});
  CHECK(layers(LayerRule::interleave, 3, 6) == Layers{0, 0, 1, 1, 2, 2});
  CHECK(layers(LayerRule::interleave, 2, 3) == Layers{0, 0, 1});
  CHECK(layers(LayerRule::fresh, 2, 4) == Layers{0, 1, -1, -1});
  CHECK(count_layers({"layers.0.a", "layers.11.b", "layers.x.c", "head"}) == 12);
}

TEST_CASE("loading: names go through rules one after the other, and broken rules are refused by their place", "[checkpoint][loading]") {
  const NameMap map({{"^model\\.", ""}, {"blocks\\.(\\d+)\\.", "layers.$1."}}, "checkpoint.name_map");
  CHECK(map.of("model.blocks.12.w") == "layers.12.w");
  CHECK(map.of("head.w") == "head.w");
  CHECK(NameMap().of("head.w") == "head.w");
  CHECK_THROWS_WITH(NameMap({{"a", ""}, {"(", ""}}, "checkpoint.name_map"), Contains("checkpoint.name_map[1].from"));
  CHECK_THROWS_WITH(NameMap({{"", "x"}}, "checkpoint.name_map"), Contains("from is empty"));
}

TEST_CASE("soup: the mean in fp32 of each tensor, in the type of the first, and one error for all that differs", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor a = at::randn({5, 3}), b = at::randn({5, 3}), c = at::randn({5, 3}), ids = at::arange(3);
  const std::vector<WeightsAt> all{written(dir / "a.safetensors", {{"w", a}, {"h", a.to(at::kBFloat16)}, {"n", ids}}),
                                   written(dir / "b.safetensors", {{"w", b}, {"h", b.to(at::kBFloat16)}, {"n", ids}}),
                                   written(dir / "c.safetensors", {{"w", c}, {"h", c.to(at::kBFloat16)}, {"n", ids}})};
  Spoiled not_finite;
  const NamedTensors mean = soup(all, not_finite);
  CHECK(at::equal(mean.get("w"), (a + b + c) / 3));
  const auto low = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
  CHECK(at::equal(mean.get("h"), ((low(a) + low(b) + low(c)) / 3).to(at::kBFloat16)));
  CHECK(at::equal(mean.get("n"), ids));
  const std::vector<WeightsAt> bad{all[0], written(dir / "d.safetensors", {{"w", at::ones({2})}, {"x", a}, {"n", ids + 1}})};
  CHECK(not_finite.empty());
  CHECK_THROWS_WITH(soup(bad, not_finite), Contains("lacks (1): h") && Contains("has besides (1): x") &&
                                               Contains("w is (2) and not (5, 3)") && Contains("whole numbers that differ (1): n"));
}

TEST_CASE("difference: farthest first, with what only one has, and NaN before all", "[checkpoint]") {
  const test::TempDir dir;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const WeightsAt a = written(dir / "a.safetensors", {{"far", at::ones({4})},
                                                      {"near", at::ones({4})},
                                                      {"same", at::ones({2})},
                                                      {"bad", at::ones({1})},
                                                      {"one", at::ones({1})},
                                                      {"shape", at::ones({1})}});
  const WeightsAt b = written(dir / "b.safetensors", {{"far", at::full({4}, 3.0)},
                                                      {"near", at::full({4}, 1.5)},
                                                      {"same", at::ones({2})},
                                                      {"bad", at::full({1}, nan)},
                                                      {"two", at::ones({1})},
                                                      {"shape", at::ones({2})}});
  const WeightDifference found = difference(a.tensors, b.tensors);
  REQUIRE(found.moved.size() == 3);
  CHECK(found.moved[0].name == "bad");
  CHECK(std::isnan(found.moved[0].relative));
  CHECK(found.moved[1].name == "far");
  CHECK(found.moved[1].largest == 2);
  CHECK(found.moved[1].norm == Approx(4));
  CHECK(found.moved[1].relative == Approx(2));
  CHECK(found.moved[2].relative == Approx(0.5));
  CHECK(found.equal == 1);
  CHECK(found.only_a == std::vector<std::string>{"one"});
  CHECK(found.only_b == std::vector<std::string>{"two"});
  CHECK(found.misshapen == std::vector<std::string>{"shape is (1) in A and (2) in B"});
  CHECK(difference(a.tensors, a.tensors).same());
  CHECK(found.nans.size() == 1);
  CHECK(std::isfinite(found.norm));
}

TEST_CASE("difference: NaN and infinity are the same where both have them, and weights with NaN are counted and named apart",
          "[checkpoint]") {
  const test::TempDir dir;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const WeightsAt a = written(dir / "a.safetensors", {{"w", at::tensor({1.0F, nan, inf, nan})}, {"v", at::ones({2})}});
  const WeightsAt b = written(dir / "b.safetensors", {{"w", at::tensor({3.0F, nan, inf, 1.0F})}, {"v", at::ones({2})}});
  const WeightDifference same = difference(a.tensors, a.tensors);
  CHECK(same.same());
  CHECK(same.equal == 2);
  REQUIRE(same.nans.size() == 1);
  CHECK(same.nans[0].name == "w");
  CHECK(same.nans[0].in_a == 2);
  const WeightDifference found = difference(a.tensors, b.tensors);
  REQUIRE(found.moved.size() == 1);
  CHECK(std::isnan(found.moved[0].largest));  // a number here, NaN there
  CHECK(found.moved[0].norm == 2);
  CHECK(found.norm == 2);
  REQUIRE(found.nans.size() == 1);
  CHECK(found.nans[0].in_b == 1);
}

TEST_CASE("average and convert: what is not finite, or does not stay so, is noted by name and count", "[checkpoint]") {
  const test::TempDir dir;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<WeightsAt> all{written(dir / "a.safetensors", {{"w", at::tensor({1e6F, 1.0F, -1e6F})}, {"n", at::arange(3)}}),
                                   written(dir / "b.safetensors", {{"w", at::tensor({1e6F, nan, -1e6F})}, {"n", at::arange(3)}})};
  Spoiled not_finite, too_large;
  const NamedTensors low = in_type(soup(all, not_finite), at::kHalf, too_large);
  low.get("w");
  low.get("n");
  CHECK(too_large == Spoiled{"w (2 of 3)"});
  CHECK(not_finite == Spoiled{"w of " + (dir / "b.safetensors").string() + " (1 of 3)"});
  too_large.clear();
  in_type(all[0].tensors, at::kBFloat16, too_large).get("w");
  CHECK(too_large.empty());
}

TEST_CASE("experts: a stack and its members are one another's to the bit, and a hole is named", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor stack = at::randn({3, 4, 2});  // (E, in, out)
  const at::Tensor bias = at::randn({3, 2});
  const WeightsAt packed =
      written(dir / "p.safetensors", {{"layers.0.mlp.up_w", stack}, {"layers.0.mlp.up_bias", bias}, {"norm.weight", bias}});
  const NamedTensors each = with_experts(packed.tensors, ExpertForm::each, packed.path);
  CHECK(each.names.size() == 7);
  CHECK(at::equal(each.get("layers.0.mlp.experts.2.up_proj.weight"), stack[2].t()));
  CHECK(at::equal(each.get("layers.0.mlp.experts.1.up_proj.bias"), bias[1]));
  write_weights(dir / "e.safetensors", each, packed);
  const WeightsAt apart = open_weights(dir / "e.safetensors");
  const NamedTensors back = with_experts(apart.tensors, ExpertForm::packed, apart.path);
  CHECK(difference(packed.tensors, back).same());
  const WeightsAt hole =
      written(dir / "h.safetensors", {{"mlp.experts.0.up_proj.weight", stack[0]}, {"mlp.experts.2.up_proj.weight", stack[2]}});
  CHECK_THROWS_WITH(with_experts(hole.tensors, ExpertForm::packed, hole.path), Contains("stacks (1): mlp.up_w"));
}

TEST_CASE("check: of many ranks each reads its share of the files, and all learn of a fault", "[checkpoint]") {
  const test::TempDir dir;
  std::map<std::string, FileDigest> files;
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    dir.write(name, std::string(100, name[0]));
    files[name] = digest_of(dir / name);
  }
  CHECK_NOTHROW(run_ranks(3, [&](Group& group) { shared_check(group)(dir.path(), files); }));
  dir.write("d", std::string(99, 'd') + "x");
  std::atomic<int> told = 0;
  const auto check = [&] {
    run_ranks(3, [&](Group& group) {
      try {
        shared_check(group)(dir.path(), files);
      } catch (const Error&) {
        ++told;
        throw;
      }
    });
  };
  CHECK_THROWS_WITH(check(), Contains("d is damaged"));
  CHECK(told == 3);
}

TEST_CASE("safetensors: a file that was replaced or cut short since it was opened is an error, not another's numbers", "[checkpoint]") {
  const test::TempDir dir;
  const fs::path path = dir / "w.safetensors";
  write_safetensors(path, {{"w", at::ones({1000})}});
  const SafetensorsFile file(path);
  fs::resize_file(path, 500);
  CHECK_THROWS_WITH(file.tensor("w"), Contains("cut short"));
  write_safetensors(path, {{"w", at::zeros({1000})}});
  CHECK_THROWS_WITH(file.tensor("w"), Contains("another file"));
}

TEST_CASE("safetensors: columns of a tensor too wide for one piece come in another type and place", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor whole = at::arange(3000 * 2100, at::kFloat).view({3000, 2100});  // 25 MB
  write_safetensors(dir / "w.safetensors", {{"w", whole}});
  const SafetensorsFile file(dir / "w.safetensors");
  const Range range{{7, 100}, {2900, 1900}};
  const at::Tensor expected = whole.narrow(0, 7, 2900).narrow(1, 100, 1900);
  CHECK(at::equal(file.slice("w", range), expected));
  const at::Tensor turned = at::zeros({1900, 2900}, at::kDouble);
  file.read("w", range, turned.t());
  CHECK(at::equal(turned.t(), expected.to(at::kDouble)));
}
