#include "run/launch.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cstdlib>

#include "core/cores.h"
#include "core/error.h"
#include "parallel/c10d_group.h"
#include "parallel/own_address.h"

namespace kf {

Launch Launch::from_environment(const std::string& where) {
  Launch out;
  out.of_ = kf::launched(environment());
  out.worker_ = worker_place(environment());
  KF_CHECK(where.empty() || out.world() > 1, Code::config,
           "--rdzv {}: this is one process; --nproc N --nnodes M, srun, mpirun and torchrun start several", where);
  out.of_.where = where.empty() ? out.of_.where : where;
  if (!where.empty()) {
    out.of_.kept = false;
  }
  KF_CHECK(out.world() == 1 || !out.of_.where.empty(), Code::communication,
           "{} started {} processes together ({}), and says nothing of where they meet: give all of them --rdzv HOST:PORT, the machine of "
           "rank 0 and a free port there (or set MASTER_ADDR and MASTER_PORT)",
           out.of_.by, out.world(), out.of_.told);
  return out;
}

void Launch::hide_from_children() const {
  hide_worker_place();
  for (const char* const variable : launch_variables()) {
    ::unsetenv(variable);
  }
}

void Launch::share_cores() const {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
    return;
  }
  const std::int64_t own = own_cores().threads();
  const std::int64_t cores = of_.cores > 0 ? std::min(of_.cores, own) : own / of_.local_world;
  at::set_num_threads(static_cast<int>(std::clamp<std::int64_t>(cores, 1, 1024)));
}

std::shared_ptr<Group> Launch::all(std::chrono::milliseconds timeout) {
  if (!joined_->all) {
    Rendezvous rendezvous{of_.where, of_.rank, of_.world, timeout};
    if (of_.local_world == of_.world) {
      rendezvous.address = "127.0.0.1";
    } else if (!of_.where.starts_with("file:")) {
      rendezvous.address = own_address(host_of(of_.where));
    } else {
      rendezvous.address = own_address(host_name());
    }
    rendezvous.kept = of_.kept;
    rendezvous.prefix = of_.prefix;
    rendezvous.hosts = of_.hosts;
    joined_->all = join_processes(rendezvous);
  }
  return joined_->all;
}

}  // namespace kf
