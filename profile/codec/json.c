/* The JSON reader: a text becomes one array of values, in the order of the text.
 *
 * The shim reads a profile inside other people's programs, at the first thread of each of them. A
 * general library makes an object of every value, a list of every array and a hash table of every
 * object, which for 25 KB took 1.2 ms and some thousand allocations, and ends the program where one
 * of them fails. Here is one: the values, each with the number of values that it takes, so that one
 * can be passed over at once. Strings are decoded where they stand in the text (they only become
 * shorter); a number stays text until a caller asks for it.
 *
 * The grammar is RFC 8259's, with valid UTF-8, no U+0000 in strings, numbers that fit a double or a
 * signed integer of 64 bits, and no more than JSON_DEPTH levels. The caller refuses a key that is
 * given twice. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"

/* Far above a profile's 8: each level is a call, on a stack that may be a small one. */
#define JSON_DEPTH 64
/* Values of a usual profile: one for so many bytes. */
#define BYTES_PER_VALUE 8
/* Digits that every integer may have without being too large; powers of ten that every number may
 * have with a few digits before. */
#define SAFE_DIGITS 18
#define SAFE_EXPONENT_DIGITS 2
#define SAFE_LENGTH 200
/* A character as \u and four digits. */
#define CODE_LENGTH 6
/* Some editors put it before a text of UTF-8; it has no meaning, and readers may skip it (RFC 8259,
 * section 8.1). */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct json_reader {
    char *at;
    const char *line_start;
    size_t line; /* the first is 1 */
    struct profile_json *values;
    uint32_t used, room;
    const char *wrong; /* what was expected; NULL with a failure: there is no memory */
};

static bool refuse_text(struct json_reader *reader, const char *expected)
{
    reader->wrong = expected;
    return false;
}

/* The value's position, UINT32_MAX: there is no memory. */
static uint32_t add_value(struct json_reader *reader, enum profile_json_type type, const char *text)
{
    if (reader->used == reader->room) {
        uint32_t room = 2 * reader->room;
        struct profile_json *more = reallocarray(reader->values, room, sizeof *more);
        if (!more) {
            return UINT32_MAX;
        }
        reader->values = more;
        reader->room = room;
    }
    reader->values[reader->used] = (struct profile_json){.type = type, .text = text, .size = 1};
    return reader->used++;
}

static void skip_blanks(struct json_reader *reader)
{
    char *at = reader->at;
    for (;; at++) {
        while (*at == ' ') { /* a third of a profile */
            at++;
        }
        if (*at == '\n') {
            reader->line++;
            reader->line_start = at + 1;
        } else if (*at != '\t' && *at != '\r') {
            break;
        }
    }
    reader->at = at;
}

/* -- strings -- */

static bool continues(const char *at)
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

/* Bytes of the character of UTF-8 that begins here and is not ASCII; 0: there is none (RFC 3629:
 * the shortest form, no surrogates, at most U+10FFFF). */
static size_t character_bytes(const char *at)
{
    unsigned char first = (unsigned char)at[0], second = (unsigned char)at[1];
    if (first < 0xc2 || first > 0xf4 || !continues(at + 1)) {
        return 0;
    }
    if (first < 0xe0) {
        return 2;
    }
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ||
        !continues(at + 2)) {
        return 0;
    }
    return first < 0xf0 ? 3 : continues(at + 3) ? 4 : 0;
}

static char *put_character(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* The four hexadecimal digits at `at`; above 0xffff: they are none. */
static unsigned read_unit(const char *at)
{
    unsigned unit = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = at[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return 0x10000;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/* "\u" and its digits, the second half of a pair too. */
static bool read_code(struct json_reader *reader, char **from, char **to)
{
    const char *at = *from;
    unsigned code = read_unit(at + 2), low;
    if (code == 0 || code > 0xffff || (code >= 0xdc00 && code <= 0xdfff)) {
        return refuse_text(reader, "expected the four digits of a character other than U+0000");
    }
    *from += CODE_LENGTH;
    if (code >= 0xd800 && code <= 0xdbff) {
        at += CODE_LENGTH;
        low = at[0] == '\\' && at[1] == 'u' ? read_unit(at + 2) : 0;
        if (low < 0xdc00 || low > 0xdfff) {
            return refuse_text(reader, "expected the second half of a surrogate pair");
        }
        *from += CODE_LENGTH;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *to = put_character(*to, code);
    return true;
}

static bool read_escape(struct json_reader *reader, char **from, char **to)
{
    static const char codes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if ((*from)[1] == 'u') {
        return read_code(reader, from, to);
    }
    const char *code = (*from)[1] ? strchr(codes, (*from)[1]) : NULL;
    if (!code) {
        return refuse_text(reader, "expected a character that may follow \\");
    }
    *(*to)++ = means[code - codes];
    *from += 2;
    return true;
}

/* Characters that are no ASCII, escapes, and what may not be in a string. */
static bool read_special(struct json_reader *reader, char **from, char **to)
{
    if (**from == '\\') {
        return read_escape(reader, from, to);
    }
    if ((unsigned char)**from < ' ') {
        return refuse_text(reader, "expected the end of the string on this line");
    }
    size_t bytes = character_bytes(*from);
    memmove(*to, *from, bytes);
    *from += bytes;
    *to += bytes;
    return bytes > 0 || refuse_text(reader, "expected UTF-8");
}

static bool read_string(struct json_reader *reader)
{
    char *begin = reader->at + 1, *from = begin, *to = begin;
    while (*from != '"') {
        unsigned char c = (unsigned char)*from;
        if (c >= ' ' && c < 0x80 && c != '\\') {
            *to++ = *from++;
        } else if (!read_special(reader, &from, &to)) {
            reader->at = from;
            return false;
        }
    }
    *to = '\0';
    reader->at = from + 1;
    uint32_t self = add_value(reader, PROFILE_JSON_STRING, begin);
    if (self == UINT32_MAX) {
        return false;
    }
    reader->values[self].count = (uint32_t)(to - begin);
    return true;
}

/* -- numbers and words -- */

static double number_at(const char *text)
{
    /* The program's own locale may have a comma. This one is there without an allocation. */
    return strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static char *skip_digits(char *at)
{
    while (*at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* The fraction and the exponent behind `at`, where there are any; NULL: they have no digits. */
static char *skip_real(char *at, bool *large)
{
    if (*at == '.') {
        char *digits = at + 1;
        at = skip_digits(digits);
        if (at == digits) {
            return NULL;
        }
    }
    if (*at == 'e' || *at == 'E') {
        char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
        at = skip_digits(digits);
        *large = at - digits > SAFE_EXPONENT_DIGITS;
        return at > digits ? at : NULL;
    }
    return at;
}

static bool fits_integer(const char *text)
{
    errno = 0;
    (void)strtoll(text, NULL, 10);
    return errno == 0;
}

static bool read_number(struct json_reader *reader)
{
    char *begin = reader->at, *digits = begin + (*begin == '-'), *end = skip_digits(digits);
    bool large = false;
    if (end == digits || (*digits == '0' && end > digits + 1)) {
        return refuse_text(reader, "expected a number without leading zeros");
    }
    char *real = skip_real(end, &large);
    if (!real) {
        return refuse_text(reader, "expected digits in the number's fraction and exponent");
    }
    bool whole = real == end;
    if (whole && end - digits > SAFE_DIGITS && !fits_integer(begin)) {
        return refuse_text(reader, "expected an integer of at most 64 bits");
    }
    if (!whole && (large || real - begin > SAFE_LENGTH) && !isfinite(number_at(begin))) {
        return refuse_text(reader, "expected a number below 1.8e308");
    }
    reader->at = real;
    return add_value(reader, whole ? PROFILE_JSON_INTEGER : PROFILE_JSON_REAL, begin) != UINT32_MAX;
}

static bool read_word(struct json_reader *reader)
{
    static const struct {
        const char *text;
        enum profile_json_type type;
    } words[] = {
        {"true", PROFILE_JSON_TRUE}, {"false", PROFILE_JSON_FALSE}, {"null", PROFILE_JSON_NULL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].text);
        if (strncmp(reader->at, words[i].text, length) == 0) {
            reader->at += length;
            return add_value(reader, words[i].type, words[i].text) != UINT32_MAX;
        }
    }
    return refuse_text(reader, "expected a value");
}

/* -- objects and arrays -- */

static bool read_value(struct json_reader *reader, unsigned depth);

static bool read_key(struct json_reader *reader)
{
    if (*reader->at != '"') {
        return refuse_text(reader, "expected a key in quotes");
    }
    if (!read_string(reader)) {
        return false;
    }
    skip_blanks(reader);
    if (*reader->at != ':') {
        return refuse_text(reader, "expected ':' after the key");
    }
    reader->at++;
    return true;
}

static bool read_items(struct json_reader *reader, bool keys, unsigned depth, uint32_t *count)
{
    char close = keys ? '}' : ']';
    reader->at++;
    skip_blanks(reader);
    for (bool more = *reader->at != close; more; more = *reader->at == ',') {
        reader->at += *count > 0;
        skip_blanks(reader);
        if ((keys && !read_key(reader)) || !read_value(reader, depth + 1)) {
            return false;
        }
        skip_blanks(reader);
        ++*count;
    }
    if (*reader->at != close) {
        return refuse_text(reader, keys ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    reader->at++;
    return true;
}

static bool read_value(struct json_reader *reader, unsigned depth)
{
    skip_blanks(reader);
    bool keys = *reader->at == '{';
    if (*reader->at == '"') {
        return read_string(reader);
    }
    if (*reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9')) {
        return read_number(reader);
    }
    if (!keys && *reader->at != '[') {
        return read_word(reader);
    }
    if (depth == JSON_DEPTH) {
        return refuse_text(reader, "expected no more than 64 levels");
    }
    uint32_t count = 0,
             self = add_value(reader, keys ? PROFILE_JSON_OBJECT : PROFILE_JSON_ARRAY, "");
    if (self == UINT32_MAX || !read_items(reader, keys, depth, &count)) {
        return false;
    }
    reader->values[self].count = count;
    reader->values[self].size = reader->used - self;
    return true;
}

/* -- the whole -- */

static int say_error(const struct json_reader *reader, const char *name, struct servet_error *error)
{
    if (!reader->wrong) {
        return profile_error(error, -ENOMEM, "%s: %s", name, strerrordesc_np(ENOMEM));
    }
    return profile_error(error, -EINVAL, "%s:%zu:%zu: not JSON: %s", name, reader->line,
                         (size_t)(reader->at - reader->line_start) + 1, reader->wrong);
}

int profile_json_read(char *text, size_t length, const char *name, struct profile_json **out,
                      struct servet_error *error)
{
    struct json_reader reader = {.line = 1, .at = text, .line_start = text};
    *out = NULL;
    if (length >= UINT32_MAX) {
        refuse_text(&reader, "expected less than 4 GiB");
        return say_error(&reader, name, error);
    }
    if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
        reader.at += strlen(BYTE_ORDER_MARK);
        reader.line_start = reader.at;
    }
    reader.room = (uint32_t)(length / BYTES_PER_VALUE) + 1;
    reader.values = malloc(reader.room * sizeof *reader.values);
    bool taken = reader.values && read_value(&reader, 0);
    if (taken) {
        skip_blanks(&reader);
        taken = reader.at == text + length || refuse_text(&reader, "expected the end of the text");
    }
    if (!taken) {
        free(reader.values);
        return say_error(&reader, name, error);
    }
    *out = reader.values;
    return 0;
}

const struct profile_json *profile_json_get(const struct profile_json *object, const char *key,
                                            bool *twice)
{
    const struct profile_json *found = NULL, *at = object + 1;
    *twice = false;
    for (size_t i = 0; i < object->count; i++) {
        if (strcmp(at->text, key) == 0) {
            *twice = found != NULL;
            found = at + 1;
        }
        at = profile_json_next(at + 1);
    }
    return found;
}

int64_t profile_json_integer(const struct profile_json *value)
{
    return strtoll(value->text, NULL, 10);
}

double profile_json_number(const struct profile_json *value)
{
    return number_at(value->text);
}

/* -- back to text -- */

#define LINE_WIDTH 120   /* columns: a value that fits is kept on one line */
#define INDENT_COLUMNS 2 /* per nesting level */
/* 15 digits give back every decimal number a person wrote, 17 every double (C17 5.2.4.2.2, DBL_DIG,
 * DBL_DECIMAL_DIG). */
#define REAL_DIGITS_FEWEST 15
#define REAL_DIGITS_MOST 17

void profile_json_put(struct profile_json_writer *to, const char *text, size_t length)
{
    if (to->out) {
        memcpy(to->out + to->used, text, length);
    }
    to->used += length;
}

static void put(struct profile_json_writer *to, const char *text)
{
    profile_json_put(to, text, strlen(text));
}

void profile_json_put_string(struct profile_json_writer *to, const char *text)
{
    char code[8];
    put(to, "\"");
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ') {
            snprintf(code, sizeof code, "\\u%04x", (unsigned)*at);
            put(to, code);
            continue;
        }
        if (*at == '"' || *at == '\\') {
            put(to, "\\");
        }
        profile_json_put(to, at, 1);
    }
    put(to, "\"");
}

/* With a point or exponent whatever the locale, the exponent without '+' and leading zeros. */
static void put_digits(struct profile_json_writer *to, const char *text)
{
    const char *exponent = strchr(text, 'e');
    size_t length = exponent ? (size_t)(exponent - text) : strlen(text);
    size_t whole = strspn(text, "-0123456789");
    profile_json_put(to, text, whole);
    if (whole < length) {
        put(to, ".");
        profile_json_put(to, text + whole + 1, length - whole - 1);
    }
    if (exponent) {
        put(to, exponent[1] == '-' ? "e-" : "e");
        put(to, exponent + 2 + strspn(exponent + 2, "0"));
    } else if (whole == length) {
        put(to, ".0");
    }
}

void profile_json_put_real(struct profile_json_writer *to, double value)
{
    char text[40];
    int digits = to->longest ? REAL_DIGITS_MOST : REAL_DIGITS_FEWEST;
    do {
        snprintf(text, sizeof text, "%.*g", digits, value);
    } while (strtod(text, NULL) != value && digits++ < REAL_DIGITS_MOST);
    put_digits(to, text);
}

static void put_value(struct profile_json_writer *to, const struct profile_json *value,
                      size_t depth);

/* Is the text on one line, with all digits of its numbers, short enough for this line? */
static bool fits_line(const struct profile_json_writer *to, const struct profile_json *value)
{
    struct profile_json_writer counted = {.longest = true};
    put_value(&counted, value, 0);
    return to->used - to->line_start + counted.used < LINE_WIDTH;
}

static void new_line(struct profile_json_writer *to, size_t depth)
{
    put(to, "\n");
    to->line_start = to->used;
    for (size_t i = 0; i < depth * INDENT_COLUMNS; i++) {
        put(to, " ");
    }
}

static void put_items(struct profile_json_writer *to, const struct profile_json *value,
                      size_t depth)
{
    bool keys = value->type == PROFILE_JSON_OBJECT;
    bool wide = to->lines && ((keys && depth == 0) || !fits_line(to, value));
    const struct profile_json *item = value + 1;
    put(to, keys ? "{" : "[");
    for (size_t i = 0; i < value->count; i++) {
        put(to, i == 0 ? "" : wide ? "," : ", ");
        if (wide) {
            new_line(to, depth + 1);
        }
        if (keys) {
            profile_json_put_string(to, item++->text);
            put(to, ": ");
        }
        put_value(to, item, depth + 1);
        item = profile_json_next(item);
    }
    if (wide) {
        new_line(to, depth);
    }
    put(to, keys ? "}" : "]");
}

static void put_value(struct profile_json_writer *to, const struct profile_json *value,
                      size_t depth)
{
    switch (value->type) {
    case PROFILE_JSON_STRING:
        profile_json_put_string(to, value->text);
        break;
    case PROFILE_JSON_OBJECT:
    case PROFILE_JSON_ARRAY:
        put_items(to, value, depth);
        break;
    case PROFILE_JSON_REAL:
        if (to->longest) {
            profile_json_put_real(to, profile_json_number(value));
            break;
        }
        /* fall through */
    case PROFILE_JSON_INTEGER:
        profile_json_put(to, value->text, strspn(value->text, "+-.0123456789eE"));
        break;
    default:
        put(to, value->text);
    }
}

char *profile_json_text(const struct profile_json *value, bool lines)
{
    struct profile_json_writer to = {.lines = lines};
    put_value(&to, value, 0);
    to = (struct profile_json_writer){.lines = lines, .out = malloc(to.used + 2)};
    if (to.out) {
        put_value(&to, value, 0);
        strcpy(to.out + to.used, lines ? "\n" : "");
    }
    return to.out;
}
