--- A model of one's own: every block sees a learned mixture of all that came before it (DenseFormer, Pagliardini et al. 2024).
--- Run it: kf-host examples/scripts/model.lua --model.n_layers=4
local kf = require("kf")
local nn = kf.nn

local function block(m, layer)
  return nn.module({
    attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = layer }),
    mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    mlp = nn.mlp(m.activation, m.dim, 4 * m.dim),
    forward = function(self, x, ctx) -- ctx carries positions, document ids and the KV cache
      local h = x + self.attention(self.attention_norm(x), ctx)
      return h + self.mlp(self.mlp_norm(h))
    end,
  })
end

kf.register.model("dense", function(a)
  local m = a.config.model
  local recompute = a.config.train.activation_checkpointing ~= "none"
  local blocks = {}
  for i = 1, m.n_layers do
    blocks[i] = block(m, i - 1)
  end
  return nn.module({
    embedding = nn.embedding(m.vocab_size, m.dim),
    blocks = nn.list(blocks), -- children blocks.0, blocks.1, ...
    mixture = nn.parameter(kf.eye(m.n_layers + 1)[{ { 1, m.n_layers + 1 } }]), -- at first the last output alone, as in a plain model
    norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    head = nn.linear(m.dim, m.vocab_size, { role = "head" }),
    forward = function(self, tokens, ctx) -- (B, T) -> (B, T, V)
      local h = self.embedding(tokens)
      local seen = { h }
      for i, layer in ipairs(self.blocks) do
        seen[i + 1] = recompute and nn.recompute(layer, h, ctx) or layer(h, ctx)
        local weights = self.mixture[i - 1][{ { 0, i + 1 } }]:to(h.dtype)
        h = kf.stack(seen, -1):matmul(weights)
      end
      return self.head(self.norm(h))
    end,
  })
end, { doc = "Blocks over learned mixtures of all earlier outputs." })

---@type kf.Config
return {
  extends = "base.toml",
  model = { model_type = "dense" },
  hooks = {
    {
      on_eval_end = function(ctx)
        kf.log.info("%s", ctx:generate("The ", { max_new_tokens = 16 }))
      end,
    },
  },
}
