// What an engine has besides the language itself. `"types": ["wattle-plugin/globals"]` in a
// `tsconfig.json` without the libraries of browsers and Node.js makes everything else an error.

interface Console {
  assert(condition?: boolean, ...values: unknown[]): void;
  debug(...values: unknown[]): void;
  dir(value?: unknown): void;
  error(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
}

/** Messages become log messages. */
declare var console: Console;

declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function queueMicrotask(work: () => void): void;

interface TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
}

declare var TextEncoder: { new (): TextEncoder };

interface TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}

declare var TextDecoder: { new (label?: string, options?: { fatal?: boolean }): TextDecoder };

interface URLSearchParams extends Iterable<[string, string]> {
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  toString(): string;
}

declare var URLSearchParams: {
  new (init?: string | Record<string, string> | Array<[string, string]>): URLSearchParams;
};

interface URL {
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toJSON(): string;
  toString(): string;
}

declare var URL: {
  new (url: string, base?: string | URL): URL;
  canParse(url: string, base?: string | URL): boolean;
};

/** A file as text: `import PROMPT from "./prompt.md?raw"`. */
declare module "*?raw" {
  const text: string;
  export default text;
}
