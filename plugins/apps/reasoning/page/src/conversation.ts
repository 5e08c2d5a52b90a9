// A conversation that is synchronized with the server. It is the same after a reload, in another
// tab and after a lost connection.
import { ApiError } from "@wattle/page";
import { api, type Session, type TraceEvent } from "./api.ts";
import { type Entry, entriesOf, saidIn } from "./entries.ts";

export interface State {
  id: string | null;
  session: Session | null;
  events: readonly TraceEvent[];
  /** Entries of earlier sessions that stay visible. */
  before: readonly Entry[];
  /** Message of the user that is not yet in a session. */
  pending: { text: string; after: number } | null;
  /** Failure that is not in a session. */
  failure: { message: string; code: string } | null;
  /** True during a request of this tab. */
  isActing: boolean;
  /** Why the audit trail could not be read; empty if it was read. */
  problem: string;
}

const NOTHING: State = {
  id: null,
  session: null,
  events: [],
  before: [],
  pending: null,
  failure: null,
  isActing: false,
  problem: "",
};

/** Milliseconds between two attempts to read a session without a connection. */
const PAUSE_MS = 1_000;

export class Conversation {
  #state: State;
  #watchers = new Set<() => void>();
  #reading: Promise<void> | null = null;
  /**
   * Incremented when another session is opened. Requests of earlier epochs are about a session that
   * is no longer shown.
   */
  #epoch = 0;

  constructor(id: string | null) {
    this.#state = { ...NOTHING, id };
  }

  readonly state = (): State => this.#state;

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  #change(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Opens a session, or none. */
  async open(id: string | null): Promise<void> {
    if (id !== this.#state.id) {
      this.#epoch += 1;
      this.#change({ ...NOTHING, id });
      await this.#reading;
    }
    await this.refresh();
  }

  /** Reads new rows. Concurrent calls share one read, because two reads would show rows twice. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { id } = this.#state;
    if (id === null) return;
    try {
      const isNew = await this.#readTrail(id);
      if (isNew && this.#state.id === id) this.#show(id, await api.show(id));
      if (this.#state.id === id) this.#change({ problem: "" });
    } catch (error) {
      if (this.#state.id === id) this.#unread(id, error);
    }
  }

  /** Leaves a session that does not exist. Other errors are shown and may be transient. */
  #unread(id: string, error: unknown): void {
    const { message, code } = failureOf(error);
    const isGone = error instanceof ApiError && error.status === 404;
    if (isGone) this.#change({ ...NOTHING, failure: { message, code } });
    else this.#change({ id, problem: message });
  }

  /** Reads new rows of the trail. Returns true if the shown session is outdated. */
  async #readTrail(id: string): Promise<boolean> {
    let isNew = this.#state.session === null;
    for (let more = true; more; ) {
      const after = this.#state.events.at(-1)?.seq ?? 0;
      const { status, events, next_after: next } = await api.trace(id, after);
      if (this.#state.id !== id) return false;
      if (events.length > 0) this.#change({ events: [...this.#state.events, ...events] });
      isNew ||= events.length > 0 || status !== this.#state.session?.status;
      more = next !== null;
    }
    return isNew;
  }

  #show(id: string, session: Session): void {
    if (this.#state.id !== id) return;
    const { pending } = this.#state;
    const isKnown = pending !== null && saidIn(session) > pending.after;
    this.#change({ session, ...(isKnown ? { pending: null } : {}) });
  }

  /**
   * Sends a message: an answer to a clarification, the first message of a session, or a further
   * question. Rejects if the message was not stored, so that the text is not lost.
   */
  async send(text: string): Promise<void> {
    if (isRunning(this.#state)) throw new Error("a run is under way");
    if (this.#state.session?.status === "cancelled") this.#leave();
    const { id, session } = this.#state;
    const epoch = this.#epoch;
    this.#change({ pending: { text, after: saidIn(session) }, failure: null });
    await this.#perform(async () => {
      if (id === null) await this.#begin(text);
      else if (session?.clarification) await this.#answer(id, text);
      else await api.run(id, text);
    });
    if (epoch !== this.#epoch || this.#state.pending === null) return;
    this.#change({ pending: null });
    throw new Error("the message was not stored");
  }

  async #begin(text: string): Promise<void> {
    const { session_id: id } = await api.create(text);
    this.#change({ id });
    void this.refresh();
    await api.run(id);
  }

  async #answer(id: string, text: string): Promise<void> {
    await api.clarify(id, text);
    void this.refresh();
    await api.run(id);
  }

  /** Runs the newest turn, which failed or never ran. */
  async retry(): Promise<void> {
    const { id } = this.#state;
    if (id === null || isRunning(this.#state)) return;
    this.#change({ failure: null });
    await this.#perform(() => api.run(id));
  }

  /** Cancels the session and its run. The request that started the run reports how it ended. */
  async stop(): Promise<void> {
    const { id } = this.#state;
    if (id === null) return;
    try {
      await api.cancel(id);
    } catch (error) {
      this.#change({ failure: failureOf(error) });
    }
    await this.#settle();
  }

  startOver(): void {
    this.#epoch += 1;
    this.#change(NOTHING);
  }

  /** Leaves a cancelled session. Its entries stay visible above those of the next one. */
  #leave(): void {
    const lasting = entries(this.#state).filter(({ kind }) => kind !== "unrun");
    const before = lasting.map((entry) => ({ ...entry, key: `before-${entry.key}` }));
    this.#change({ ...NOTHING, before });
  }

  /** Performs an action that runs a turn, and then reads the session. */
  async #perform(act: () => Promise<unknown>): Promise<void> {
    const epoch = this.#epoch;
    this.#change({ isActing: true });
    const failed = await act().then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (epoch === this.#epoch) await this.#settle();
    if (epoch !== this.#epoch) return;
    if (failed) this.#explain(failed.error);
    this.#change({ isActing: false });
  }

  /** Reads the session. Without a connection it retries until the connection is back. */
  async #settle(): Promise<void> {
    const { id } = this.#state;
    // A read that started earlier may have missed the end of the run.
    await this.#reading;
    await this.refresh();
    while (id !== null && this.#state.id === id && this.#state.problem !== "") {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      await this.refresh();
    }
  }

  /** Shows an error, unless the session shows it or continues in spite of it. */
  #explain(error: unknown): void {
    const { session, pending } = this.#state;
    const ends = ["failed", "cancelled", "running", "completed", "waiting_clarification"];
    const isTold = pending === null && session !== null && ends.includes(session.status);
    if (!isTold) this.#change({ failure: failureOf(error) });
  }
}

/** Returns true during a run, of this tab or of another client. */
export function isRunning({ isActing, session }: State): boolean {
  return isActing || session?.status === "running";
}

/** Returns the entries of the conversation. */
export function entries(state: State): Entry[] {
  const { before, session, pending, failure } = state;
  const list = [...before, ...(session ? entriesOf(session) : [])];
  // A turn that is about to run is not shown as one that never ran.
  const shown = isRunning(state) ? list.filter(({ kind }) => kind !== "unrun") : list;
  if (pending) shown.push({ kind: "said", key: "pending", text: pending.text });
  if (failure) shown.push({ kind: "failed", key: "failure", ...failure, mayRetry: false });
  return isRunning(state) ? shown.filter((entry) => !isRetried(entry)) : shown;
}

/** Returns true for the failure of a turn that is retried. */
function isRetried(entry: Entry): boolean {
  return entry.kind === "failed" && entry.mayRetry;
}

function failureOf(error: unknown): { message: string; code: string } {
  if (!(error instanceof ApiError)) return { message: String(error), code: "page" };
  const code = [error.status, error.code].filter((part) => part !== undefined).join(" / ");
  return { message: error.message, code: code || error.kind };
}
