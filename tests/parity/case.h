#pragma once
// One golden case: its fields with `right` merged in, its tensors, what is left out, how near is near enough.
// The rules are those of the golden folders' README; they are applied here and nowhere else.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/files/safetensors.h"
#include "core/fs.h"
#include "parity/json.h"

namespace kf::parity {

/// |actual - expected| <= abs + rel * |expected|.
struct Bound {
  double abs = 0;
  double rel = 0;
};

/// Several bounds hold at once: the tightest counts.
struct Tolerance {
  std::vector<Bound> bounds;
  double allowed(double expected) const;
};

/// The clauses of a tolerance text: "fp32: logits 1e-5 abs + 1e-4 rel; losses 1e-5" -> {"fp32: logits", ...}, {"losses", ...}.
struct Clause {
  std::string subject;
  Bound bound;
};
std::vector<Clause> parse_tolerance(std::string_view text);

class Case {
 public:
  Case(std::string area, fs::path folder, Table fields, std::shared_ptr<const Table> format);

  std::string area, name, kind;
  fs::path folder;
  Table fields;  // of the manifest, `right` merged in
  bool use_right = false;

  /// Why the README leaves the whole case out, or nothing.
  std::optional<std::string> skipped() const;
  /// Whether `what` ("clipped.p0", "loss_at_init") is in the case's `not_compared`.
  bool left_out(std::string_view what) const;

  const Node& at(std::string_view key) const { return parity::at(fields, key); }
  const Node* get(std::string_view key) const { return parity::get(fields, key); }
  /// A value of `expected` (after merging), or null when it is missing or null: null is not compared.
  const Node* expected(std::string_view key) const;
  /// The table `expected`, empty when there is none.
  const Table& expected() const;

  /// `right.<name>` where that counts, else `<name>`. Throws when the file has neither.
  at::Tensor tensor(const std::string& name) const;
  bool has_tensor(const std::string& name) const;
  /// Whether `right.<name>` is stored and counts.
  bool has_right(const std::string& name) const;
  /// Names that begin with `prefix`, without it: tensors("grads.") -> "norm.weight", ...
  std::vector<std::string> tensors(const std::string& prefix) const;
  /// Another file of the folder ("given.safetensors").
  SafetensorsFile open(const std::string& file) const;

  /// What the case (else its area) states for `subject`, and `readme`'s bounds: the README counts where it is tighter.
  Tolerance tolerance(std::string_view subject, std::initializer_list<Bound> readme = {}) const;

 private:
  void merge_right();
  const SafetensorsFile& file() const;

  std::shared_ptr<const Table> format_;
  std::vector<std::string> not_compared_;
  mutable std::shared_ptr<SafetensorsFile> file_;
};

/// The cases of `folder`/cases.json; of the area "config" also the presets in configs.json. Folders of Hugging Face models (config.json,
/// safetensors, expect.safetensors, case.json) and of PEFT's adapters are one case each, and so is each of them below `folder`.
std::vector<Case> load_cases(const fs::path& folder);

}  // namespace kf::parity
