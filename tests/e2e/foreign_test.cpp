// Runs that start from weights of other programs, which tests/unit/checkpoint/make_saved.py made.

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "e2e/toy.h"

namespace {

using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;

const std::string kSaved = std::string(KF_SOURCE_DIR) + "/tests/unit/checkpoint/saved/";

/// A job over ids below 11.
class Job {
 public:
  Job() {
    std::string ids;
    for (int i = 0; i < 2000; ++i) {
      ids += std::string{static_cast<char>(i * i % 11), '\0'};
    }
    toy_.write("ids.bin", ids);
  }

  Finished start(const std::string& source, const std::vector<std::string>& more) const {
    std::vector<std::string> args{"--run.fresh=true",
                                  "--checkpoint.init_from=" + kSaved + source,
                                  "--data.dataset_path=ids.bin",
                                  "--data.file_pattern=*",
                                  "--eval.enabled=false",
                                  "--train.max_steps=2",
                                  "--train.seq_len=16",
                                  "--model.max_seq_len=16"};
    args.insert(args.end(), more.begin(), more.end());
    return toy_.train(args);
  }
  std::string losses(const std::string& source, const std::vector<std::string>& more) const {
    const Finished done = start(source, more);
    INFO(done.err);
    REQUIRE(done.status == 0);
    std::string out;
    for (const auto& [step, loss] : toy_.series("toy", "loss")) {
      out += loss + " ";
    }
    return out;
  }

 private:
  Toy toy_;
};

const std::vector<std::string> kLlama{"--model.dim=8", "--model.n_heads=2", "--model.n_kv_heads=1", "--model.vocab_size=11",
                                      "--model.ffn_hidden_dim=12"};
const std::vector<std::string> kGpt2{"--model.dim=8",
                                     "--model.n_heads=2",
                                     "--model.n_kv_heads=2",
                                     "--model.vocab_size=11",
                                     "--model.ffn_hidden_dim=32",
                                     "--model.norm_type=layernorm",
                                     "--model.activation=gelu",
                                     "--model.attn_bias=all",
                                     "--model.mlp_bias=true",
                                     "--model.pos_embedding=learned",
                                     "--model.tie_embeddings=true"};

}  // namespace

TEST_CASE("foreign weights: a run starts from each form of the same model with the same losses", "[foreign]") {
  const Job job;
  const std::string expected = job.losses("model.pt", kLlama);
  CHECK(expected.size() > 10);
  for (const char* source : {"columns.pth", "huggingface", "distributed", "distributed/step_10"}) {
    CAPTURE(source);
    CHECK(job.losses(source, kLlama) == expected);
  }
  CHECK(job.losses("nanogpt_bias.pt", kGpt2) == job.losses("llmc.bin", kGpt2));
}

TEST_CASE("foreign weights: two ranks read their parts of another program's files", "[foreign]") {
  const Job job;
  std::vector<std::string> ranks = kLlama;
  ranks.insert(ranks.end(), {"--nproc=2", "--distributed.dp_shard=2"});
  CHECK(job.losses("distributed", ranks) == job.losses("model.pt", ranks));
}

TEST_CASE("foreign weights: what does not fit ends the run before it begins, with the settings that would", "[foreign]") {
  const Job job;
  std::vector<std::string> settings = kGpt2;
  settings.push_back("--model.n_layers=3");
  const Finished done = job.start("nanogpt_bias.pt", settings);
  CHECK(done.status == 6);
  CHECK_THAT(done.err, Contains("a GPT-2 of nanoGPT: model.n_layers = 2") && Contains("layers.2.attention.q_proj.weight"));
}
