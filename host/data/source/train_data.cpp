#include "data/source/train_data.h"

#include <map>
#include <utility>

#include "config/plan/derived.h"
#include "config/schema/config.h"
#include "core/error.h"
#include "core/log.h"
#include "data/order/mixture.h"
#include "data/sequence/subset_dataset.h"
#include "data/sequence/synthetic.h"
#include "data/source/part_dataset.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {
namespace {

/// The name of each source of the mixture, as phases and logs know it.
std::vector<std::string> source_names(const std::vector<config::DatasetSource>& sources) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> taken;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const config::DatasetSource& source = sources[i];
    names.push_back(config::source_name(source));
    const auto [at, fresh] = taken.emplace(names.back(), i);
    KF_CHECK(fresh, Code::data, "data.datasets[{}] and data.datasets[{}] are both called '{}'; give one of them another name", at->second,
             i, names.back());
  }
  return names;
}

OpenSource open_mixture_source(const config::Config& config, const LoaderOptions& options, const HoldOut& part, std::size_t i) {
  const config::DatasetSource& source = config.data.datasets[i];
  const std::string key = format("data.datasets[{}]", i);
  if (!source.dataset.empty()) {
    KF_CHECK(
        part.holdout == 0, Code::data,
        "data.holdout = {} keeps documents of text for evaluation, but {} is the data set '{}', which has none; set data.holdout = 0 and "
        "give eval.dataset_path",
        part.holdout, key, source.dataset);
    KF_CHECK(
        config.data.pack_method == "concat", Code::data,
        "data.pack_method = \"{}\" packs documents, but {} is the data set '{}', which gives windows; set data.pack_method = \"concat\"",
        config.data.pack_method, key, source.dataset);
    return open_part(config, options.registries, source.dataset, key);
  }
  return open_source(mixture_source(config, i), mixture_options(config, options.registries, i), part);
}

/// The part of the data that a smaller run sees when it stands for a larger one (Levanter's simulated epoching).
std::unique_ptr<Dataset> simulated(std::unique_ptr<Dataset> data, const config::Config& config, const HoldOut& part,
                                   const std::string& what) {
  const config::DataConfig& d = config.data;
  if (part.side != Side::training || d.simulate_tokens == 0 || d.target_tokens == 0) {
    return data;
  }
  const double share = static_cast<double>(d.simulate_tokens) / static_cast<double>(d.target_tokens);
  return std::make_unique<SubsetDataset>(std::move(data), share, config::data_seed(config.train), what);
}

TrainData open_mixture(const config::Config& config, const LoaderOptions& options, const HoldOut& part) {
  const std::vector<config::DatasetSource>& sources = config.data.datasets;
  TrainData out;
  out.mixture = MixtureSpec{source_names(sources), {}, {}, config.data.mix_temperature};
  std::vector<std::unique_ptr<Dataset>> opened;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    OpenSource source = open_mixture_source(config, options, part, i);
    (source.text ? out.text : out.tokens) = true;
    out.eos = source.eos ? source.eos : out.eos;
    out.prints.push_back(std::move(source.prints));
    opened.push_back(simulated(std::move(source.data), config, part, out.mixture->names[i]));
    out.mixture->sizes.push_back(opened.back()->size());
    out.mixture->weights.push_back(sources[i].weight);
  }
  out.data = std::make_unique<MixtureDataset>(std::move(opened), out.mixture->names);
  return out;
}

}  // namespace

bool is_synthetic(const config::DataConfig& data) { return data.datasets.empty() && data.dataset_path.empty() && !data.hf_dataset_name; }

TrainData open_train_data(const config::Config& config, const LoaderOptions& options, const HoldOut& part) {
  const config::DataConfig& data = config.data;
  if (!data.datasets.empty()) {
    return open_mixture(config, options, part);
  }
  if (!is_synthetic(data)) {
    OpenSource source = open_source(training_source(config), source_options(config, options.registries), part);
    return {simulated(std::move(source.data), config, part, "data.dataset_path"),
            std::nullopt,
            source.text,
            source.eos,
            !source.text,
            {std::move(source.prints)}};
  }
  return {std::make_unique<SyntheticDataset>(config.model.vocab_size, config::data_seed(config.train)), std::nullopt, false, std::nullopt,
          true};
}

/// (That one key wins over another, the rules of the job have said.)
void warn_of(const config::Config& config, const TrainData& data) {
  if (is_synthetic(config.data)) {
    log::warn("no data is given (data.dataset_path, data.datasets): training on synthetic data, uniform random ids");
  }
  if (data.text && data.tokens) {
    log::warn(
        "the mixture has both ids (token files, data sets that are parts) and text: they only mean the same if both come from one "
        "tokenizer");
  }
}

Apart keep_apart(const config::Config& config, const TrainData& data, bool wanted, const char* key) {
  if (!wanted) {
    return {};
  }
  const std::optional<std::int64_t>& given = config.data.eos_id;
  KF_CHECK(given || !data.tokens, Code::data,
           "{} = true needs data.eos_id, the id that ends a document: token files do not say which it is", key);
  KF_CHECK(!given || !data.text || !config.data.tokenizer_path.empty() || *given == kByteEos, Code::data,
           "data.eos_id = {}, but text read as bytes ends its documents with {}; leave data.eos_id out", *given, kByteEos);
  KF_CHECK(!given || *given < config.model.vocab_size, Code::data, "data.eos_id = {} is not below model.vocab_size ({})", given.value_or(0),
           config.model.vocab_size);
  return {true, given.value_or(data.eos.value_or(kByteEos))};
}

std::string fingerprint_lines(const TrainData& data) {
  if (!data.mixture) {
    return data.data->fingerprint() + (data.prints.empty() ? "" : "\n" + file_lines(data.prints.front()));
  }
  const std::vector<std::string> names = data.data->sources();
  const std::vector<std::string> fingerprints = data.data->source_fingerprints();
  std::string lines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lines += fingerprints[i] + " " + names[i] + "\n";
    lines += i < data.prints.size() ? file_lines(data.prints[i]) : "";
  }
  return lines;
}

}  // namespace kf
