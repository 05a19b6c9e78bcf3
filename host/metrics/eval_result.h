#pragma once
// The numbers of an evaluation, as hooks, rows of metrics and results hold them.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// One evaluation: of one set, or of several together. Together, `loss`, `bits_per_byte`, `accuracy` and `ema` are the plain means over the
/// sets that are evaluated every time (the others have a longer interval) and have a label, and `perplexity` is that of the mean loss.
struct EvalResult {
  std::int64_t step = 0;
  double loss = 0;        // cross entropy over all counted tokens
  double perplexity = 0;  // exp(loss)
  std::int64_t tokens = 0;
  std::optional<double> ema = {};             // the loss of the averaged weights (averaging.type)
  std::optional<double> bits_per_byte = {};   // of the text behind the counted tokens; unset where nothing turns the ids into text
  std::optional<double> accuracy = {};        // share of counted tokens that were the likeliest; unset in rows of earlier versions
  std::optional<double> mtp_acceptance = {};  // share of the guesses of eval.mtp_head that are the model's own likeliest token
  std::string name = {};                      // of the set, as in [[eval.datasets]]; "" for the whole
  std::vector<EvalResult> sets = {};          // those of [[eval.datasets]] that were evaluated, in order

  /// False where no label counted: `loss` and `perplexity` are nan then, and null in files.
  bool has_loss() const { return tokens > 0 || !std::isnan(loss); }
};

/// A number by its path below `eval`: "loss", "accuracy", "code.loss" for the set `code`. Nothing where there is none.
std::optional<double> find_number(const EvalResult& eval, const std::string& path);
/// The paths for which `find_number` finds one.
std::vector<std::string> number_names(const EvalResult& eval);

}  // namespace kf
