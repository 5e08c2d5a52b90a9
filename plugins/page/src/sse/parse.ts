// Parses server-sent events, as the HTML standard defines the format.

export interface ServerEvent {
  /** Name of the event; `message` if it has none. */
  event: string;
  data: string;
  /** The last id that was received, if any. */
  id: string | undefined;
}

/** The receiver of a parser's output. */
interface Sink {
  onEvent: (event: ServerEvent) => void;
  onRetry: (ms: number) => void;
}

/** Parses text as it arrives, and emits each event when it is complete. */
export class EventParser {
  #sink: Sink;
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | undefined;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  feed(text: string): void {
    this.#rest += text;
    // A carriage return at the end may be the first half of a line break.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    if (line === "") this.#dispatch();
    else if (!line.startsWith(":")) this.#field(line);
  }

  #field(line: string): void {
    const [, name = line, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.#sink.onRetry(Number(value));
  }

  #dispatch(): void {
    if (this.#data.length > 0) {
      const event = this.#event || "message";
      this.#sink.onEvent({ event, data: this.#data.join("\n"), id: this.#id });
    }
    this.#event = "";
    this.#data = [];
  }
}
