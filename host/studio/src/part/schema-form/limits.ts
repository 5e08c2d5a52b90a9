// Limits of forms. A schema comes from a plugin, a model or an MCP server. What exceeds a limit is
// edited as JSON, and the host checks it.

/** Levels of a schema whose references are resolved. A form of more levels cannot be read. */
export const SCHEMA_DEPTH = 32;

/** Subschemas of a schema whose references are resolved, which bounds the time of each check. */
export const SCHEMA_PARTS = 5_000;

/** Fields of a form. A browser renders more of them with a noticeable delay at each key. */
export const FORM_FIELDS = 200;

/** Items of a list that the form shows, each with its own fields. */
export const LIST_ITEMS = 50;

/** Values that a choice lists. More of them are found by a text. */
export const LISTED_VALUES = 50;

/** Alternatives that are shown side by side. More of them are a list that opens. */
export const RADIO_BUTTONS = 8;

/** Characters of a label or of the description of a value. */
export const LABEL_CHARS = 200;

/** Characters of a description. */
export const DESCRIPTION_CHARS = 1_000;

/** Characters of a text with a format whose format is checked. */
export const FORMAT_CHARS = 1_000;
