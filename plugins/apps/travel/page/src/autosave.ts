// Keeps what a user edits: the newest value, some time after the last change.
export type SaveState = "saved" | "changed" | "saving" | "failed";

/** How long a user must pause before edits are saved. */
export const DEBOUNCE_MS = 900;

/** Saves values one after the other, the newest last, whatever comes in between. */
export class Autosave<T> {
  #save: (value: T) => Promise<unknown>;
  #onState: (state: SaveState) => void;
  #waiting: { value: T } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isSaving = false;

  constructor(save: (value: T) => Promise<unknown>, onState: (state: SaveState) => void) {
    this.#save = save;
    this.#onState = onState;
  }

  /** Whether something is not saved yet. */
  get isDirty(): boolean {
    return this.#waiting !== undefined || this.#isSaving;
  }

  /** A new value. It takes the place of one that waits. */
  change(value: T): void {
    this.#waiting = { value };
    this.#onState("changed");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), DEBOUNCE_MS);
  }

  #next(): { value: T } | undefined {
    return this.#waiting;
  }

  /** Forgets what waits: it is no longer wanted, or cannot be saved as it is. */
  drop(): void {
    clearTimeout(this.#timer);
    this.#waiting = undefined;
  }

  /** Saves what waits, now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isSaving || this.#waiting === undefined) return;
    const { value } = this.#waiting;
    this.#waiting = undefined;
    this.#isSaving = true;
    this.#onState("saving");
    try {
      await this.#save(value);
      this.#isSaving = false;
      // What came in between waits for a pause of its own.
      const later = this.#next();
      if (later === undefined) this.#onState("saved");
      else this.change(later.value);
    } catch {
      // It is tried again by the user, at the next change, or when the server is back.
      this.#isSaving = false;
      this.#waiting ??= { value };
      this.#onState("failed");
    }
  }
}
