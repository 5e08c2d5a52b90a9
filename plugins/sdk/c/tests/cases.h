/*
 * What the tests of the C SDK share.
 */
#ifndef CASES_H
#define CASES_H

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: `%s` does not hold\n", __FILE__, __LINE__, #condition);        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Number of bytes that were allocated. The sources are compiled with `-Dcalloc=counted_calloc`. */
extern size_t allocated;

/* The cases of `json_cases.c`. */
void values_of_json_are_read(void);
void names_with_a_zero_byte_are_passed_over(void);
void arrays_are_read_item_by_item(void);
void long_lists_take_linear_memory(void);
void broken_json_is_refused(void);

#endif
