// What launchers' variables say of a process.

#include <catch2/catch.hpp>

#include <map>
#include <tuple>

#include "core/error.h"
#include "parallel/launched.h"
#include "parallel/node_list.h"
#include "parallel/own_address.h"

using namespace kf;
using Catch::Matchers::Contains;

namespace {

Variables of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

using Texts = std::vector<std::string>;
using Counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("launch: lists of machines as Slurm writes them", "[launch]") {
  CHECK(expand_nodes("vm") == Texts{"vm"});
  CHECK(expand_nodes("n[1-3]") == Texts{"n1", "n2", "n3"});
  CHECK(expand_nodes("node[08-11,7],login") == Texts{"node08", "node09", "node10", "node11", "node7", "login"});
  CHECK(expand_nodes("a-b[1]-c.d,e") == Texts{"a-b1-c.d", "e"});
  CHECK(expand_nodes("rack[1-2]n[01-02]") == Texts{"rack1n01", "rack1n02", "rack2n01", "rack2n02"});
  for (const std::string list : {"", "n[", "n[1", "n[2-1]", "n[a]", "n[]", "a,,b", "n]", "n[1-99999999]"}) {
    CAPTURE(list);
    CHECK_THROWS_AS(expand_nodes(list), Error);
  }
  CHECK(expand_counts("2(x3),1") == Counts{2, 2, 2, 1});
  CHECK(expand_counts("4") == Counts{4});
  CHECK_THROWS_AS(expand_counts("2(x"), Error);
  CHECK(hosts_of_tasks({"a", "b"}, {2, 1}) == Texts{"a", "a", "b"});
  CHECK(hosts_of_tasks({"a"}, {2, 1}).empty());
}

TEST_CASE("launch: one process alone, also in the batch script of a job and where a launcher started one", "[launch]") {
  for (const auto& variables : {of({}), of({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}),
                                of({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), of({{"WORLD_SIZE", "1"}})}) {
    const LaunchedRank one = launched(variables);
    CHECK(one.world == 1);
    CHECK(one.by.empty());
  }
}

TEST_CASE("launch: kf-host's own variables come before all others", "[launch]") {
  const LaunchedRank own = launched(of({{"KF_RANK", "5"},
                                        {"KF_WORLD", "8"},
                                        {"KF_LOCAL_RANK", "1"},
                                        {"KF_LOCAL_WORLD", "4"},
                                        {"KF_RENDEZVOUS", "n1:29500"},
                                        {"WORLD_SIZE", "2"},
                                        {"RANK", "1"}}));
  CHECK(own.rank == 5);
  CHECK(own.world == 8);
  CHECK(own.local_rank == 1);
  CHECK(own.local_world == 4);
  CHECK(own.where == "n1:29500");
  CHECK_THROWS_WITH(launched(of({{"KF_RANK", "8"}, {"KF_WORLD", "8"}, {"KF_RENDEZVOUS", "n1:29500"}})), Contains("own"));
}

TEST_CASE("launch: torchrun, with a store of its agent and without", "[launch]") {
  std::map<std::string, std::string> variables{
      {"RANK", "3"},           {"WORLD_SIZE", "4"},      {"LOCAL_RANK", "1"},    {"LOCAL_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "host"}, {"MASTER_PORT", "29500"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_PROCID", "1"}};
  const LaunchedRank plain = launched(of(variables));
  CHECK(plain.by == "torchrun");
  CHECK(plain.rank == 3);
  CHECK(plain.local_rank == 1);
  CHECK(plain.local_world == 2);
  CHECK(plain.where == "host:29500");
  CHECK_FALSE(plain.kept);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  const LaunchedRank agent = launched(of(variables));
  CHECK(agent.kept);
  CHECK(agent.prefix == "kf-host/2");
}

TEST_CASE("launch: srun, on one machine and on several", "[launch]") {
  std::map<std::string, std::string> variables{
      {"SLURM_JOB_ID", "4711"},    {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"},     {"SLURM_PROCID", "4"},
      {"SLURM_LOCALID", "0"},      {"SLURM_NODEID", "1"},  {"SLURM_STEP_NODELIST", "n[1-2]"}, {"SLURM_STEP_TASKS_PER_NODE", "4,1"},
      {"SLURM_CPUS_PER_TASK", "3"}};
  const LaunchedRank two = launched(of(variables));
  CHECK(two.by == "srun");
  CHECK(two.rank == 4);
  CHECK(two.world == 5);
  CHECK(two.local_rank == 0);
  CHECK(two.local_world == 1);
  CHECK(two.cores == 3);
  CHECK(two.hosts == Texts{"n1", "n1", "n1", "n1", "n2"});
  CHECK_THAT(two.where, Catch::Matchers::StartsWith("n1:"));
  const int port = std::stoi(two.where.substr(3));
  CHECK(port >= 1024);
  CHECK(port < 32768);  // below those of outgoing connections
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_NODEID"] = "0";
  CHECK(launched(of(variables)).where == two.where);  // all tasks of a step say the same,
  variables["SLURM_STEP_ID"] = "1";
  CHECK(launched(of(variables)).where != two.where);  // another step another port
  variables["SLURM_STEP_NODELIST"] = "n1";
  variables["SLURM_STEP_TASKS_PER_NODE"] = "5";
  CHECK_THAT(launched(of(variables)).where, Catch::Matchers::StartsWith("127.0.0.1:"));
}

TEST_CASE("launch: MPI's, also where srun has started their agents", "[launch]") {
  std::map<std::string, std::string> open{{"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"OMPI_COMM_WORLD_RANK", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                          {"PMIX_NAMESPACE", "7@1"}};
  CHECK(launched(of(open)).rank == 1);
  CHECK_THAT(launched(of(open)).where, Catch::Matchers::StartsWith("127.0.0.1:"));
  open["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";  // the machine of rank 0 is not told
  CHECK(launched(of(open)).where.empty());
  const LaunchedRank hydra = launched(of({{"PMI_SIZE", "8"},
                                          {"PMI_RANK", "6"},
                                          {"MPI_LOCALRANKID", "2"},
                                          {"MPI_LOCALNRANKS", "4"},
                                          {"SLURM_STEP_ID", "0"},
                                          {"SLURM_STEP_NUM_TASKS", "2"},
                                          {"SLURM_PROCID", "1"}}));
  CHECK(hydra.world == 8);
  CHECK(hydra.rank == 6);
  CHECK(hydra.local_rank == 2);
  CHECK(hydra.where.empty());
  CHECK(hydra.told == "PMI_RANK=6 of PMI_SIZE=8");
}

TEST_CASE("launch: what is near to a process comes before srun, which may have started its agents", "[launch]") {
  const std::map<std::string, std::string> step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}};
  for (const auto& [by, count, rank] :
       {std::tuple("MPT", "MPI_WORLD_SIZE", "MPI_WORLD_RANK"), std::tuple("flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
        std::tuple("torchrun", "WORLD_SIZE", "RANK"), std::tuple("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")}) {
    std::map<std::string, std::string> variables = step;
    variables[count] = "8";
    variables[rank] = "5";
    const LaunchedRank own = launched(of(variables));
    CHECK(own.by == by);
    CHECK(own.rank == 5);
  }
}

TEST_CASE("launch: what a rank starts is told nothing by any launcher", "[launch]") {
  std::map<std::string, std::string> all{{"SLURM_STEP_ID", "0"}};
  for (const char* const name : launch_variables()) {
    all[name] = "2";
  }
  CHECK(all.size() > 20);
  std::map<std::string, std::string> left = all;
  for (const char* const name : launch_variables()) {
    left.erase(name);
  }
  CHECK(launched(of(left)).world == 1);
}

TEST_CASE("launch: the host of a meeting place, also of an IPv6 address", "[launch]") {
  CHECK(host_of("node1:29500") == "node1");
  CHECK(host_of("[fe80::1%eth0]:29500") == "fe80::1%eth0");
  CHECK(host_of("[::1]:1") == "::1");
}

TEST_CASE("launch: a count without a rank, and numbers that are none, are errors that name the variable", "[launch]") {
  CHECK_THROWS_WITH(launched(of({{"WORLD_SIZE", "4"}})), Contains("WORLD_SIZE=4") && Contains("RANK does not say"));
  CHECK_THROWS_WITH(launched(of({{"WORLD_SIZE", "four"}, {"RANK", "0"}})), Contains("WORLD_SIZE='four'"));
  CHECK_THROWS_WITH(launched(of({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}})), Contains("PMI_RANK=2"));
  CHECK_THROWS_WITH(launched(of({{"MPI_WORLD_SIZE", "2"}})), Contains("MPI_WORLD_SIZE=2"));
}
