// The difference of two JSON values, change by change.
import { Button } from "@wattle/page";
import { type ReactNode, useState } from "react";
import { cut } from "../cut.ts";
import { JsonTree } from "../json-tree.tsx";
import { Text, visible } from "../text.tsx";
import type { Change, Diff, Path } from "./diff.ts";
import styles from "./json-diff.module.css";
import { textChange } from "./text-change.ts";
import { TEXTS } from "./texts.ts";

/** Changes that are shown at first, and with each further step. */
const CHANGES_STEP = 100;

/** Characters around a change in a text. */
const AROUND_CHARS = 60;

/** Characters that the same beginning and end of two texts have at least if both are one text. */
const SAME_CHARS = 8;

/** Characters of a changed text that are shown. */
const SHOWN_CHARS = 4_000;

/** The changes of a value with this name. */
export function JsonDiff({ label, diff }: { label: string; diff: Diff }) {
  const [most, setMost] = useState(CHANGES_STEP);
  const { changes, isCut } = diff;
  if (changes.length === 0) return <p>{TEXTS.same}</p>;
  return (
    <>
      <ul className={styles.changes} aria-label={label}>
        {changes.slice(0, most).map((change) => (
          <Item key={`${change.kind} ${JSON.stringify(change.path)}`} change={change} />
        ))}
      </ul>
      {changes.length > most && (
        <Button onClick={() => setMost(most + CHANGES_STEP)}>
          {TEXTS.more(most, changes.length)}
        </Button>
      )}
      {isCut && changes.length <= most && <p>{TEXTS.cut}</p>}
    </>
  );
}

function Item({ change }: { change: Change }) {
  const { path, kind } = change;
  return (
    <li data-change={kind}>
      {path.length > 0 && (
        <span className={styles.path}>
          <Text>{pathText(path)}</Text>
        </span>
      )}
      <span className={styles.kind}>{TEXTS.kinds[kind]}</span>
      <Values change={change} />
    </li>
  );
}

function Values({ change }: { change: Change }): ReactNode {
  const { path, kind, before, after } = change;
  if (kind === "sized") return <p>{TEXTS.sized(before, after)}</p>;
  if (typeof before === "string" && typeof after === "string") {
    const { prefix, removed, added, suffix } = textChange(before, after);
    const isOneText = prefix.length + suffix.length >= SAME_CHARS;
    if (isOneText) return <TextParts {...{ prefix, removed, added, suffix }} />;
  }
  const name = path.length === 0 ? TEXTS.whole : visible(pathText(path));
  return (
    <>
      {kind !== "added" && (
        <del>
          <JsonTree label={TEXTS.before(name)} value={before} />
        </del>
      )}
      {kind !== "removed" && (
        <ins>
          <JsonTree label={TEXTS.after(name)} value={after} />
        </ins>
      )}
    </>
  );
}

function TextParts({ prefix, removed, added, suffix }: ReturnType<typeof textChange>) {
  const before = prefix.length > AROUND_CHARS ? `…${prefix.slice(-AROUND_CHARS)}` : prefix;
  const after = cut(suffix, AROUND_CHARS);
  return (
    <p className={styles.text}>
      <Text>{before}</Text>
      {removed !== "" && (
        <del>
          <Text>{cut(removed, SHOWN_CHARS)}</Text>
        </del>
      )}
      {added !== "" && (
        <ins>
          <Text>{cut(added, SHOWN_CHARS)}</Text>
        </ins>
      )}
      <Text>{after}</Text>
    </p>
  );
}

/** Keys that need no quotes in a path. */
const PLAIN = /^[A-Za-z_$][\w$]*$/;

/** Returns a path as text, such as `messages[0].content`. */
export function pathText(path: Path): string {
  return path
    .map((key, index) => {
      if (typeof key === "string" && PLAIN.test(key)) return index === 0 ? key : `.${key}`;
      return `[${JSON.stringify(key)}]`;
    })
    .join("");
}
