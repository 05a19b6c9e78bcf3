// data: permutations, sampler and mixture orders, memory-mapped items, packing, resumed loaders, phases.

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/documents/documents.h"
#include "data/order/mixture.h"
#include "data/order/order.h"
#include "data/order/sampler.h"
#include "data/sequence/packing.h"
#include "data/sequence/stream_dataset.h"
#include "data/sequence/token_dataset.h"
#include "parity/areas.h"
#include "support/factor_at.h"
#include "train/loop/data_phases.h"

namespace kf::parity {
namespace {

using Ints = std::vector<std::int64_t>;

SamplerOptions options_of(const Table& config, std::int64_t rank) {
  SamplerOptions options;
  options.rank = rank;
  options.world = get(config, "world") ? integer(at(config, "world"), "world") : 1;
  options.seed = integer(at(config, "seed"), "seed");
  options.shuffle = !get(config, "shuffle") || boolean(at(config, "shuffle"), "shuffle");
  options.drop_last = !get(config, "drop_last") || boolean(at(config, "drop_last"), "drop_last");
  return options;
}

void run_randperm(const Case& test, Comparison& out) {
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& row = table(entry, "expected");
    const std::int64_t n = integer(at(row, "n"), "n"), seed = integer(at(row, "seed"), "seed");
    out.integers(format("order of {} from seed {}", n, seed), Permutations(seed).next(n), integers(at(row, "order"), "order"));
  }
  if (const Node* node = test.get("consecutive")) {
    const Table& row = table(*node, "consecutive");
    Permutations stream(integer(at(row, "seed"), "seed"));
    const Ints sizes = integers(at(row, "sizes"), "sizes");
    const Array& orders = list(at(row, "orders"), "orders");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      out.integers(format("consecutive[{}]", i), stream.next(sizes[i]), integers(orders.at(i), "orders"));
    }
  }
}

/// The order of every rank, after skipping what was read already.
void compare_orders(const Case& test, const Array& ranks, const std::function<Ints(std::int64_t rank)>& order, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const std::int64_t skip = get(config, "skip") ? integer(at(config, "skip"), "skip") : 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Ints ours = order(static_cast<std::int64_t>(rank));
    ours.erase(ours.begin(), ours.begin() + std::min<std::int64_t>(skip, static_cast<std::int64_t>(ours.size())));
    out.integers(format("order[{}]", rank), ours, integers(ranks[rank], "order"));
  }
}

void run_distributed(const Case& test, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const std::int64_t n = integer(at(config, "n"), "n"), epoch = integer(at(config, "epoch"), "epoch");
  compare_orders(
      test, list(test.at("expected"), "expected"),
      [&](std::int64_t rank) { return DistributedSampler(n, options_of(config, rank)).order(epoch); }, out);
  if (const Node* length = test.get("per_rank_len")) {
    out.integer("per_rank_len", DistributedSampler(n, options_of(config, 0)).size(), integer(*length, "per_rank_len"));
  }
}

void run_mixture(const Case& test, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const Ints sizes = integers(at(config, "sizes"), "sizes");
  const std::vector<double> weights = numbers(at(config, "weights"), "weights");
  const double temperature = number(at(config, "temperature"), "temperature");
  const std::int64_t epoch = integer(at(config, "epoch"), "epoch");
  const Node* update = get(config, "update");
  const auto updated = [&](MixtureSampler& sampler) {
    const Table& change = table(*update, "update");
    const double now = get(change, "temperature") ? number(at(change, "temperature"), "temperature") : temperature;
    sampler.set_weights(numbers(at(change, "weights"), "weights"), now);
  };

  const Tolerance tolerance{{{1e-12, 0}}};
  MixtureSampler first(sizes, weights, temperature, options_of(config, 0));
  if (const Node* length = test.expected("len")) {
    out.integer("len", first.size(), integer(*length, "len"));
  }
  if (const Node* p = test.expected("probabilities")) {
    out.numbers("probabilities", first.probabilities(), numbers(*p, "probabilities"), tolerance);
  }
  if (const Node* counts = test.expected("target_counts")) {
    out.integers("target_counts", first.target_counts(), integers(*counts, "target_counts"));
  }
  if (update) {
    updated(first);
    out.numbers("probabilities_after_update", first.probabilities(), numbers(at(test.expected(), "probabilities_after_update"), "p"),
                tolerance);
    out.integers("target_counts_after_update", first.target_counts(),
                 integers(at(test.expected(), "target_counts_after_update"), "counts"));
  }
  compare_orders(
      test, list(at(test.expected(), "order"), "order"),
      [&](std::int64_t rank) {
        MixtureSampler sampler(sizes, weights, temperature, options_of(config, rank));
        if (update) {
          updated(sampler);
        }
        return sampler.order(epoch);
      },
      out);
}

/// Does what the name of an entry of kind `errors` says.
void provoke(const std::string& what) {
  if (what.starts_with("weights [")) {
    const std::vector<double> weights = numbers(parse_json(what.substr(8), what), what);
    MixtureSampler(Ints(weights.size(), 4), weights, 1.0, {});
  } else if (what.starts_with("update_weights with 1 of 2")) {
    MixtureSampler({4, 4}, {1.0, 1.0}, 1.0, {}).set_weights({1.0}, 1.0);
  } else if (what.starts_with("MixtureDataset without sources")) {
    MixtureDataset({}, {});
  } else if (what.starts_with("MixtureDataset 1 source 2 names")) {
    std::vector<std::unique_ptr<Dataset>> one;
    one.push_back(nullptr);
    MixtureDataset(std::move(one), {"a", "b"});
  } else {
    throw std::logic_error("the runner does not know how to do this");
  }
}

void run_errors(const Case& test, Comparison& out) {
  for (const auto& [what, expected] : test.expected()) {
    std::string refused, problem;
    try {
      provoke(what);
    } catch (const Error& e) {
      refused = e.what();
    } catch (const std::exception& e) {
      problem = e.what();
    }
    const bool right = problem.empty() && refused.empty() == expected.is_null();
    out.require(what, right, what + ": " + (!problem.empty() ? problem : refused.empty() ? "was not refused" : refused));
  }
}

void compare_item(const Table& expected, const Ints& window, const Node* eos, const std::string& what, Comparison& out) {
  Ints inputs(window.size() - 1), labels(inputs.size()), documents(inputs.size());
  if (eos) {
    pack_window(window, integer(*eos, "eos"), inputs, labels, documents);
    out.integers(what + " doc_ids", documents, integers(at(expected, "doc_ids"), "doc_ids"));
  } else {
    split_window(window, inputs, labels);
  }
  out.integers(what + " input_ids", inputs, integers(at(expected, "input_ids"), "input_ids"));
  out.integers(what + " labels", labels, integers(at(expected, "labels"), "labels"));
}

void run_mmap(const Case& test, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const std::int64_t window = integer(at(config, "window"), "window");
  TokenFileOptions options;
  if (const Node* types = test.get("dtypes")) {  // of raw files: the runner passes what is stored
    options.raw_type = token_type_named(text(list(*types, "dtypes").at(0), "dtypes"));
  }
  const fs::path folder = test.folder / "files";
  const TokenDataset data(glob(folder, text(at(config, "pattern"), "pattern")), folder, window, options);

  std::vector<std::string> names, types;
  Ints lengths;
  for (const TokenFile& file : data.files()) {
    names.push_back(file.path().filename().string());
    types.emplace_back(token_type_name(file.type()));
    lengths.push_back(file.tokens());
  }
  const auto compare_names = [&](const std::string& key, const std::vector<std::string>& ours) {
    if (const Node* node = test.get(key)) {
      std::vector<std::string> theirs;
      for (const Node& item : list(*node, key)) {
        theirs.push_back(text(item, key));
      }
      out.same_text(key, join(ours, " "), join(theirs, " "));
    }
  };
  compare_names("files", names);
  compare_names("dtypes", types);
  if (const Node* node = test.get("lens")) {
    out.integers("lens", lengths, integers(*node, "lens"));
  }
  if (const Node* node = test.get("cumulative")) {
    out.integers("cumulative", data.cumulative(), integers(*node, "cumulative"));
  }
  if (const Node* node = test.get("n_samples")) {
    out.integer("n_samples", data.size(), integer(*node, "n_samples"));
  }
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& item = table(entry, "expected");
    const std::int64_t index = integer(at(item, "index"), "index");
    Ints ids(static_cast<std::size_t>(window));
    data.get(index, ids);
    compare_item(item, ids, get(config, "pack_eos"), format("item {}", index), out);
  }
}

void run_pack_window(const Case& test, Comparison& out) {
  std::size_t i = 0;
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& item = table(entry, "expected");
    compare_item(item, integers(at(item, "tokens"), "tokens"), test.get("eos"), format("window {}", i++), out);
  }
}

/// The sequences of documents of which every world-th, from `rank` on, is read; each but empty ones ends with `eos`.
void compare_chunks(const Case& test, std::int64_t rank, std::int64_t world, const Array& expected, const std::string& what,
                    Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const std::int64_t seq_len = integer(at(config, "seq_len"), "seq_len"), eos = integer(at(config, "eos"), "eos");
  auto documents = std::make_shared<MemoryDocuments>();
  const Array& all = list(test.at("documents"), "documents");
  for (std::size_t i = 0; i < all.size(); ++i) {
    Ints ids = integers(all[i], "documents");
    if (static_cast<std::int64_t>(i) % world == rank && !ids.empty()) {
      ids.push_back(eos);
      documents->add(ids, 0);
    }
  }
  const StreamDataset data(documents, seq_len + 1, what);
  out.integer(what + " sequences", data.size(), static_cast<std::int64_t>(expected.size()));
  const bool apart = boolean(at(config, "pack"), "pack");
  for (std::size_t i = 0; i < expected.size() && static_cast<std::int64_t>(i) < data.size(); ++i) {
    const auto width = static_cast<std::size_t>(seq_len);
    Ints tokens(width), labels(width), doc_ids(apart ? width : 0);
    data.row(static_cast<std::int64_t>(i), std::nullopt, {tokens, labels, doc_ids});
    const Table& item = table(expected[i], what);
    const std::string where = format("{}[{}]", what, i);
    out.integers(where + " input_ids", tokens, integers(at(item, "input_ids"), "input_ids"));
    out.integers(where + " labels", labels, integers(at(item, "labels"), "labels"));
    if (apart) {
      out.integers(where + " doc_ids", doc_ids, integers(at(item, "doc_ids"), "doc_ids"));
    }
  }
}

void run_document_chunks(const Case& test, Comparison& out) {
  const Table& expected = table(test.at("expected"), "expected");
  compare_chunks(test, 0, 1, list(at(expected, "eager"), "eager"), "eager", out);
  const Array& ranks = list(at(expected, "streaming_per_rank"), "streaming_per_rank");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    compare_chunks(test, static_cast<std::int64_t>(rank), static_cast<std::int64_t>(ranks.size()), list(ranks[rank], "rank"),
                   format("rank {}", rank), out);
  }
}

/// Batches are a function of their number: "resumed" is a new order asked for later numbers.
void run_loader_resume(const Case& test, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const auto fresh = [&] {
    const std::int64_t n = integer(at(config, "n"), "n"), rank = integer(at(config, "rank"), "rank");
    return Order({{0, std::make_shared<DistributedSampler>(n, options_of(config, rank))}}, integer(at(config, "batch_size"), "batch_size"),
                 1);
  };
  const auto compare = [&](const std::string& key, std::int64_t first) {
    Order order = fresh();
    const Array& batches = list(test.at(key), key);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const auto samples = order.samples(first + static_cast<std::int64_t>(i));
      out.integers(format("{}[{}]", key, i), Ints(samples.begin(), samples.end()), integers(batches[i], key));
    }
  };
  compare("batches", 0);
  compare("expected_after_resume", integer(at(table(test.at("state_after"), "state_after"), "batches"), "batches"));
}

/// The phases of a case as the loader would build them from [data].
std::vector<OrderPhase> phases_of(const Table& config) {
  const Ints sizes = integers(at(config, "sizes"), "sizes");
  const std::vector<double> weights = numbers(at(config, "weights"), "weights");
  const double temperature = number(at(config, "temperature"), "temperature");
  const SamplerOptions options = options_of(config, integer(at(config, "rank"), "rank"));
  std::vector<OrderPhase> phases{{0, std::make_shared<MixtureSampler>(sizes, weights, temperature, options)}};
  const Array& names = list(at(config, "names"), "names");
  for (const Node& entry : list(at(config, "phases"), "phases")) {
    const Table& phase = table(entry, "phase");
    std::vector<double> changed = weights;
    if (const Node* given = get(phase, "dataset_weights")) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const Node* weight = table(*given, "dataset_weights").find(text(names[i], "names"));
        changed[i] = weight ? number(*weight, "weight") : weights[i];
      }
    }
    phases.push_back(
        {integer(at(phase, "start_step"), "start_step"), std::make_shared<MixtureSampler>(sizes, changed, temperature, options)});
  }
  return phases;
}

/// The same phases with their factors of the learning rate.
Phases rates_of(const Table& config) {
  constexpr std::int64_t kSteps = 100000;  // more than any case has
  config::DataConfig data;
  for (const Node& entry : list(at(config, "phases"), "phases")) {
    const Table& phase = table(entry, "phase");
    const double scale = get(phase, "lr_scale") ? number(at(phase, "lr_scale"), "lr_scale") : 1.0;
    data.phases.push_back({integer(at(phase, "start_step"), "start_step"), {}, scale});
  }
  return Phases(data_phases(data, kSteps), kSteps);
}

void run_phases(const Case& test, Comparison& out) {
  const Table& config = table(test.at("config"), "config");
  const std::int64_t accumulation = integer(at(config, "grad_accum"), "grad_accum");
  const std::vector<OrderPhase> phases = phases_of(config);
  Phases rates = rates_of(config);
  const Order order(phases, integer(at(config, "batch_size"), "batch_size"), accumulation);
  const std::string rule = get(config, "lr") ? text(at(config, "lr"), "lr") : "";
  KF_CHECK(rule.empty() || rule == "factor 1/(1+0.1 s)", Code::other, "the runner knows no lr rule '{}'", rule);
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& record = table(entry, "expected");
    const std::int64_t s = integer(at(record, "step"), "step") - 1;
    const std::string where = format("step {} ", s + 1);
    const Array& batches = list(at(record, "micro_batches"), "micro_batches");
    for (std::size_t m = 0; m < batches.size(); ++m) {
      const auto samples = order.samples(s * accumulation + static_cast<std::int64_t>(m));
      out.integers(where + format("micro {}", m), Ints(samples.begin(), samples.end()), integers(batches[m], "micro_batches"));
    }
    const double lr = 1 / (1 + 0.1 * static_cast<double>(s)) * test::factor_at(rates, s);
    for (const char* key : {"lr_used", "lr_logged"}) {
      if (const Node* expected = rule.empty() ? nullptr : get(record, key)) {
        out.number(where + key, lr, number(*expected, key), Tolerance{{{1e-12, 0}}});
      }
    }
    const Order::Position position = order.position(s * accumulation);
    if (const Node* entered = get(record, "phases_entered")) {
      out.integer(where + "phases_entered", position.phase, integer(*entered, "phases_entered"));
    }
    if (const Node* epoch = get(record, "epoch")) {
      out.integer(where + "epoch", position.epoch, integer(*epoch, "epoch"));
    }
    if (const Node* targets = get(record, "targets")) {
      const auto& sampler = static_cast<const MixtureSampler&>(*phases.at(static_cast<std::size_t>(position.phase)).sampler);
      out.integers(where + "targets", sampler.target_counts(), integers(*targets, "targets"));
    }
  }
}

}  // namespace

void run_data(const Case& test, Comparison& out) {
  if (test.kind == "randperm") {
    run_randperm(test, out);
  } else if (test.kind == "distributed_sampler") {
    run_distributed(test, out);
  } else if (test.kind == "mixture_sampler") {
    run_mixture(test, out);
  } else if (test.kind == "errors") {
    run_errors(test, out);
  } else if (test.kind == "mmap") {
    run_mmap(test, out);
  } else if (test.kind == "pack_window") {
    run_pack_window(test, out);
  } else if (test.kind == "loader_resume") {
    run_loader_resume(test, out);
  } else if (test.kind == "phases") {
    run_phases(test, out);
  } else if (test.kind == "document_chunks") {
    run_document_chunks(test, out);
  } else {
    fail(Code::other, "the runner knows no kind '{}' of data cases", test.kind);
  }
}

}  // namespace kf::parity
