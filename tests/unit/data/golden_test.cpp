// Every case of the reference's data pipeline that concerns files, orders, mixtures, packing and phases.

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/fs.h"
#include "data/order/mixture.h"
#include "data/order/order.h"
#include "data/order/phases.h"
#include "data/order/sampler.h"
#include "data/sequence/batch.h"
#include "data/sequence/packing.h"
#include "data/sequence/token_dataset.h"
#include "support/factor_at.h"
#include "train/loop/data_phases.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too, and SECTION one of config.h

namespace {

using nlohmann::json;
using Ids = std::vector<std::int64_t>;

const kf::fs::path kFolder = kf::fs::path(KF_TEST_DATA) / "data";

/// The cases of a kind, `right` laid over those where the reference is wrong.
std::vector<json> cases_of(const std::string& kind) {
  const json all = json::parse(kf::read_file(kFolder / "cases.json"));
  std::vector<json> out;
  for (json one : all["cases"]) {
    if (one["kind"] != kind) {
      continue;
    }
    if (one.value("use", "") == "right") {
      if (one["right"].is_array()) {
        one["expected"] = one["right"];
      } else {
        one.update(one["right"]);
      }
    }
    out.push_back(std::move(one));
  }
  REQUIRE_FALSE(out.empty());
  return out;
}

kf::SamplerOptions sampler_options(const json& config, std::int64_t rank) {
  return {rank, config.value("world", std::int64_t{1}), config.value("seed", std::int64_t{0}), config.value("shuffle", true),
          config.value("drop_last", true)};
}

Ids after(const Ids& order, std::int64_t skip) { return {order.begin() + skip, order.end()}; }

struct Item {
  Ids inputs, labels, doc_ids;
};

Item item_of(const Ids& window, std::optional<std::int64_t> eos) {
  Item item{Ids(window.size() - 1), Ids(window.size() - 1), Ids(window.size() - 1)};
  if (eos) {
    kf::pack_window(window, *eos, item.inputs, item.labels, item.doc_ids);
  } else {
    kf::split_window(window, item.inputs, item.labels);
  }
  return item;
}

}  // namespace

TEST_CASE("data golden: permutations are those of torch, and one generator continues its stream") {
  for (const json& one : cases_of("randperm")) {
    for (const json& row : one["expected"]) {
      CHECK(kf::Permutations(row["seed"]).next(row["n"]) == row["order"].get<Ids>());
    }
    const json& stream = one["consecutive"];
    kf::Permutations permutations(stream["seed"]);
    for (std::size_t i = 0; i < stream["sizes"].size(); ++i) {
      CHECK(permutations.next(stream["sizes"][i]) == stream["orders"][i].get<Ids>());
    }
  }
}

TEST_CASE("data golden: every rank reads its share of the shuffled order") {
  for (const json& one : cases_of("distributed_sampler")) {
    const json& config = one["config"];
    for (std::int64_t rank = 0; rank < config["world"]; ++rank) {
      CAPTURE(one["name"], rank);
      const kf::DistributedSampler sampler(config["n"], sampler_options(config, rank));
      CHECK(sampler.size() == one["per_rank_len"]);
      CHECK(after(sampler.order(config["epoch"]), config["skip"]) == one["expected"][static_cast<std::size_t>(rank)].get<Ids>());
    }
  }
}

TEST_CASE("data golden: mixtures draw the same samples in the same order") {
  for (const json& one : cases_of("mixture_sampler")) {
    const json& config = one["config"];
    const json& expected = one["expected"];
    for (std::int64_t rank = 0; rank < config["world"]; ++rank) {
      CAPTURE(one["name"], rank);
      kf::MixtureSampler sampler(config["sizes"].get<Ids>(), config["weights"].get<std::vector<double>>(), config["temperature"],
                                 sampler_options(config, rank));
      const auto close = [&](const json& probabilities) {
        for (std::size_t i = 0; i < probabilities.size(); ++i) {
          CHECK(sampler.probabilities()[i] == Approx(probabilities[i].get<double>()).margin(1e-12).epsilon(0));
        }
      };
      close(expected["probabilities"]);
      CHECK(sampler.target_counts() == expected["target_counts"].get<Ids>());
      CHECK(sampler.size() == expected["len"]);
      if (!config["update"].is_null()) {
        sampler.set_weights(config["update"]["weights"].get<std::vector<double>>(), config["temperature"]);
        close(expected["probabilities_after_update"]);
        CHECK(sampler.target_counts() == expected["target_counts_after_update"].get<Ids>());
      }
      CHECK(after(sampler.order(config["epoch"]), config["skip"]) == expected["order"][static_cast<std::size_t>(rank)].get<Ids>());
    }
  }
}

TEST_CASE("data golden: token files are cut into the same windows") {
  for (const json& one : cases_of("mmap")) {
    const json& config = one["config"];
    CAPTURE(one["name"]);
    kf::TokenFileOptions options;
    options.raw_type = kf::token_type_named(one["dtypes"][0].get<std::string>());
    const kf::fs::path folder = kFolder / "files";
    const kf::TokenDataset data(kf::glob(folder, config["pattern"].get<std::string>()), folder, config["window"], options);
    for (std::size_t i = 0; i < one["files"].size(); ++i) {
      CHECK(data.files()[i].path().filename() == one["files"][i].get<std::string>());
      CHECK(data.files()[i].tokens() == one["lens"][i]);
      CHECK(kf::token_type_name(data.files()[i].type()) == one["dtypes"][i].get<std::string>());
    }
    CHECK(data.size() == one["n_samples"]);
    CHECK(data.cumulative() == one["cumulative"].get<Ids>());
    std::optional<std::int64_t> eos;
    if (!config["pack_eos"].is_null()) {
      eos = config["pack_eos"].get<std::int64_t>();
    }
    for (const json& row : one["expected"]) {
      Ids window(config["window"].get<std::size_t>());
      data.get(row["index"], window);
      const Item item = item_of(window, eos);
      CHECK(item.inputs == row["input_ids"].get<Ids>());
      CHECK(item.labels == row["labels"].get<Ids>());
      CHECK((!eos || item.doc_ids == row["doc_ids"].get<Ids>()));
    }
  }
}

TEST_CASE("data golden: packing keeps documents apart") {
  for (const json& one : cases_of("pack_window")) {
    for (const json& row : one["expected"]) {
      const Item item = item_of(row["tokens"].get<Ids>(), one["eos"].get<std::int64_t>());
      CHECK(item.inputs == row["input_ids"].get<Ids>());
      CHECK(item.labels == row["labels"].get<Ids>());
      CHECK(item.doc_ids == row["doc_ids"].get<Ids>());
    }
  }
}

TEST_CASE("data golden: batches go on over epochs, from any number") {
  for (const json& one : cases_of("loader_resume")) {
    const json& config = one["config"];
    const auto sampler = std::make_shared<kf::DistributedSampler>(config["n"], sampler_options(config, config["rank"]));
    kf::Order straight({{0, sampler}}, config["batch_size"], 1);
    const auto batch = [](kf::Order& order, std::size_t i) {
      const auto samples = order.samples(static_cast<std::int64_t>(i));
      return Ids(samples.begin(), samples.end());
    };
    for (std::size_t i = 0; i < one["batches"].size(); ++i) {
      CHECK(batch(straight, i) == one["batches"][i].get<Ids>());
    }
    kf::Order resumed({{0, sampler}}, config["batch_size"], 1);
    const std::size_t from = one["state_after"]["batches"];
    for (std::size_t i = 0; i < one["expected_after_resume"].size(); ++i) {
      CHECK(batch(resumed, from + i) == one["expected_after_resume"][i].get<Ids>());
    }
  }
}

TEST_CASE("data golden: phases switch mixture and learning rate exactly at their start") {
  for (const json& one : cases_of("phases")) {
    const json& config = one["config"];
    CAPTURE(one["name"]);
    kf::config::DataConfig data;
    for (const json& phase : config["phases"]) {
      data.phases.push_back({phase["start_step"], phase["dataset_weights"], phase.value("lr_scale", 1.0)});
    }
    const kf::MixtureSpec spec{config["names"], config["sizes"], config["weights"], config["temperature"]};
    const std::int64_t accumulation = config["grad_accum"];
    const auto made = kf::mixture_phases(spec, data.phases, sampler_options(config, config["rank"]));
    const kf::Order order(made, config["batch_size"], accumulation);
    kf::Phases rates(kf::data_phases(data, 1000), 1000);
    for (const json& row : one["expected"]) {
      const std::int64_t step = row["step"].get<std::int64_t>() - 1;
      CAPTURE(step);
      for (std::int64_t micro = 0; micro < accumulation; ++micro) {
        const auto samples = order.samples(step * accumulation + micro);
        CHECK(Ids(samples.begin(), samples.end()) == row["micro_batches"][static_cast<std::size_t>(micro)].get<Ids>());
      }
      const auto at = order.position(step * accumulation + accumulation - 1);
      CHECK(at.epoch == row["epoch"]);
      CHECK(at.phase == row["phases_entered"]);
      const auto& sampler = dynamic_cast<const kf::MixtureSampler&>(*made[static_cast<std::size_t>(at.phase)].sampler);
      CHECK(sampler.target_counts() == row["targets"].get<Ids>());
      CHECK(kf::test::factor_at(rates, step) / (1 + 0.1 * static_cast<double>(step)) ==
            Approx(row["lr_used"].get<double>()).epsilon(1e-12));
    }
  }
}

TEST_CASE("data golden: what the reference refuses is refused") {
  const kf::SamplerOptions one_rank;
  const auto mixture = [&](const std::vector<double>& weights) { return kf::MixtureSampler({10, 10}, weights, 1.0, one_rank); };
  CHECK_THROWS_WITH(mixture({}), Catch::Contains("empty"));
  CHECK_THROWS_WITH(mixture({-1, 2}), Catch::Contains("non-negative") && Catch::Contains("[-1, 2]"));
  CHECK_THROWS_WITH(mixture({0, 0}), Catch::Contains("sum to > 0"));
  CHECK_THROWS_WITH(kf::MixtureSampler({10, 10}, {0, 0}, 2.0, one_rank), Catch::Contains("sum to > 0"));
  kf::MixtureSampler sampler = mixture({1, 1});
  CHECK_THROWS_WITH(sampler.set_weights({1}, 1.0), Catch::Contains("expected 2 weights") && Catch::Contains("got 1"));
  CHECK_THROWS_WITH(sampler.set_weights({0, 0}, 1.0), Catch::Contains("sum to > 0"));
  CHECK(sampler.target_counts() == Ids{10, 10});  // a refused change changes nothing
  CHECK_THROWS_WITH(kf::MixtureDataset({}, {}), Catch::Contains("at least one"));
  std::vector<std::unique_ptr<kf::Dataset>> data;
  data.push_back(nullptr);
  CHECK_THROWS_WITH(kf::MixtureDataset(std::move(data), {"a", "b"}), Catch::Contains("1 data sets, 2 names"));
}
