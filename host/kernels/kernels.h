#pragma once
// The ops that have a kernel of their own, as a table: what layers, losses and optimizers compute with. The settings choose it once
// (config/plan/kernel_set.h), and parts get it in PartArgs. Each op has a folder: its contract in the header, the kernel in fused.cpp, the
// same by plain operators in plain.cpp.

namespace at {
class Tensor;
}

namespace kf {

struct AdamWLists;
struct AdamWNumbers;
struct AttentionInput;
struct AttentionRules;
struct GatedExpertsInput;
struct GatedMlpInput;
class ExpertRows;
struct LayerNormWeights;
enum class GateKind : int;
struct LinearLoss;
struct LinearLossOptions;
struct LionLists;
struct LionNumbers;
struct MuonMomentum;
struct MuonMove;
struct OutputHead;
struct SelfAttentionInput;
struct SumAndNorm;

struct Kernels {
  at::Tensor (*rms_norm)(const at::Tensor& x, const at::Tensor& factor, double eps);
  SumAndNorm (*add_rms_norm)(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps);
  at::Tensor (*layer_norm)(const at::Tensor& x, const LayerNormWeights& weights, double eps);
  SumAndNorm (*add_layer_norm)(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps);
  at::Tensor (*gate)(GateKind kind, const at::Tensor& gate, const at::Tensor& up);
  /// Null in the plain table, and undefined for what the kernel does not take: the formula is the layer's.
  at::Tensor (*gated_mlp)(const GatedMlpInput& in);
  at::Tensor (*rotation)(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved);
  at::Tensor (*attention)(const AttentionInput& in, const AttentionRules& rules);
  /// As gated_mlp.
  at::Tensor (*self_attention)(const SelfAttentionInput& in);
  /// Null in the plain table: the twin is a module, LoopExperts, which needs no sorted rows.
  at::Tensor (*grouped_linear)(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows);
  /// As gated_mlp.
  at::Tensor (*gated_experts)(const GatedExpertsInput& in, const ExpertRows& rows);
  LinearLoss (*linear_loss)(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options);
  void (*adamw)(const AdamWLists& lists, const AdamWNumbers& numbers);
  void (*lion)(const LionLists& lists, const LionNumbers& numbers);
  at::Tensor (*muon_momentum)(const MuonMomentum& in);
  void (*muon_move)(const MuonMove& in);
  at::Tensor (*cross_entropy)(const at::Tensor& logits, const at::Tensor& labels);
};

/// One node of the graph, or one call, where plain operators take several: faster, and less is kept for backward.
const Kernels& fused_kernels();
/// The twins: what the kernels must equal, up to rounding.
const Kernels& plain_kernels();

}  // namespace kf
