// The input field of a conversation.
import {
  type FormEvent,
  type KeyboardEvent,
  type MouseEvent,
  useId,
  useRef,
  useState,
} from "react";
import { Button } from "../control/button.tsx";
import { useTexts } from "../language/language.ts";
import { FileButton, FilePreviews, type Files } from "./files.tsx";
import "./chat.css";

/** Value of `keyCode` while an input method composes, in browsers without another sign of it. */
const COMPOSING = 229;

export interface ComposerProps {
  /** Name of the field. */
  label: string;
  placeholder?: string;
  /** Initial text of the field. */
  initial?: string;
  /** Called with the trimmed text. The text returns to the field if the promise fails. */
  onSend: (text: string) => Promise<unknown> | unknown;
  /** An answer is in progress: nothing can be sent, and `onStop`, if set, stops the answer. */
  busy?: boolean;
  onStop?: (() => void) | undefined;
  /** Files that are sent with the text, from `useFiles`. They can be sent without a text. */
  files?: Files;
  /** Text of the button. */
  send?: string;
  /** Nothing can be written. */
  disabled?: boolean;
  autoFocus?: boolean;
}

/** A growing field: Enter sends, and Shift+Enter inserts a line break. */
export function Composer(props: ComposerProps) {
  const { label, busy = false, disabled = false, files, onStop } = props;
  const texts = useTexts();
  const [text, setText] = useState(props.initial ?? "");
  const sending = useRef(false);
  const hint = useId();
  const isEmpty = text.trim() === "" && (files?.items.length ?? 0) === 0;

  const submit = async () => {
    if (sending.current || busy || disabled || isEmpty) return;
    sending.current = true;
    const sent = text;
    setText("");
    try {
      await props.onSend(sent.trim());
    } catch {
      // `onSend` shows the error, and the user need not write the text again.
      setText((now) => (now === "" ? sent : now));
    } finally {
      sending.current = false;
    }
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void submit();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const { isComposing, keyCode } = event.nativeEvent;
    if (event.key !== "Enter" || event.shiftKey || isComposing || keyCode === COMPOSING) return;
    event.preventDefault();
    void submit();
  };
  const onStopClick = (event: MouseEvent) => {
    // An answer may begin between the clicks of a double-click on "send". The second one then reaches
    // the button that took its place.
    if (event.detail <= 1) onStop?.();
  };
  return (
    <form className="w-composer" onSubmit={onSubmit} {...files?.dropProps}>
      {files && <FilePreviews files={files} />}
      <div className="w-composer-grow" data-text={`${text} `}>
        <textarea
          rows={1}
          value={text}
          aria-label={label}
          aria-describedby={hint}
          placeholder={props.placeholder}
          disabled={disabled}
          // biome-ignore lint/a11y/noAutofocus: only where the field is what the page is for.
          autoFocus={props.autoFocus ?? false}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={files?.onPaste}
        />
      </div>
      <div className="w-composer-row">
        {files && <FileButton files={files} />}
        <span id={hint} className="w-note">
          {texts.composerHint}
        </span>
        {busy && onStop ? (
          <Button kind="danger" onClick={onStopClick}>
            {texts.stop}
          </Button>
        ) : (
          <Button kind="primary" type="submit" disabled={disabled || isEmpty} busy={busy}>
            {props.send ?? texts.send}
          </Button>
        )}
      </div>
    </form>
  );
}
