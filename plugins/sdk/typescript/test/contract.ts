// The host behind the interfaces of the contract, as an engine shows it.

import { afterEach } from "vitest";

/** A call of the host: the function as `interface.name`, and the arguments. */
export type Called = [name: string, args: unknown[]];

/** The calls since the last test. */
export const calls: Called[] = [];

let answer: (name: string, args: unknown[]) => unknown = () => undefined;

/** Sets what the host returns, or throws. */
export function host(returns: typeof answer): void {
  answer = returns;
}

/** Lets the host fail as both engines show it. */
export function fail(failure: { code: string; message: string; details?: string | null }): never {
  throw Object.assign(new Error("[object Object] (see error.payload)"), {
    payload: { retryable: false, ...failure },
  });
}

(globalThis as unknown as Record<string, unknown>).contract = (name: string, args: unknown[]) => {
  calls.push([name, args]);
  return answer(name, args);
};

afterEach(() => {
  calls.length = 0;
  answer = () => undefined;
});
