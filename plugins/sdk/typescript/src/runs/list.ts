// Lists of threads, and updates of their metadata.

import * as host from "#host/runs";
import { type Extra, type Json, toValue } from "../json.ts";

/** Default maximum number of threads in a page. */
const DEFAULT_LIMIT = 50;

/** Which threads to list. All conditions must hold. */
export interface ThreadSearchOptions {
  /** Only threads of this graph. */
  graph?: string | undefined;
  /**
   * Only threads that contain this text in their id, newest run, app, graph, failure or in a text of
   * their metadata. Letters match in either case. At most 512 bytes.
   */
  text?: string | undefined;
  /**
   * Only threads whose metadata contains the fields of this object. Nested objects may have additional
   * fields.
   */
  metadata?: unknown;
  /** The {@link ThreadPage.next} of the page before. */
  after?: string | undefined;
  /** Maximum number of threads in the page, from 1 to 500; 50 by default. */
  limit?: number;
  /** Extension fields. */
  extra?: Extra;
}

/** Which threads to list, as the host gets it. */
export interface ThreadSearch {
  /** Name of the graph. */
  graph: string | undefined;
  /** Text that the threads contain. */
  text: string | undefined;
  /** Metadata that the threads contain. */
  metadata: Json | undefined;
  /** Position after which the page begins. */
  after: string | undefined;
  /** Maximum number of threads in the page. */
  limit: number;
  /** Extension fields. */
  extra: Extra;
}

/** A thread in a list: a {@link Thread} without its state. */
export interface ThreadSummary {
  /** Id of the thread. */
  threadId: string;
  /** Name of the graph. */
  graph: string;
  /** `idle`, `running`, `interrupted` or `error`. */
  status: string;
  /** Id of the newest run. */
  runId: string | undefined;
  /** Time of creation, in milliseconds since 1970. */
  createdMs: number;
  /** Time of the last change, in milliseconds since 1970. */
  updatedMs: number;
  /** Metadata of the thread. */
  metadata: Json;
  /** Extension fields. */
  extra: Extra;
}

/** A page of a list of threads. */
export interface ThreadPage {
  /**
   * The threads, newest update first. A page may be short or empty although another one follows.
   */
  threads: ThreadSummary[];
  /** Cursor after the page; `undefined` at the end of the list. */
  next: string | undefined;
}

/**
 * Lists threads of the request's tenant, newest update first; for a request without a tenant, those
 * without one.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost()
 *   .thread({ threadId: "a", graph: "notes" })
 *   .thread({ threadId: "b", graph: "notes" });
 * host.run(() => {
 *   runs.updateThread("b", { title: "Tea" });
 *   const page = runs.threads({ graph: "notes", limit: 1 });
 *   assert.deepEqual(page.threads[0]?.metadata, { title: "Tea" });
 *   const rest = runs.threads({ graph: "notes", after: page.next });
 *   assert.equal(rest.threads[0]?.threadId, "a");
 *   assert.equal(rest.next, undefined);
 * });
 * ```
 *
 * @throws `invalid` if the text is too long, if the metadata is not an object, or if no page has the
 * position; `unsupported` in a node.
 */
export function threads(search: ThreadSearchOptions = {}): ThreadPage {
  const { graph, text, metadata, after, limit = DEFAULT_LIMIT, extra = {} } = search;
  const wanted = metadata === undefined ? undefined : toValue("the metadata", metadata);
  return host.threads({ graph, text, metadata: wanted, after, limit, extra });
}

/**
 * Adds the fields of an object to the metadata of a thread. Each replaces the field of the same name.
 * The thread moves to the beginning of lists.
 *
 * @throws `not-found` if the thread does not exist for the tenant of the request or has expired,
 * `invalid` if the metadata is not an object, `limit` if the metadata becomes too large, `busy` if a
 * run of the thread is active on another host, or if another operation uses the thread for too long.
 */
export function updateThread(threadId: string, metadata: unknown): void {
  host.updateThread(threadId, toValue("the metadata of the thread", metadata));
}
