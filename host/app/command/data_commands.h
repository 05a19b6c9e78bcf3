#pragma once
// The data commands, one file each. Arguments come without the command's name; the exit status is returned.

#include "app/command/commands.h"

namespace kf {

/// `kf-host data build JOB|PATH`: fills the token cache.
int data_build(const Arguments& args);
/// `kf-host data cache [list|prune]`: what the token cache holds, and its removal.
int data_cache(const Arguments& args);
/// `kf-host data peek JOB|PATH`: documents and packed rows as text.
int data_peek(const Arguments& args);
/// `kf-host data verify JOB|PATH`: whether what is cached is what was written; status 5 when not.
int data_verify(const Arguments& args);
/// `kf-host data stats JOB|PATH`: documents, tokens, lengths, sources.
int data_stats(const Arguments& args);

}  // namespace kf
