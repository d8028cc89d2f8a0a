/* A record of a report (SERVET_REPORT, `servet-show --live`): facts, and one sentence that says
 * them. As text it is the sentence, as JSON an object with the facts as members. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum profile_fact_kind {
    PROFILE_TEXT,
    PROFILE_WHOLE, /* a number */
    PROFILE_SECONDS,
    PROFILE_SHARE, /* 0 to 1; in a sentence in percent */
    PROFILE_BYTES, /* in a sentence in MiB */
    PROFILE_FLAG,
    PROFILE_LIST,  /* the text is numbers with commas between */
    PROFILE_INSIDE /* members that follow are those of an object of this name */
};

struct profile_fact {
    const char *key; /* NULL: the end of a list of facts */
    enum profile_fact_kind kind;
    const char *text;
    double number;
};

#define PROFILE_FACTS(...) ((const struct profile_fact[]){__VA_ARGS__, {.key = NULL}})
#define PROFILE_WORD(name, value) ((struct profile_fact){.key = (name), .text = (value)})
#define PROFILE_FIGURE(name, of, value)                                                            \
    ((struct profile_fact){.key = (name), .kind = (of), .number = (double)(value)})
#define PROFILE_NUMBER(name, value) PROFILE_FIGURE(name, PROFILE_WHOLE, value)

/* The sentence, where "{key}" stands for that fact. */
void profile_record_say(FILE *out, const char *sentence, const struct profile_fact *facts);
/* A line about a process: this host, the process, and the sentence or the members. */
void profile_record_print(FILE *out, bool json, pid_t pid, const char *sentence,
                          const struct profile_fact *facts);
