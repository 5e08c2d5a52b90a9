// A button that opens and closes what is below it.
import { Button } from "@wattle/page";
import { type ReactNode, useId } from "react";

interface DisclosureProps {
  /** Text of the button. */
  name: string;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  children: ReactNode;
}

/** The button, and its content while that is open. */
export function Disclosure({ name, isOpen, onToggle, children }: DisclosureProps) {
  const content = useId();
  return (
    <>
      <Button aria-expanded={isOpen} aria-controls={content} onClick={() => onToggle(!isOpen)}>
        {name}
      </Button>
      <div id={content}>{isOpen && children}</div>
    </>
  );
}
