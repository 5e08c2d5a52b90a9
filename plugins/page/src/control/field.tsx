// Labeled fields.
import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from "react";
import "./control.css";

interface Described {
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  /** Only screen readers get the label, if the context shows what the field is. */
  hideLabel?: boolean;
}

/** Attributes that connect a control to its label, hint and error. */
interface ControlProps {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

/** Label, hint and error around the control that `children` renders. */
export function Field(props: Described & { children: (control: ControlProps) => ReactNode }) {
  const id = useId();
  const note = props.error ?? props.hint;
  const control: ControlProps = { id };
  if (note !== undefined) control["aria-describedby"] = `${id}-note`;
  if (props.error !== undefined) control["aria-invalid"] = true;
  return (
    <div className="w-field">
      <label htmlFor={id} className={props.hideLabel ? "w-hidden" : undefined}>
        {props.label}
      </label>
      {props.children(control)}
      {note !== undefined && (
        <p id={`${id}-note`} className="w-note" data-error={props.error !== undefined}>
          {note}
        </p>
      )}
    </div>
  );
}

type TextProps = Described & { value: string; onChange: (value: string) => void } & (
    | ({ rows?: undefined } & Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value">)
    | ({ rows: number } & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "onChange" | "value">)
  );

/** A text field of one line, or of several lines if it has `rows`. */
export function TextField({ label, hint, error, hideLabel, onChange, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error} hideLabel={hideLabel ?? false}>
      {(control) =>
        rest.rows === undefined ? (
          <input
            {...rest}
            {...control}
            className="w-input"
            onChange={(event) => onChange(event.target.value)}
          />
        ) : (
          <textarea
            {...rest}
            {...control}
            className="w-input"
            onChange={(event) => onChange(event.target.value)}
          />
        )
      }
    </Field>
  );
}

type SelectProps = Described & {
  value: string;
  onChange: (value: string) => void;
  options: readonly { value: string; name: string }[];
} & Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value">;

/** A choice of one of several values. */
export function SelectField(props: SelectProps) {
  const { label, hint, error, hideLabel, options, onChange, ...rest } = props;
  return (
    <Field label={label} hint={hint} error={error} hideLabel={hideLabel ?? false}>
      {(control) => (
        <select
          {...rest}
          {...control}
          className="w-input"
          onChange={(event) => onChange(event.target.value)}
        >
          {options.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
