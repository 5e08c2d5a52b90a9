// Responses of web handlers to failed requests, and parameters of lists.

export { PAGE_BYTES, type PageQuery } from "./page.ts";
export { ErrorDocument, type ErrorForm, refuse, respond } from "./respond.ts";
export { status } from "./status.ts";
