// The answer to an interrupt: a form of its schema, and keys for the usual answers.
import { ApiError, Button } from "@wattle/page";
import { type KeyboardEvent, useMemo, useRef } from "react";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { checked } from "../part/schema-form/check.ts";
import { type Draft, draftOf } from "../part/schema-form/draft.ts";
import { fieldOf } from "../part/schema-form/field.ts";
import { focusAt, rendered } from "../part/schema-form/focus.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { Problems, useEntered } from "../part/schema-form/use-entered.tsx";
import { useKeyHint, useShortcut } from "../shell/keys.tsx";
import { ANSWER } from "./focus.ts";
import styles from "./inbox.module.css";
import type { InboxItem } from "./item.ts";
import { sendAnswer } from "./read.ts";
import { TEXTS } from "./texts.ts";
import { type Kind, type Verdict, verdictOf } from "./verdict.ts";

interface AnswerFormProps {
  item: InboxItem;
  /** Drafts of interrupts that a user left before the answer was sent, by their keys. */
  kept: Map<string, Draft>;
  keptKey: string;
  /** Called when the answer is sent. Returns what is called when the host has taken it. */
  onSend: () => () => void;
  /**
   * Called when the host says that the interrupt is not pending. Returns true if this is so; the
   * host also says it of a thread that has another run at the moment.
   */
  onConflict: () => Promise<boolean>;
}

/** The schema of an interrupt without one. A text is the usual answer. */
const ANYTHING = { anyOf: [{ type: "string", title: TEXTS.text }, { title: TEXTS.json }] };

const KEYS: Readonly<Record<Kind, string>> = { approve: "a", edit: "e", reject: "r" };

/** The form and its buttons. */
export function AnswerForm({ item, kept, keptKey, onSend, onConflict }: AnswerFormProps) {
  const { payload, response_schema } = item.interrupt;
  const box = useRef<HTMLFormElement>(null);
  const field = useMemo(() => fieldOf(response_schema ?? ANYTHING), [response_schema]);
  const entered = useEntered(field, () => kept.get(keptKey) ?? draftOf(field), box);
  const { draft, errors } = entered;
  const change = (next: Draft) => {
    kept.set(keptKey, next);
    entered.change(next);
  };
  const sending = useAttempt(async (answer: unknown) => {
    const onAnswered = onSend();
    try {
      await sendAnswer(item, answer);
    } catch (error) {
      const isConflict = error instanceof ApiError && [404, 409].includes(error.status ?? 0);
      if (isConflict && (await onConflict())) return;
      throw error;
    }
    onAnswered();
  });
  const submit = (chosen: Draft) => entered.submit(chosen, sending.act);
  const decide = ({ draft: chosen, hasFields }: Verdict, kind: Kind) => {
    change(chosen);
    const isComplete = checked(field, chosen).errors.size === 0;
    if (isComplete && (kind === "approve" || !hasFields)) submit(chosen);
    else rendered(() => focusAt(box.current, ""));
  };
  const verdicts = verdictsOf(field, payload, draft);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
      event.preventDefault();
      submit(draft);
    } else if (event.key === "Escape" && document.activeElement instanceof HTMLElement) {
      document.activeElement.blur();
    }
  };
  useKeyHint("Enter", TEXTS.toForm);
  useKeyHint("Ctrl+Enter", TEXTS.sendKeys);
  useKeyHint("Escape", TEXTS.leaveKey);
  return (
    <form
      ref={box}
      id={ANSWER}
      className={styles.answer}
      aria-label={TEXTS.answer}
      noValidate
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        submit(draft);
      }}
    >
      <SchemaForm field={field} draft={draft} onDraft={change} errors={errors} />
      <Problems errors={errors} />
      <Refusal error={sending.refusal} textOf={TEXTS.refused} />
      <div className={styles.buttons}>
        <Button type="submit" kind="primary" busy={sending.isBusy}>
          {sending.isBusy ? TEXTS.sending : TEXTS.send}
        </Button>
        {verdicts.map(({ kind, verdict }) => (
          <VerdictButton key={kind} kind={kind} onDecide={() => decide(verdict, kind)} />
        ))}
      </div>
    </form>
  );
}

function verdictsOf(
  field: ReturnType<typeof fieldOf>,
  payload: unknown,
  entered: Draft,
): readonly { kind: Kind; verdict: Verdict }[] {
  return (["approve", "edit", "reject"] as const).flatMap((kind) => {
    const verdict = verdictOf(field, kind, payload, entered);
    return verdict === undefined ? [] : [{ kind, verdict }];
  });
}

/** A button for a usual answer, and its key. */
function VerdictButton({ kind, onDecide }: { kind: Kind; onDecide: () => void }) {
  const key = KEYS[kind];
  useShortcut(key, TEXTS[kind], (event) => {
    // A key that is held down answers one question, and not all of them.
    if (!event.repeat) onDecide();
  });
  return (
    <Button
      kind={kind === "reject" ? "danger" : "plain"}
      aria-keyshortcuts={key}
      onClick={onDecide}
    >
      {TEXTS[kind]} <kbd>{key}</kbd>
    </Button>
  );
}
