// The button that opens the edit of a state. The form is loaded when it is opened.
import { lazy, Suspense, useState } from "react";
import { Guarded } from "../access/access.tsx";
import { Disclosure } from "../part/disclosure.tsx";
import type { Go } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import type { Checkpoint, GraphPlace } from "../state/read.ts";
import { EDIT } from "./texts.ts";
import styles from "./travel.module.css";

const EditForm = lazy(() => import("./edit-form.tsx"));

interface EditButtonProps {
  place: GraphPlace;
  /** Number of the checkpoint, or `latest`. */
  checkpoint: string;
  /** Called with what goes to a route if the user has not left the view. */
  onEdited: (made: Checkpoint, go: Go) => void;
}

/** The edit of a state, if the key permits it. */
export function EditButton(props: EditButtonProps) {
  return (
    <Guarded need="write">
      <Toggled {...props} />
    </Guarded>
  );
}

function Toggled({ place, checkpoint, onEdited }: EditButtonProps) {
  const [isOpen, setOpen] = useState(false);
  useShortcut("e", EDIT.open, () => setOpen(true));
  const finish = (made: Checkpoint, go: Go) => {
    setOpen(false);
    onEdited(made, go);
  };
  return (
    <section className={`${styles.fork} ${styles.edit}`} aria-label={EDIT.open}>
      <Disclosure name={EDIT.open} isOpen={isOpen} onToggle={setOpen}>
        <Suspense fallback={<p role="status">{EDIT.opening}</p>}>
          <EditForm place={place} checkpoint={checkpoint} onEdited={finish} />
        </Suspense>
      </Disclosure>
    </section>
  );
}
