// The stand-in of models and services, whose answers a scenario changes and holds back. The query of
// a page's address names it (`?standin=...`), which means nothing to the page.
import assert from "node:assert/strict";
import { eventually, parameter } from "./visit.ts";

/** What happens to requests instead of their answer. */
interface Fault {
  kind: "content" | "hang" | "script" | "status";
  [more: string]: unknown;
}

/** The requests that a fault concerns: those to a model or to a path, after some that it skips. */
interface Rule {
  model?: string;
  path?: string;
  skip?: number;
  times?: number;
  fault: Fault;
}

/** The stand-in that the address of a page names. */
export class Standin {
  readonly origin: string;

  constructor(pageUrl: string) {
    this.origin = new URL(parameter(pageUrl, "standin")).origin;
  }

  async #control(method: string, path: string, body?: unknown): Promise<Response> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(this.origin + path, init);
    if (!response.ok) {
      assert.fail(`${method} ${path}: ${response.status} ${await response.text()}`);
    }
    return response;
  }

  async fault(rule: Rule): Promise<void> {
    await this.#control("POST", "/__faults", rule);
  }

  /** Ends all faults. */
  async forget(): Promise<void> {
    await this.#control("DELETE", "/__faults");
  }

  /** Holds the next request of a rule until `release()`. Returns what waits for that request. */
  async hold(rule: Omit<Rule, "fault">): Promise<() => Promise<void>> {
    const before = await this.#countHeld();
    await this.fault({ times: 1, ...rule, fault: { kind: "hang" } });
    return () =>
      eventually(async () => {
        const name = rule.model ?? rule.path;
        assert.ok((await this.#countHeld()) > before, `no request to ${name} was held`);
      });
  }

  /** Answers the requests that are held. */
  async release(): Promise<void> {
    await this.#control("POST", "/__release");
  }

  async #countHeld(): Promise<number> {
    const requests: { fault?: string }[] = await (await this.#control("GET", "/__requests")).json();
    return requests.filter(({ fault }) => fault === "hang").length;
  }
}
