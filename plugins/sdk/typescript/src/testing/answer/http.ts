// Implements `http` with the script.

import type { Result } from "../../failure.ts";
import { type Request, Response } from "../../http.ts";
import { current, each, play } from "../state.ts";

export function send(request: Request): Response {
  const state = current();
  state.notes.http.push(request);
  const response = play(state.http, request, "FakeHost.http");
  return response.url === "" ? new Response({ ...response, url: request.url }) : response;
}

export function sendAll(requests: readonly Request[]): Array<Result<Response>> {
  return each(requests, send);
}
