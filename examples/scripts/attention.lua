--- Attention of one's own: a sliding window by a mask, from linear layers. Train with another window:
--- kf-host examples/scripts/attention.lua --attention.sliding.window=8
local kf = require("kf")
local nn = kf.nn

kf.register.attention("sliding", function(a)
  local d, groups = a.head_dim, a.n_heads / a.n_kv_heads
  local rope = nn.rope(d)
  local function heads(t) -- (B, T, H * D) -> (B, H, T, D)
    return t:view(t:size(0), t:size(1), -1, d):transpose(1, 2)
  end
  return nn.module({
    q_proj = nn.linear(a.dim, a.n_heads * d),
    k_proj = nn.linear(a.dim, a.n_kv_heads * d),
    v_proj = nn.linear(a.dim, a.n_kv_heads * d),
    o_proj = nn.linear(a.n_heads * d, a.dim, { init = "output" }),
    forward = function(self, x, ctx)
      local q, k, v = rope(heads(self.q_proj(x))), rope(heads(self.k_proj(x))), heads(self.v_proj(x))
      k, v = k:repeat_interleave(groups, 1), v:repeat_interleave(groups, 1)
      -- (B or 1, 1, T, T), true = may attend: causal, inside one document, and at most `window` positions back
      local mask = ctx:mask({ window = a.options.window })
      local mixed = kf.op.scaled_dot_product_attention(q, k, v, mask)
      return self.o_proj(mixed:transpose(1, 2):flatten(2))
    end,
  })
end, {
  doc = "Every position sees itself and those right before it.",
  fields = { { "window", "int", default = 16, min = 1, doc = "Positions that are seen, the own one included." } },
})

return { extends = "base.toml", model = { attention = "sliding" } }
