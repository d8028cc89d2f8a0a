/* The build ID that Go's linker writes, beside that of GNU's. */
#include <elf.h>

static const struct {
    Elf32_Nhdr head;
    char name[4], id[8];
} note __attribute__((section(".note.go.buildid"), used, aligned(4))) = {
    {.n_namesz = 4, .n_descsz = 8, .n_type = 4}, "Go", "0123456"};
