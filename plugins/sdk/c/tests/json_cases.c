/*
 * Cases of the functions for JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "wattle.h"

void values_of_json_are_read(void) {
    const char *object = " { \"a\" : [1, {\"b\": \"]}\"}, null] , \"c\\n\": -2.5e1, \"d\":true } ";
    CHECK(strcmp(wattle_field(object, "a"), "[1, {\"b\": \"]}\"}, null]") == 0);
    CHECK(strcmp(wattle_item(wattle_field(object, "a"), 1), "{\"b\": \"]}\"}") == 0);
    CHECK(wattle_item(wattle_field(object, "a"), 3) == NULL);
    double number;
    CHECK(wattle_number(wattle_field(object, "c\n"), &number) && number == -25.0);
    CHECK(wattle_is_true(wattle_field(object, "d")));
    CHECK(wattle_field(object, "e") == NULL && wattle_string(NULL) == NULL);
    CHECK(wattle_field("[]", "a") == NULL && wattle_item("{}", 0) == NULL);
    CHECK(strcmp(wattle_string("\"\\u00e9\\ud83d\\ude00\\\"\\/\\t\""), "\u00e9\U0001f600\"/\t") == 0);
    CHECK(strcmp(wattle_quote("a\"\\\n\x01"), "\"a\\\"\\\\\\u000a\\u0001\"") == 0);
}

/* A name that C cannot hold hides no other field. */
void names_with_a_zero_byte_are_passed_over(void) {
    const char *object = "{\"a\\u0000\":1,\"\\ud800\":2,\"a\":3}";
    CHECK(strcmp(wattle_field(object, "a"), "3") == 0);
    CHECK(wattle_field(object, "") == NULL);
}

void arrays_are_read_item_by_item(void) {
    const char *array = " [ 1 , [2, \"]\"] , {\"a\":[3]},null ] ";
    static const char *const items[] = {"1", "[2, \"]\"]", "{\"a\":[3]}", "null"};
    const char *at = array;
    for (size_t index = 0; index < WATTLE_COUNT(items); index += 1) {
        CHECK(strcmp(wattle_item(array, index), items[index]) == 0);
        CHECK(strcmp(wattle_next_item(&at), items[index]) == 0);
    }
    CHECK(wattle_next_item(&at) == NULL && wattle_next_item(&at) == NULL);
    static const char *const empty[] = {"[]", "[ ]", "", "{}", "1", "\"[1]\"", NULL};
    for (size_t index = 0; index < WATTLE_COUNT(empty); index += 1) {
        at = empty[index];
        CHECK(wattle_next_item(&at) == NULL);
    }
}

/* Nothing is freed, so a copy of every value before the wanted one would take quadratic memory. */
void long_lists_take_linear_memory(void) {
    enum { COUNT = 2000, ROOM = 100 };
    char *array = malloc(COUNT * ROOM);
    char *object = malloc(COUNT * ROOM);
    char *of_array = array;
    char *of_object = object;
    for (int index = 0; index < COUNT; index += 1) {
        static const char value[] = "{\"role\":\"user\",\"content\":\"How long is this list?\"}";
        of_array += sprintf(of_array, "%c%s", index == 0 ? '[' : ',', value);
        of_object += sprintf(of_object, "%c\"%d\":%s", index == 0 ? '{' : ',', index, value);
    }
    strcpy(of_array, "]");
    strcpy(of_object, "}");
    size_t permitted = 4 * strlen(array);
    size_t count = 0;
    allocated = 0;
    for (const char *at = array; wattle_next_item(&at) != NULL;) {
        count += 1;
    }
    CHECK(count == COUNT && allocated <= permitted);
    allocated = 0;
    for (count = 0; wattle_item(array, count) != NULL;) {
        count += 1;
    }
    CHECK(count == COUNT && allocated <= permitted);
    allocated = 0;
    CHECK(wattle_field(object, "1999") != NULL && wattle_field(object, "2000") == NULL);
    CHECK(allocated <= ROOM);
}

/* Text that is no JSON is refused and not read beyond its end. */
void broken_json_is_refused(void) {
    static const char *const broken[] = {
        "", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[", "{\"a\":\"\\", "{a:1}", "{\"a\" 1}", "{\"a\":}",
    };
    for (size_t index = 0; index < WATTLE_COUNT(broken); index += 1) {
        CHECK(wattle_field(broken[index], "a") == NULL);
    }
    static const char *const strings[] = {
        "\"", "\"\\\"", "\"\\x\"", "\"\\u00\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\u0000\"", "1",
    };
    for (size_t index = 0; index < WATTLE_COUNT(strings); index += 1) {
        CHECK(wattle_string(strings[index]) == NULL);
    }
    double number;
    CHECK(!wattle_number("1x", &number) && !wattle_number("\"1\"", &number));
    CHECK(!wattle_number("1e999", &number) && !wattle_number("nan", &number));
}
