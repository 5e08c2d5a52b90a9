/*
 * The conformance plugin in C. `../src/lib.rs` is the same plugin in Rust.
 */
#include "conformance.h"

#include <ctype.h>
#include <string.h>

#include "wattle.h"

const char *with_item(const char *items, const char *item) {
    return *items == '\0' ? item : wattle_format("%s,%s", items, item);
}

const char *string_field(const char *object, const char *name) {
    return wattle_string(wattle_field(object, name));
}

int count_of(const char *text) {
    int words = 0;
    for (bool in_word = false; *text != '\0'; text += 1) {
        bool is_letter = !isspace((unsigned char)*text);
        words += is_letter && !in_word;
        in_word = is_letter;
    }
    return words;
}

static long long number_of(const char *value) {
    double number = 0;
    wattle_number(value, &number);
    return (long long)number;
}

/* Nodes that need little of the host. */

static const char *echo(const wattle_context *context, const char *input) {
    (void)context;
    return wattle_format("{\"value\":%s}", wattle_field(input, "value"));
}

static bool has(const char *list, const char *text) {
    for (const char *item; (item = wattle_next_item(&list)) != NULL;) {
        if (strcmp(wattle_string(item), text) == 0) {
            return true;
        }
    }
    return false;
}

static const char *keep(const wattle_context *context, const char *input) {
    const char *list = wattle_field(input, "words");
    const char *ignore = wattle_field(context->config, "ignore");
    const char *kept = "";
    for (const char *item; (item = wattle_next_item(&list)) != NULL;) {
        if (!has(ignore, wattle_string(item))) {
            kept = with_item(kept, item);
        }
    }
    return wattle_format("{\"kept\":[%s]}", kept);
}

static const char *approve(const wattle_context *context, const char *input) {
    (void)context;
    const char *question = wattle_format("{\"ticket\":%s}", wattle_field(input, "text"));
    const char *answer = wattle_ask(question, "{\"type\":\"boolean\"}");
    if (answer == NULL) {
        return NULL;
    }
    return wattle_format("{\"decision\":\"%s\"}", wattle_is_true(answer) ? "call" : "ignore");
}

static const char *fail(const wattle_context *context, const char *input) {
    (void)context;
    const char *code = string_field(input, "code");
    const char *message = string_field(input, "message");
    bool is_retryable = wattle_is_true(wattle_field(input, "retryable"));
    (is_retryable ? wattle_fail_retryable : wattle_fail)(code, message);
    wattle_details(wattle_field(input, "details"));
    return NULL;
}

/* Nodes that choose what runs next. */

static const char *spread(const wattle_context *context, const char *input) {
    (void)context;
    const char *numbers = wattle_field(input, "numbers");
    for (const char *number; (number = wattle_next_item(&numbers)) != NULL;) {
        wattle_send("square", wattle_format("{\"number\":%s}", number));
    }
    return "{}";
}

static const char *square(const wattle_context *context, const char *input) {
    (void)context;
    long long number = number_of(wattle_field(input, "number"));
    return wattle_format("{\"squares\":[%lld]}", number * number);
}

static const char *total(const wattle_context *context, const char *input) {
    (void)context;
    const char *squares = wattle_field(input, "squares");
    long long sum = 0;
    for (const char *square; (square = wattle_next_item(&squares)) != NULL;) {
        sum += number_of(square);
    }
    wattle_overwrite("squares");
    wattle_goto(WATTLE_END);
    return wattle_format("{\"squares\":[%lld]}", sum);
}

/* Tools. */

static wattle_output count_words(const wattle_tool_context *context, const char *arguments) {
    (void)context;
    return wattle_json(wattle_format("{\"words\":%d}", count_of(string_field(arguments, "text"))));
}

#define DECISION                                                                                   \
    "{\"type\":\"object\",\"properties\":{\"approved\":{\"type\":\"boolean\","                    \
    "\"description\":\"Whether the person agrees.\"}},\"required\":[\"approved\"]}"

static wattle_output pay(const wattle_tool_context *context, const char *arguments) {
    (void)context;
    const char *amount = wattle_field(arguments, "amount");
    const char *answer = wattle_ask(wattle_format("{\"amount\":%s}", amount), DECISION);
    if (answer == NULL || !wattle_is_true(wattle_field(answer, "approved"))) {
        return wattle_error("the payment was not approved");
    }
    wattle_update("paid", amount);
    return wattle_text("paid");
}

/* The reducer. */

static const char *larger(const char *current, const char *const *updates, size_t count) {
    long long kept = number_of(current == NULL ? updates[0] : current);
    for (size_t index = 0; index < count; index += 1) {
        long long update = number_of(updates[index]);
        kept = update > kept ? update : kept;
    }
    return wattle_format("%lld", kept);
}

/* The table. */

#define OBJECT(properties, required)                                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define FIELD(name, type, description)                                                             \
    "\"" name "\":{\"type\":\"" type "\",\"description\":\"" description "\"}"
#define LIST(name, items, description)                                                             \
    "\"" name "\":{\"type\":\"array\",\"items\":" items ",\"description\":\"" description "\"}"
#define ANY(name, description) "\"" name "\":{\"description\":\"" description "\"}"
#define TEXT OBJECT(FIELD("text", "string", "The text."), "\"text\"")
#define STRING "{\"type\":\"string\"}"
#define INTEGER "{\"type\":\"integer\"}"

static const wattle_node nodes[] = {
    {
        .name = "read_settings",
        .doc = "Reads the settings of the app.",
        .output_schema = OBJECT(
            FIELD("color", "string", "A setting.") ","
            FIELD("language", "string", "A setting with a default.") ","
            FIELD("missing", "string", "Code of the failure for a setting that is not set.") ","
            ANY("all", "All settings."),
            "\"color\",\"language\",\"missing\",\"all\""
        ),
        .run = read_settings,
    },
    {
        .name = "draw",
        .doc = "Generates a picture and reads it.",
        .input_schema = OBJECT(FIELD("prompt", "string", "The prompt."), "\"prompt\""),
        .output_schema = OBJECT(
            ANY("picture", "Type, size and bytes of the picture.") ","
            FIELD("is_linked", "boolean", "Whether the picture comes with the link of its blob.") ","
            FIELD("refused", "string", "Code of the failure for a reference to no blob."),
            "\"picture\",\"is_linked\",\"refused\""
        ),
        .run = draw,
    },
    {
        .name = "delegate",
        .doc = "Runs three graphs: one that completes, one that fails, and one that asks.",
        .input_schema = TEXT,
        .output_schema = OBJECT(
            FIELD("outcomes", "array", "States of graphs, and codes of failures.") ","
            FIELD("refused", "string", "Code of the failure for the list of threads."),
            "\"outcomes\",\"refused\""
        ),
        .run = delegate,
    },
    {
        .name = "whose",
        .doc = "Names the tenant of the run.",
        .output_schema = OBJECT(
            FIELD("tenant", "string", "The tenant.") ","
            FIELD("refused", "string", "Code of the failure for a route of the tenant."),
            "\"tenant\",\"refused\""
        ),
        .run = whose,
    },
    {
        .name = "words",
        .doc = "Counts the words of a text.",
        .input_schema = TEXT,
        .output_schema = OBJECT(FIELD("words", "integer", "Number of words."), "\"words\""),
        .run = words,
    },
    {
        .name = "echo",
        .doc = "Writes the value that it reads.",
        .input_schema = OBJECT(ANY("value", "Any value."), "\"value\""),
        .output_schema = OBJECT(ANY("value", "Any value."), "\"value\""),
        .run = echo,
    },
    {
        .name = "keep",
        .doc = "Keeps the words that matter.",
        .input_schema = OBJECT(LIST("words", STRING, "The words."), "\"words\""),
        .output_schema = OBJECT(LIST("kept", STRING, "The words that matter."), "\"kept\""),
        .config_schema =
            "{\"type\":\"object\",\"properties\":{\"ignore\":{\"type\":\"array\",\"items\":" STRING
            ",\"description\":\"Words to leave out.\",\"default\":[]}},"
            "\"additionalProperties\":false}",
        .run = keep,
    },
    {
        .name = "approve",
        .doc = "Asks whether a text may be published.",
        .input_schema = TEXT,
        .output_schema = OBJECT(FIELD("decision", "string", "`call` or `ignore`."), "\"decision\""),
        .run = approve,
    },
    {
        .name = "ask",
        .doc = "Asks a model for a text and for a document.",
        .input_schema = OBJECT(FIELD("question", "string", "The question."), "\"question\""),
        .output_schema = OBJECT(
            FIELD("answer", "string", "The text.") ","
            FIELD("number", "integer", "The number of the document."),
            "\"answer\",\"number\""
        ),
        .run = ask,
    },
    {
        .name = "stream",
        .doc = "Reads a completion in pieces and emits them.",
        .input_schema = OBJECT(FIELD("question", "string", "The question."), "\"question\""),
        .output_schema = OBJECT(
            FIELD("streamed", "string", "The text of the pieces.") ","
            FIELD("answer", "string", "The text of the completion."),
            "\"streamed\",\"answer\""
        ),
        .run = stream,
    },
    {
        .name = "fetch",
        .doc = "Sends a request.",
        .input_schema = OBJECT(FIELD("url", "string", "The URL."), "\"url\""),
        .output_schema = OBJECT(
            FIELD("status", "integer", "The status of the response.") ","
            FIELD("call", "integer", "The number in the response."),
            "\"status\",\"call\""
        ),
        .run = fetch,
    },
    {
        .name = "batch",
        .doc = "Calls models and sends requests in batches, whose first requests are invalid.",
        .input_schema = OBJECT(
            FIELD("question", "string", "The question.") ","
            FIELD("url", "string", "The URL."),
            "\"question\",\"url\""
        ),
        .output_schema = OBJECT(
            FIELD("answers", "array", "Texts and failures.") ","
            FIELD("responses", "array", "Bodies and failures."),
            "\"answers\",\"responses\""
        ),
        .run = batch,
    },
    {
        .name = "book",
        .doc = "Writes a row in a transaction and reads it.",
        .input_schema = OBJECT(FIELD("name", "string", "The name."), "\"name\""),
        .output_schema = OBJECT(FIELD("rows", "array", "The row."), "\"rows\""),
        .run = book,
    },
    {
        .name = "remember",
        .doc = "Stores a document and bytes, and finds them.",
        .input_schema = OBJECT(FIELD("fact", "string", "The fact."), "\"fact\""),
        .output_schema = OBJECT(
            FIELD("found", "array", "The documents.") ","
            LIST("namespaces", "{\"type\":\"array\",\"items\":" STRING "}", "Namespaces with documents.") ","
            FIELD("bytes", "string", "The stored bytes as text.") ","
            FIELD("refused", "string", "Code of the failure for a namespace without a grant."),
            "\"found\",\"namespaces\",\"bytes\",\"refused\""
        ),
        .run = remember,
    },
    {
        .name = "both",
        .doc = "Calls tools at once: with arguments, with invalid ones, and one that does not exist.",
        .input_schema = TEXT,
        .output_schema = OBJECT(FIELD("results", "array", "Outputs and failures."), "\"results\""),
        .run = both,
    },
    {
        .name = "list_tools",
        .doc = "Lists the tools that the plugin may call.",
        .output_schema = OBJECT(FIELD("tools", "array", "The tools."), "\"tools\""),
        .run = list_tools,
    },
    {
        .name = "buy",
        .doc = "Calls a tool that asks a person.",
        .input_schema = OBJECT(FIELD("amount", "integer", "In cents."), "\"amount\""),
        .output_schema = OBJECT(FIELD("receipt", "string", "What the tool says."), "\"receipt\""),
        .run = buy,
    },
    {
        .name = "spread",
        .doc = "Sends a task for each number.",
        .input_schema = OBJECT(LIST("numbers", INTEGER, "The numbers."), "\"numbers\""),
        .run = spread,
    },
    {
        .name = "square",
        .doc = "Squares a number.",
        .input_schema = OBJECT(FIELD("number", "integer", "The number."), "\"number\""),
        .output_schema = OBJECT(LIST("squares", INTEGER, "The square."), "\"squares\""),
        .run = square,
    },
    {
        .name = "total",
        .doc = "Replaces the squares by their sum and ends.",
        .input_schema = OBJECT(LIST("squares", INTEGER, "The squares."), "\"squares\""),
        .output_schema = OBJECT(LIST("squares", INTEGER, "Their sum."), "\"squares\""),
        .run = total,
    },
    {
        .name = "fail",
        .doc = "Fails as asked.",
        .input_schema = OBJECT(
            FIELD("code", "string", "The code.") ","
            FIELD("message", "string", "The message.") ","
            FIELD("retryable", "boolean", "Whether another attempt may help.") ","
            ANY("details", "The details."),
            "\"code\",\"message\",\"retryable\",\"details\""
        ),
        .run = fail,
    },
    {
        .name = "measure",
        .doc = "Reads the clock and random bytes, and asks for the bytes.",
        .output_schema = OBJECT(
            FIELD("same", "boolean", "Whether the bytes are those before the question.") ","
            FIELD("color", "string", "A setting."),
            "\"same\",\"color\""
        ),
        .run = measure,
    },
};

static const wattle_tool tools[] = {
    {
        .name = "count_words",
        .description = "Counts the words of a text.",
        .arguments_schema = TEXT,
        .read_only = true,
        .call = count_words,
    },
    {
        .name = "pay",
        .description = "Pays an amount, if a person approves.",
        .arguments_schema = OBJECT(
            "\"amount\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"In cents.\"}",
            "\"amount\""
        ),
        .call = pay,
    },
};

static const wattle_reducer reducers[] = {
    {.name = "max", .doc = "Keeps the larger number.", .reduce = larger},
};

/* An operation with a parameter of the path. `body` is empty or ends with a comma. */
#define OPERATION(summary, parameter, body)                                                        \
    "{\"summary\":\"" summary "\",\"parameters\":[{\"name\":\"" parameter "\",\"in\":\"path\","    \
    "\"required\":true,\"schema\":" STRING "}]," body                                              \
    "\"responses\":{\"default\":{\"description\":\"Response\"}}}"

#define ORDER                                                                                      \
    "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":"            \
    "{\"$ref\":\"#/components/schemas/Order\"}}}},"

static const wattle_handler handlers[] = {
    {
        .method = "POST",
        .path = "/orders/{shop}",
        .operation = OPERATION("Counts the words of an order.", "shop", ORDER),
        .schemas = "{\"Order\":" TEXT "}",
        .handle = order,
    },
    {
        .method = "GET",
        .path = "/orders/{shop}",
        .operation = OPERATION("Says how urgent an order is.", "shop", ""),
        .handle = urgency,
    },
    {
        .method = "GET",
        .path = "/orders/{shop}/events",
        .operation = OPERATION("Streams the events of an order.", "shop", ""),
        .handle = follow,
    },
    {
        .method = "PUT",
        .path = "/models/{route}",
        .operation = OPERATION(
            "Gives the tenant a model of its own, and takes it back.", "route", ""
        ),
        .handle = own_model,
    },
};

WATTLE_MANIFEST("llm = [\"chat\"]\n");

const wattle_plugin wattle_exports = {
    .nodes = nodes,
    .nodes_count = WATTLE_COUNT(nodes),
    .tools = tools,
    .tools_count = WATTLE_COUNT(tools),
    .reducers = reducers,
    .reducers_count = WATTLE_COUNT(reducers),
    .handlers = handlers,
    .handlers_count = WATTLE_COUNT(handlers),
};
