/* A record of a report. Texts are names of threads, programs and files, and may hold anything:
 * nothing in them ends a line, is obeyed by a terminal, or is JSON. */
#include "profile/text/record.h"

#include <string.h>
#include <unistd.h>

static void print_text(FILE *out, bool json, const char *text)
{
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '\n') {
            fputs("\\n", out);
        } else if (byte < ' ' || byte >= 0x7f || (json && (byte == '"' || byte == '\\'))) {
            fprintf(out, json ? "\\u%04x" : "\\x%02x", byte);
        } else {
            fputc(byte, out);
        }
    }
}

static void print_fact(FILE *out, bool json, const struct profile_fact *fact)
{
    const double number = fact->number;
    const char *quote = json ? "\"" : "";
    switch (fact->kind) {
    case PROFILE_TEXT:
        fputs(quote, out);
        print_text(out, json, fact->text);
        fputs(quote, out);
        break;
    case PROFILE_WHOLE:
        fprintf(out, "%.0f", number);
        break;
    case PROFILE_SECONDS:
        fprintf(out, json ? "%.6g" : "%.3g s", number);
        break;
    case PROFILE_SHARE:
        fprintf(out, json ? "%.4f" : "%.0f %%", json ? number : 100 * number);
        break;
    case PROFILE_BYTES:
        fprintf(out, json ? "%.0f" : "%.0f MiB", json ? number : number / (1 << 20));
        break;
    case PROFILE_FLAG:
        fputs(number != 0 ? "true" : "false", out);
        break;
    case PROFILE_LIST:
        fprintf(out, json ? "[%s]" : "%s", fact->text);
        break;
    case PROFILE_INSIDE:
        fputc('{', out);
        break;
    }
}

void profile_record_say(FILE *out, const char *sentence, const struct profile_fact *facts)
{
    for (const char *at = sentence; *at; at++) {
        const struct profile_fact *fact = facts;
        const size_t length = strcspn(at + 1, "}");
        while (fact->key &&
               (strlen(fact->key) != length || strncmp(fact->key, at + 1, length) != 0)) {
            fact++;
        }
        if (*at == '{' && fact->key) {
            print_fact(out, false, fact);
            at += length + 1;
        } else {
            fputc(*at, out);
        }
    }
}

void profile_record_print(FILE *out, bool json, pid_t pid, const char *sentence,
                          const struct profile_fact *facts)
{
    char host[256] = "?";
    bool is_first = false, is_inside = false;
    (void)gethostname(host, sizeof host - 1);
    if (!json) {
        fprintf(out, "%s %d ", host, (int)pid);
        profile_record_say(out, sentence, facts);
        fputc('\n', out);
        return;
    }
    fputs("{\"host\":\"", out);
    print_text(out, true, host);
    fprintf(out, "\",\"pid\":%d", (int)pid);
    for (; facts->key; facts++) {
        fprintf(out, "%s\"%s\":", is_first ? "" : ",", facts->key);
        print_fact(out, true, facts);
        is_first = facts->kind == PROFILE_INSIDE;
        is_inside = is_inside || is_first;
    }
    fputs(is_inside ? "}}\n" : "}\n", out);
}
