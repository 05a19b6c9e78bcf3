#include "data/sequence/dataset.h"

#include <vector>

#include "core/error.h"
#include "data/sequence/packing.h"

namespace kf {

void Dataset::row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const {
  std::vector<std::int64_t> window(out.tokens.size() + 1);
  get(index, window);
  if (out.doc_ids.empty()) {
    split_window(window, out.tokens, out.labels);
    return;
  }
  KF_CHECK(eos.has_value(), Code::data, "{}: windows of ids do not say where documents end; set data.eos_id", describe());
  pack_window(window, *eos, out.tokens, out.labels, out.doc_ids);
}

}  // namespace kf
