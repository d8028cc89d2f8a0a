/* The owner of a thread: the shared object, or the program, whose code the thread was made to run.
 *
 * Its position among the threads does not tell: Open MPI starts two threads of its own before any
 * OpenMP worker, MPICH one, a singleton none. */
#pragma once

#include <stdbool.h>

#include "profile/processes/roles.h"

/* Lists that go before the built-in one: "pattern,…", where a pattern is the beginning of a file
 * name, or matches all of it with the wildcards of a shell. The texts must stay. */
void pin_owner_extend(const char *helpers, const char *workers);

/* Class of the thread that pthread_create(…, start, argument) makes, and in `*dso`
 * the file name without folder of the DSO, "" for the main program; valid while that DSO is loaded.
 * For std::thread, whose start routine is always in libstdc++, the DSO of the state object's
 * virtual table counts. `*code`: that table, or the start routine, which tells kinds
 * of threads apart. Takes no lock where glibc >= 2.35. */
enum profile_owner pin_owner_of_thread(const void *start, const void *argument, const char **dso,
                                       const void **code);

/* Class of the code at `address`, for answering by caller. */
enum profile_owner pin_owner_of_code(const void *address, const char **dso);

/* Is the DSO with this file name a library by which programs look where they are (hwloc,
 * libnuma)? */
bool pin_owner_looks(const char *name);

/* Is this the program of a managed runtime (Java, Node, Ruby, .NET, Go, Erlang …), which sizes its
 * pools by the processors it counts and schedules its own threads on them? Then it is left alone,
 * unless SERVET_WORKERS names the program. Looked up once. */
bool pin_owner_program_is_managed(void);

/* Is an OpenMP runtime among the loaded DSOs? */
bool pin_owner_runtime_loaded(void);
