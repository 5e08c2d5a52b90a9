// The choice of what is tried.
import { SelectField } from "@wattle/page";
import { visible } from "../part/text.tsx";
import styles from "./play.module.css";
import { TEXTS } from "./texts.ts";

/** A graph or a tool of an app, or a node or a tool of a plugin. */
export interface Subject {
  kind: "graph" | "node" | "tool";
  name: string;
}

interface SubjectFieldProps {
  /** What the address names, which stays chosen if it is not known. */
  chosen: Subject;
  known: readonly Subject[];
  onChoose: (subject: Subject) => void;
}

/** The choice of a subject. */
export function SubjectField({ chosen, known, onChoose }: SubjectFieldProps) {
  const isKnown = known.some((it) => keyOf(it) === keyOf(chosen));
  const subjects = isKnown ? known : [chosen, ...known];
  const choose = (value: string) => {
    const subject = subjects.find((it) => keyOf(it) === value);
    if (subject !== undefined) onChoose(subject);
  };
  return (
    <div className={styles.choice}>
      <SelectField
        label={TEXTS.subject}
        value={keyOf(chosen)}
        options={subjects.map((it) => ({
          value: keyOf(it),
          name: visible(TEXTS[it.kind](it.name)),
        }))}
        onChange={choose}
      />
    </div>
  );
}

/** Returns a text that differs for each subject. */
function keyOf({ kind, name }: Subject): string {
  return `${kind}:${name}`;
}
