// A form for values of a JSON Schema. What a schema says is data of a stranger: its texts are cut,
// and its limits are those of `limits.ts`.
import { Button } from "@wattle/page";
import { useState } from "react";
import { type Checked, checked } from "./check.ts";
import { type Draft, draftOf, jsonText } from "./draft.ts";
import type { Field } from "./field.ts";
import { FieldView } from "./fields.tsx";
import styles from "./schema-form.module.css";
import { TEXTS } from "./texts.ts";

interface SchemaFormProps {
  /** The field of the whole value, as `fieldOf` returns it. */
  field: Field;
  draft: Draft;
  onDraft: (draft: Draft) => void;
  /** Problems by the path of their field. */
  errors: Checked["errors"];
  /** Name of the whole value, if the schema has none. */
  label?: string;
}

/** The fields of a schema. A user can edit the whole value as JSON instead. */
export function SchemaForm(props: SchemaFormProps) {
  const { field, draft, onDraft, errors, label = TEXTS.answer } = props;
  return (
    <div className={styles.form} data-form>
      <FieldView
        field={field}
        draft={draft}
        onDraft={onDraft}
        errors={errors}
        path=""
        label={label}
        isRequired
      />
      {field.kind !== "json" && <Switch field={field} draft={draft} onDraft={onDraft} />}
    </div>
  );
}

/** Changes between the form and JSON. A value for which the form has no place stays JSON. */
function Switch({ field, draft, onDraft }: Omit<SchemaFormProps, "errors" | "label">) {
  const [refused, setRefused] = useState<Draft>();
  const isJson = draft.kind === "written" && field.kind !== "number";
  const change = () => {
    const { value } = checked(field, draft);
    if (!isJson) {
      onDraft({ kind: "written", text: value === undefined ? "" : jsonText(value) });
      return;
    }
    const next = draftOf(field, value);
    if (next.kind === "written") setRefused(draft);
    else onDraft(next);
  };
  if (field.kind === "number") return null;
  return (
    <div className={styles.switch}>
      <Button onClick={change}>{isJson ? TEXTS.asForm : TEXTS.asJson}</Button>
      {isJson && refused === draft && (
        <p className="w-note" role="status">
          {TEXTS.noForm}
        </p>
      )}
    </div>
  );
}
