// Where the focus goes in a form of a schema.

const CONTROLS = "input, select, textarea, button";

/** Runs `act` when React has rendered what changed. */
export function rendered(act: () => void): void {
  setTimeout(act);
}

/**
 * Gives the focus to the field at a path, or to the first one at this path. Where an alternative is
 * chosen already, it is the first field of this alternative.
 */
export function focusAt(form: HTMLElement | null, path: string): void {
  const place = form?.querySelector(`[data-path="${CSS.escape(path)}"]`) ?? form;
  const within = [...(place?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])];
  const isChoice = (element: Element) =>
    element instanceof HTMLInputElement && element.type === "radio";
  const isChosen = within.some((element) => isChoice(element) && element.matches(":checked"));
  const found = within.find((element) => !(isChosen && isChoice(element))) ?? within[0];
  const target = place?.matches(CONTROLS) ? place : found;
  if (target instanceof HTMLElement) target.focus();
}
