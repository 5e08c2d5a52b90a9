// A choice between few values, one of which is always selected.
import { useId } from "react";
import "./control.css";

interface SegmentsProps<T extends string | number> {
  /** Name of the choice, for screen readers. */
  label: string;
  options: readonly { value: T; name: string }[];
  value: T;
  onChange: (value: T) => void;
}

/** Radio buttons that look like one control. */
export function Segments<T extends string | number>(props: SegmentsProps<T>) {
  const name = useId();
  return (
    <fieldset className="w-segments">
      <legend className="w-hidden">{props.label}</legend>
      {props.options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            checked={option.value === props.value}
            onChange={() => props.onChange(option.value)}
          />
          <span>{option.name}</span>
        </label>
      ))}
    </fieldset>
  );
}
