"""The behaviours that `mutations` takes out, and the test that must go red for each.

`item` is the kind of behaviour: "caches", "sharing", "relation", "memory", "layers", "schedule" (few measurements),
"together" (disjoint pairs at once), "repeat", "budget", "resume", "conditions", "faults", "progress", "input", "seed", "bsp",
"kinds".
"""
from take_out import Mutant

MUTANTS = []


def take_out(item, test, name, file, *edits):
    MUTANTS.append(Mutant(item, test, name, "probes/" + file, edits))


# -- cache levels, line, TLB
take_out("caches", "cache_model", "ways fill at random", "cache_model.c",
         ("double p = (double)shape->ways * piece_bytes / (double)shape->bytes;", "double p = 1;"))
take_out("caches", "cache_model", "lines are not all the same number in a set", "cache_model.c",
         ("double low = floor(lines), share = lines - low;", "double low = floor(lines), share = 0;"))
take_out("caches", "cache_model", "what the level before holds does not miss", "cache_model.c",
         ("if (working_set <= shape->behind_bytes) {", "if (0) {"))
take_out("caches", "cache_model", "the paper's binomial tail", "cache_model.c", ("k <= ways && k <= n", "k < ways && k <= n"))
take_out("caches", "line", "a line is where a second access hits no more", "probe_line.c",
         ("seconds[i] - hit_s >= plateau *", "seconds[i] - hit_s >= 0.1 * plateau *"))
take_out("caches", "line", "a cache that costs nothing to miss tells no line", "probe_line.c",
         ("if (level < least_rise * hit_s) {", "if (0) {"))
take_out("caches", "line", "ways that go on halving are not told", "probe_line.c",
         ("if (4 * largest[i + 1] > 3 * largest[i]) {", "if (1) {"))
take_out("caches", "tlb", "two levels of a TLB", "probe_tlb.c", ("bool second = two", "bool second = 0 && two"))
take_out("caches", "tlb", "no level of a TLB is made up", "probe_tlb.c",
         ("if (best->cost[i] > least_share *", "if (best->cost[i] > 0 * least_share *"))

take_out("caches", "disagreement", "resctrl's groups list tasks", "resctrl.c",
         ("char *group = find_group(&look, lists_task);", "char *group = find_group(&look, has_pu);"))
take_out("caches", "disagreement", "a partition of the cache explains a smaller one", "result.c",
         ("if (machine->root &&", "if (0 && machine->root &&"))
take_out("caches", "disagreement", "neighbours take, they do not give", "disagreement.c",
         ("return is_smaller(d) && (d->shared", "return (d->shared"))

take_out("caches", "paper_method", "sizes grow by 1 MiB from 2 MiB on", "probe_cache_paper.c",
         ("doubling_up_to = 2u << 20", "doubling_up_to = 4u << 20"))
take_out("caches", "paper_method", "the first peak is a maximum", "probe_cache_paper.c",
         ("gradient(curve, k) >= peak && falls", "gradient(curve, k) > rising + 0 * falls"))
take_out("caches", "paper_method", "the next rise is a level of its own", "probe_cache_paper.c",
         ("gradient(curve, k) > rising && gradient(curve, k) <= gradient(curve, k - 1)", "gradient(curve, k) > rising"))

# -- shared caches
take_out("sharing", "sharing_rule", "the paper's ratio", "sharing_trials.c", ("        return SHARING_YES;\n", "        return SHARING_NO;\n"))
take_out("sharing", "sharing_rule", "between the two ratios it is uncertain", "sharing_trials.c",
         ("return decisive > threshold * uncertain_share ? SHARING_UNCERTAIN : SHARING_NO;", "return SHARING_NO;"))
take_out("sharing", "sharing_rule", "one disturbed trial decides nothing", "sharing_trials.c",
         ("return count >= COUNT_LEAST ? ratios[COUNT_LEAST - 1] : 0;", "return ratios[count - 1];"))
take_out("sharing", "papers", "alone and together in the same memory", "sharing_trials.c",
         ("int rc = traverse(probe, bar->bytes, seed, pus, 2 * pairs, together);",
          "int rc = traverse(probe, bar->bytes, ++probe->seed, pus, 2 * pairs, together);"))
take_out("sharing", "sharing_witness", "the witness is heard on doubtful pairs", "probe_sharing.c",
         ("    rc = rc < 0 ? rc : hear_on_doubtful(&question, outcome.values);\n", ""),
         ("    rc = rc < 0 ? rc : hear_on_doubtful(question, shares);\n", ""))
take_out("sharing", "sharing_witness", "contradictions are resolved", "probe_sharing.c",
         ("    rc = rc < 0 ? rc : resolve(&question, &level->sharing, outcome.values);\n", ""))
take_out("sharing", "sharing_witness", "the witness ends a contradiction", "probe_sharing.c",
         ("return left ? hear_on_contradicting(question, relation, shares) : rc;", "return rc + 0 * left;"))
take_out("sharing", "sharing_witness", "no opinion where latencies do not tell", "sharing_witness.c",
         ("if (near * alike >= far) {", "if (0) {"))
take_out("sharing", "sharing_witness", "no opinion on what may be of either kind", "sharing_witness.c",
         ("seconds >= near * apart", "seconds >= near"))
take_out("kinds", "kinds-whole-path", "a cache is asked about among those that have it", "probe_sharing.c",
         ("if (!profile_set_has(holders, pus->ids[i]) || !profile_set_has(holders, pus->ids[j])) {", "if (0) {"))

# -- pairs become groups
take_out("relation", "relation", "pairs have two orders", "relation.c", ("    if (i > j) {", "    if (0) {"))
take_out("relation", "relation", "a group goes on through its members", "relation.c",
         ("for (size_t next = 0; next < count; next++)", "for (size_t next = 0; next < 1; next++)"))
take_out("relation", "relation", "what is not transitive stays pairs", "relation.c",
         ("rc = complete(&view, members, count) ?", "rc = 1 ?"))
take_out("relation", "relation", "weaker pairs do not bind", "relation.c", ("class <= view->weakest", "class < PAIR_NONE"))
take_out("relation", "relation", "pairs are in order", "relation.c", ("x->a < y->a ? -1 : 1", "x->a < y->a ? 1 : -1"))

# -- overhead levels and bandwidth
take_out("memory", "memory_levels", "small differences are no collision", "memory_levels.c",
         ("pair_bytes_per_s[i] < collision_margin * reference", "pair_bytes_per_s[i] < reference"))
take_out("memory", "memory_levels", "levels nest", "memory_levels.c",
         ("relation_from_classes(classes, 0, level,", "relation_from_classes(classes, level, level,"))
take_out("memory", "memory_levels", "levels are told apart", "memory_levels.c",
         ("class_of[i] = (uint8_t)cluster_of[k++];", "class_of[i] = (uint8_t)(0 * cluster_of[k++]);"))
take_out("memory", "simulated", "levels that a second look contradicts are measured again", "probe_memory.c",
         ("contradicted = again > contradiction * centre;", "contradicted = 0 && again > centre;"))
take_out("memory", "papers", "pairs that break a group are measured again", "probe_memory.c",
         ("    rc = rc < 0 ? rc : look_at_listed(rounds, outcome, &result->memory, &listed);\n", ""))
take_out("memory", "simulated", "two workers' figure is that of the pairs", "memory_scaling.c",
         ("workers == 2 ? total_of_two(rounds, level)", "workers == 2 ? 0.5 * total_of_two(rounds, level)"))
take_out("memory", "simulated", "more workers than two", "memory_scaling.c",
         ("        totals[done] = 0;\n", "        totals[done] = 0;\n        workers = 1;\n"))
take_out("memory", "simulated", "every node from every group", "probe_numa.c",
         ("node < declared->numa_count; node++)", "node < 1; node++)"))
take_out("memory", "simulated", "a node out of reach leaves the others", "probe_numa.c",
         ("return rc == -EACCES || rc == -ENOMEM;", "return rc == -ENOMEM;"))
take_out("memory", "simulated", "a node out of reach is named", "probe_numa.c",
         ("if (concerns_the_node(rc) && !result->why[0]) {", "if (0) {"))
take_out("memory", "native", "memory that is not placed is refused", "native_memory.c",
         ("return errno == EINVAL || errno == EPERM || errno == ENOSYS ? -EACCES : -errno;", "return 0;"))
take_out("kinds", "kinds-whole-path", "slow cores do not pass for disturbed ones", "memory_rounds.c",
         ("rounds->scale[i] = best / alone[kinds_find(kinds, pus->ids[i])];", "rounds->scale[i] = 1;"))

# -- layers
take_out("layers", "cluster", "valleys cut", "cluster.c", ("cuts[count++] =", "cuts[0] ="))
take_out("layers", "cluster", "clusters nearer than their noise are one", "cluster.c",
         ("static const double least_distance = 4; ", "static const double least_distance = 0; "))
take_out("layers", "cluster", "a few outliers are no layer", "cluster.c",
         ("        join_outliers(logs, count, spread, pieces, &pieces_made, logs + count);\n", ""))
take_out("layers", "cluster", "with few values every one counts", "cluster.c",
         ("while (values > no_minimum_up_to && *count > 1)", "while (*count > 1)"))
take_out("layers", "cluster", "the spread is that of one figure, not of a difference", "cluster.c",
         ("(mad_of_deviation * sqrt(2))", "mad_of_deviation"))
take_out("layers", "cluster", "impossible values are refused", "cluster.c",
         ("if (!(values[i] > 0) || !isfinite(values[i])) {", "if (0) {"))
take_out("layers", "simulated", "latencies are settled in a second sweep", "probe_message.c",
         ("        rc = second_sweep(&schedule, &question, outcome);\n", ""))
take_out("layers", "simulated", "the curve is of the layer's own pair", "probe_message.c",
         ("            if (distance < best) {", "            if (k == 0) {"))
take_out("layers", "simulated", "concurrent pairs are of one layer", "probe_message.c",
         ("if (!taken[j] && seconds >= low && seconds <= high) {", "if (!taken[j] && seconds >= 0 * low && seconds > 0 * high) {"))
take_out("layers", "simulated", "concurrent pairs are disjoint", "probe_message.c", ("taken[i] = taken[j] = true;", ""))

# -- few measurements
take_out("schedule", "schedule", "a sample is enough", "schedule.c",
         ("return schedule->exhaustive || size > count ? count : size;", "return count + 0 * size;"))
take_out("schedule", "schedule", "where the sample disagrees all are measured", "schedule.c",
         ("!run->agree(run->sample, size, spread)", "0 && !run->agree(run->sample, size, spread)"))
take_out("schedule", "schedule", "--exhaustive", "schedule.c", ("return schedule->exhaustive || size", "return size"))
take_out("schedule", "schedule", "what is not measured takes over the class's median", "schedule.c",
         ("double middle = probe_median(run->sample, from);", "double middle = run->outcome->values[0];"))
take_out("schedule", "schedule", "the closer class counts", "schedule.c", ("if (*slot > class &&", "if ("))
take_out("schedule", "schedule", "no pairs are told after the last", "schedule.c",
         ("        schedule->probe->pairs = (struct probe_pairs){0};\n", "        (void)0;\n"))
take_out("schedule", "schedule", "the note says what was taken over", "schedule.c", ("bool all = outcome->measured_count == outcome->pair_count;", "bool all = true;"))
take_out("schedule", "schedule", "classes of pairs are those of the packages", "schedule.c",
         ("mark(schedule, &declared->packages,", "mark(schedule, &declared->cores,"))
take_out("schedule", "schedule", "samples are random", "schedule.c", ("    random_shuffle(random, run->members, run->count, sizeof *run->members);\n", "    (void)random;\n"))

# -- disjoint pairs at the same time
take_out("together", "together", "a batch is disjoint", "together.c", ("if (!clash && !crowded) {", "if (!crowded) {"))
take_out("together", "together", "no more crowded than was checked", "together.c", ("if (!clash && !crowded) {", "if (!clash) {"))
take_out("together", "together", "pairs that disturb are measured one by one", "together.c",
         ("*passed = together_undisturbed(ratios, ratio_count, repeats, repeat_count);", "*passed = true;"),
         ("            *passed = false; /* the first round may do */\n            return 0;\n", ""))
take_out("together", "together", "ratios are judged by the measured spread", "together.c",
         ("return middle <= fmin(fmax(tolerated, least_tolerated), most_tolerated);", "return middle <= least_tolerated;"))
take_out("together", "together", "however noisy, a tenth is too much", "together.c",
         ("return middle <= fmin(fmax(tolerated, least_tolerated), most_tolerated);", "return middle <= fmax(tolerated, least_tolerated);"))
take_out("together", "together", "pairs unlike the checked ones are measured alone", "together.c",
         ("return fabs(log(figure / limit->figure)) <= limit->band;", "return true;"))
take_out("together", "together", "a check that costs more than it saves is not made", "together.c",
         ("return left / pairs_now > left / pairs_then + worth * COST + pairs_then;", "return left > 0;"))
take_out("together", "together", "--one-by-one", "schedule.c", ("schedule->at_once, run->measure,", "TOGETHER_MOST, run->measure,"))

# -- how often
take_out("repeat", "repeat", "noisy figures are measured more often", "repeat.c",
         ("repeat_half_width(values, count) < target);", "repeat_half_width(values, count) < 100);"))
take_out("repeat", "repeat", "calm figures are measured three times", "repeat.c",
         ("(count >= REPEAT_MEDIAN_LEAST && repeat_half", "(0 && repeat_half"))
take_out("repeat", "repeat", "there is an end", "repeat.c", ("return count >= REPEAT_MEDIAN_MOST ||", "return count >= MOST ||"))
take_out("repeat", "repeat", "minima are settled when two agree", "repeat.c", ("second <= (1 + target) * least", "least > 0"))

# -- the budget
take_out("budget", "schedule", "a late probe stops", "schedule.c", ("if (run->sampled > 0 && late(run)) {", "if (0) {"))
take_out("budget", "schedule", "one pair of a class there must be", "schedule.c", ("if (run->sampled > 0 && late(run)) {", "if (late(run)) {"))
take_out("budget", "schedule", "a late probe says so", "schedule.c", ("run->outcome->cut_short = true;", ""))
take_out("budget", "servet-probe-time", "no further probe is started", "campaign.c",
         ("if (!first && over(findings)) {", "if (0) {"))
take_out("budget", "budget", "no sweep starts that would not end in time", "probe_cache.c",
         ("granted(probe) > sweep_s + fit_s) {", "1) {"))
take_out("budget", "budget", "a level's repetitions are the sweeps made", "probe_cache.c",
         (".repetitions = out->sweeps + out->coarse,", ".repetitions = SWEEPS,"))
take_out("budget", "budget", "a late probe leaves the knees as they are", "probe_cache.c",
         ("if (rc == 0 && result->count > 1 && granted(probe) > fit_s) {", "if (rc == 0 && result->count > 1) {"),
         ("refined_share * swept_cost(samples)), granted(probe) - fit_s);", "refined_share * swept_cost(samples)), INFINITY);"),
         ("            left_s = fmin(left_s, granted(probe) - fit_s);\n", ""))
take_out("budget", "budget", "a late probe does not look for ways", "probe_cache_geometry.c",
         ("        first->ways_unknown = out_of_time;\n        return measure_second_ways(probe, pu, out, error);\n", ""))
take_out("budget", "servet-probe-time", "each probe has its share", "campaign.c",
         ("(findings->until_s - now) * planned(findings, probe)", "100 * planned(findings, probe)"))
# -- the time left
take_out("progress", "servet-probe-time", "the time is planned before it is measured", "campaign.c",
         ("progress_plan(campaign->progress, planned_from(campaign, &findings, CAMPAIGN_CACHE),", "progress_plan(campaign->progress, 0,"))
take_out("progress", "progress", "a plan gives way to the pace that is seen", "progress.c",
         ("* (plan + spent) / (plan + whole * progress->planned_s)", ""))
take_out("budget", "servet-probe-time", "what was left out is in the profile", "campaign_conditions.c",
         ("    rc = rc < 0 ? rc : add_budget(campaign, findings, profile);\n", ""))

# -- resumed runs
take_out("resume", "journal", "another run's state is refused", "machine_journal.c", ("(!torn && !same)", "(0 && !same)"))
take_out("resume", "journal", "a file that is no journal is refused", "machine_journal.c", ("if (!ours || ", "if ("))
take_out("resume", "journal", "a longer run line is another run", "machine_journal.c",
         (" && line[strlen(magic) + strlen(run)] == '\\n'", ""))
take_out("resume", "journal", "a torn entry is none", "machine_journal.c", ('return strcmp(end, "\\n") == 0;', "return true;"))
take_out("resume", "journal", "answers are told from those to other questions", "machine_journal.c",
         ("strtoull(line, &end, 16) != key ||", "strtoull(line, &end, 16) == 0 ||"))
take_out("resume", "journal", "what follows another question goes", "machine_journal.c",
         ("|| ftruncate(fileno(journal->file), start) < 0)", ")"))
take_out("resume", "journal", "after that nothing is taken", "machine_journal.c", ("        journal->replaying = false;\n", ""))
take_out("resume", "journal", "values to the last bit", "machine_journal.c", ('" %a"', '" %.12g"'))
take_out("resume", "journal", "a finished run leaves nothing", "machine_journal.c", ("        unlink(journal->path);\n", "        (void)0;\n"))
take_out("resume", "journal", "the kind of question counts", "machine_journal.c", ("for (const char *c = kind; *c; c++) {", "for (const char *c = kind; 0; c++) {"))

# -- conditions
take_out("conditions", "guard", "a disturbed measurement is made again", "machine_guard.c",
         ("    if (!is_disturbed(first_s, seconds, workers)) {", "    if (1) {"))
take_out("conditions", "guard", "a calm one is not", "machine_guard.c", ("    if (!is_disturbed(first_s, seconds, workers)) {", "    if (0) {"))
take_out("conditions", "guard", "the calmer of two counts", "machine_guard.c", ("better = done && again_s < first_s;", "better = done;"))
take_out("conditions", "guard", "not for ever", "machine_guard.c", ("guard->repeat_s < repeats_most_s ?", "1 ?"))
take_out("conditions", "guard", "a busy machine is told", "machine_guard.c", ("    guard->disturbed += !calm;\n", "    (void)calm;\n"))
take_out("conditions", "guard", "a few disturbed ones are no busy machine", "machine_guard.c",
         ("return (double)machine->guard.disturbed > busy_share *", "return (double)machine->guard.disturbed > 0 * busy_share *"))
take_out("conditions", "guard", "short waits say nothing", "machine_guard.c", ("return waited_s > disturbed_least_s &&", "return"))
take_out("conditions", "guard", "only the measured PUs' ticks count", "surroundings.c", (" ||\n            !profile_set_has(pus, pu)) {", ") {"))
take_out("conditions", "guard", "stolen time is told", "surroundings.c", ("        sum.stolen += t[7];\n", ""))
take_out("conditions", "guard", "busy SMT siblings are told", "surroundings.c",
         ('        rc = conditions_add(profile, "smt_siblings", text);\n', ""))
take_out("conditions", "guard", "siblings are PUs that are not measured", "surroundings.c",
         ("for (size_t i = 0; i < core->count && measured; i++) {", "for (size_t i = 0; i < core->count; i++) {"))
take_out("conditions", "guard", "time standing still is told", "surroundings.c",
         ("    rc = rc < 0 ? rc : add_standstill(machine, profile);\n", ""))
take_out("conditions", "guard", "a busy machine is in the profile", "surroundings.c", ("rc < 0 ? rc : add_busy(machine, profile)", "rc"))
take_out("conditions", "guard", "the load before is in the profile", "surroundings.c", ('conditions_add(profile, "load_average", before->load)', "0"))
take_out("conditions", "guard", "frequencies that did not settle are told", "surroundings.c",
         ('rc = conditions_add(profile, "warm_up", text);', ""))
take_out("conditions", "guard", "the first PU is warmed up", "surroundings.c", ("return rc < 0 ? rc : settle(machine, out);", "return rc;"))
take_out("conditions", "native", "standing still is noticed", "native_worker.c",
         ("return wall > ran + waited + least ? wall - ran - waited : 0;", "return 0 * (wall + ran + waited);"))
take_out("conditions", "vm-probe-suspend", "a suspended machine is told", "surroundings.c",
         ("    rc = rc < 0 ? rc : add_suspended(before, profile);\n", ""))

# -- faults and signals
take_out("faults", "guard", "a fault is named", "campaign.c", ("return profile_error(error, rc, \"%s\", reason.text);", "return rc;"), ("        name_memory_limit(campaign->machine, error);\n", "        error->text[0] = 0;\n"))
take_out("faults", "guard", "a PU that goes offline in the repetition leaves the first figure", "machine_guard.c",
         ("better = done && again_s < first_s;", "better = again_s < first_s;"))
take_out("faults", "guard", "a cancelled machine is not asked", "machine.c", ("return machine->cancel && *machine->cancel;", "return false;"))
take_out("faults", "native", "PUs must be known and distinct", "machine.c", ("        if (!profile_set_has(&machine->pus, pus[i])) {", "        if (0) {"))
take_out("faults", "guard", "pairs must be disjoint", "machine.c",
         ("if (pairs[j].a == both[0] || pairs[j].b == both[0] || pairs[j].a == both[1] || pairs[j].b == both[1]) {", "if (0) {"))
take_out("faults", "native", "a PU that is not ours is refused", "machine_native.c", ("        if (!profile_set_has(&allowed, wanted->ids[i])) {", "        if (0) {"))
take_out("faults", "servet-probe-simulated", "finished probes are kept", "campaign.c",
         ("campaign->incomplete = (rc == -ENODEV || rc == -ENOMEM) && findings.done != 0 ? rc : 0;", "campaign->incomplete = 0;"))
take_out("faults", "servet-probe-simulated", "a partial profile is marked", "campaign_conditions.c",
         ("    rc = rc < 0 ? rc : add_incomplete(campaign, findings, profile);\n", ""))
take_out("faults", "servet-probe-simulated", "a partial profile is beside the old one", "servet-probe.c",
         ('"%s.partial", path', '"%s", path'))
take_out("faults", "servet-probe-simulated", "of nothing there is no partial profile", "campaign.c", (" && findings.done != 0 ?", " ?"))
take_out("faults", "servet-probe", "signals end with their status", "servet-probe.c", ("        return 128 + interrupted;\n    }\n    if (rc == -ESTALE", "        return 1;\n    }\n    if (rc == -ESTALE"))

# -- progress
take_out("progress", "progress", "a probe is an event", "progress.c", ('"{\\"event\\": \\"probe\\",', '"{\\"event\\": \\"step\\",'))
take_out("progress", "progress", "earlier probes count as done", "progress.c", ("    progress->before += progress->share;\n", ""))
take_out("progress", "progress", "nothing is more than done", "progress.c", ("whole = whole < 0 ? 0 : whole > 1 ? 1 : whole;", ""))
take_out("progress", "progress", "pairs are named", "progress.c", ("if (pairs->planned > 0) {", "if (0) {"))
take_out("progress", "progress", "other steps name no pairs", "progress.c", ("if (pairs->planned > 0) {", "if (1) {"))
take_out("progress", "progress", "ten steps a second are enough", "progress.c", ("time - progress->drawn_s < redraw_s", "time < 0"))
take_out("progress", "progress", "the time left", "progress.c", ("spent / whole * (1 - whole)", "spent"))
take_out("progress", "progress", "no guess from a first second", "progress.c", ("return spent > guess_after_s && whole > 0 ?", "return whole > 0 ?"))
take_out("progress", "progress", "a reader that is gone stops nothing", "progress.c", ("        progress->events = -1;\n", "        (void)0;\n"))
take_out("progress", "servet-probe-simulated", "the end is an event", "servet-probe.c", ("    progress_outcome(&progress, interrupted", "    if (0) progress_outcome(&progress, interrupted"))

# -- bad input
take_out("input", "servet-probe-simulated", "--probes", "campaign.c",
         ("        if (i == CAMPAIGN_NAMES) {\n", "        if (i == CAMPAIGN_NAMES && (i = 0, false)) {\n"))
take_out("input", "servet-probe-simulated", "--largest: a unit that is none", "servet-probe.c", (" || *end || size < least", " || size < least"))
take_out("input", "servet-probe-simulated", "--largest: too little", "servet-probe.c", (" || size < least || size > most", ""))
take_out("input", "servet-probe-simulated", "--machine", "servet-probe.c",
         ('if (strcmp(argument, "native") != 0 && strncmp(argument, "simulated:"', 'if (0 && strncmp(argument, "simulated:"'))
take_out("input", "servet-probe-simulated", "--progress: a descriptor that is not open", "servet-probe.c", ("if (fcntl(descriptor, F_GETFD) < 0) {", "if (0) {"))
take_out("input", "servet-probe-simulated", "a place that cannot be written to", "output.c", ("    int rc = try_folder(real ? real : path);\n", "    int rc = 0;\n"))
take_out("input", "simulated", "a description says where it is wrong", "sim_load.c",
         ('return profile_error(error, -EINVAL, "%s:%d: %s", path, where.line, where.text);',
          'return profile_error(error, -EINVAL, "%s", path);'))

# -- seeds
take_out("seed", "servet-probe-simulated", "the same seed gives the same profile", "campaign.c",
         (".seed = campaign->seed,", ".seed = (uint64_t)clock(),"))

# -- kinds of cores
take_out("kinds", "kinds-whole-path", "kinds are told apart", "kinds.c", ("rc = is_known(&kinds, pus->ids[i]) ? 0 :", "rc = kinds.count ? 0 :"))
take_out("kinds", "kinds-whole-path", "caches of each kind are measured on its own PU", "campaign.c", ("findings->kinds.pus[i].ids[0];", "findings->kinds.pus[0].ids[0];"))

# -- BSP
take_out("bsp", "bsp-fit", "least squares", "bsp_fit.c", ("long double g = ht / hh;", "long double g = ht / hh * 1.000000001L;"))
take_out("bsp", "bsp-fit", "stalls do not reach the robust fit", "bsp_fit.c", ("double g = median(values, slopes(curve, values));", "struct bsp_line all;\n    line_of(curve->h, curve->time, n, &all);\n    double g = all.g + 0 * slopes(curve, values);"))
take_out("bsp", "bsp-fit", "a negative l is told", "bsp_fit.c", ("choice.negative = negative(&choice.line);", ""))
take_out("bsp", "bsp-fit", "a bend is found at its h", "bsp_fit.c", ("        bend.h = exact_place(&curve, &bend, block);\n", ""))
take_out("bsp", "bsp-fit", "a straight line has no bend", "bsp_fit.c", ("return f > BEND_F && miss > BEND_VISIBLE * fabs(middle);", "return f > 0 || miss > 0 * middle;"))
take_out("bsp", "bsp-fit", "lines differ by their times, too", "bsp_fit.c", ("return fmax(g, ends);", "return g + 0 * ends;"))
take_out("bsp", "bsp-fit", "one point is no line", "bsp_fit.c", ("    if (count < 2) {\n        return -EINVAL;\n    }\n    /* Longer", "    /* Longer"))
take_out("bsp", "bsp-probe", "runs that disagree are repeated", "probe_bsp.c",
         ("study->run_count < request->runs + MORE_RUNS &&", "0 &&"))
take_out("bsp", "bsp-probe", "runs that disagree are told", "probe_bsp.c",
         ("fit.agree = fit.difference <= BSP_AGREEMENT;", "fit.agree = true;"))
