#pragma once
// The loss on held-out data.

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader/loader.h"
#include "data/tokenizer/tokenizer.h"
#include "metrics/eval_result.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace kf {

class Group;

/// What evaluation adds up over sequences. Shares of batches and of ranks join by addition; nothing is divided before all are in.
struct EvalSums {
  double loss = 0;  // cross entropy alone, nats
  std::int64_t tokens = 0;
  std::int64_t hits = 0;   // tokens that were the likeliest
  std::int64_t bytes = 0;  // of the text behind the tokens; 0 without a tokenizer
  std::int64_t sequences = 0;
  std::int64_t ahead = 0;     // tokens of which the layer of multi-token prediction speaks
  std::int64_t accepted = 0;  // those that the model itself finds likeliest, too

  EvalSums& operator+=(const EvalSums& other);
  /// loss / tokens, its exp, loss / ln 2 / bytes, hits / tokens, accepted / ahead; without a token none of them, and a warning that names
  /// `what`. Throws Code::data naming `what` where there is no sequence.
  EvalResult result(std::int64_t step, const std::string& what) const;
};

struct EvalOptions {
  at::Device device = at::kCPU;
  bool in_chunks = false;                // the logits are made and dropped a piece at a time, where the model has a head
  const Tokenizer* tokenizer = nullptr;  // for bits per byte; null: the ids stand for no text
  std::uint64_t seed = 0;                // train.seed: transforms and parts that draw in evaluation draw the same each time (OwnDraws)
  std::int64_t mtp_head = 0;             // eval.mtp_head: whose acceptance rate is counted; 0 for none
  Group* vocabulary = nullptr;           // over whom the rows of the model's head are divided; null: they lie here
  Group* data = nullptr;                 // ranks that share the sequences; null: this one alone
  bool together = false;                 // forward is a call of all these ranks (distributed.ep): one that has no sequence left runs along
  std::function<void()> pulse = {};      // called before every batch: the evaluation moves; may be empty
};

/// Over all batches of `data`, and those of the ranks of `options.data`: in evaluation mode, with the weights as they are. Nothing of the
/// model, of the random numbers or of the data's order is moved: training goes on as if nothing had happened.
EvalSums evaluate_sums(Model& model, Loader& data, const EvalOptions& options);

/// The same as numbers, with the optimizer's averages swapped in.
EvalResult evaluate(Model& model, Optimizer& optimizer, Loader& data, const EvalOptions& options, std::int64_t at_step);

/// Several sets together: see EvalResult. `together` says which of them count in the means; at least one does.
EvalResult join(std::vector<EvalResult> sets, const std::vector<bool>& together);

}  // namespace kf
