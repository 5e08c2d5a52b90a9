// The client of the host's native API. It sends the key of this tab, and drops one that is refused.
import { type ApiError, errorIn } from "@wattle/page/api";
import { nativeApi } from "@wattle/page/native";
import { keyOf, refuse, requestHeaders } from "../access/key.ts";
import { missingIn } from "../access/unauthorized.ts";
import { hostAddress } from "../router/base.ts";

export type { Schemas } from "@wattle/page/native";

/** The native API of the host that serves the studio. */
export const api = nativeApi({ baseUrl: hostAddress(), headers: requestHeaders });

/** An answer of the client: a document, or the body of a refusal. */
interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * Returns the document of a response. Throws a refusal as an `ApiError`. A refused key is removed,
 * and the login is shown.
 */
export async function ok<T>(answer: Promise<Answer<T>>): Promise<T> {
  const key = keyOf();
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  const failure: ApiError = errorIn(response.status, error);
  if (key !== null && missingIn(failure)?.what === "key") refuse(key, failure.message);
  throw failure;
}
