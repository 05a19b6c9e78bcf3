#pragma once
// How this process was started, for messages that say how to start it again, and for the record of a run.

#include <string>
#include <vector>

namespace kf {

/// EX_TEMPFAIL of sysexits.h: a signal stopped the run after a save, and the same command goes on. Schedulers can be told to start anew.
inline constexpr int kStoppedStatus = 75;

/// The whole command line, the program first. Set once, at the start.
void set_invocation(std::vector<std::string> words);
const std::vector<std::string>& invocation();

/// Words as a POSIX shell reads them: quoted only where they must be.
std::string shell_line(const std::vector<std::string>& words);

/// The command line again, as something to paste; without options that make a start fresh.
std::string command_again();

/// Of the process that watches this one (`--max-restarts`), the same in every start of it; "" where nobody watches. Runs that began under
/// it are not begun again by run.fresh.
std::string watch_token();
inline constexpr const char* kWatchVariable = "KF_WATCH";

/// A signal has stopped a run of this process after a save: the exit status will say so.
void note_stopped_by_signal();
/// 0, or kStoppedStatus.
int status_of_runs();

}  // namespace kf
