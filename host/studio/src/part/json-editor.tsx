// An editor of JSON: a text field that says where the text is not JSON.
import { Button, TextField } from "@wattle/page";
import { parsed } from "./parse-json.ts";
import styles from "./part.module.css";

interface JsonEditorProps {
  label: string;
  text: string;
  onText: (text: string) => void;
  error?: string | undefined;
  /** Attributes by which a form finds the field. */
  mark?: Record<`data-${string}`, string>;
}

/** Lines of the field, within which longer texts scroll. */
const LEAST_ROWS = 3;
const MOST_ROWS = 16;

const TEXTS = { format: "Format the JSON" };

/** Edits a JSON document as text. */
export function JsonEditor({ label, text, onText, error, mark }: JsonEditorProps) {
  const found = parsed(text);
  const problem = text.trim() !== "" && "problem" in found ? found.problem : undefined;
  const rows = Math.min(Math.max(text.split("\n").length, LEAST_ROWS), MOST_ROWS);
  const format = () => {
    if ("value" in found) onText(JSON.stringify(found.value, undefined, 2));
  };
  return (
    <div className={styles.editor}>
      <TextField
        {...mark}
        label={label}
        error={problem ?? error}
        value={text}
        onChange={onText}
        rows={rows}
        spellCheck={false}
        autoComplete="off"
      />
      <Button onClick={format} disabled={!("value" in found)}>
        {TEXTS.format}
      </Button>
    </div>
  );
}
