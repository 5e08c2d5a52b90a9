/*
 * JSON as text. The host sends valid JSON, but an author may pass any text.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wattle.h"

void *wattle_allocate(size_t count, size_t size) {
    void *memory = calloc(count == 0 ? 1 : count, size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

const char *wattle_copy(const char *start, size_t length) {
    char *text = wattle_allocate(length + 1, 1);
    memcpy(text, start, length);
    return text;
}

const char *wattle_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return "";
    }
    char *text = wattle_allocate((size_t)length + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

const char *wattle_skip_blank(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') {
        at += 1;
    }
    return at;
}

/* Returns the end of the string that begins here; NULL if it has none. */
static const char *skip_string(const char *at) {
    for (at += 1; *at != '"'; at += 1) {
        if (*at == '\\') {
            at += 1;
        }
        if (*at == '\0') {
            return NULL;
        }
    }
    return at + 1;
}

/* Returns the end of the object or array that begins here; NULL if it has none. */
static const char *skip_nested(const char *at) {
    size_t depth = 0;
    while (at != NULL && *at != '\0') {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        at += 1;
        if (depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* Returns the end of the value that begins here; NULL if it has none. */
static const char *skip_value(const char *at) {
    if (*at == '"') {
        return skip_string(at);
    }
    if (*at == '{' || *at == '[') {
        return skip_nested(at);
    }
    size_t length = strcspn(at, ",:]} \t\n\r");
    return length == 0 ? NULL : at + length;
}

/* Reads four hexadecimal digits; 0 if they are none. */
static uint32_t read_hex(const char *at) {
    uint32_t number = 0;
    for (size_t index = 0; index < 4; index += 1) {
        char digit = at[index];
        uint32_t value = digit >= '0' && digit <= '9'   ? (uint32_t)(digit - '0')
                         : digit >= 'a' && digit <= 'f' ? (uint32_t)(digit - 'a') + 10
                         : digit >= 'A' && digit <= 'F' ? (uint32_t)(digit - 'A') + 10
                                                        : 16;
        if (value == 16) {
            return 0;
        }
        number = number * 16 + value;
    }
    return number;
}

static char *write_utf8(char *to, uint32_t scalar) {
    if (scalar < 0x80) {
        *to++ = (char)scalar;
    } else if (scalar < 0x800) {
        *to++ = (char)(0xC0 | (scalar >> 6));
        *to++ = (char)(0x80 | (scalar & 0x3F));
    } else if (scalar < 0x10000) {
        *to++ = (char)(0xE0 | (scalar >> 12));
        *to++ = (char)(0x80 | ((scalar >> 6) & 0x3F));
        *to++ = (char)(0x80 | (scalar & 0x3F));
    } else {
        *to++ = (char)(0xF0 | (scalar >> 18));
        *to++ = (char)(0x80 | ((scalar >> 12) & 0x3F));
        *to++ = (char)(0x80 | ((scalar >> 6) & 0x3F));
        *to++ = (char)(0x80 | (scalar & 0x3F));
    }
    return to;
}

/* Decodes `\uXXXX`, or two of them for one character. Returns 0 for a lone or bad one. */
static uint32_t read_escape(const char **at) {
    uint32_t scalar = read_hex(*at);
    if (scalar != 0) {
        *at += 4;
    }
    if (scalar < 0xD800 || scalar > 0xDFFF) {
        return scalar;
    }
    bool is_pair = scalar < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u';
    uint32_t low = is_pair ? read_hex(*at + 2) : 0;
    if (low < 0xDC00 || low > 0xDFFF) {
        return 0;
    }
    *at += 6;
    return 0x10000 + ((scalar - 0xD800) << 10) + (low - 0xDC00);
}

/*
 * Decodes the character of a JSON string that begins here, and moves behind it. Writes no more bytes
 * than it reads, at most four, and returns their number; 0 for a zero byte or a bad escape.
 */
static size_t read_character(const char **at, char *to) {
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    if (**at != '\\') {
        *to = **at;
        *at += 1;
        return 1;
    }
    char letter = (*at)[1];
    const char *known = strchr(from, letter);
    *at += 2;
    if (known != NULL) {
        *to = into[known - from];
        return 1;
    }
    uint32_t scalar = letter == 'u' ? read_escape(at) : 0;
    return scalar == 0 ? 0 : (size_t)(write_utf8(to, scalar) - to);
}

bool wattle_next(const char **at, wattle_piece *name, wattle_piece *value) {
    const char *here = wattle_skip_blank(*at);
    if (*here == ',') {
        here = wattle_skip_blank(here + 1);
    }
    if (name != NULL) {
        const char *end = *here == '"' ? skip_string(here) : NULL;
        if (end == NULL) {
            return false;
        }
        *name = (wattle_piece){here, (size_t)(end - here)};
        here = wattle_skip_blank(end);
        if (*here != ':') {
            return false;
        }
        here = wattle_skip_blank(here + 1);
    }
    const char *end = skip_value(here);
    if (end == NULL) {
        return false;
    }
    *value = (wattle_piece){here, (size_t)(end - here)};
    *at = end;
    return true;
}

/* Returns true if a JSON string, with its quotes, has this text. */
static bool has_text(wattle_piece string, const char *text) {
    const char *end = string.start + string.length - 1;
    for (const char *at = string.start + 1; at < end;) {
        char character[4];
        size_t length = read_character(&at, character);
        if (length == 0 || strncmp(character, text, length) != 0) {
            return false;
        }
        text += length;
    }
    return *text == '\0';
}

const char *wattle_field(const char *object, const char *name) {
    const char *at = object == NULL ? "" : wattle_skip_blank(object);
    wattle_piece known;
    wattle_piece value;
    if (*at != '{') {
        return NULL;
    }
    for (at += 1; wattle_next(&at, &known, &value);) {
        if (has_text(known, name)) {
            return wattle_copy(value.start, value.length);
        }
    }
    return NULL;
}

const char *wattle_item(const char *array, size_t index) {
    const char *at = array == NULL ? "" : wattle_skip_blank(array);
    wattle_piece value;
    if (*at != '[') {
        return NULL;
    }
    at += 1;
    for (size_t count = 0; wattle_next(&at, NULL, &value); count += 1) {
        if (count == index) {
            return wattle_copy(value.start, value.length);
        }
    }
    return NULL;
}

const char *wattle_next_item(const char **at) {
    const char *here = *at == NULL ? "" : wattle_skip_blank(*at);
    wattle_piece value;
    if (*here == '[') {
        here += 1;
    } else if (*here != ',') {
        return NULL;
    }
    if (!wattle_next(&here, NULL, &value)) {
        return NULL;
    }
    *at = here;
    return wattle_copy(value.start, value.length);
}

const char *wattle_string(const char *value) {
    const char *at = value == NULL ? "" : wattle_skip_blank(value);
    const char *end = *at == '"' ? skip_string(at) : NULL;
    if (end == NULL) {
        return NULL;
    }
    /* A decoded string is never longer than its JSON. */
    char *text = wattle_allocate((size_t)(end - at), 1);
    char *to = text;
    for (at += 1; at < end - 1;) {
        size_t length = read_character(&at, to);
        if (length == 0) {
            return NULL;
        }
        to += length;
    }
    return text;
}

bool wattle_number(const char *value, double *number) {
    const char *at = value == NULL ? "" : wattle_skip_blank(value);
    if (*at != '-' && (*at < '0' || *at > '9')) {
        return false;
    }
    char *end;
    double found = strtod(at, &end);
    if (end == at || *wattle_skip_blank(end) != '\0' || !isfinite(found)) {
        return false;
    }
    *number = found;
    return true;
}

bool wattle_is_true(const char *value) {
    return value != NULL && strncmp(wattle_skip_blank(value), "true", 4) == 0;
}

const char *wattle_quote(const char *text) {
    /* The longest form of a character has six letters. */
    char *quoted = wattle_allocate(strlen(text) * 6 + 3, 1);
    char *to = quoted;
    *to++ = '"';
    for (const char *at = text; *at != '\0'; at += 1) {
        if (*at == '"' || *at == '\\') {
            *to++ = '\\';
            *to++ = *at;
        } else if ((unsigned char)*at < 0x20) {
            to += sprintf(to, "\\u%04x", (unsigned)*at);
        } else {
            *to++ = *at;
        }
    }
    *to = '"';
    return quoted;
}
