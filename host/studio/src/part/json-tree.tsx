// A JSON document as a tree. What is closed is not rendered, so that a large document takes no more
// room than what a user opens.
import { Button } from "@wattle/page";
import { type ReactNode, useState } from "react";
import { countText } from "./amount.ts";
import styles from "./part.module.css";
import { Text } from "./text.tsx";

/** Children that are shown at first, and with each further step. */
const CHILDREN_STEP = 200;

/** Characters of a text that are shown at first. */
const FIRST_CHARS = 4_000;

/** Characters of a text that each further step shows. A longer text would stop the browser. */
const CHARS_STEP = 200_000;

/** Levels that are shown. Few values are nested deeper. */
const DEEPEST = 64;

/** Values of a document that is open at first as a whole. They are three screens of lines. */
const SMALL = 100;

/** Levels of a larger document that are open at first, and the most children of a value that is. */
const OPEN_DEPTH = 2;
const OPEN_CHILDREN = 20;

const TEXTS = {
  more: (shown: number, count: number) => `Show more (${countText(shown)} of ${countText(count)})`,
  tooDeep: "The value is nested deeper than the studio shows.",
  items: (count: number) => (count === 1 ? "1 item" : `${countText(count)} items`),
  fields: (count: number) => (count === 1 ? "1 field" : `${countText(count)} fields`),
};

/** A document with its name for screen readers. */
export function JsonTree({ label, value }: { label: string; value: unknown }) {
  const openDepth = isSmall(value) ? DEEPEST : OPEN_DEPTH;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a document, not a set of fields.
    <div className={styles.json} role="group" aria-label={label}>
      <Value value={value} depth={0} openDepth={openDepth} />
    </div>
  );
}

/** Returns true if a document has few values. */
function isSmall(document: unknown): boolean {
  const values = [document];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (typeof value !== "object" || value === null) continue;
    const children = Object.values(value);
    if (values.length + children.length > SMALL) return false;
    values.push(...children);
  }
  return true;
}

interface ValueProps {
  /** The key or index before the value. */
  name?: string;
  value: unknown;
  depth: number;
  /** Level from which on values are closed at first. */
  openDepth: number;
}

function Value({ name, value, ...place }: ValueProps) {
  if (typeof value === "object" && value !== null) {
    return <Branch name={name} value={value} {...place} />;
  }
  return (
    <>
      <Name name={name} />
      {typeof value === "string" ? (
        <StringValue value={value} />
      ) : (
        <span className={styles.jsonPlain}>{String(value)}</span>
      )}
    </>
  );
}

function Name({ name }: { name: string | undefined }): ReactNode {
  if (name === undefined) return null;
  return (
    <>
      <span className={styles.jsonName}>
        <Text>{name}</Text>
      </span>
      {": "}
    </>
  );
}

interface BranchProps extends Pick<ValueProps, "depth" | "openDepth"> {
  name: string | undefined;
  value: object;
}

function Branch({ name, value, depth, openDepth }: BranchProps) {
  const isArray = Array.isArray(value);
  const count = isArray ? value.length : Object.keys(value).length;
  const [isOpen, setOpen] = useState(
    depth < openDepth && (openDepth > OPEN_DEPTH || count <= OPEN_CHILDREN),
  );
  const size = isArray ? `[${TEXTS.items(count)}]` : `{${TEXTS.fields(count)}}`;
  if (count === 0) {
    return (
      <>
        <Name name={name} />
        <span className={styles.jsonPlain}>{isArray ? "[]" : "{}"}</span>
      </>
    );
  }
  return (
    <>
      <button
        type="button"
        className={styles.jsonToggle}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Name name={name} />
        <span className={styles.jsonSize}>{size}</span>
      </button>
      {isOpen && <Children value={value} depth={depth + 1} openDepth={openDepth} />}
    </>
  );
}

function Children({ value, depth, openDepth }: Omit<BranchProps, "name">) {
  const [most, setMost] = useState(CHILDREN_STEP);
  if (depth > DEEPEST) return <p className={styles.jsonNote}>{TEXTS.tooDeep}</p>;
  const entries = Object.entries(value);
  return (
    <ul className={styles.jsonChildren}>
      {entries.slice(0, most).map(([key, child]) => (
        <li key={key}>
          <Value name={key} value={child} depth={depth} openDepth={openDepth} />
        </li>
      ))}
      {entries.length > most && (
        <li>
          <Button onClick={() => setMost(most + CHILDREN_STEP)}>
            {TEXTS.more(most, entries.length)}
          </Button>
        </li>
      )}
    </ul>
  );
}

function StringValue({ value }: { value: string }) {
  const [most, setMost] = useState(FIRST_CHARS);
  const isCut = value.length > most;
  return (
    <>
      <span className={styles.jsonString}>
        "<Text>{isCut ? value.slice(0, most) : value}</Text>
        {isCut ? "…" : '"'}
      </span>
      {isCut && (
        <Button onClick={() => setMost(most + CHARS_STEP)}>{TEXTS.more(most, value.length)}</Button>
      )}
    </>
  );
}
