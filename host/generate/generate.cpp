#include "generate/generate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "generate/answer_stream.h"
#include "generate/sampling.h"
#include "model/mode.h"
#include "model/own_draws.h"
#include "model/pipelined_model.h"

namespace kf {
namespace {

std::span<const float> floats(const at::Tensor& row) { return {row.const_data_ptr<float>(), static_cast<std::size_t>(row.numel())}; }

bool holds(const std::vector<std::int64_t>& ids, std::int64_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

class PlainSampler final : public TokenChooser {
 public:
  void begin(const std::vector<std::int64_t>& prompt, const GenerateOptions& options) override { draws_.emplace(prompt, options); }
  at::Tensor next(const at::Tensor& logits) override {
    const at::Tensor wide = logits.to(at::kCPU, at::kFloat).contiguous();
    std::vector<std::int64_t> ids;
    for (std::int64_t row = 0; row < wide.size(0); ++row) {
      ids.push_back(draws_.value().next(floats(wide[row])));
    }
    return at::tensor(ids, at::kLong);
  }
  std::unique_ptr<TokenChooser> fork() const override { return plain_sampler(); }

 private:
  std::optional<TextDraws> draws_;
};

/// One text on its way.
class Row {
 public:
  Row(std::size_t prompt, const GenerateRequest& request, std::int64_t limit, TokenChooser& sampler)
      : prompt_(prompt), request_(request), limit_(limit), sampler_(sampler) {
    GenerateOptions options = request.options;
    options.seed += prompt;
    sampler_.begin(ids(), options);
    answer_.prompt_tokens = static_cast<std::int64_t>(ids().size());
    if (request.tokenizer != nullptr) {
      stream_.emplace(*request.tokenizer, ids(), options.stop);
    }
    done_ = limit_ == 0;
  }

  const std::vector<std::int64_t>& ids() const { return request_.prompts[prompt_]; }
  std::size_t prompt() const { return prompt_; }
  bool done() const { return done_; }
  std::size_t drawn() const { return answer_.ids.size(); }  // so far, without one that ends the answer
  Completion& answer() { return answer_; }

  /// logits (1, V) fp32 on the host -> the id that follows, which is nothing to a row that is done.
  std::int64_t advance(const at::Tensor& logits) {
    const auto id = sampler_.next(logits).item<std::int64_t>();
    if (holds(request_.ends, id) || holds(request_.options.stop_ids, id)) {
      end(holds(request_.ends, id) ? Completion::End::eos : Completion::End::stop);
      return id;
    }
    answer_.ids.push_back(id);
    answer_.logprobs.push_back(log_probability(floats(logits), id));
    if (stream_) {
      say(stream_->push(id));
    }
    if (stream_ && stream_->stopped()) {
      end(Completion::End::stop);
    } else if (static_cast<std::int64_t>(answer_.ids.size()) == limit_) {
      end(Completion::End::length);
    }
    return id;
  }

 private:
  void say(const std::string& bytes) {
    answer_.text += bytes;
    if (request_.on_text && !bytes.empty()) {
      request_.on_text(prompt_, bytes);
    }
  }
  void end(Completion::End end) {
    answer_.end = end;
    done_ = true;
    if (stream_) {
      say(stream_->finish());
    }
  }

  std::size_t prompt_;
  const GenerateRequest& request_;
  std::int64_t limit_;
  TokenChooser& sampler_;
  std::optional<AnswerStream> stream_;
  Completion answer_;
  bool done_ = false;
};

/// Logits of the last position, (B, V) fp32 on the host.
at::Tensor last_logits(Model& model, const at::Tensor& input, ForwardContext& context) {
  if (PipelinedModel* const pipeline = as_pipeline(model)) {  // all of its ranks draw the same from them
    return pipeline->last_logits(input, context).to(at::kCPU).contiguous();
  }
  const std::int64_t last = input.size(1) - 1;
  if (model.head()) {  // the head's product for one position only
    return model.project(model.hidden(input, context).narrow(1, last, 1)).select(1, 0).to(at::kCPU, at::kFloat).contiguous();
  }
  return model.forward(input, context).select(1, last).to(at::kCPU, at::kFloat).contiguous();
}

/// Longest prompt first for its width, then the answers' steps.
struct Extent {
  std::int64_t width = 0;
  std::int64_t steps = 0;
  bool operator==(const Extent&) const = default;
};

class Generation {
 public:
  Generation(Model& model, const GenerateRequest& request) : model_(model), request_(request) {
    for (std::size_t i = 0; i < request_.prompts.size(); ++i) {
      limits_.push_back(limit_of(i));
    }
  }

  std::vector<Completion> run() {
    std::vector<Completion> answers(request_.prompts.size());
    if (!model_.has_cache()) {
      log::info("this model keeps no keys and values: each new token runs over the whole text");
    }
    for (const std::vector<std::size_t>& group : groups()) {
      write(group, answers);
    }
    return answers;
  }

 private:
  std::int64_t length(std::size_t prompt) const { return static_cast<std::int64_t>(request_.prompts[prompt].size()); }

  std::int64_t limit_of(std::size_t prompt) const {
    const std::string which = request_.prompts.size() == 1 ? "the prompt" : format("prompt {}", prompt + 1);
    KF_CHECK(length(prompt) > 0, Code::config, "{} is empty: generation needs a first token", which);
    const std::int64_t wanted = request_.options.max_new_tokens;
    if (request_.max_positions == 0) {
      return wanted;
    }
    const std::int64_t room = std::max<std::int64_t>(0, request_.max_positions - length(prompt));
    KF_CHECK(room > 0 || wanted == 0, Code::config,
             "{} has {} tokens and leaves no room for an answer: the model takes {} (model.max_seq_len)", which, length(prompt),
             request_.max_positions);
    KF_CHECK(wanted <= room || request_.options.shorten, Code::config,
             "max_new_tokens ({}) and {} of {} tokens exceed model.max_seq_len ({}); at most {} fit", wanted, which, length(prompt),
             request_.max_positions, room);
    return std::min(wanted, room);
  }

  /// Which prompts run together: neighbours in length, so that there is little padding, as far as the model's positions reach.
  std::vector<std::vector<std::size_t>> groups() const {
    std::vector<std::size_t> order(request_.prompts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
    TokenChooser* const own = request_.options.strategy;
    const bool forks = own == nullptr || own->fork() != nullptr;
    const bool together = model_.has_cache() && model_.takes_padding() && forks;
    const std::size_t most = together ? static_cast<std::size_t>(std::max<std::int64_t>(1, request_.batch_size)) : 1;
    std::vector<std::vector<std::size_t>> out;
    for (const std::size_t prompt : order) {
      const bool fits = !out.empty() && out.back().size() < most && reaches(out.back(), prompt);
      if (!fits) {
        out.emplace_back();
      }
      out.back().push_back(prompt);
    }
    return out;
  }

  /// Whether the longest prompt with the longest answer still fits when `prompt` joins.
  bool reaches(std::vector<std::size_t> group, std::size_t prompt) const {
    group.push_back(prompt);
    const Extent extent = extent_of(group);
    return request_.max_positions == 0 || extent.width + extent.steps <= request_.max_positions;
  }

  Extent extent_of(const std::vector<std::size_t>& group) const {
    Extent out;
    for (const std::size_t prompt : group) {
      out.width = std::max(out.width, length(prompt));
      out.steps = std::max(out.steps, limits_[prompt]);
    }
    return out;
  }

  /// Prompts of a group, right-aligned, (B, width).
  at::Tensor padded(const std::vector<std::size_t>& group, std::int64_t width) const {
    at::Tensor tokens = at::zeros({static_cast<std::int64_t>(group.size()), width}, at::kLong);
    for (std::size_t row = 0; row < group.size(); ++row) {
      const std::vector<std::int64_t>& ids = request_.prompts[group[row]];
      auto* const to = tokens[static_cast<std::int64_t>(row)].data_ptr<std::int64_t>() + (width - length(group[row]));
      std::copy(ids.begin(), ids.end(), to);
    }
    return tokens;
  }

  at::Tensor starts_of(const std::vector<std::size_t>& group, std::int64_t width) const {
    std::vector<std::int64_t> starts;
    for (const std::size_t prompt : group) {
      starts.push_back(width - length(prompt));
    }
    const bool none = std::all_of(starts.begin(), starts.end(), [](std::int64_t start) { return start == 0; });
    return none ? at::Tensor() : at::tensor(starts, at::kLong).to(request_.device);
  }

  void write(const std::vector<std::size_t>& group, std::vector<Completion>& answers) {
    // Samplers that draw from the default generators run one prompt at a time: prompt i draws from seed + i there, too.
    const OwnDraws draws(request_.device, request_.options.seed + group.front(), "generation");
    std::vector<std::unique_ptr<TokenChooser>> samplers;
    std::vector<Row> rows;
    for (const std::size_t prompt : group) {
      TokenChooser* const own = request_.options.strategy;
      samplers.push_back(own != nullptr ? own->fork() : plain_sampler());
      rows.emplace_back(prompt, request_, limits_[prompt], samplers.back() ? *samplers.back() : *own);
    }
    const Extent extent = extent_of(group);
    if (extent.steps > 0) {
      continue_rows(rows, padded(group, extent.width).to(request_.device), starts_of(group, extent.width), extent);
    }
    for (Row& row : rows) {
      answers[row.prompt()] = std::move(row.answer());
    }
  }

  /// Whether the row's next token changes what the model makes of those before it.
  bool turns(const Row& row) const {
    const auto length = static_cast<std::int64_t>(row.ids().size() + row.drawn());  // the text with the token that was drawn last
    return !row.done() && !model_.keeps_cache(length - 1, length);
  }

  void continue_rows(std::vector<Row>& rows, at::Tensor text, const at::Tensor& starts, const Extent& extent) {
    const bool cached = model_.has_cache();
    at::Tensor input = text;
    ForwardContext context;
    KvCache cache;
    if (cached) {
      cache = model_.make_cache(static_cast<std::int64_t>(rows.size()), extent.width + extent.steps);
      cache.starts = starts;
      context.cache = &cache;
    }
    while (true) {
      const at::Tensor logits = last_logits(model_, input, context);  // (B, V)
      const at::Tensor next = at::zeros({static_cast<std::int64_t>(rows.size()), 1}, at::kLong);
      bool going = false;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].done()) {
          const auto row = static_cast<std::int64_t>(i);
          next[row].fill_(rows[i].advance(logits.narrow(0, row, 1)));
          going = going || !rows[i].done();
        }
      }
      if (!going) {
        return;
      }
      text = at::cat({text, next.to(request_.device)}, 1);
      const bool again = cached && std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return turns(row); });
      if (again) {
        say_again();
        cache.filled = 0;
      }
      input = cached && !again ? text.narrow(1, text.size(1) - 1, 1) : text;
    }
  }

  void say_again() {
    if (!std::exchange(said_, true)) {
      log::info(
          "this model's rotation depends on the length of the text (model.rope_scaling): where it changes, the whole text runs again");
    }
  }

  Model& model_;
  const GenerateRequest& request_;
  std::vector<std::int64_t> limits_;  // new tokens of each prompt
  bool said_ = false;
};

}  // namespace

std::unique_ptr<TokenChooser> plain_sampler() { return std::make_unique<PlainSampler>(); }

std::vector<Completion> generate(Model& model, const GenerateRequest& request) {
  KF_CHECK(request.options.stop.empty() || request.tokenizer != nullptr, Code::config,
           "stop texts need a tokenizer: nothing turns these ids into text (data.tokenizer_path)");
  for (const std::int64_t id : request.options.stop_ids) {
    KF_CHECK(id >= 0 && (request.vocab_size == 0 || id < request.vocab_size), Code::config,
             "generate.stop_ids: {} is no id of the model, whose ids are 0 to {} (model.vocab_size - 1)", id, request.vocab_size - 1);
  }
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  return Generation(model, request).run();
}

std::vector<std::int64_t> generate_ids(Model& model, const std::vector<std::int64_t>& prompt, const GenerateOptions& options,
                                       std::optional<std::int64_t> eos, at::Device device) {
  GenerateRequest request;
  request.prompts = {prompt};
  request.options = options;
  if (eos) {
    request.ends = {*eos};
  }
  request.device = device;
  return generate(model, request).front().ids;
}

}  // namespace kf
