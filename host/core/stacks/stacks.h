#pragma once
// Where every thread of this process is.

#include <pthread.h>

#include <string>

namespace kf {

/// What a script runs, in the eyes of the language that it is written in.
struct ScriptStack {
  pthread_t thread;       // that runs it
  void (*ask)();          // asks for the stack; called on that thread, by a signal's handler
  std::string (*take)();  // the stack that was asked for; "" as long as it has not come. On any thread
};
/// There is such a script until this is called with null. It outlives its registration.
void set_script_stack(const ScriptStack* script);

/// The calls that each thread is in, the innermost first, one paragraph a thread ("thread 4711 (kf-host)"), then what the training thread
/// runs (core/running.h) and the script's own stack. Threads are interrupted by a signal, which goes on with what they wait for; one that
/// does not answer within a second (it waits inside of the kernel) is named. Names of functions come from the files that the program
/// consists of. Takes some seconds; one call at a time.
std::string stacks_of_all_threads();

}  // namespace kf
