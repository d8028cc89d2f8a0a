/* Files for one test, all gone when its program ends, and what it need not free. */
#pragma once

/* A folder of this process; it was empty when first asked for. */
const char *scratch_folder(void);

/* A path in it, "FOLDER/name"; it stays. */
const char *scratch_path(const char *name);

/* A file in it, with the folders of its name and this text, as printf() makes it; its path. */
const char *scratch_file(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A text as printf() makes it; it stays. */
const char *formatted(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* JSON that is written with ' for each ". */
char *quoted(const char *text);

/* The whole file. The text stays. */
char *read_text(const char *path);

/* Returns the pointer, and keeps it reachable for leak checkers until the process ends. */
void *kept(void *pointer);

/* Before the first test (the runner calls it). */
void scratch_begin(void);
