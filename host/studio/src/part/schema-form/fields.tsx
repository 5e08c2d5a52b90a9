// The fields of a form, one part for each kind.
import { Button, SelectField, TextField } from "@wattle/page";
import { type MouseEvent, type ReactNode, useId } from "react";
import { JsonEditor } from "../json-editor.tsx";
import { visible } from "../text.tsx";
import type { Checked } from "./check.ts";
import { addedDraft, type Draft, draftOf, isSame, NONE, NOT_CHOSEN, pathOf } from "./draft.ts";
import type { ChoiceField, EnumField, Field, ListField, ObjectField } from "./field.ts";
import { focusAfter } from "./focus.ts";
import { labelOf, optionName, shown, valueName } from "./label.ts";
import { DESCRIPTION_CHARS, LIST_ITEMS, LISTED_VALUES, RADIO_BUTTONS } from "./limits.ts";
import styles from "./schema-form.module.css";
import { TEXTS } from "./texts.ts";

export interface FieldProps<F extends Field = Field> {
  field: F;
  draft: Draft;
  onDraft: (draft: Draft) => void;
  errors: Checked["errors"];
  /** The place of the value, as a JSON pointer. */
  path: string;
  /** Name of the field, if its schema has none. */
  label: string;
  isRequired: boolean;
}

/** Returns attributes by which a form finds a field. */
const markOf = (path: string) => ({ "data-path": path });

/** The field for a part of the value. */
export function FieldView(props: FieldProps) {
  const { field, draft, onDraft, errors, path } = props;
  if (draft.kind === "written" && field.kind !== "number") return <JsonPart {...props} />;
  switch (field.kind) {
    case "object":
      return <ObjectPart {...props} field={field} />;
    case "list":
      return <ListPart {...props} field={field} />;
    case "choice":
      return <ChoicePart {...props} field={field} />;
    case "enum":
      return <EnumPart {...props} field={field} />;
    case "boolean":
      return <BooleanPart {...props} />;
    case "text":
      return <TextPart {...props} field={field} />;
    case "const":
      return <ConstantPart {...props} field={field} />;
    case "number":
      return (
        <Described field={field}>
          <TextField
            {...markOf(path)}
            label={nameOf(props)}
            error={errors.get(path)}
            value={draft.kind === "written" ? draft.text : ""}
            onChange={(text) => onDraft({ kind: "written", text })}
            inputMode={field.isInteger ? "numeric" : "decimal"}
            autoComplete="off"
          />
        </Described>
      );
    default:
      return <JsonPart {...props} />;
  }
}

/** Returns the label of a field, which says whether a value is needed. */
function nameOf({ field, label, isRequired }: FieldProps): string {
  const name = labelOf(field, label);
  return isRequired ? name : TEXTS.optional(name);
}

/** A field with the description of its schema. */
function Described({ field, children }: { field: Field; children: ReactNode }) {
  const { description } = field;
  return (
    <div className={styles.field}>
      {children}
      {description !== undefined && description !== "" && (
        <p className="w-note">{shown(description, DESCRIPTION_CHARS)}</p>
      )}
    </div>
  );
}

interface GroupProps {
  props: FieldProps;
  children: ReactNode;
}

/** Fields that belong together, with the problem of all of them. */
function Group({ props, children }: GroupProps) {
  const { field, errors, path } = props;
  const { description } = field;
  const note = useId();
  const error = errors.get(path);
  return (
    <fieldset
      className={styles.group}
      data-path={path}
      data-whole={path === ""}
      aria-describedby={error === undefined ? undefined : note}
    >
      <legend>{nameOf(props)}</legend>
      {description !== undefined && description !== "" && (
        <p className="w-note">{shown(description, DESCRIPTION_CHARS)}</p>
      )}
      {children}
      {error !== undefined && (
        <p id={note} className="w-note" data-error={true}>
          {error}
        </p>
      )}
    </fieldset>
  );
}

function JsonPart(props: FieldProps) {
  const { field, draft, onDraft, errors, path } = props;
  return (
    <Described field={field}>
      <JsonEditor
        mark={markOf(path)}
        label={TEXTS.json(nameOf(props))}
        text={draft.kind === "written" ? draft.text : ""}
        onText={(text) => onDraft({ kind: "written", text })}
        error={errors.get(path)}
      />
    </Described>
  );
}

function ObjectPart(props: FieldProps<ObjectField>) {
  const { field, draft, onDraft, errors, path } = props;
  if (draft.kind !== "object") return <AddPart {...props} />;
  const { drafts } = draft;
  const set = (name: string, next: Draft) =>
    onDraft({ kind: "object", drafts: new Map(drafts).set(name, next) });
  return (
    <Group props={props}>
      {field.properties.map(({ name, field: of, isRequired }) => (
        <FieldView
          key={name}
          field={of}
          draft={drafts.get(name) ?? NONE}
          onDraft={(next) => set(name, next)}
          errors={errors}
          path={pathOf(path, name)}
          label={name}
          isRequired={isRequired}
        />
      ))}
      <RemoveButton {...props} />
    </Group>
  );
}

/** A button that begins a value that may be left out. */
function AddPart(props: FieldProps) {
  const { field, onDraft, label, path } = props;
  const add = ({ currentTarget }: MouseEvent<HTMLButtonElement>) => {
    onDraft(addedDraft(field));
    focusAfter(currentTarget, path);
  };
  return (
    <Described field={field}>
      <div>
        <Button {...markOf(path)} onClick={add}>
          {TEXTS.add(labelOf(field, label))}
        </Button>
      </div>
    </Described>
  );
}

/** A button that leaves out a value that is not required. */
function RemoveButton({ field, label, path, isRequired, onDraft }: FieldProps) {
  if (isRequired) return null;
  const remove = ({ currentTarget }: MouseEvent<HTMLButtonElement>) => {
    onDraft(NONE);
    focusAfter(currentTarget, path);
  };
  return (
    <div>
      <Button onClick={remove}>{TEXTS.remove(labelOf(field, label))}</Button>
    </div>
  );
}

function ListPart(props: FieldProps<ListField>) {
  const { field, draft, onDraft, errors, path } = props;
  if (draft.kind !== "list") return <AddPart {...props} />;
  const { items } = draft;
  const add = ({ currentTarget }: MouseEvent<HTMLButtonElement>) => {
    const id = 1 + Math.max(-1, ...items.map((item) => item.id));
    onDraft({ kind: "list", items: [...items, { id, draft: draftOf(field.item) }] });
    focusAfter(currentTarget, pathOf(path, items.length));
  };
  const set = (id: number, next: Draft) =>
    onDraft({
      kind: "list",
      items: items.map((item) => (item.id === id ? { id, draft: next } : item)),
    });
  const remove = (button: HTMLElement, id: number, index: number) => {
    const left = items.filter((item) => item.id !== id);
    onDraft({ kind: "list", items: left });
    // The next item, the last one, or the button that adds one.
    const next = Math.min(index, left.length - 1);
    focusAfter(button, next < 0 ? path : pathOf(path, next));
  };
  return (
    <Group props={props}>
      {items.map(({ id, draft: of }, index) => (
        <div key={id} className={styles.item}>
          <FieldView
            field={field.item}
            draft={of}
            onDraft={(next) => set(id, next)}
            errors={errors}
            path={pathOf(path, index)}
            label={TEXTS.item(index + 1)}
            isRequired
          />
          <Button onClick={({ currentTarget }) => remove(currentTarget, id, index)}>
            {TEXTS.remove(TEXTS.item(index + 1))}
          </Button>
        </div>
      ))}
      {items.length < LIST_ITEMS && (
        <div>
          <Button onClick={add}>{TEXTS.addItem}</Button>
        </div>
      )}
      <RemoveButton {...props} />
    </Group>
  );
}

function ChoicePart(props: FieldProps<ChoiceField>) {
  const { field, draft, onDraft, errors, path } = props;
  if (draft.kind !== "choice") return <AddPart {...props} />;
  const { index, drafts } = draft;
  const option = field.options[index];
  const choose = (next: number) => onDraft({ kind: "choice", index: next, drafts });
  const set = (next: Draft) =>
    onDraft({
      kind: "choice",
      index,
      drafts: field.options.map((_, at) => (at === index ? next : drafts[at])),
    });
  const names = field.options.map((of, at) => optionName(of, at));
  return (
    <Group props={props}>
      <OneOf names={names} index={index} onIndex={choose} path={path} />
      {option !== undefined && option.kind !== "const" && (
        <OptionView
          field={option}
          draft={drafts[index] ?? draftOf(option)}
          onDraft={set}
          errors={errors}
          path={path}
          label={names[index] ?? ""}
          isRequired
        />
      )}
      <RemoveButton {...props} />
    </Group>
  );
}

/** The fields of the chosen alternative. Its constants are what was chosen. */
function OptionView(props: FieldProps) {
  const { field, draft, onDraft, errors, path } = props;
  if (field.kind !== "object" || draft.kind !== "object") return <FieldView {...props} />;
  const { drafts } = draft;
  return field.properties
    .filter((property) => property.field.kind !== "const")
    .map(({ name, field: of, isRequired }) => (
      <FieldView
        key={name}
        field={of}
        draft={drafts.get(name) ?? NONE}
        onDraft={(next) => onDraft({ kind: "object", drafts: new Map(drafts).set(name, next) })}
        errors={errors}
        path={pathOf(path, name)}
        label={name}
        isRequired={isRequired}
      />
    ));
}

interface OneOfProps {
  names: readonly string[];
  index: number;
  onIndex: (index: number) => void;
  path: string;
}

/** A choice of one of several names, as buttons if they are few. */
function OneOf({ names, index, onIndex, path }: OneOfProps) {
  const group = useId();
  if (names.length > RADIO_BUTTONS) {
    return (
      <SelectField
        {...markOf(path)}
        label={TEXTS.select}
        value={String(index)}
        onChange={(text) => onIndex(Number(text))}
        options={listed(names, true)}
      />
    );
  }
  return (
    <div className={styles.radios}>
      {names.map((name, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the names do not change, and may be the same.
        <label key={at}>
          <input type="radio" name={group} checked={at === index} onChange={() => onIndex(at)} />
          <span>{name}</span>
        </label>
      ))}
    </div>
  );
}

function listed(names: readonly string[], hasNone: boolean): { value: string; name: string }[] {
  const options = names.map((name, at) => ({ value: String(at), name }));
  return hasNone ? [{ value: String(NOT_CHOSEN), name: "–" }, ...options] : options;
}

function BooleanPart(props: FieldProps) {
  const { draft, onDraft, isRequired, path } = props;
  const values = isRequired ? [true, false] : [true, false, undefined];
  const value =
    draft.kind === "value" && typeof draft.value === "boolean" ? draft.value : undefined;
  const index = values.indexOf(value);
  return (
    <Group props={props}>
      <OneOf
        names={[TEXTS.yes, TEXTS.no, TEXTS.leaveOut].slice(0, values.length)}
        index={index}
        onIndex={(at) => {
          const next = values[at];
          onDraft(next === undefined ? NONE : { kind: "value", value: next });
        }}
        path={path}
      />
    </Group>
  );
}

function EnumPart(props: FieldProps<EnumField>) {
  const { field, draft, onDraft, errors, path } = props;
  const { values } = field;
  if (values.length > LISTED_VALUES) return <ManyPart {...props} />;
  const value = draft.kind === "value" ? draft.value : undefined;
  const index =
    draft.kind === "value" ? values.findIndex((it) => isSame(it.value, value)) : NOT_CHOSEN;
  return (
    <Described field={field}>
      <SelectField
        {...markOf(path)}
        label={nameOf(props)}
        error={errors.get(path)}
        value={String(index)}
        onChange={(text) => {
          const chosen = values[Number(text)];
          onDraft(chosen === undefined ? NONE : { kind: "value", value: chosen.value });
        }}
        options={listed(values.map(valueName), true)}
      />
    </Described>
  );
}

/** A choice between many values: texts are found by a part of them, others are written as JSON. */
function ManyPart(props: FieldProps<EnumField>) {
  const { field, draft, onDraft, errors, path } = props;
  const list = useId();
  const texts = field.values.map(({ value }) => value);
  if (!texts.every((value) => typeof value === "string")) return <JsonPart {...props} />;
  const entered = draft.kind === "value" && typeof draft.value === "string" ? draft.value : "";
  const found: string[] = [];
  for (const text of texts) {
    if (found.length >= LISTED_VALUES) break;
    if (text.includes(entered)) found.push(text);
  }
  return (
    <Described field={field}>
      <TextField
        {...markOf(path)}
        label={TEXTS.find(nameOf(props), texts.length)}
        error={errors.get(path)}
        value={entered}
        onChange={(value) => onDraft(value === "" ? NONE : { kind: "value", value })}
        list={list}
        autoComplete="off"
      />
      <datalist id={list}>
        {found.map((text) => (
          <option key={text} value={text} />
        ))}
      </datalist>
    </Described>
  );
}

const INPUT_TYPES: Readonly<Record<string, string>> = { date: "date", email: "email", uri: "url" };

const EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2026-01-31T12:00:00Z",
  time: "12:00:00Z",
};

function TextPart(props: FieldProps<Field & { kind: "text" }>) {
  const { field, draft, onDraft, errors, path, isRequired } = props;
  const { format = "" } = field;
  const value = draft.kind === "value" && typeof draft.value === "string" ? draft.value : "";
  const common = {
    ...markOf(path),
    label: nameOf(props),
    error: errors.get(path),
    value,
    // An empty text is a value. One that may be left out is left out instead.
    onChange: (text: string) =>
      onDraft(text === "" && !isRequired ? NONE : { kind: "value", value: text }),
    autoComplete: "off",
    ...(Object.hasOwn(EXAMPLES, format) ? { placeholder: EXAMPLES[format] } : {}),
  };
  const type = Object.hasOwn(INPUT_TYPES, format) ? INPUT_TYPES[format] : "text";
  const isLong = field.isLong || value.includes("\n");
  const seen = visible(value);
  return (
    <Described field={field}>
      {isLong ? <TextField {...common} rows={2} /> : <TextField {...common} type={type} />}
      {seen !== value && <p className="w-note">{TEXTS.hidden(shown(seen, DESCRIPTION_CHARS))}</p>}
    </Described>
  );
}

function ConstantPart(props: FieldProps<Field & { kind: "const" }>) {
  return (
    <Described field={props.field}>
      <p>
        {labelOf(props.field, props.label)}: <code>{valueName(props.field)}</code>
      </p>
    </Described>
  );
}
