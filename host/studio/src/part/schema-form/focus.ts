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
  const places = form?.querySelectorAll<HTMLElement>("[data-path]") ?? [];
  const place = [...places].find(({ dataset }) => dataset.path === path) ?? form;
  const within = [...(place?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])];
  const chosen = within.filter(isRadio).find((element) => element.checked)?.name;
  const found = within.find((element) => !isRadio(element) || element.name !== chosen) ?? within[0];
  const target = place?.matches(CONTROLS) ? place : found;
  if (target instanceof HTMLElement) target.focus();
}

function isRadio(element: HTMLElement): element is HTMLInputElement {
  return element instanceof HTMLInputElement && element.type === "radio";
}

/**
 * Gives the focus to the field at a path of the form around a button, when React has rendered what
 * the button changed. The button may be gone, and keys without a focus are shortcuts of the view.
 */
export function focusAfter(button: HTMLElement, path: string): void {
  const form = button.closest<HTMLElement>("[data-form]");
  rendered(() => focusAt(form, path));
}
