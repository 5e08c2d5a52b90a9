// Responses to failed requests, in the form of the app.

import * as z from "zod/mini";
import { code, Failure } from "../failure.ts";
import * as log from "../log.ts";
import { withMetadata } from "../metadata.ts";
import type { Request } from "./request.ts";
import { Response } from "./response.ts";
import { status } from "./status.ts";

/**
 * The form in which an app reports failures to its clients: the body of the response, and its status.
 * The form of {@link ErrorDocument} is a common one.
 *
 * ```ts
 * import { Request, web } from "wattle-plugin";
 *
 * // The reason of a refused request, with a code for programs.
 * const REFUSAL: web.ErrorForm = {
 *   body: (_request, _status, { code, message }) => ({ code, message }),
 * };
 *
 * const request = new Request({ path: "/api/items/7" });
 * const refuse = () => {
 *   throw web.refuse(web.status.NOT_FOUND, "no item 7");
 * };
 * const response = web.respond(request, refuse, REFUSAL);
 * assert.equal(response.status, 404);
 * assert.deepEqual(response.jsonBody(), { code: "not-found", message: "no item 7" });
 * ```
 */
export interface ErrorForm {
  /** Creates the body of the response to a failed request. */
  body(request: Request<unknown>, status: number, failure: Failure): unknown;
  /**
   * Returns the status of the response; by default that of {@link Failure.withStatus}. A failure
   * without a status goes to the host, which responds with status 500.
   */
  status?(failure: Failure): number | undefined;
}

/** The reason of a refused request, for users: `{"error": "..."}`. */
export const ErrorDocument = withMetadata(z.object({ error: z.string() }), {
  id: "ErrorDocument",
  description: "The reason of a refused request, for users.",
});

/** The form of {@link ErrorDocument}. */
const DOCUMENT: ErrorForm = { body: (_request, _status, { message }) => ({ error: message }) };

/**
 * Responds to a request with the response that `work` returns. A failure with a status becomes a
 * response in a form, by default that of {@link ErrorDocument}. One with status 500 is logged, because
 * clients cannot act on it.
 *
 * ```ts
 * import { handler, Request, Response, web } from "wattle-plugin";
 * import * as z from "zod";
 *
 * const show = handler(
 *   "GET",
 *   "/api/items/{id}",
 *   { doc: "Returns an item.", returns: z.object({ id: z.int() }), error: web.ErrorDocument },
 *   (request) =>
 *     web.respond(request, () => {
 *       const id = request.param("id", z.int());
 *       if (id > 9) throw web.refuse(web.status.NOT_FOUND, `there is no item ${id}`);
 *       return Response.json(200, { id });
 *     }),
 * );
 *
 * const response = show.handle(new Request().withParam("id", "12"));
 * assert.equal(response.status, 404);
 * assert.deepEqual(response.jsonBody(), { error: "there is no item 12" });
 * ```
 *
 * @throws Failures of `work` for which the form has no status.
 */
export function respond(
  request: Request<unknown>,
  work: () => Response,
  form: ErrorForm = DOCUMENT,
): Response {
  try {
    return work();
  } catch (error) {
    const failure = Failure.from(error);
    const found = form.status ? form.status(failure) : failure.status();
    if (found === undefined) throw error;
    if (found === status.INTERNAL_SERVER_ERROR) {
      log.error(`a request failed: ${failure.message}`);
    }
    return Response.json(found, form.body(request, found, failure));
  }
}

/**
 * Creates the failure for a refused request. Its code is the one that fits the status.
 *
 * ```ts
 * import { code, web } from "wattle-plugin";
 *
 * const failure = web.refuse(web.status.CONFLICT, "the order was already sent");
 * assert.deepEqual([failure.status(), failure.code], [409, code.CONFLICT]);
 * ```
 */
export function refuse(status: number, message: string): Failure {
  return new Failure(codeOf(status), message).withStatus(status);
}

function codeOf(refused: number): string {
  switch (refused) {
    case status.NOT_FOUND:
      return code.NOT_FOUND;
    case status.CONFLICT:
    case status.PRECONDITION_FAILED:
      return code.CONFLICT;
    case status.GONE:
      return code.EXPIRED;
    case status.PAYLOAD_TOO_LARGE:
      return code.LIMIT;
    case status.INTERNAL_SERVER_ERROR:
      return code.INTERNAL;
    case status.BAD_GATEWAY:
      return code.UNAVAILABLE;
    default:
      return code.INVALID;
  }
}
