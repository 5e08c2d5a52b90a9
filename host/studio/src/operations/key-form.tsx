// Creates a key, and shows it once.
import { useQueryClient } from "@tanstack/react-query";
import { Alert, Button, SelectField, TextField } from "@wattle/page";
import { type FormEvent, useState, useSyncExternalStore } from "react";
import { useAccess } from "../access/access.tsx";
import { setKey } from "../access/key.ts";
import { choosesTenant } from "../access/tenant.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { CopyButton } from "../part/copy-button.tsx";
import { Disclosure } from "../part/disclosure.tsx";
import { visible } from "../part/text.tsx";
import { type MadeKey, madeKey, showKey, watchMadeKey } from "./made-key.ts";
import styles from "./operations.module.css";
import { KEYS } from "./texts.ts";

type NewKey = Schemas["NewKeyDocument"];

type Scope = Schemas["KeyScope"];

const SCOPES = ["read", "write", "admin"] as const satisfies readonly Scope[];

const DAY_MS = 86_400_000;

/** A whole number of days, of at most ten years. */
const DAYS = /^[1-9][0-9]{0,3}$/;

/** What was entered, as text. */
interface Draft {
  name: string;
  scope: Scope;
  tenant: string;
  rate: string;
  days: string;
}

/** Returns the request for a key; the fields that are not valid, with the reasons. */
export function newKeyOf(draft: Draft): NewKey | Partial<Record<keyof Draft, string>> {
  const { name, scope, tenant, rate, days } = draft;
  const problems = {
    ...(name.trim() === "" ? { name: KEYS.nameNeeded } : {}),
    ...(days.trim() === "" || DAYS.test(days.trim()) ? {} : { days: KEYS.daysProblem }),
  };
  if (Object.keys(problems).length > 0) return problems;
  return {
    name: name.trim(),
    scopes: [scope],
    ...(tenant.trim() === "" ? {} : { tenant: tenant.trim() }),
    ...(rate.trim() === "" ? {} : { rate: rate.trim() }),
    ...(days.trim() === "" ? {} : { expires_in_ms: Number(days) * DAY_MS }),
  };
}

function isNewKey(found: ReturnType<typeof newKeyOf>): found is NewKey {
  return "scopes" in found;
}

export function KeyForm() {
  const { needs_key } = useAccess();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {!needs_key && <Alert kind="warning">{KEYS.open}</Alert>}
      <div className={styles.create}>
        <Disclosure name={KEYS.create} isOpen={isOpen} onToggle={setOpen}>
          <Fields onDone={() => setOpen(false)} />
        </Disclosure>
      </div>
    </>
  );
}

function Fields({ onDone }: { onDone: () => void }) {
  const access = useAccess();
  const client = useQueryClient();
  const [draft, setDraft] = useState<Draft>({
    name: "",
    // The first key of a host is that of whoever creates the next ones.
    scope: access.needs_key ? "write" : "admin",
    tenant: "",
    rate: "",
    days: "",
  });
  const [problems, setProblems] = useState<Partial<Record<keyof Draft, string>>>({});
  const set = (field: keyof Draft) => (value: string) => setDraft({ ...draft, [field]: value });
  const creating = useAttempt(async (body: NewKey) => {
    const made = await ok(api.POST("/api/v1/keys", { body }));
    showKey(made);
    onDone();
    // From now on this tab needs a key, too.
    if (!access.needs_key) setKey(made.key);
    await client.invalidateQueries({ queryKey: ["keys"] });
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = newKeyOf(draft);
    setProblems(isNewKey(found) ? {} : found);
    if (isNewKey(found)) creating.act(found);
  };
  const text = (
    field: "name" | "tenant" | "rate" | "days",
    label: string,
    placeholder?: string,
  ) => (
    <TextField
      label={label}
      value={draft[field]}
      onChange={set(field)}
      error={problems[field]}
      autoComplete="off"
      spellCheck={false}
      {...(placeholder === undefined ? {} : { placeholder })}
    />
  );
  return (
    <form className={styles.form} noValidate onSubmit={submit} aria-label={KEYS.create}>
      <div className={styles.fields}>
        {text("name", KEYS.name)}
        <SelectField
          label={KEYS.scope}
          value={draft.scope}
          onChange={set("scope")}
          options={SCOPES.map((value) => ({ value, name: KEYS.scopes[value] }))}
        />
        {choosesTenant(access) && text("tenant", KEYS.tenantOptional)}
        {text("rate", KEYS.rate, KEYS.rateHint)}
        {text("days", KEYS.days)}
      </div>
      <Refusal error={creating.refusal} />
      <p className={styles.buttons}>
        <Button type="submit" kind="primary" busy={creating.isBusy}>
          {KEYS.send}
        </Button>
      </p>
    </form>
  );
}

/** The key that was created last. */
export function Made() {
  const made = useSyncExternalStore(watchMadeKey, madeKey);
  return made === undefined ? null : <Shown key={made.id} made={made} />;
}

function Shown({ made: { name, key } }: { made: MadeKey }) {
  return (
    <section className={styles.made} aria-label={KEYS.secret}>
      <p role="status">{KEYS.made(visible(name))}</p>
      <code className={styles.secret}>{key}</code>
      <p className={styles.buttons}>
        <CopyButton text={key} />
        <Button onClick={() => showKey(undefined)}>{KEYS.hide}</Button>
      </p>
    </section>
  );
}
