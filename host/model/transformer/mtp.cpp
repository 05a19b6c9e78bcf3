#include "model/transformer/mtp.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/init.h"
#include "model/transformer/parts.h"

namespace kf {

MtpLayer::MtpLayer(const PartArgs& args, const Place& place) {
  embed_norm_ = add_child("embed_norm", make_norm(args, place));
  hidden_norm_ = add_child("hidden_norm", make_norm(args, place));
  proj_ = add_child("proj", std::make_shared<Linear>(2 * place.dim, place.dim, hidden_init(args.config.model, 2 * place.dim)));
  TensorRanks(args).between(*proj_);
  block_ = add_child("block", make_block(args, place));
}

at::Tensor MtpLayer::forward(const at::Tensor& h, const at::Tensor& ahead, const ForwardContext& context) const {
  return block_->forward(proj_->forward(at::cat({embed_norm_->forward(ahead), hidden_norm_->forward(h)}, -1)), context);
}

at::Tensor tokens_ahead(const at::Tensor& tokens, std::int64_t k) {
  const std::int64_t length = tokens.size(1), known = std::max<std::int64_t>(0, length - k);
  return at::cat({tokens.narrow(1, length - known, known), at::zeros({tokens.size(0), length - known}, tokens.options())}, 1);
}

}  // namespace kf
