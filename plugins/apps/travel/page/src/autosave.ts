// Saves edits automatically: the newest value, some time after the last change.
export type SaveState = "saved" | "changed" | "saving" | "failed";

/** Delay after the last change before edits are saved, in milliseconds. */
export const DEBOUNCE_MS = 900;

/** Saves values one after the other, the newest last. */
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

  /** True if a value is not saved yet. */
  get isDirty(): boolean {
    return this.#waiting !== undefined || this.#isSaving;
  }

  /** Schedules a new value, which replaces a waiting one. */
  change(value: T): void {
    this.#waiting = { value };
    this.#schedule();
  }

  #schedule(): void {
    this.#onState("changed");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), DEBOUNCE_MS);
  }

  /** Drops the waiting value, which is no longer wanted or cannot be saved as it is. */
  drop(): void {
    clearTimeout(this.#timer);
    this.#waiting = undefined;
  }

  /** Saves the waiting value now. */
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
      // A value that was set in the meantime waits for a delay of its own.
      if (this.isDirty) this.#schedule();
      else this.#onState("saved");
    } catch {
      // The user, the next change or a restored connection retries it.
      this.#isSaving = false;
      this.#waiting ??= { value };
      this.#onState("failed");
    }
  }
}
