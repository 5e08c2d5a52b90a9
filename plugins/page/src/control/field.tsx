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
  error?: string | undefined;
}

/** Attributes that connect a control to its label and error. */
interface ControlProps {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

/** Label and error around the control that `children` renders. */
function Field(props: Described & { children: (control: ControlProps) => ReactNode }) {
  const { label, error, children } = props;
  const id = useId();
  const note = `${id}-note`;
  const control: ControlProps =
    error === undefined ? { id } : { id, "aria-invalid": true, "aria-describedby": note };
  return (
    <div className="w-field">
      <label htmlFor={id}>{label}</label>
      {children(control)}
      {error !== undefined && (
        <p id={note} className="w-note" data-error={true}>
          {error}
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
export function TextField({ label, error, onChange, ...rest }: TextProps) {
  return (
    <Field label={label} error={error}>
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
export function SelectField({ label, error, options, onChange, ...rest }: SelectProps) {
  return (
    <Field label={label} error={error}>
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
