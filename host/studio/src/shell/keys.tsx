// Keys of the studio. A part that is shown registers its keys, and `?` lists those that work now.
import { Dialog } from "@wattle/page";
import { useEffect, useEffectEvent, useState } from "react";
import styles from "./shell.module.css";
import { TEXTS } from "./texts.ts";

interface Shortcut {
  /** One key or two, such as `j` or `g t`. */
  keys: string;
  /** What the keys do. */
  text: string;
  /** Absent for keys that a part handles by itself, which are only listed. */
  run?: (event: KeyboardEvent) => void;
}

/** Time between the two keys of a shortcut, in milliseconds. */
const BETWEEN_KEYS_MS = 1_000;

/** Elements in which a key is text. */
const TEXT_FIELDS = "input, textarea, select, [contenteditable]";

const shortcuts = new Set<Shortcut>();

/** Runs `run` when a user presses the keys outside of a text field and of a dialog. */
export function useShortcut(keys: string, text: string, run: (event: KeyboardEvent) => void): void {
  const runLatest = useEffectEvent(run);
  useEffect(() => register({ keys, text, run: (event) => runLatest(event) }), [keys, text]);
}

/** Lists keys that a part handles by itself, such as those of its fields. */
export function useKeyHint(keys: string, text: string): void {
  useEffect(() => register({ keys, text }), [keys, text]);
}

function register(shortcut: Shortcut): () => void {
  shortcuts.add(shortcut);
  return () => {
    shortcuts.delete(shortcut);
  };
}

function isText(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TEXT_FIELDS) !== null;
}

/** Returns a listener for `keydown` that runs the shortcuts, the last registered one first. */
function listener(): (event: KeyboardEvent) => void {
  let first = { key: "", at: Number.NEGATIVE_INFINITY };
  return (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isText(event.target) || document.querySelector("dialog[open]") !== null) return;
    const { key, timeStamp } = event;
    const pair = timeStamp - first.at < BETWEEN_KEYS_MS ? `${first.key} ${key}` : key;
    first = { key, at: timeStamp };
    const known = [...shortcuts].reverse().filter(({ run }) => run !== undefined);
    const found = known.find(({ keys }) => keys === pair) ?? known.find(({ keys }) => keys === key);
    if (found === undefined) return;
    event.preventDefault();
    found.run?.(event);
  };
}

/** Listens to the keys, and lists them in a dialog. */
export function Keyboard() {
  const [shown, setShown] = useState<readonly Shortcut[]>();
  useShortcut("?", TEXTS.showKeyboard, () => setShown([...shortcuts]));
  useEffect(() => {
    const listen = listener();
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  return (
    <Dialog
      open={shown !== undefined}
      title={TEXTS.keyboard}
      onClose={() => setShown(undefined)}
      closeBeside
    >
      <dl className={styles.keys}>
        {shown?.map(({ keys, text }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
