"""The behaviours that `mutations` takes out, and the test that must go red for each.

`item` is the behaviour: "owner", "make" (ways to make threads and processes), "view" (what is answered to whom), "ranks",
"registry", "memory", "report", "slurm", or "rule N" of the shim's ten rules in somebody else's process.
"""
from take_out import Mutant

MUTANTS = []


def take_out(item, test, name, file, *edits):
    MUTANTS.append(Mutant(item, test, name, "preload/" + file, edits))


# -- 1. who owns a thread
take_out("owner", "preload-ranks-openmpi", "helpers of Open MPI are known", "owner.c",
         ("return begins(name, known_helpers) ? PIN_HELPER : PIN_APPLICATION;", "return PIN_APPLICATION;"))
take_out("owner", "preload-ranks-mpich", "helpers of MPICH are known", "owner.c",
         ("return begins(name, known_helpers) ? PIN_HELPER : PIN_APPLICATION;", "return PIN_APPLICATION;"))
take_out("owner", "preload-openmp-gcc", "libgomp is known", "owner.c", ('"libgomp", ', ""))
take_out("owner", "preload-openmp-clang", "libomp is known", "owner.c", ('"libomp.", "libomp-", "libomp5", ', ""))
take_out("owner", "preload-numeric", "OpenBLAS is known", "owner.c", ('"libopenblas", ', ""))
take_out("owner", "preload-owners", "std::thread belongs to the object of its state", "owner.c",
         ('if (argument && strncmp(name, "libstdc++"', 'if (!argument && strncmp(name, "libstdc++"'))
take_out("owner", "preload-owners", "SERVET_HELPERS", "owner.c", ("if (matches_any(helper_patterns, said))", "if (0)"))
take_out("owner", "preload-owners", "SERVET_WORKERS", "owner.c", ("if (matches_any(worker_patterns, said))", "if (0)"))
take_out("owner", "preload-owners", "a helper made by a pinned thread has all PUs", "creation.c",
         ("return pin_process_view() ? new_record(start, argument, dso, role, decided_by) : NULL;", "return NULL;"))
take_out("owner", "preload-numeric", "a sleeping pool pushes no other together", "slots.c",
         ("uint64_t key = key_of(name);", "uint64_t key = 1;"))

# -- 2. all ways to make a thread or a process
take_out("make", "preload-threads", "pthread_create", "shim.map", ("    pthread_create;\n", ""))
take_out("make", "preload-owners", "thrd_create", "shim.map", ("    thrd_create;\n", ""))
take_out("make", "preload-owners", "timers' threads are left alone", "shim.map", ("    timer_create;\n", ""))
take_out("make", "preload-life", "slots come back at the end", "creation.c",
         ("    if (thread->pu >= 0)\n        pin_slots_give_back((struct pin_slots *)&process->slots", "    if (0)\n        pin_slots_give_back((struct pin_slots *)&process->slots"))
take_out("make", "preload-life", "slots come back at pthread_exit and cancellation", "creation.c",
         ("pthread_cleanup_push(release, thread);", "pthread_cleanup_push((void (*)(void *))settle, thread);"),
         ("pthread_cleanup_pop(1);", "pthread_cleanup_pop(0);\n    release(thread);"))
take_out("make", "preload-site", "the slot of a thread that cannot be made comes back", "interpose_threads.c",
         ("        pin_thread_forget(ours);\n    return code;", "        (void)ours;\n    return code;"))
take_out("make", "preload-owners", "nested teams spread", "slots.c",
         ("return (uint64_t)own << 32 |", "return (uint64_t)slot + 1 + 0 * own |"))
take_out("make", "preload-slots", "the slot with the fewest threads in all comes first", "slots.c",
         ("| total << 1 |", "| 0 * total |"))
for call in ("execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "posix_spawn", "posix_spawnp", "system",
             "popen"):
    take_out("make", "preload-life", call + " gives the start mask back", "shim.map", ("    %s;\n" % call, ""))
for call in ("execl", "execlp", "execle"):
    take_out("make", "preload-life", call + " gives the start mask back", "shim.map", ("    %s;\n" % call, ""))
take_out("make", "preload-life", "a failed exec leaves the thread on its PU", "interpose_process.c",
         ("            pin_process_take_back_mask();", "            (void)0;"))
take_out("make", "preload-life", "fork gives the start mask back", "process.c",
         ("if (!pin_process_retired() && pin_process_lend_start_mask())", "if (0)"))
take_out("make", "preload-life", "a fork's child is placed afresh", "process.c", ("    plan_once = again;\n", "    (void)again;\n"))
take_out("make", "preload-owners", "threads before our constructor", "process.c",
         ("    pin_process_start();\n    return !process.options.disable", "    return !process.options.disable"))

# -- 3. the process's view
take_out("view", "preload-openmp-gcc", "libgomp counts the process's PUs", "shim.map", ("    pthread_getaffinity_np;\n", ""))
take_out("view", "preload-openmp-clang", "libomp counts the process's PUs", "shim.map", ("    syscall;\n", ""))
take_out("view", "preload-owners", "Python counts the process's PUs", "interpose_affinity.c",
         (" || is_python(dso)", ""))
take_out("view", "preload-numeric", "OpenBLAS counts the process's PUs", "interpose_affinity.c",
         (" || owner == PIN_POOL", ""))
take_out("view", "preload-owners", "the program is told the truth", "interpose_affinity.c",
         ("return owner == PIN_RUNTIME ||", "return owner != PIN_HELPER ||"))
take_out("view", "preload-owners", "of another thread everybody is told the truth", "interpose_affinity.c",
         ("return tid == 0 ||", "return tid >= 0 ||"))
take_out("view", "preload-openmp-clang", "a runtime cannot widen a worker", "interpose_affinity.c",
         ("return keeps_pu(tid, size, set, caller) ? 0 :", "return"))
take_out("view", "preload-owners", "sched_setaffinity cannot widen a worker", "shim.map", ("    sched_setaffinity;\n", ""))
take_out("view", "preload-owners", "pthread_setaffinity_np cannot widen a worker", "shim.map",
         ("    pthread_setaffinity_np;\n", ""))
take_out("view", "preload-owners", "a narrower change is carried out", "interpose_affinity.c",
         ("return view && is_whole(view, size, set) &&", "return view &&"))

# -- 4. ranks
take_out("ranks", "preload-ranks-mpich", "ranks differ", "launcher.c",
         ("        out->name = dialects[i].name;", "        out->local_rank = 0;\n        out->name = dialects[i].name;"))
take_out("ranks", "preload-ranks-openmpi", "hybrid ranks have domains", "plan.c",
         ("bool domains = site->launcher->local_size > 1 && threads > 1;", "bool domains = threads > 4096;"))
take_out("ranks", "preload-ranks-openmpi", "a launcher's own binding is widened", "launcher.c",
         ("        return PIN_LAUNCHERS_CHOICE;\n    if (is_set(\"HYDRA", "        return PIN_SHARED_MASK;\n    if (is_set(\"HYDRA"))
take_out("ranks", "preload-ranks-openmpi", "--bind-to stays", "launcher.c",
         ("? PIN_SHARED_MASK : PIN_USERS_CHOICE;", "? PIN_SHARED_MASK : PIN_LAUNCHERS_CHOICE;"))
take_out("ranks", "preload-ranks-mpich", "-bind-to stays", "launcher.c",
         ("    if (is_set(\"HYDRA_USER_PROVIDED_BINDING\"))\n        return PIN_USERS_CHOICE;\n", ""))
for entry in ("MPI_Init", "MPI_Init_thread", "PMPI_Init", "PMPI_Init_thread", "mpi_init", "mpi_init_", "mpi_init__",
              "MPI_INIT", "mpi_init_thread", "mpi_init_thread_", "mpi_init_thread__", "MPI_INIT_THREAD",
              "MPI_Session_init", "PMPI_Session_init", "shmem_init", "shmem_init_thread", "start_pes"):
    take_out("ranks", "preload-entries", entry, "shim.map", ("    %s;\n" % entry, ""))
take_out("ranks", "preload-ranks-mpich", "MPI_Init_thread of MPICH", "shim.map", ("    MPI_Init_thread;\n", ""))
# Fortran, sessions and OpenSHMEM of real libraries are run below servet-pin, where a rank starts on its PUs already: what
# their entries do is looked at by preload-entries alone.
take_out("ranks", "preload-ranks-openmpi", "the library's threads have the rank's PUs", "process.c",
         ("int code = pin_mask_set(getpid(), &this->plan.own);", "int code = pin_mask_set_pu(getpid(), this->plan.pus[0]);"))
take_out("ranks", "preload-ranks-mpich", "a rank's main thread gets one PU", "interpose_mpi.c",
         ("    pin_process_narrow_main(process);", "    (void)process;"))
take_out("ranks", "preload-ranks-openmpi", "servet-pin exports places", "servet-pin.c", ("    pin_rank_hand_over();\n", ""))
take_out("ranks", "preload-ranks-openmpi", "the library knows servet-pin's places from the user's", "process.c",
         ("pin_handover_read(&process.launcher, &process.children);", "false;"))
take_out("ranks", "preload-ranks-mpich", "children of a rank get the mask from before servet-pin", "process.c",
         ("    if (!process.handed_over)\n", ""))
take_out("ranks", "preload-ranks-mpich", "servet-pin leaves the user's places alone", "rank.c",
         ("if (pin_users_places_set() && !options.force)", "if (0)"))
take_out("ranks", "preload-ranks-mpich", "servet-pin --force overrides them", "rank.c",
         ("if (pin_users_places_set() && !options.force)", "if (pin_users_places_set())"))

# -- 5. several programs on a node
take_out("registry", "preload-registry", "others' PUs count as taken", "registry.c",
         ("            pin_mask_add(taken, pu);", "            (void)0;"))
take_out("registry", "preload-registry", "least loaded when all are taken", "registry.c",
         ("load_of(registry, job, pu) > least)", "load_of(registry, job, pu) > 0)"))
take_out("registry", "preload-registry", "ranks of one job are no foreigners", "registry.c",
         ("*first = entry_of_job(registry, job, registry->count);", "*first = entry_of_job(registry, job, 0);"))
take_out("registry", "preload-registry", "a killed holder is dropped", "registry.c",
         ("        if (is_alive(&registry->entries[i]))", "        if (registry->entries[i].pid)"))
take_out("registry", "preload-registry", "a pid that is used again is recognised", "registry.c",
         ("start_of((pid_t)entry->pid) == entry->start_ticks;", "start_of((pid_t)entry->pid) != 0;"))
take_out("registry", "preload-registry", "an entry without a start time is dropped", "registry.c",
         ("entry->start_ticks != 0 &&", ""))
take_out("registry", "preload-registry", "links are not followed", "registry.c", ("O_NOFOLLOW | ", ""))
take_out("registry", "preload-registry", "no second name", "registry.c", (" || about.st_nlink != 1", ""))
take_out("registry", "preload-registry", "the owner is checked", "registry.c", ("about.st_uid != geteuid() || ", ""))
take_out("registry", "preload-registry", "the mode is checked", "registry.c", ("|| (about.st_mode & 077)", ""))
take_out("registry", "preload-registry", "the mode is 0600", "registry.c", ("O_NONBLOCK, 0600)", "O_NONBLOCK, 0644)"))
take_out("registry", "preload-registry", "the size is bounded", "registry.c",
         ("header.count <= PIN_REGISTRY_ENTRIES ? header.count : PIN_REGISTRY_ENTRIES", "header.count"))
take_out("registry", "preload-registry", "the layout is checked", "registry.c", (" || header.magic != MAGIC", ""))
take_out("registry", "preload-registry", "later threads look again", "claims.c",
         ("    bool claimed = pin_registry_claim(&registry, claims->job, pu);", "    bool claimed = true;"))
take_out("registry", "preload-registry", "a stopped holder of the lock is not waited for", "registry.c",
         ("#define LOCK_TRIES 100", "#define LOCK_TRIES 1000000"))

# -- 6. memory
take_out("memory", "preload-report", "local", "memory.c", ("SYS_set_mempolicy, MPOL_LOCAL", "SYS_set_mempolicy, MPOL_DEFAULT"))
take_out("memory", "preload-report", "interleave", "memory.c", ("SYS_set_mempolicy, MPOL_INTERLEAVE", "SYS_set_mempolicy, MPOL_BIND"))
take_out("memory", "preload-report", "a refused policy is one line", "memory.c",
         ('        pin_failure("SERVET_MEMBIND=interleave: set_mempolicy: %s", strerrordesc_np((int)-code));', "        return;"))
take_out("memory", "vm-linear", "early pages are moved", "memory.c",
         ("is_empty(nodes) ? 0 : pin_raw(SYS_migrate_pages, 0, NODE_BITS, (long)&all, (long)nodes, 0, 0)", "0"))

# -- 7. reports
take_out("report", "preload-report", "a report at exit", "process.c",
         ("    pin_report_write(&process.options, &process.launcher);\n", ""))
take_out("report", "preload-report", "shared PUs are told", "creation.c",
         ("        pin_report_shared((uint32_t)thread->pu);", "        (void)0;"))
take_out("report", "preload-report", "JSON", "put_file.c", ('return ends_in(where, ".json") ||', 'return !ends_in(where, ".json") &&'))
take_out("report", "preload-report", "appended to", "put_file.c", ("O_WRONLY | O_APPEND", "O_WRONLY | O_TRUNC"))
take_out("report", "preload-registry", "servet-show --live", "where.c", ("Cpus_allowed_list", "Cpus_allowed_lost"))

# -- 8. Slurm
take_out("slurm", "slurm", "a user's binding stays", "spank_servet.c", ('user_bound ? "0" : "1"', '"1"'))
take_out("slurm", "slurm", "Slurm's own binding gives way", "spank_servet.c", ('user_bound ? "0" : "1"', '"0"'))
take_out("slurm", "slurm", "what is preloaded already stays", "spank_servet.c", ('"%s:%s", shim, before', '"%s", shim'))

# -- the ten rules
take_out("rule 1", "preload-quiet", "nothing before the first thread", "process.c",
         ("    pin_process_start();\n}", "    pin_process_start();\n    (void)pin_process_plan();\n}"))
take_out("rule 3", "preload-quiet", "the main thread is pinned no earlier than the first worker", "process.c",
         ("    pin_process_start();\n}", "    pin_process_start();\n    struct pin_process *now = pin_process_plan();\n    if (now)\n        pin_process_pin_main(now);\n}"))
take_out("rule 3", "preload-threads", "the main thread is pinned with the first worker", "creation.c",
         ("    pin_process_pin_main(process);\n    struct pin_thread *thread = new_record", "    struct pin_thread *thread = new_record"))
take_out("rule 4", "preload-openmp-gcc", "OMP_PLACES of the user", "process.c", ("!process.handed_over && pin_users_places_set();", "false;"))
take_out("rule 4", "preload-threads", "attributes of the program", "creation.c", ("    return !pin_mask_equal(&mask, &all);", "    return false;"))
take_out("rule 4", "preload-threads", "SERVET_FORCE against attributes", "creation.c", (" && !process->options.force) {", ") {"))
take_out("rule 4", "preload-openmp-gcc", "SERVET_FORCE against the environment", "process.c", ("this->users_choice && !this->options.force &&", "this->users_choice &&"))
take_out("rule 4", "preload-threads", "a main thread that the program has bound", "process.c", ("else if (!this->options.force && bound_by_program(this))", "else if (0)"))
take_out("rule 4", "preload-threads", "SERVET_VERBOSE says who won", "process.c", ('        pin_note("process %d: main thread stays where %s wants it", (int)getpid(), winner);', "        return false;"))
take_out("rule 5", "preload-threads", "only allowed PUs", "process.c", ("pin_launcher_allowed(&process.launcher, &process.children, &process.allowed);", "pin_mask_all(&process.allowed);"))
take_out("rule 9", "preload-life", "errno is kept", "creation.c", ("    errno = saved;\n    return thread;", "    errno = saved ? saved : 1;\n    return thread;"))
take_out("rule 9", "preload-threads", "a bad profile is one line", "plan.c", ('    pin_failure("%s; using the declared topology instead", error.text);', ""))
take_out("rule 9", "preload-site", "failures are capped", "note.h", ("#define PIN_FAILURE_CAP 4", "#define PIN_FAILURE_CAP 4000"))
take_out("rule 9", "preload-threads", "nothing on stdout", "note.c", ("pin_raw(SYS_write, STDERR_FILENO", "pin_raw(SYS_write, STDOUT_FILENO"))
take_out("rule 9", "preload-site", "small stacks", "own_stack.c", ("if (!is_first && has_little_left())", "if (0)"))
take_out("rule 9", "preload-site", "no signal for a line", "note.c", ("    pin_signals_hold(&before);", "    before = (struct pin_signals){0};"))
take_out("rule 9", "preload-site", "no signal for the registry", "registry.c", ("    pin_signals_hold(&before);", "    before = (struct pin_signals){0};"))
take_out("rule 9", "preload-site", "no signal for the report", "put_file.c", ("    pin_signals_hold(&before);", "    before = (struct pin_signals){0};"))
take_out("rule 9", "preload-site", "a full stderr is not waited for", "note.c", ("(long)&at_once, 0, 0, 0) == 0)", "(long)&at_once, 0, 0, 0) == 2)"))
take_out("rule 9", "preload-site", "nothing into another file", "note.c", (" || !is_stderr_as_it_was()", ""))
take_out("rule 9", "preload-site", "sandboxes by prctl", "shim.map", ("    prctl;\n", ""))
take_out("rule 9", "preload-site", "sandboxes by syscall", "interpose_affinity.c", ("            pin_process_retire();", "            (void)0;"))
take_out("rule 9", "preload-site", "a sandbox in a child of vfork", "process.c", (" || getpid() != own_pid)", ")"))
take_out("rule 10", "preload-quiet", "nothing is linked but libc", "meson.build", ("'-Wl,-l:libjansson.a',", "'-ljansson',"))
take_out("rule 10", "preload-quiet", "nothing is seen but the interposed symbols", "meson.build", ("    '-Wl,--exclude-libs,ALL',\n", ""), ("    '-Wl,--version-script=' + meson.current_source_dir() / 'shim.map',\n", ""))
