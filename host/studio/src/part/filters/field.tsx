// A field of a filter whose value has an effect when it is complete.
import { TextField } from "@wattle/page";
import {
  type FormEvent,
  type InputHTMLAttributes,
  useEffect,
  useEffectEvent,
  useState,
} from "react";
import { TEXTS } from "./texts.ts";

/** Time after the last key until a value is complete, in milliseconds. */
const PAUSE_MS = 700;

interface FilterFieldProps {
  label: string;
  type?: "text" | "search" | "datetime-local";
  placeholder?: string;
  /** The value that has an effect now. */
  value: string;
  /** Returns why a value cannot have an effect; `undefined` if it can. */
  problemOf?: (value: string) => string | undefined;
  onValue: (value: string) => void;
}

/**
 * A field whose value has an effect with Enter, after a pause, and when a user leaves the field. A
 * value that is not valid stays in the field, with the reason.
 */
export function FilterField(props: FilterFieldProps) {
  const { value, problemOf = () => undefined, onValue, label, ...rest } = props;
  const [draft, setDraft] = useState(value);
  const [problem, setProblem] = useState<string>();
  // What this field has set, which comes back as its value.
  const [sent, setSent] = useState(value);
  const [known, setKnown] = useState(value);
  // A date of which a part is missing has an empty value.
  const [isPartial, setPartial] = useState(false);
  if (known !== value) {
    setKnown(value);
    if (value !== sent) {
      setDraft(value);
      setSent(value);
      setProblem(undefined);
    }
  }
  const apply = (text: string) => {
    const next = text.trim();
    if (isPartial || next === value) return;
    const found = next === "" ? undefined : problemOf(next);
    setProblem(found);
    if (found !== undefined) return;
    setSent(next);
    onValue(next);
  };
  const applyLater = useEffectEvent(apply);
  useEffect(() => {
    const timer = setTimeout(() => applyLater(draft), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const leave = () => {
    if (isPartial) setProblem(TEXTS.partial);
    else apply(draft);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    leave();
  };
  const input: InputHTMLAttributes<HTMLInputElement> = {
    ...rest,
    onInput: ({ currentTarget }) => setPartial(currentTarget.validity.badInput),
  };
  return (
    <form onSubmit={submit}>
      <TextField
        {...input}
        label={label}
        error={problem}
        value={draft}
        onChange={(text) => {
          setDraft(text);
          setProblem(undefined);
        }}
        onBlur={leave}
        autoComplete="off"
        spellCheck={false}
      />
    </form>
  );
}
