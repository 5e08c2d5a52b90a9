// A tool call, as a card that opens.
import { type ReactNode, useState } from "react";
import { useTexts } from "../language/language.ts";
import "./chat.css";

export type ToolState = "preparing" | "running" | "done" | "failed" | "cancelled";

/** Converts a state of the AI SDK to that of a card. `isLive` is true while the message grows. */
export function toolState(state: string, isLive: boolean): ToolState {
  if (state === "output-available") return "done";
  if (state === "output-error" || state === "output-denied") return "failed";
  if (!isLive) return "cancelled";
  return state === "input-streaming" ? "preparing" : "running";
}

interface ToolCardProps {
  /** Name of the tool for users. */
  title: string;
  /** Name of the tool in the program. */
  name: string;
  state: ToolState;
  /** One line about the output. */
  summary?: ReactNode;
  error?: string | undefined;
  /** Buttons of the card. */
  actions?: ReactNode;
  /** Details, shown when the card is open. */
  children?: ReactNode;
}

/** A card with state and summary. Its details are rendered when it is opened. */
export function ToolCard(props: ToolCardProps) {
  const texts = useTexts();
  const [isOpen, setOpen] = useState(false);
  return (
    <section
      className="w-tool"
      data-tool={props.name}
      data-state={props.state}
      aria-label={props.title}
    >
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className="w-tool-title">{props.title}</span>
          <span className="w-tool-state" data-state={props.state}>
            {texts.toolStates[props.state]}
          </span>
        </summary>
        {isOpen && <div className="w-tool-details">{props.children}</div>}
      </details>
      {props.summary !== undefined && <p className="w-tool-summary">{props.summary}</p>}
      {props.error !== undefined && <p className="w-tool-error">{props.error}</p>}
      {props.actions !== undefined && <div className="w-actions">{props.actions}</div>}
    </section>
  );
}

/** Number of characters of a document that are shown at first. */
const SHOWN_CHARS = 4_000;

/** A JSON document as text, which is cut until the user asks for all of it. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const texts = useTexts();
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(value, undefined, 2) ?? "undefined";
  const isCut = !isWhole && text.length > SHOWN_CHARS;
  return (
    <div className="w-json">
      {/* biome-ignore lint/a11y/useSemanticElements: a document, not a set of fields. */}
      <pre role="group" tabIndex={0} aria-label={label}>
        {isCut ? `${text.slice(0, SHOWN_CHARS)}…` : text}
      </pre>
      {isCut && (
        <button type="button" className="w-button" onClick={() => setWhole(true)}>
          {texts.showAll(text.length.toLocaleString(texts.locale))}
        </button>
      )}
    </div>
  );
}
