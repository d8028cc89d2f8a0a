/* The table of fields for people and their tools: run while building, it prints the JSON Schema
 * that is installed (--schema) or the list of servet-profile(5) (--manual). Compiled with the
 * tables alone and for the machine that builds, so that a cross build has both as well. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile/codec/codec.h"

enum { OBJECTS_MAX = 64 };

static const struct profile_object *seen[OBJECTS_MAX];
static size_t seen_count;

/* Objects in the order in which they are met, each once; false: no room. */
static bool collect_types(const struct profile_object *type)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_object *element = type->fields[i].element;
        size_t at = 0;
        while (element && at < seen_count && seen[at] != element) {
            at++;
        }
        if (!element || at < seen_count) {
            continue;
        }
        if (seen_count == OBJECTS_MAX) {
            return false;
        }
        seen[seen_count++] = element;
        if (!collect_types(element)) {
            return false;
        }
    }
    return true;
}

/* -- JSON Schema -- */

static void quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    putchar('"');
}

static void described(const char *meaning)
{
    if (meaning) {
        printf("\"description\": ");
        quoted(meaning);
        printf(", ");
    }
}

static void print_range(const struct profile_field *field)
{
    if (field->type == FIELD_NUMBER) {
        printf("\"type\": \"number\", ");
        printf(field->positive ? "\"exclusiveMinimum\": 0" : "\"minimum\": 0");
        return;
    }
    uint64_t most = field->type == FIELD_U32 ? UINT32_MAX : INT64_MAX;
    printf("\"type\": \"integer\", \"minimum\": %.0f, \"maximum\": %" PRIu64, field->low,
           field->high > 0 ? (uint64_t)field->high : most);
}

static void print_words(const char *const *words)
{
    printf("\"enum\": [");
    for (size_t i = 0; words[i]; i++) {
        printf("%s\"%s\"", i ? ", " : "", words[i]);
    }
    printf("]");
}

static void print_type(const struct profile_field *field)
{
    static const char *const types[] = {
        [FIELD_STRING] = "\"type\": \"string\"",
        [FIELD_BOOL] = "\"type\": \"boolean\"",
        [FIELD_GROUPS] = "\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/cpulist\"}",
        [FIELD_PAIRS] = "\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/pair\"}",
        [FIELD_PAIR_FIGURES] =
            "\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/pair_figure\"}",
        [FIELD_MAP] = "\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}",
    };
    switch (field->type) {
    case FIELD_VERSION:
        printf("\"const\": %.0f", field->high);
        break;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_NUMBER:
        print_range(field);
        break;
    case FIELD_WORD:
        print_words(field->words);
        break;
    case FIELD_SET:
        printf(field->low > 0 ? "\"$ref\": \"#/$defs/cpulist\""
                              : "\"anyOf\": [{\"$ref\": \"#/$defs/cpulist\"}, {\"const\": \"\"}]");
        break;
    case FIELD_ARRAY:
        printf("\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/%s\"}", field->element->name);
        if (field->low > 0) {
            printf(", \"minItems\": %.0f", field->low);
        }
        break;
    case FIELD_OBJECT:
        printf("\"$ref\": \"#/$defs/%s\"", field->element->name);
        break;
    default:
        printf("%s", types[field->type]);
    }
}

static void print_object(const struct profile_object *type, int depth)
{
    const char *before = "";
    described(type->meaning);
    printf("\"type\": \"object\",\n%*s\"properties\": {", depth, "");
    for (size_t i = 0; i < type->field_count; i++) {
        printf("%s\n%*s\"%s\": {", i ? "," : "", depth + 2, "", type->fields[i].key);
        described(type->fields[i].meaning);
        print_type(&type->fields[i]);
        printf("}");
    }
    printf("\n%*s},\n%*s\"required\": [", depth, "", depth, "");
    for (size_t i = 0; i < type->field_count; i++) {
        if (type->fields[i].required) {
            printf("%s\"%s\"", before, type->fields[i].key);
            before = ", ";
        }
    }
    printf("],\n%*s\"patternProperties\": {\"^x-\": true}, \"additionalProperties\": false", depth,
           "");
}

static void print_schema(void)
{
    printf(
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
        "  \"$id\": \"urn:servet:profile:%d\",\n  \"title\": \"Servet profile, version %d\",\n  ",
        PROFILE_VERSION, PROFILE_VERSION);
    print_object(&profile_document, 2);
    printf(",\n  \"$defs\": {\n"
           "    \"cpulist\": {\"description\": \"Numbers as the kernel's cpulists write them, such "
           "as \\\"0-3,8\\\"; each below %u.\", \"type\": \"string\", "
           "\"pattern\": \"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$\"},\n"
           "    \"member\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": %" PRIu32 "},\n"
           "    \"pair\": {\"type\": \"array\", \"prefixItems\": [{\"$ref\": \"#/$defs/member\"}, "
           "{\"$ref\": \"#/$defs/member\"}], \"items\": false, \"minItems\": 2},\n"
           "    \"pair_figure\": {\"type\": \"array\", \"prefixItems\": [{\"$ref\": "
           "\"#/$defs/member\"}, {\"$ref\": \"#/$defs/member\"}, {\"type\": \"number\", "
           "\"exclusiveMinimum\": 0}], \"items\": false, \"minItems\": 3}",
           PROFILE_SET_LIMIT, UINT32_MAX);
    for (size_t i = 0; i < seen_count; i++) {
        printf(",\n    \"%s\": {", seen[i]->name);
        print_object(seen[i], 6);
        printf("}");
    }
    printf("\n  }\n}\n");
}

/* -- manual -- */

/* A dot at the start of a line is a request to the formatter; hyphens in text are hyphens. */
static void print_roff(const char *text)
{
    for (; *text; text++) {
        if (*text == '\\') {
            printf("\\e");
        } else if (*text == '"') {
            printf("\\(dq");
        } else {
            putchar(*text);
        }
    }
}

static void print_kind(const struct profile_field *field)
{
    static const char *const kinds[] = {
        [FIELD_VERSION] = "number of the format",
        [FIELD_STRING] = "text",
        [FIELD_U32] = "integer",
        [FIELD_U64] = "integer",
        [FIELD_NUMBER] = "number",
        [FIELD_BOOL] = "true or false",
        [FIELD_WORD] = "word",
        [FIELD_SET] = "set of PUs",
        [FIELD_GROUPS] = "list of sets",
        [FIELD_PAIRS] = "list of pairs",
        [FIELD_PAIR_FIGURES] = "list of pairs with a number",
        [FIELD_ARRAY] = "list of",
        [FIELD_MAP] = "texts by name",
    };
    printf("%s", field->type == FIELD_OBJECT ? field->element->name : kinds[field->type]);
    if (field->type == FIELD_ARRAY) {
        printf(" %s", field->element->name);
    }
    if (field->unit) {
        printf(", %s", field->unit);
    }
    if (field->high > 0 && field->type != FIELD_VERSION) {
        printf(", %g to %g", field->low, field->high);
    } else if (field->positive || field->low > 0) {
        printf(field->type == FIELD_SET || field->type == FIELD_ARRAY ? ", not empty"
                                                                      : ", above 0");
    }
    printf(field->required ? "" : ", may be absent");
}

static void manual_object(const struct profile_object *type)
{
    printf(".It Sy %s\n", type->name);
    print_roff(type->meaning);
    printf("\n.Bl -tag -width 6n -compact\n");
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        printf(".It %s No ( ", field->key);
        print_kind(field);
        printf(" )\n");
        print_roff(field->meaning ? field->meaning : field->element->meaning);
        printf("\n");
    }
    printf(".El\n");
}

/* Where the page of standard input has the line of `mark`, the list. */
static int print_manual(const char *mark)
{
    char line[1024];
    bool found = false;
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, mark, strlen(mark)) != 0) {
            fputs(line, stdout);
            continue;
        }
        found = true;
        printf(".Bl -tag -width 4n\n");
        manual_object(&profile_document);
        for (size_t i = 0; i < seen_count; i++) {
            manual_object(seen[i]);
        }
        printf(".El\n");
    }
    return found ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (!collect_types(&profile_document)) {
        fprintf(stderr, "schema: more than %d kinds of objects\n", OBJECTS_MAX);
        return 1;
    }
    if (argc == 2 && strcmp(argv[1], "--schema") == 0) {
        print_schema();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--manual") == 0) {
        return print_manual(".\\\" FIELDS");
    }
    fprintf(stderr, "usage: %s --schema | --manual <PAGE\n", argv[0]);
    return 2;
}
