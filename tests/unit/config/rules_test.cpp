// The rules over single keys and over several: one accepted and one refused example each.

#include "job.h"

namespace kf::test {
namespace {

struct Refused {
  const char* toml;
  const char* words;
  std::int64_t world = 0;
};

config::Loaded load_at(const std::string& toml, std::int64_t world) {
  return load_job({toml, {}, world == 0 ? std::nullopt : std::optional(world)});
}

}  // namespace

TEST_CASE("config: every rule refuses what breaks it and says which keys", "[config]") {
  const Refused c = GENERATE(values<Refused>({
      {"[model]\ndim = 100\nn_heads = 3\n", "model.dim (100) must be divisible by model.n_heads (3)"},
      {"[model]\ndim = 96\nn_heads = 32\n", "head_dim must be even"},
      {"[model]\nn_heads = 8\nn_kv_heads = 3\n", "model.n_heads (8) must be divisible by model.n_kv_heads (3)"},
      {"[data]\nhf_dataset_name = \"a/b@\"\n", "data.hf_dataset_name ('a/b@') has '' behind @, which is no branch, tag or commit"},
      {"[data]\nhf_dataset_name = \"a/b@v1\"\nhf_dataset_revision = \"v2\"\n",
       "data.hf_dataset_name names the revision 'v1', but data.hf_dataset_revision is 'v2'; give it in one place"},
      {"[data]\nhf_dataset_revision = \"v2\"\n[[data.datasets]]\nhf_name = \"a/b@v1\"\n",
       "data.datasets[0].hf_name names the revision 'v1'"},
      {"[model]\nn_kv_heads = 0\n", "model.n_kv_heads (0) must be positive"},
      {"[model]\nvocab_size = 0\n", "model.vocab_size (0) must be positive"},
      {"[model]\nvocab_size = 9223372036854775807\n", "must be below 2^31"},
      {"[model]\nnum_experts = 4\nmoe_top_k = 5\n", "model.moe_top_k (5) must be <= model.num_experts (4)"},
      {"[model]\nnum_experts = 4\nmoe_frequency = 0\n", "model.moe_frequency (0) must be positive"},
      {"[model]\nnum_experts = 4\nmoe_expert_ffn_multiplier = -1.0\n", "moe_expert_ffn_multiplier (-1) must be positive"},
      {"[model]\nnum_experts = 4\nmoe_bias_schedule = \"step\"\n", "moe_bias_schedule ('step') must be one of"},
      {"[model]\nnum_experts = 4\nmoe_router_z_loss_weight = -1\n", "moe_router_z_loss_weight (-1) must be non-negative"},
      {"[model]\nhead_dim = 33\n", "model.head_dim (33) must be even"},
      {"[model]\nnorm_unit_offset = true\nnorm_weight = false\n", "model.norm_unit_offset = true needs model.norm_weight = true"},
      {"[model]\nqk_norm = true\nqk_norm_kind = \"l2\"\npos_embedding = \"none\"\n", "it needs model.pos_embedding = 'rope', not 'none'"},
      {"[model]\nactivation = \"swiglu_oai\"\n", "needs model.mlp_act_limit above 0"},
      {"[model]\nactivation = \"swiglu_oai\"\nmlp_gated = false\n", "'swiglu_oai' is gated"},
      {"[model]\nnope_every = 1\n", "leaves no layer that rotates"},
      {"[model]\nrope_fraction = 0.26\n", "makes 33 rotated components"},
      {"[model]\nrope_pattern = [\"nope\"]\n", "model.rope_pattern leaves no layer that rotates"},
      {"[model]\nn_layers = 1\nrope_pattern = [\"rope\", \"nope\"]\n", "model.rope_pattern names 2 layers, model.n_layers is 1"},
      {"[model]\nlayer_pattern = [\"local\"]\nwindow = 4\nrope_fraction_local = 0.26\n", "model.rope_fraction_local (0.26) of a head"},
      {"[model]\nglobal_kv_heads = 3\n", "model.n_heads (32) must be divisible by model.global_kv_heads (3)"},
      {"[model]\nglobal_head_dim = 33\n", "model.global_head_dim (33) must be even"},
      {"[model]\nattn_out_dim = 64\nnorm_placement = \"post\"\n", "model.attn_out_dim needs model.attention = 'gqa'"},
      {"[model]\nnum_experts = 4\nmoe_beside_dense = true\nnorm_placement = \"post\"\n", "model.moe_beside_dense = true needs"},
      {"[model]\nn_layers = 1\nnum_experts = 4\nmoe_pattern = [\"dense\", \"experts\"]\n", "model.moe_pattern names 2 layers"},
      {"[model]\ntie_embeddings = true\n[checkpoint]\ninit_head = \"fresh\"\n", "needs a head of its own"},
      {"[checkpoint]\ninit_from = \"x\"\nexclude_from_loading = [\"re:(\"]\n",
       "checkpoint.exclude_from_loading: 're:(' is no regular expression"},
      {"[checkpoint]\ninit_from = \"x\"\nname_map = [{from = \"a\"}, {from = \"[\"}]\n", "checkpoint.name_map[1].from"},
      {"[checkpoint]\ninit_from = \"x\"\ninit_weights = \"average\"\ninit_layers = \"fresh\"\n",
       "checkpoint.init_weights = \"average\" finds"},
      {"[checkpoint]\ninit_from = \"x\"\ninit_layers = \"twice\"\n", "checkpoint.init_layers ('twice') must be one of"},
      {"[checkpoint]\ninit_from = \"x\"\nstrict = false\nsave_frozen = false\n[train]\nfrozen = [\"*\"]\n", "takes the frozen weights"},
      {"[model]\nrope_fraction = 0.0\n", "model.rope_fraction (0) must be above 0"},
      {"[model]\nrope_scaling = \"llama3\"\nrope_low_freq = 5.0\n", "model.rope_low_freq (5) must be at most model.rope_high_freq (4)"},
      {"[model]\nrope_scaling = \"yarn\"\nrope_beta_fast = 0.5\n", "must be at least model.rope_beta_slow (1)"},
      {"[model]\nlayer_pattern = []\n", "model.layer_pattern must not be empty"},
      {"[model]\nlayer_pattern = [\"local\"]\n", "set model.window"},
      {"[model]\nlayer_pattern = [\"chunk\"]\n", "set model.chunk"},
      {"[model]\nlayer_pattern = [\"near\"]\n", "must be one of global, local, chunk"},
      {"[model]\nn_layers = 1\nlayer_pattern = [\"global\", \"global\"]\n", "names 2 layers, model.n_layers is 1"},
      {"[model]\nwindow_from_layer = 33\n", "model.window_from_layer (33) must be at most model.n_layers (32)"},
      {"[model]\nattention = \"mla\"\nmla_rope_dim = 3\n", "model.mla_rope_dim (3) must be even"},
      {"[model]\nattention = \"mla\"\nn_kv_heads = 8\n", "must equal model.n_heads (32)"},
      {"[model]\nattention = \"mla\"\nhead_dim = 64\n", "leave model.head_dim out"},
      {"[model]\nattention = \"mla\"\nqk_norm = true\n", "does not fit model.attention = 'mla'"},
      {"[model]\nattn_sink = true\nsdpa_backend = \"flash\"\n", "model.attn_sink has no flash kernel"},
      {"[run]\ndevice = \"cpu\"\n[model]\nsdpa_backend = \"cudnn\"\n", "is a GPU's kernel"},
      {"[model]\nattn_temp_tuning = true\n", "works in layers without rotation"},
      {"[model]\nattention = \"mla\"\nattn_temp_tuning = true\n", "model.attention = 'mla' does not scale its queries"},
      {"[model]\nactivation = \"xielu\"\nmlp_gated = true\n", "model.activation = 'xielu' has no gate"},
      {"[model]\nactivation = \"xielu\"\nnum_experts = 4\n", "which experts do not"},
      {"[model]\nscale = 2\n", "model.scale (2) grows a preset"},
      {"[model]\npreset = \"llama3-8b\"\nscale = 3\n", "model.scale (3) must be a power of two"},
      {"[model]\npreset = \"lama3-8b\"\n", "did you mean 'llama3-8b'?"},
      {"[data]\nsimulate_tokens = 5\n", "go together"},
      {"[data]\nmix_block = 16\n", "data.mix_block is set, but there is no mixture"},
      {"[data]\nmix_stop = \"drop\"\n", "data.mix_stop = 'drop' needs data.mix_block above 0"},
      {"[data]\nshuffle = \"none\"\n[[data.datasets]]\npath = \"/tmp\"\n", "for a mixture, set data.mix_block, too"},
      {"[data]\nmessages_field = \"m\"\ntext_template = \"{x}\"\n", "leave one out"},
      {"[data]\nnum_workers = 100000\n", "data.num_workers (100000) must be at most 1024"},
      {"[data]\nprefetch_factor = 1000000000\n", "data.prefetch_factor (1000000000) must be at most 1024"},
      {"[data]\nmix_block = 1000000000\n[[data.datasets]]\npath = \"/tmp\"\n", "data.mix_block (1000000000) must be at most 16777216"},
      {"[data]\nmax_segments = 3\n", "data.max_segments and data.long_documents belong to"},
      {"[data]\ndataset_path = \"/tmp\"\npack_method = \"pad\"\nmax_segments = 3\n", "leave data.max_segments out"},
      {"[data]\npack_method = \"best_fit\"\n", "synthetic data has none"},
      {"[data]\nepochs = 2\n[[phases]]\nseq_len = 64\n", "data.epochs counts passes over sequences of one length"},
      {"[model]\nnum_experts = 8\nmoe_groups = 4\nmoe_topk_groups = 2\n", "needs model.moe_router = softmax, sigmoid or sqrtsoftplus"},
      {"[model]\nnum_experts = 8\nmoe_router = \"sigmoid\"\nmoe_groups = 4\n", "go together: give both, or neither"},
      {"[model]\nnum_experts = 8\nmoe_router = \"sigmoid\"\nmoe_groups = 3\nmoe_topk_groups = 1\n",
       "model.num_experts (8) must be divisible by model.moe_groups (3)"},
      {"[model]\nnum_experts = 8\nmoe_router = \"sigmoid\"\nmoe_groups = 8\nmoe_topk_groups = 4\n", "with at least 2 experts in each"},
      {"[model]\nnum_experts = 8\nmoe_router = \"sigmoid\"\nmoe_groups = 4\nmoe_topk_groups = 5\n", "must be <= model.moe_groups (4)"},
      {"[model]\nnum_experts = 8\nmoe_top_k = 3\nmoe_router = \"sigmoid\"\nmoe_groups = 4\nmoe_topk_groups = 1\n",
       "model.moe_top_k (3) must be <= the 2 experts of model.moe_topk_groups (1) groups"},
      {"[model]\nnum_experts = 8\nmoe_first_dense = 33\n", "model.moe_first_dense (33) must be <= model.n_layers (32)"},
      {"[model]\nnum_experts = 8\nmoe_bias_rule = \"sign\"\nmoe_router = \"sigmoid_topk\"\n",
       "model.moe_bias_rule = sign needs model.moe_router = softmax, sigmoid or sqrtsoftplus, not sigmoid_topk"},
      {"[model]\nnum_experts = 8\nmoe_bias_rule = \"ema\"\n", "model.moe_bias_rule = ema needs model.moe_router = sigmoid_topk, softmax,"},
      {"[model]\nnum_experts = 8\nmoe_weight_on_input = true\n", "model.moe_weight_on_input = true needs model.moe_top_k = 1, not 2"},
      {"[model]\nnum_experts = 8\nmoe_shared_gate = true\n", "model.moe_shared_gate = true needs model.moe_shared_experts > 0"},
      {"[model]\nnum_experts = 8\nmoe_shared_ffn_dim = 64\n", "model.moe_shared_ffn_dim (64) needs model.moe_shared_experts > 0"},
      {"[model]\nnum_experts = 8\nmoe_ffn_dim = 64\nmoe_expert_ffn_multiplier = 0.5\n", "give one of the two"},
      {"[train]\nseq_len = 4096\n", "train.seq_len (4096) exceeds model.max_seq_len (2048)"},
      {"[train]\ngrad_clip_norm = 0.0\n", "train.grad_clip_norm (0) must be positive"},
      {"[optimizer]\nmuon_momentum = 1.0\n", "optimizer.muon_momentum (1) must be in (0, 1)"},
      {"[train]\nglobal_batch_size = 12\nbatch_size = 4\ngrad_accum_steps = 3\n", "are both given; the one follows from the other"},
      {"[train]\nglobal_batch_size = 10\nbatch_size = 4\nallow_nondivisible_batch = false\n",
       "train.global_batch_size (10) must be a multiple of train.batch_size (4); the nearest are 8 and 12, or set "
       "train.allow_nondivisible_batch = true"},
      {"[train]\nglobal_batch_size = 4\nbatch_size = 4\nallow_nondivisible_batch = false\n",
       "must be a multiple of train.batch_size (4) x 2 data ranks; the nearest is 8", 2},
      {"[train]\nglobal_batch_size = 5\nbatch_size = 4\n",
       "train.global_batch_size (5) must be a multiple of the 2 data ranks; the nearest are 4 and 6", 2},
      {"[[train.batch_schedule]]\nstart = 2\nsize = 8\n", "train.batch_schedule[0].start (2) must be 0"},
      {"[[train.batch_schedule]]\nstart = 0\nsize = 8\n[[train.batch_schedule]]\nstart = 0\nsize = 16\n",
       "must be larger than that of the stage before (0)"},
      {"[train]\nallow_nondivisible_batch = false\n[[train.batch_schedule]]\nstart = 0\nsize = 9\n",
       "train.batch_schedule[0].size (9) must be a multiple of train.batch_size (8)"},
      {"[optimizer]\nupdate_norm_window = 3\n", "optimizer.update_norm_window (3) must be 0 or at least 4"},
      {"[optimizer]\nupdate_norm_window = 8\nupdate_rms_clip = 1.0\n", "both clip updates; give one of the two"},
      {"[optimizer]\nqk_clip = true\n[model]\nqk_norm = true\n", "optimizer.qk_clip = true has no effect with model.qk_norm = true"},
      {"[optimizer]\ndecay_include = [\"re:(\"]\n", "optimizer.decay_include: 're:(' is no regular expression"},
      {"[scheduler]\nname = \"wsd\"\nwarmup_steps = 0.5\nstable_steps = 0.4\ndecay_steps = 0.2\n",
       "they must be at most 1, the whole schedule"},
      {"[scheduler]\ncycles = 2\ncycle_length = 5\n", "scheduler.cycles (2) and scheduler.cycle_length (5) are both given"},
      {"[train]\nmax_steps = 100\n[scheduler]\ncycles = [20, 20]\n",
       "scheduler.cycles[1] (step 20) must be above the start before it (20) and below the schedule's 100 steps"},
      {"[train]\nmax_steps = 100\n[scheduler]\ncycles = [20, 1.0]\n", "scheduler.cycles[1] (step 100) must be above"},
      {"[scheduler]\ncycles = 0.5\n", "scheduler.cycles (0.5) must be a number of cycles, or a list of where they start"},
      {"[train]\nmax_steps = 100\n[scheduler]\ncycle_length = [60, 0.5]\n",
       "scheduler.cycle_length[1] makes a cycle from step 60 to 110; cycles must be longer than 0 and end within the schedule's 100 steps"},
      {"[train]\nmax_steps = 100\n[scheduler]\ncycle_length = 0.001\n", "scheduler.cycle_length (0.001) is less than a step"},
      {"[train]\nmax_steps = 100\n[scheduler]\ncycles = [0.5]\nrewarmup_steps = 50\n",
       "scheduler.rewarmup_steps (50) must be shorter than a cycle (50 steps)"},
      {"[scheduler]\ncycle_length = 50\nrewarmup_steps = 50\n", "scheduler.rewarmup_steps (50) must be shorter than a cycle (50 steps)"},
      {"[scheduler]\nname = \"power\"\npower_b = 0.5\n", "scheduler.power_b (0.5) must be negative"},
      {"[scheduler]\nname = \"power\"\npower_b = nan\n", "scheduler.power_b (nan) must be negative and finite"},
      {"[scheduler]\nname = \"power\"\npower_b = -inf\n", "scheduler.power_b (-inf) must be negative and finite"},
      {"[scheduler]\nname = \"inv\"\nmin_lr_ratio = 0.0\n", "scheduler.min_lr_ratio (0) must be positive with scheduler.name"},
      {"[train]\nparam_dtype = \"bf16\"\nmixed_precision = \"fp32\"\n", "needs train.mixed_precision = \"bf16\", not \"fp32\""},
      {"[train]\nremat_save = [\"mlp\"]\n", "train.remat_save is for train.activation_checkpointing = \"selective\", not \"none\""},
      {"[train]\nactivation_checkpointing = \"selective\"\nremat_save = [\"mlp\", \"attention\"]\n", "nothing is left to recompute"},
      {"[eval]\ntarget_loss = 2.0\n", "eval.target_loss (2) needs eval.enabled = true"},
      {"[averaging]\ntype = \"ema\"\n[optimizer]\nname = \"schedule_free_adamw\"\n", "which averages by itself"},
      {"[scheduler]\nmin_lr_ratio = 1.5\n", "scheduler.min_lr_ratio (1.5) must be in [0, 1]"},
      {"[scheduler]\nrex_alpha = 0\n", "scheduler.rex_alpha (0) must be positive"},
      {"[data]\nholdout = 1.0\n", "data.holdout (1) must be in [0, 1)"},
      {"[data]\nprefetch_factor = 0\n", "data.prefetch_factor (0) must be >= 1"},
      {"[data]\neos_id = 32000\n", "data.eos_id (32000) must be below model.vocab_size (32000)"},
      {"[[data.datasets]]\nname = \"web\"\n", "data.datasets[0] ('web') must have either path or hf_name"},
      {"[[data.datasets]]\npath = \"a\"\nweight = 0\n", "data.datasets[0].weight (0) must be positive"},
      {"[[data.datasets]]\npath = \"a\"\n[[data.datasets]]\npath = \"a\"\n", "are both called 'a'"},
      {"[[data.phases]]\nstart_step = 5\n[[data.phases]]\nstart_step = 5\n", "strictly monotonically increasing"},
      {"[data]\nanneal_start_step = 5\n[[data.phases]]\nstart_step = 2\n", "Cannot use both data.phases and data.anneal_start_step"},
      {"[[data.phases]]\nlr_scale = 0.0\n", "data.phases[0].lr_scale (0) must be positive"},
      {"[[data.datasets]]\npath = \"x\"\nname = \"a\"\n[[data.phases]]\nstart_step = 5\ndataset_weights = { a = 0.0 }\n",
       "data.phases[0] (start_step 5) gives every source the weight 0"},
      {"[[data.datasets]]\npath = \"x\"\nname = \"a\"\n[[data.phases]]\nstart_step = 5\ndataset_weights = { c = 1.0 }\n",
       "names no source 'c'; have: a"},
      {"[[data.datasets]]\ndataset = \"numbers\"\npath = \"a\"\n", "is the registered dataset 'numbers', which has no path"},
      {"[[phases]]\nsteps = 5\nuntil_step = 7\n", "phases[0] gives steps and until_step; keep one"},
      {"[[phases]]\nname = \"a\"\n[[phases]]\nname = \"b\"\n", "phases[0] ('a') has no end: give it steps or until_step"},
      {"[[phases]]\nuntil_step = 7\n[[phases]]\nuntil_step = 7\n", "phases[1].until_step (7) must be above 7"},
      {"[[phases]]\nsteps = 0\n", "phases[0].steps (0) must be positive"},
      {"[[phases]]\nlr_scale = -1.0\n", "phases[0].lr_scale (-1) must be non-negative"},
      {"[[phases]]\nstop_wen = 3\n", "[phases[0]] unknown key 'stop_wen'"},
      {"[[phases]]\nseq_len = 4096\n", "phases[0].seq_len (4096) exceeds model.max_seq_len (2048)"},
      {"[[phases]]\nbatch_size = 4\n[train]\nglobal_batch_size = 64\n",
       "phases[0].batch_size and train.global_batch_size both set the batch"},
      {"[[phases]]\nsteps = 5\n[[data.phases]]\nstart_step = 5\n", "phases and data.phases are both given"},
      {"[[data.datasets]]\npath = \"x\"\nname = \"a\"\n[[phases]]\nmixture = { c = 1.0 }\n", "names no source 'c'; have: a"},
      {"[eval]\nenabled = true\n", "no eval data source"},
      {"[checkpoint.dyn_ckpt_window]\nstart = 5\nstop = 4\n",
       "checkpoint.dyn_ckpt_window.stop (4) must be >= checkpoint.dyn_ckpt_window.start (5)"},
      {"[checkpoint.dyn_ckpt_window]\nstrategy = \"fib\"\n", "strategy ('fib') is not a registered ckpt_strategy"},
      {"[checkpoint]\nload_path = \"a\"\ninit_from = \"b\"\n", "give one of the two"},
      {"[profiling]\nend_step = 5\n", "profiling.end_step (5) must be greater than profiling.start_step (5)"},
      {"[run]\nname = \"a/b\"\n", "must be a plain name without '/'"},
      {"[run]\nname = \"a\\nb\"\n", "must be a plain name without '/'"},
      {"[run]\ndevice = \"gpu\"\n", "must be one of auto, cpu, cuda"},
      {"[distributed]\ndp_shard = 0\n", "distributed.dp_shard (0) must be -1 (automatic) or >= 1"},
      {"[distributed]\ntp = 0\n", "distributed.tp (0) must be >= 1"},
      {"[distributed]\ntp = 3\n[model]\nn_heads = 3\ndim = 96\nvocab_size = 300\nffn_hidden_dim = 9\n",
       "is not divisible by dp_replicate*tp*pp*cp*ep", 8},
      {"[diloco]\ninterval = 10\n", "diloco.interval (10) needs workers: set distributed.dp_replicate, which is 1, to their number"},
      {"[diloco]\ninterval = 10\nmin_workers = 3\n[distributed]\ndp_replicate = 2\n",
       "diloco.min_workers (3) is more than there are workers: distributed.dp_replicate is 2", 2},
      {"[diloco]\ninterval = 10\n[optimizer]\nname = \"schedule_free_adamw\"\n[distributed]\ndp_replicate = 2\n",
       "diloco.interval does not go with optimizer.name = 'schedule_free_adamw'", 2},
      {"[distributed]\ndp_shard = 4\ntp = 4\n", "do not match world_size (8)", 8},
      {"[model]\ndim = 384\nn_heads = 6\n[distributed]\ntp = 4\n", "model.n_heads (6) must be divisible by distributed.tp (4)"},
      {"[model]\nnum_experts = 4\nmoe_ffn_dim = 34\n[distributed]\ntp = 4\n",
       "the width of an expert, model.moe_ffn_dim (34), must be divisible by distributed.tp (4)"},
      {"[model]\nffn_hidden_dim = 1001\n[distributed]\ntp = 2\n", "model.ffn_hidden_dim (1001), must be divisible by distributed.tp (2)"},
      {"[model]\nvocab_size = 101\n[distributed]\ntp = 2\n", "model.vocab_size (101) must be divisible by distributed.tp (2)"},
      {"[train]\nmixed_precision = \"fp8\"\n[distributed]\ntp = 2\n", "FP8 + Tensor Parallelism is not yet supported"},
      {"[distributed]\nep = 2\n", "requires an MoE model"},
      {"[model]\nnum_experts = 6\n[distributed]\nep = 4\n", "model.num_experts (6) must be divisible by distributed.ep (4)"},
      {"[model]\nnum_experts = 8\n[distributed]\nep = 4\n[optimizer]\nname = \"muon\"\nmuon_params = \"shape\"\n",
       "takes all experts of a layer as one matrix, which distributed.ep = 4 divides"},
      {"[model]\nn_layers = 2\n[distributed]\npp = 4\n", "distributed.pp (4) cannot exceed model.n_layers (2)"},
      {"[model]\nn_layers = 6\n[distributed]\npp = 4\npp_schedule = \"interleaved_1f1b\"\n",
       "distributed.pp_chunks (2) pieces on each of distributed.pp (4) ranks are more than model.n_layers (6)"},
      {"[model]\nn_layers = 6\n[distributed]\npp = 2\npp_layers = [1, 2, 3]\n",
       "distributed.pp_layers must have an entry for each of the 2 pieces of the model (distributed.pp); it has 3"},
      {"[model]\nn_layers = 6\n[distributed]\npp = 2\npp_layers = [1, 2]\n",
       "distributed.pp_layers must add up to model.n_layers (6); the entries add up to 3"},
      {"[optimizer]\nname = \"sophia_h\"\n[distributed]\npp = 2\n", "needs second derivatives of the loss"},
      {"[checkpoint]\nsave_frozen = false\ninit_from = \"a\"\n[distributed]\npp = 2\n",
       "checkpoint.save_frozen = false needs all frozen weights on every rank"},
      {"[train]\nseq_len = 7\n[distributed]\ncp = 4\n", "train.seq_len (7) is too short for distributed.cp = 4"},
      {"[train]\nseq_len = 32\n[[phases]]\nseq_len = 3\n[distributed]\ncp = 2\n", "phases[0].seq_len (3) is too short"},
      {"[model]\nsdpa_backend = \"flash\"\n[distributed]\ncp = 2\n", "model.sdpa_backend = \"flash\" names one kernel"},
      {"[model]\nnum_experts = 4\nmoe_router = \"sigmoid_topk\"\nmoe_sequence_aux_loss_weight = 0.1\nmoe_sequence_aux_scope = "
       "\"sequence\"\n[train]\nseq_len = 31\n[distributed]\ncp = 2\n",
       "train.seq_len (31) must be divisible by 4"},
      {"[train]\nmax_tokens = 1000\nmax_steps = 100\nbatch_size = 4\nseq_len = 32\n", "disagrees with train.max_tokens (1000)"},
      {"[train]\nmax_tokens = 1000\nmax_steps = 4\nbatch_size = 4\nseq_len = 32\n", "at 128 tokens a step the budget gives 8 steps", 1},
  }));
  CAPTURE(c.toml);
  const config::Loaded loaded = load_at(c.toml, c.world);
  CHECK(messages(loaded).find(c.words) != std::string::npos);
  CHECK(loaded.report.problems.size() == 1);
  CHECK(loaded.report.problems[0].origin.line > 0);
}

TEST_CASE("config: jobs just inside the rules are taken", "[config]") {
  const Refused c = GENERATE(values<Refused>({
      {"[model]\nnum_experts = 0\nmoe_top_k = 99\nmoe_frequency = 0\nmoe_router = \"hash\"\n", ""},  // not checked without experts
      {"[model]\ndim = 384\nn_heads = 16\n", ""},
      {"[train]\ngrad_clip_norm = inf\n", ""},
      {"[checkpoint]\nkeep_last_n = -1\n", ""},
      {"[eval]\nenabled = true\n[data]\nholdout = 0.1\ndataset_path = \"x\"\n", ""},
      {"[[data.phases]]\nstart_step = 5\ndataset_weights = {}\n", ""},
      {"[[data.datasets]]\npath = \"x\"\nname = \"a\"\n[[data.datasets]]\npath = \"y\"\nname = \"b\"\n"
       "[[data.phases]]\nstart_step = 5\ndataset_weights = { a = 0.0, b = 1.0 }\n",
       ""},
      {"[distributed]\ntp = 2\ndp_replicate = 2\n", "", 8},
      {"[train]\nmixed_precision = \"fp8\"\n", "", 4},
      {"[train]\nmax_tokens = 1000\nmax_steps = 8\nbatch_size = 4\nseq_len = 32\n", "", 1},
      {"[train]\nmax_tokens = 1000\nmax_steps = 4\nbatch_size = 4\nseq_len = 32\n", "", 2},
      {"[train]\nmax_tokens = 1000\nmax_steps = 4\nbatch_size = 4\nseq_len = 32\n",
       ""},  // fits two ranks; how many there are is not known yet
  }));
  CAPTURE(c.toml);
  good(load_at(c.toml, c.world));
}

TEST_CASE("config: what is odd but possible is a warning", "[config]") {
  const Refused c = GENERATE(values<Refused>({
      {"[diloco]\nouter_lr = 0.5\n", "diloco.outer_lr has no effect: diloco.interval is 0"},
      {"[distributed]\nreduce_each_micro = true\nzero_stage = 1\n", "has no effect with distributed.zero_stage = 1"},
      {"[distributed]\ncp_method = \"all_gather\"\n", "distributed.cp_method has no effect: distributed.cp is 1"},
      {"[distributed]\ncp_order = \"contiguous\"\n", "distributed.cp_order has no effect: distributed.cp is 1"},
      {"[distributed]\nsequence_parallel = false\n", "distributed.sequence_parallel has no effect: distributed.tp is 1"},
      {"[metrics]\nwatch_interval = 5\n", "metrics.watch_interval has no effect: metrics.watch is empty"},
      {"[train]\nmax_steps = 10\n", "scheduler.warmup_steps (2000) is more than the run's 10 steps"},
      {"[train]\nmax_steps = 10\n[scheduler]\nname = \"wsd\"\nwarmup_steps = 2\nstable_steps = 8\n",
       "scheduler.warmup_steps (2), stable_steps (8) end after the schedule's 10 steps: the learning rate never reaches its floor"},
      {"[train]\nmax_steps = 10\n[scheduler]\nwarmup_steps = 2\ndecay_steps = 9\n",
       "scheduler.warmup_steps (2) and decay_steps (9) end after the schedule's 10 steps"},
      {"[train]\nmax_steps = 10\nbatch_schedule = [{start = 0, size = 8}, {start = 10, size = 16}]\n[scheduler]\nwarmup_steps = 2\n",
       "train.batch_schedule[1].start (10) is not before the run's end (10 steps): this stage never begins"},
      {"[model]\nnum_experts = 4\n", "train.compile_model = true with experts"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_frequency = 40\n", "none of the 32 layers has experts"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_random_routing = true\n", "sends tokens to random experts"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_router = \"sigmoid_topk\"\nmoe_aux_loss_weight = 0.1\n",
       "model.moe_aux_loss_weight has no effect: the router sigmoid_topk is balanced by"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_sequence_aux_loss_weight = 0.1\n",
       "model.moe_sequence_aux_loss_weight has no effect"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_sequence_aux_scope = \"sequence\"\n",
       "model.moe_sequence_aux_scope has no effect"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_norm_topk = true\n", "model.moe_norm_topk has no effect"},
      {"[train]\ncompile_model = false\n[model]\nnum_experts = 4\nmoe_bias_rate = 0.1\n", "model.moe_bias_rate has no effect"},
      {"[data]\ndataset_path = \"a\"\n[[data.datasets]]\npath = \"b\"\n", "data.datasets wins over data.dataset_path"},
      {"[data]\ndataset_path = \"a\"\nhf_dataset_name = \"b\"\n", "data.dataset_path wins over data.hf_dataset_name"},
      {"[distributed]\npp = 2\n",
       "an update has 1 micro-batches for 2 pipeline stages (distributed.pp), whose ranks wait 50 % of their time"},
      {"[data]\nholdout = 0.5\n", "data.holdout keeps nothing back: eval.enabled is false"},
      {"[data]\nholdout = 0.5\n[eval]\nenabled = true\ndataset_path = \"x\"\n", "eval has a source of its own"},
      {"[data]\nshuffle_window = 50\n", "data.shuffle_window (50) has no effect with data.shuffle = 'torch'"},
  }));
  CAPTURE(c.toml);
  const config::Loaded loaded = load_toml(c.toml);
  good(loaded);
  CHECK(join(loaded.report.warnings, "\n").find(c.words) != std::string::npos);
  CHECK(loaded.report.warnings.size() == 1);
}

TEST_CASE("config: the defaults give no warning", "[config]") { CHECK(load_cli({}).report.warnings.empty()); }

TEST_CASE("config: files must exist for a run and for check, and need not for show", "[config]") {
  const std::string toml =
      "[data]\ndataset_path = \"/no/such/folder\"\ntokenizer_path = \"lua:mine\"\n[checkpoint]\ninit_from = \"/no/such.safetensors\"\n"
      "[eval]\ndataset_path = \"/not/read\"\n";
  good(load_job({toml}));
  const std::string all = messages(load_job({toml, {}, {}, true}));
  CHECK(
      all ==
      "data.dataset_path ('/no/such/folder') does not exist; relative paths start at the working folder, or beside the job\n"
      "checkpoint.init_from ('/no/such.safetensors') does not exist; relative paths start at the working folder, or beside the job; models "
      "of the Hugging Face hub are named ORG/NAME");
}

TEST_CASE("config: the higher layer's budget counts, in steps or in tokens", "[config]") {
  const TempDir temp;
  temp.write("base.toml", "[train]\nmax_steps = 100\n");
  config::Request request;
  request.job = temp.write("job.toml", "extends = \"base.toml\"\n[train]\nmax_tokens = 1000\n[scheduler]\nwarmup_steps = 0\n");
  request.files_must_exist = false;
  config::Loaded loaded = config::load(request, reference_catalog());
  CHECK(good(loaded).train.max_tokens == 1000);
  REQUIRE(loaded.report.warnings.size() == 1);
  CHECK(loaded.report.warnings[0].find("replaces train.max_steps") != std::string::npos);
  request.overrides = {"--train.max_steps=7"};
  loaded = config::load(request, reference_catalog());
  CHECK_FALSE(good(loaded).train.max_tokens);
  CHECK(loaded.config.train.max_steps == 7);
}

TEST_CASE("config: a key that needs another one is said to do nothing without it", "[config]") {
  const auto [toml, words] = GENERATE(values<std::pair<const char*, const char*>>({
      {"[model]\nwindow = 8\n", "model.window has no effect: it needs 'local' in model.layer_pattern"},
      {"[model]\nrope_factor = 4.0\n", "model.rope_factor has no effect: it needs model.rope_scaling"},
      {"[model]\nqk_norm_kind = \"full\"\n", "model.qk_norm_kind has no effect: it needs model.qk_norm = true"},
      {"[model]\nmla_kv_rank = 64\n", "model.mla_kv_rank has no effect: it needs model.attention = 'mla'"},
      {"[model]\nattn_fp32 = \"none\"\n", "model.attn_fp32 has no effect"},
      {"[model]\ninit_scale = 2.0\n", "model.init_scale has no effect: it needs model.init = 'fan_in'"},
  }));
  CAPTURE(toml);
  const config::Loaded loaded = load_toml(toml);
  good(loaded);
  REQUIRE(loaded.report.warnings.size() == 1);
  CHECK_THAT(loaded.report.warnings[0], Catch::Matchers::Contains(words));
}

TEST_CASE("config: sizes beyond any machine are problems, quickly", "[config]") {
  const std::string most = "9223372036854775806";
  CHECK(problem(load_cli({"--model.n_layers=" + most})) == "model.n_layers (" + most + ") must be at most 1048576");
  CHECK(problem(load_cli({"--model.head_dim=" + most})) == "model.head_dim (" + most + ") must be below 2^31");
}

TEST_CASE("config: folders of output are spelled out, and a run's name is one that a file can have", "[config]") {
  for (const std::string key : {"run.dir", "checkpoint.dir"}) {
    CHECK(problem(load_cli({"--" + key + "=~/runs"})).find("would make a folder named '~'") != std::string::npos);
    good(load_cli({"--" + key + "=./~/runs"}));
  }
  CHECK(problem(load_cli({"--run.name=" + std::string(256, 'n')})) == "run.name has 256 bytes; file systems take 255 at most");
  good(load_cli({"--run.name=" + std::string(255, 'n')}));
}

}  // namespace kf::test
