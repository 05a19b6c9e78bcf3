// The known models. `from` names the entry that one builds on; entries that begin with _ are families, not models. Shapes are those of the
// published config.json files.

namespace kf::config {

extern const char* const kModelPresets;

// max_seq_len is the length of the released model; train.seq_len is your own.
const char* const kModelPresets = R"toml(
[_llama]
norm_eps = 1e-5
head_dim = 128
[llama2-7b]
from = "_llama"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 32
ffn_hidden_dim = 11008
vocab_size = 32000
max_seq_len = 4096
[llama2-13b]
from = "llama2-7b"
dim = 5120
n_layers = 40
n_heads = 40
n_kv_heads = 40
ffn_hidden_dim = 13824
[llama2-70b]
from = "llama2-7b"
dim = 8192
n_layers = 80
n_heads = 64
n_kv_heads = 8
ffn_hidden_dim = 28672
[llama3-8b]
from = "_llama"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
ffn_hidden_dim = 14336
vocab_size = 128256
max_seq_len = 8192
rope_theta = 500000.0
[llama3-70b]
from = "llama3-8b"
dim = 8192
n_layers = 80
n_heads = 64
ffn_hidden_dim = 28672
["llama3.1-8b"]
from = "llama3-8b"
max_seq_len = 131072
rope_scaling = "llama3"
rope_factor = 8.0
rope_low_freq = 1.0
rope_high_freq = 4.0
rope_orig_len = 8192
["llama3.1-70b"]
from = "llama3.1-8b"
dim = 8192
n_layers = 80
n_heads = 64
ffn_hidden_dim = 28672
["llama3.1-405b"]
from = "llama3.1-8b"
dim = 16384
n_layers = 126
n_heads = 128
ffn_hidden_dim = 53248
["llama3.2-1b"]
from = "llama3.1-8b"
dim = 2048
n_layers = 16
head_dim = 64
ffn_hidden_dim = 8192
tie_embeddings = true
rope_factor = 32.0
["llama3.2-3b"]
from = "llama3.1-8b"
dim = 3072
n_layers = 28
n_heads = 24
ffn_hidden_dim = 8192
tie_embeddings = true
rope_factor = 32.0
["llama3.3-70b"]
from = "llama3.1-70b"

["mistral-7b"]
from = "_llama"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
ffn_hidden_dim = 14336
vocab_size = 32000
max_seq_len = 32768
rope_theta = 10000.0
layer_pattern = ["local"]
window = 4096
["mixtral-8x7b"]
from = "_llama"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
ffn_hidden_dim = 14336
vocab_size = 32000
max_seq_len = 32768
rope_theta = 1000000.0
num_experts = 8
moe_top_k = 2
moe_aux_loss_weight = 0.02
["mixtral-8x22b"]
from = "mixtral-8x7b"
dim = 6144
n_layers = 56
n_heads = 48
ffn_hidden_dim = 16384
max_seq_len = 65536
moe_aux_loss_weight = 0.001

["_qwen2.5"]
norm_eps = 1e-6
head_dim = 128
rope_theta = 1000000.0
attn_bias = "qkv"
max_seq_len = 32768
["qwen2.5-0.5b"]
from = "_qwen2.5"
dim = 896
n_layers = 24
n_heads = 14
n_kv_heads = 2
head_dim = 64
ffn_hidden_dim = 4864
vocab_size = 151936
tie_embeddings = true
["qwen2.5-1.5b"]
from = "_qwen2.5"
dim = 1536
n_layers = 28
n_heads = 12
n_kv_heads = 2
ffn_hidden_dim = 8960
vocab_size = 151936
tie_embeddings = true
["qwen2.5-3b"]
from = "_qwen2.5"
dim = 2048
n_layers = 36
n_heads = 16
n_kv_heads = 2
ffn_hidden_dim = 11008
vocab_size = 151936
tie_embeddings = true
["qwen2.5-7b"]
from = "_qwen2.5"
dim = 3584
n_layers = 28
n_heads = 28
n_kv_heads = 4
ffn_hidden_dim = 18944
vocab_size = 152064
["qwen2.5-14b"]
from = "_qwen2.5"
dim = 5120
n_layers = 48
n_heads = 40
n_kv_heads = 8
ffn_hidden_dim = 13824
vocab_size = 152064
["qwen2.5-32b"]
from = "qwen2.5-14b"
n_layers = 64
ffn_hidden_dim = 27648
["qwen2.5-72b"]
from = "qwen2.5-14b"
dim = 8192
n_layers = 80
n_heads = 64
ffn_hidden_dim = 29568

[_qwen3]
norm_eps = 1e-6
head_dim = 128
rope_theta = 1000000.0
qk_norm = true
n_kv_heads = 8
vocab_size = 151936
max_seq_len = 40960
["qwen3-0.6b"]
from = "_qwen3"
dim = 1024
n_layers = 28
n_heads = 16
ffn_hidden_dim = 3072
tie_embeddings = true
["qwen3-1.7b"]
from = "_qwen3"
dim = 2048
n_layers = 28
n_heads = 16
ffn_hidden_dim = 6144
tie_embeddings = true
["qwen3-4b"]
from = "_qwen3"
dim = 2560
n_layers = 36
n_heads = 32
ffn_hidden_dim = 9728
tie_embeddings = true
["qwen3-4b-thinking-2507"]
from = "qwen3-4b"
rope_theta = 5000000.0
max_seq_len = 262144
["qwen3-8b"]
from = "_qwen3"
dim = 4096
n_layers = 36
n_heads = 32
ffn_hidden_dim = 12288
["qwen3-14b"]
from = "_qwen3"
dim = 5120
n_layers = 40
n_heads = 40
ffn_hidden_dim = 17408
["qwen3-32b"]
from = "_qwen3"
dim = 5120
n_layers = 64
n_heads = 64
ffn_hidden_dim = 25600
["qwen3-30b-a3b"]
from = "_qwen3"
dim = 2048
n_layers = 48
n_heads = 32
n_kv_heads = 4
ffn_hidden_dim = 6144
num_experts = 128
moe_top_k = 8
moe_ffn_dim = 768
moe_aux_loss_weight = 0.001
["qwen3-235b-a22b"]
from = "qwen3-30b-a3b"
dim = 4096
n_layers = 94
n_heads = 64
ffn_hidden_dim = 12288
moe_ffn_dim = 1536
["qwen3-coder-480b-a35b"]
from = "qwen3-30b-a3b"
dim = 6144
n_layers = 62
n_heads = 96
n_kv_heads = 8
ffn_hidden_dim = 8192
num_experts = 160
moe_ffn_dim = 2560
rope_theta = 10000000.0
max_seq_len = 262144
["qwen3-custom-30b-a3b"]
from = "qwen3-30b-a3b"
n_heads = 16
n_kv_heads = 2
head_dim = 256
ffn_hidden_dim = 2048
moe_ffn_dim = 2048
attn_out_dim = 768
rope_theta = 10000000.0
["qwen1.5-moe-a2.7b"]
norm_eps = 1e-6
head_dim = 128
rope_theta = 1000000.0
attn_bias = "qkv"
dim = 2048
n_layers = 24
n_heads = 16
n_kv_heads = 16
ffn_hidden_dim = 5632
vocab_size = 151936
max_seq_len = 8192
num_experts = 60
moe_top_k = 4
moe_router = "softmax"
moe_ffn_dim = 1408
moe_shared_experts = 1
moe_shared_ffn_dim = 5632
moe_shared_gate = true
moe_aux_loss_weight = 0.001

[_gemma]
norm_eps = 1e-6
norm_unit_offset = true
embed_scale = 0.0
activation = "gelu_tanh"
mlp_gated = true
tie_embeddings = true
head_dim = 256
vocab_size = 256000
max_seq_len = 8192
[gemma-2b]
from = "_gemma"
dim = 2048
n_layers = 18
n_heads = 8
n_kv_heads = 1
ffn_hidden_dim = 16384
[gemma-7b]
from = "_gemma"
dim = 3072
n_layers = 28
n_heads = 16
n_kv_heads = 16
ffn_hidden_dim = 24576
[_gemma2]
from = "_gemma"
norm_placement = "sandwich"
attn_scale = 0.0625
attn_softcap = 50.0
final_logit_softcap = 30.0
layer_pattern = ["local", "global"]
window = 4096
[gemma2-2b]
from = "_gemma2"
dim = 2304
n_layers = 26
n_heads = 8
n_kv_heads = 4
ffn_hidden_dim = 9216
[gemma2-9b]
from = "_gemma2"
dim = 3584
n_layers = 42
n_heads = 16
n_kv_heads = 8
ffn_hidden_dim = 14336
[gemma2-27b]
from = "_gemma2"
dim = 4608
n_layers = 46
n_heads = 32
n_kv_heads = 16
head_dim = 128
attn_scale = 0.08333333333333333
ffn_hidden_dim = 36864
[_gemma3]
from = "_gemma"
norm_placement = "sandwich"
qk_norm = true
attn_scale = 0.0625
layer_pattern = ["local", "local", "local", "local", "local", "global"]
window = 1024
rope_theta = 1000000.0
rope_theta_local = 10000.0
vocab_size = 262208
max_seq_len = 131072
[gemma3-1b]
from = "_gemma3"
dim = 1152
n_layers = 26
n_heads = 4
n_kv_heads = 1
ffn_hidden_dim = 6912
window = 512
vocab_size = 262144
max_seq_len = 32768
[gemma3-4b]
from = "_gemma3"
rope_scaling = "linear"
rope_factor = 8.0
dim = 2560
n_layers = 34
n_heads = 8
n_kv_heads = 4
ffn_hidden_dim = 10240
[gemma3-12b]
from = "_gemma3"
rope_scaling = "linear"
rope_factor = 8.0
dim = 3840
n_layers = 48
n_heads = 16
n_kv_heads = 8
ffn_hidden_dim = 15360
[gemma3-27b]
from = "_gemma3"
rope_scaling = "linear"
rope_factor = 8.0
dim = 5376
n_layers = 62
n_heads = 32
n_kv_heads = 16
head_dim = 128
attn_scale = 0.0771516749810460
ffn_hidden_dim = 21504

[_gemma4]
norm_eps = 1e-6
norm_placement = "sandwich"
activation = "gelu_tanh"
mlp_gated = true
embed_scale = 0.0
tie_embeddings = true
qk_norm = true
v_norm = "plain"
attn_scale = 1.0
layer_scalar = true
final_logit_softcap = 30.0
layer_pattern = ["local", "local", "local", "local", "local", "global"]
window = 1024
head_dim = 256
global_head_dim = 512
global_k_is_v = true
rope_theta = 1000000.0
rope_theta_local = 10000.0
rope_fraction = 0.25
rope_partial = "proportional"
rope_fraction_local = 1.0
vocab_size = 262144
max_seq_len = 262144
[gemma4-26b]
from = "_gemma4"
dim = 2816
n_layers = 30
n_heads = 16
n_kv_heads = 8
global_kv_heads = 2
ffn_hidden_dim = 2112
num_experts = 128
moe_top_k = 8
moe_ffn_dim = 704
moe_router = "softmax_normed"
moe_beside_dense = true
moe_aux_loss_weight = 0.001
[gemma4-31b]
from = "_gemma4"
dim = 5376
n_layers = 60
n_heads = 32
n_kv_heads = 16
global_kv_heads = 4
ffn_hidden_dim = 21504

[_llama4]
norm_eps = 1e-5
dim = 5120
n_layers = 48
n_heads = 40
n_kv_heads = 8
head_dim = 128
vocab_size = 202048
rope_theta = 500000.0
rope_layout = "interleaved"
nope_every = 4
layer_pattern = ["chunk", "chunk", "chunk", "global"]
chunk = 8192
attn_temp_tuning = true
moe_top_k = 1
moe_router = "sigmoid"
moe_weight_on_input = true
moe_shared_experts = 1
moe_ffn_dim = 8192
[llama4-17b-16e]
from = "_llama4"
ffn_hidden_dim = 8192
max_seq_len = 10485760
rope_scaling = "llama3"
rope_factor = 16.0
rope_low_freq = 1.0
rope_high_freq = 1.0
rope_orig_len = 8192
qk_norm = true
qk_norm_kind = "l2"
num_experts = 16
[llama4-17b-128e]
from = "_llama4"
ffn_hidden_dim = 16384
max_seq_len = 1048576
num_experts = 128
moe_frequency = 2

[_olmo2]
norm_eps = 1e-6
norm_placement = "post"
qk_norm = true
qk_norm_kind = "full"
head_dim = 128
rope_theta = 500000.0
max_seq_len = 4096
vocab_size = 100352
[olmo2-1b]
from = "_olmo2"
dim = 2048
n_layers = 16
n_heads = 16
n_kv_heads = 16
ffn_hidden_dim = 8192
[olmo2-7b]
from = "_olmo2"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 32
ffn_hidden_dim = 11008
[olmo2-13b]
from = "_olmo2"
dim = 5120
n_layers = 40
n_heads = 40
n_kv_heads = 40
ffn_hidden_dim = 13824
[olmo2-32b]
from = "_olmo2"
dim = 5120
n_layers = 64
n_heads = 40
n_kv_heads = 8
ffn_hidden_dim = 27648
[_olmo3]
from = "_olmo2"
vocab_size = 100278
layer_pattern = ["local", "local", "local", "global"]
window = 4096
rope_theta_local = 500000.0
rope_scaling = "yarn"
rope_factor = 8.0
rope_orig_len = 8192
max_seq_len = 65536
[olmo3-7b-pt]
from = "_olmo2"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 32
ffn_hidden_dim = 11008
vocab_size = 100278
layer_pattern = ["local", "local", "local", "global"]
window = 4096
max_seq_len = 8192
[olmo3-7b]
from = "_olmo3"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 32
ffn_hidden_dim = 11008
[olmo3-32b]
from = "_olmo3"
dim = 5120
n_layers = 64
n_heads = 40
n_kv_heads = 8
ffn_hidden_dim = 27648

[_gpt2]
norm_type = "layernorm"
norm_eps = 1e-5
activation = "gelu_tanh"
attn_bias = "all"
mlp_bias = true
pos_embedding = "learned"
tie_embeddings = true
head_dim = 64
vocab_size = 50257
max_seq_len = 1024
[gpt2]
from = "_gpt2"
dim = 768
n_layers = 12
n_heads = 12
ffn_hidden_dim = 3072
[gpt2-medium]
from = "_gpt2"
dim = 1024
n_layers = 24
n_heads = 16
ffn_hidden_dim = 4096
[gpt2-large]
from = "_gpt2"
dim = 1280
n_layers = 36
n_heads = 20
ffn_hidden_dim = 5120
[gpt2-xl]
from = "_gpt2"
dim = 1600
n_layers = 48
n_heads = 25
ffn_hidden_dim = 6400
[gpt3-52k]
from = "_gpt2"
norm_unit_offset = true
dim = 16
n_layers = 1
n_heads = 2
head_dim = 8
ffn_hidden_dim = 64
vocab_size = 1024
max_seq_len = 2048
[gpt3-6b]
from = "_gpt2"
norm_unit_offset = true
dim = 3072
n_layers = 48
n_heads = 12
head_dim = 256
ffn_hidden_dim = 12288
vocab_size = 32768
max_seq_len = 16384
[gpt3-22b]
from = "gpt3-6b"
dim = 6144
n_heads = 24
ffn_hidden_dim = 24576
[gpt3-175b]
from = "gpt3-6b"
dim = 12288
n_layers = 96
n_heads = 96
head_dim = 128
ffn_hidden_dim = 49152
vocab_size = 50304

[phi3-mini]
norm_eps = 1e-5
dim = 3072
n_layers = 32
n_heads = 32
n_kv_heads = 32
head_dim = 96
ffn_hidden_dim = 8192
vocab_size = 32064
max_seq_len = 4096
rope_theta = 10000.0
layer_pattern = ["local"]
window = 2047
[phi3-medium]
from = "phi3-mini"
dim = 5120
n_layers = 40
n_heads = 40
n_kv_heads = 10
head_dim = 128
ffn_hidden_dim = 17920

[gpt-oss-20b]
norm_eps = 1e-5
dim = 2880
n_layers = 24
n_heads = 64
n_kv_heads = 8
head_dim = 64
ffn_hidden_dim = 2880
vocab_size = 201088
max_seq_len = 131072
attn_bias = "all"
attn_sink = true
mlp_bias = true
activation = "swiglu_oai"
mlp_act_limit = 7.0
layer_pattern = ["local", "global"]
window = 128
rope_theta = 150000.0
rope_scaling = "yarn"
rope_factor = 32.0
rope_orig_len = 4096
rope_truncate = false
num_experts = 32
moe_top_k = 4
moe_router_bias = true
moe_aux_loss_weight = 0.9
[gpt-oss-120b]
from = "gpt-oss-20b"
n_layers = 36
num_experts = 128

[_deepseek]
norm_eps = 1e-6
attention = "mla"
mla_kv_rank = 512
mla_nope_dim = 128
mla_rope_dim = 64
mla_v_dim = 128
rope_layout = "interleaved"
rope_scaling = "yarn"
rope_factor = 40.0
rope_orig_len = 4096
rope_attn_factor = "softmax"
max_seq_len = 163840
moe_aux_loss_weight = 0.001
[deepseek2-16b]
from = "_deepseek"
dim = 2048
n_layers = 27
n_heads = 16
ffn_hidden_dim = 10944
vocab_size = 102400
rope_mscale = 0.707
num_experts = 64
moe_top_k = 6
moe_router = "softmax"
moe_ffn_dim = 1408
moe_shared_experts = 2
moe_first_dense = 1
[deepseek2-236b]
from = "deepseek2-16b"
dim = 5120
n_layers = 60
n_heads = 128
ffn_hidden_dim = 12288
mla_q_rank = 1536
num_experts = 160
moe_ffn_dim = 1536
moe_routed_scale = 16.0
[deepseek3-671b]
from = "_deepseek"
dim = 7168
n_layers = 61
n_heads = 128
ffn_hidden_dim = 18432
vocab_size = 129280
mla_q_rank = 1536
num_experts = 256
moe_top_k = 8
moe_router = "sigmoid"
moe_norm_topk = true
moe_bias_rule = "sign"
moe_groups = 8
moe_topk_groups = 4
moe_routed_scale = 2.5
moe_ffn_dim = 2048
moe_shared_experts = 1
moe_first_dense = 3
[deepseek3-test]
from = "deepseek3-671b"
dim = 512
moe_ffn_dim = 512
[deepseek3-tiny]
from = "deepseek3-671b"
dim = 64
n_heads = 4
ffn_hidden_dim = 64
mla_q_rank = 32
mla_kv_rank = 16
num_experts = 16
moe_ffn_dim = 64
[kimi-k2-1t]
from = "deepseek3-671b"
n_heads = 64
vocab_size = 163840
rope_theta = 50000.0
rope_factor = 32.0
rope_beta_fast = 1.0
max_seq_len = 131072
num_experts = 384
moe_groups = 0
moe_topk_groups = 0
moe_routed_scale = 2.827
moe_first_dense = 1

[smollm3-3b]
norm_eps = 1e-6
dim = 2048
n_layers = 36
n_heads = 16
n_kv_heads = 4
head_dim = 128
ffn_hidden_dim = 11008
vocab_size = 128256
max_seq_len = 65536
rope_theta = 5000000.0
nope_every = 4
tie_embeddings = true

["granite3.1-2b"]
norm_eps = 1e-5
dim = 2048
n_layers = 40
n_heads = 32
n_kv_heads = 8
head_dim = 64
ffn_hidden_dim = 8192
vocab_size = 49155
max_seq_len = 131072
rope_theta = 5000000.0
tie_embeddings = true
embed_scale = 12.0
residual_scale = 0.22
attn_scale = 0.015625
logit_scale = 0.125
["granite3.1-8b"]
from = "granite3.1-2b"
dim = 4096
head_dim = 128
ffn_hidden_dim = 12800
attn_scale = 0.0078125
logit_scale = 0.0625

[command-r7b]
norm_type = "layernorm"
norm_bias = false
norm_eps = 1e-5
norm_placement = "parallel"
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
head_dim = 128
ffn_hidden_dim = 14336
vocab_size = 256000
max_seq_len = 132096
rope_theta = 50000.0
rope_layout = "interleaved"
layer_pattern = ["local", "local", "local", "global"]
window = 4096
nope_every = 4
tie_embeddings = true
logit_scale = 0.25

[starcoder2-3b]
norm_type = "layernorm"
norm_eps = 1e-5
activation = "gelu_tanh"
attn_bias = "all"
mlp_bias = true
tie_embeddings = true
dim = 3072
n_layers = 30
n_heads = 24
n_kv_heads = 2
head_dim = 128
ffn_hidden_dim = 12288
vocab_size = 49152
max_seq_len = 16384
rope_theta = 999999.4420358813
layer_pattern = ["local"]
window = 4096
[starcoder2-7b]
from = "starcoder2-3b"
dim = 4608
n_layers = 32
n_heads = 36
n_kv_heads = 4
ffn_hidden_dim = 18432
rope_theta = 1000000.0
)toml";

}  // namespace kf::config
