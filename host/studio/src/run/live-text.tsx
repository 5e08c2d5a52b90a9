// A text that grows many times a second. What is new is appended to one text node, so that the
// browser lays out no more than that.
import { useLayoutEffect, useRef } from "react";
import { visible } from "../part/text.tsx";
import styles from "./run.module.css";

/** A text of a stranger, which is written beside React. */
export function LiveText({ label, text }: { label: string; text: string }) {
  const box = useRef<HTMLPreElement>(null);
  const shown = useRef("");
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const isLonger = shown.current !== "" && text.startsWith(shown.current);
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 1;
    const { firstChild } = element;
    if (isLonger && firstChild instanceof Text) {
      firstChild.appendData(visible(text.slice(shown.current.length)));
    } else {
      element.textContent = visible(text);
    }
    shown.current = text;
    if (isAtEnd) element.scrollTop = element.scrollHeight;
  }, [text]);
  // biome-ignore lint/a11y/useSemanticElements: a text, not a set of fields.
  return <pre ref={box} className={styles.text} role="group" aria-label={label} tabIndex={0} />;
}
