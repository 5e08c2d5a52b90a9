// A conversation that stays scrolled to its end while it grows, unless the user scrolls up.
import { type ReactNode, useCallback, useLayoutEffect, useRef, useState } from "react";
import { useTexts } from "../language/language.ts";
import "./chat.css";

/** Distance from the end that still counts as the end. */
const NEAR_PX = 48;

interface MessageListProps {
  /** Name of the list. */
  label?: string;
  /** The last message is growing: screen readers read it when it is complete. */
  busy?: boolean;
  children: ReactNode;
}

/** The scrolling list of a conversation. */
export function MessageList({ label, busy = false, children }: MessageListProps) {
  const texts = useTexts();
  const { box, content, isAway, toEnd } = useEnd();
  return (
    <div className="w-messages">
      <div
        ref={box}
        className="w-messages-box"
        role="log"
        aria-label={label ?? texts.conversation}
        aria-busy={busy}
        tabIndex={0}
      >
        <div ref={content} className="w-messages-content">
          {children}
        </div>
      </div>
      {isAway && (
        <button type="button" className="w-button w-to-end" onClick={toEnd}>
          ↓ {texts.toEnd}
        </button>
      )}
    </div>
  );
}

/** Keeps a box scrolled to the end of its growing content. */
function useEnd() {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const toEnd = useCallback(() => {
    const element = box.current;
    if (element === null) return;
    follows.current = true;
    setAway(false);
    element.scrollTop = element.scrollHeight;
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const inner = content.current;
    if (element === null || inner === null) return;
    let height = element.scrollHeight;
    const scrolled = () => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
      // Content that grew moves the end away, which is not a scroll of the user.
      if (element.scrollHeight === height || isNear) follows.current = isNear;
      height = element.scrollHeight;
      setAway(!follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) toEnd();
    });
    grown.observe(inner);
    grown.observe(element);
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      grown.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, [toEnd]);
  return { box, content, isAway, toEnd };
}

interface SaidProps {
  by: "user" | "assistant" | "system";
  children: ReactNode;
}

/** A message. Pass the text of a user as a string, so that it is plain text. */
export function Said({ by, children }: SaidProps) {
  const { senders } = useTexts();
  return (
    <article className="w-said" data-by={by} aria-label={senders[by]}>
      {children}
    </article>
  );
}
