--- A router in Lua: top-k of noisy scores (Shazeer et al. 2017), with a balance loss of its own.
local kf = require("kf")
local nn = kf.nn

kf.register.router("noisy_topk", function(a)
  return nn.module({
    gate = nn.linear(a.dim, a.num_experts, { role = "router" }),
    spread = nn.linear(a.dim, a.num_experts, { role = "router", init = "zeros" }),
    forward = function(self, x) -- (N, C) -> weights (N, k), indices (N, k), losses
      local clean = self.gate(x):float()
      local logits = clean
      if self.training then -- kf.rng draws: a resumed run goes on with the same noise
        logits = clean + kf.randn_like(clean) * kf.op.softplus(self.spread(x):float()) * a.options.noise
      end
      local best, chosen = logits:topk(a.top_k, -1)
      -- As in the native router: E sum_e f_e P_e, 1 when the load is even; times model.moe_aux_loss_weight.
      local load = kf.op.bincount(chosen:flatten(), { minlength = a.num_experts }):float()
      if self.training then -- the tokens of all ranks, where there are several
        load = kf.dist.sum(load, "data")
      end
      local share = load / load:sum()
      local balance = (share * clean:softmax(-1):mean(0)):sum() * a.num_experts
      return best:softmax(-1), chosen, { balance = balance }
    end,
  })
end, {
  doc = "Top k of scores with learned noise.",
  fields = { { "noise", "float", default = 1.0, min = 0, doc = "Factor of the noise." } },
})

return {
  extends = "base.toml",
  model = { num_experts = 4, moe_top_k = 2, moe_ffn_dim = 64, moe_router = "noisy_topk" },
  train = { compile_model = false },
  router = { noisy_topk = { noise = 0.5 } },
}
