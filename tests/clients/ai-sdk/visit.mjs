// One visit to the page of a session: what it requests, until it is closed with all its
// connections.

import { DefaultChatTransport } from "ai";

/** What the application needs, instead of all that `useChat` knows. */
const onlyNeeded = (sessionId) => ({ messages }) => ({ body: { sessionId, messages } });

export class Visit {
  #resume;
  /** Everything that was requested so far. */
  requests = [];
  /** Resolves when the server has said whether there is a stream to follow. */
  resumed = new Promise((resolve) => (this.#resume = resolve));
  #open = new AbortController();
  #base;
  #session;

  constructor(base, session) {
    this.#base = base;
    this.#session = session;
  }

  /** The messages that the server has. */
  async stored() {
    const response = await this.#fetch(this.#at(""));
    return response.ok ? (await response.json()).messages : [];
  }

  /** The transport of `useChat`; with `bare`, requests have what is needed and no more. */
  transport(bare) {
    return new DefaultChatTransport({
      api: `${this.#base}/api/chat`,
      fetch: (url, init) => this.#fetch(url, init),
      body: { sessionId: this.#session },
      prepareSendMessagesRequest: bare ? onlyNeeded(this.#session) : undefined,
    });
  }

  /** Tells the server that the answer is not wanted any more. */
  cancel() {
    return this.#fetch(this.#at("/cancel"), { method: "POST" });
  }

  close() {
    this.#open.abort();
  }

  #at(path) {
    return `${this.#base}/api/sessions/${this.#session}${path}`;
  }

  async #fetch(url, { method = "GET", body, signal, ...init } = {}) {
    const path = url.slice(this.#base.length);
    const note = { method, path, body: body && JSON.parse(body) };
    this.requests.push(note);
    const either = AbortSignal.any([this.#open.signal, signal].filter(Boolean));
    const response = await fetch(url, { ...init, method, body, signal: either });
    note.status = response.status;
    if (path.endsWith("/stream")) this.#resume();
    return response;
  }
}
