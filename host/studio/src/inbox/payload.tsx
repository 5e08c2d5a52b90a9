// What an interrupt asks: its text and the document that came with it. Both are of a plugin, a model
// or an MCP server.
import { Button } from "@wattle/page";
import { useState } from "react";
import { countText } from "../part/amount.ts";
import { cut } from "../part/cut.ts";
import { visible } from "../part/text.tsx";
import styles from "./inbox.module.css";
import { TEXTS } from "./texts.ts";

/** Properties in which payloads have their question, in the order in which they are looked at. */
const QUESTIONS = ["question", "message", "title", "prompt", "text", "description"];

/** Characters of a question in the list and in a heading. */
const TITLE_CHARS = 200;

/** Characters of a document that are shown at first. */
const SHOWN_CHARS = 4_000;

/** Returns a property of a payload, if it is a text. */
export function textIn(payload: unknown, name: string): string | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  const value: unknown = Object.hasOwn(payload, name) ? Reflect.get(payload, name) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the question of a payload as one line, by default the name of the node that asks. */
export function titleOf(payload: unknown, node: string): string {
  const tool = textIn(payload, "kind") === "tool_approval" ? textIn(payload, "tool") : undefined;
  const named = QUESTIONS.map((name) => textIn(payload, name)).find((text) => text !== undefined);
  const text = typeof payload === "string" && payload !== "" ? payload : (tool ?? named ?? node);
  return visible(cut(text, TITLE_CHARS));
}

/** A document as text, in which everything can be seen. It is cut until a user asks for all of it. */
export function Document({ label, value }: { label: string; value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const text = typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "");
  const isCut = !isWhole && text.length > SHOWN_CHARS;
  return (
    <div className={styles.document}>
      {/* biome-ignore lint/a11y/useSemanticElements: a document, not a set of fields. */}
      <pre role="group" tabIndex={0} aria-label={label}>
        {visible(isWhole ? text : cut(text, SHOWN_CHARS))}
      </pre>
      {isCut && (
        <Button onClick={() => setWhole(true)}>{TEXTS.whole(countText(text.length))}</Button>
      )}
    </div>
  );
}
