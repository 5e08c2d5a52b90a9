// The login: a key, or the tenant that a proxy in front of the host has not named.
import { Alert, Button, Shell, TextField } from "@wattle/page";
import { type FormEvent, useState } from "react";
import styles from "./access.module.css";
import { credentials, setKey, setTenant } from "./key.ts";
import { TEXTS } from "./texts.ts";
import type { Missing } from "./unauthorized.ts";

/** Characters that a header can have: printable ASCII, and no spaces. */
const HEADER_VALUE = /^[!-~]+$/;

/** Asks for what is missing. */
export function Login({ missing }: { missing: Missing }) {
  return (
    <Shell title={TEXTS.studio} tab={TEXTS.loginTab}>
      <div className={styles.login}>
        {missing.what === "key" ? <KeyForm /> : <TenantForm header={missing.header} />}
      </div>
    </Shell>
  );
}

function KeyForm() {
  const { refusal } = credentials();
  return (
    <>
      <h2>{TEXTS.login}</h2>
      <p>{TEXTS.keyNeeded}</p>
      {refusal !== null && <Alert>{TEXTS.refused(refusal)}</Alert>}
      <ValueForm label={TEXTS.key} action={TEXTS.enter} isSecret onValue={setKey} />
      <p className="w-note">{TEXTS.keyKept}</p>
    </>
  );
}

function TenantForm({ header }: { header: string }) {
  return (
    <>
      <h2>{TEXTS.tenantTitle}</h2>
      <p>{TEXTS.tenantNeeded(header)}</p>
      <ValueForm
        label={TEXTS.tenant}
        action={TEXTS.continue}
        onValue={(tenant) => setTenant(header, tenant)}
      />
    </>
  );
}

interface ValueFormProps {
  label: string;
  action: string;
  isSecret?: boolean;
  /** Returns why a value is not accepted; `undefined` if it is. */
  problemOf?: (value: string) => string | undefined;
  onValue: (value: string) => void;
}

/** A form of one value that is sent in a header. */
export function ValueForm(props: ValueFormProps) {
  const { label, action, isSecret = false, problemOf = () => undefined, onValue } = props;
  const [value, setValue] = useState("");
  const [error, setError] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const trimmed = value.trim();
    const problem = HEADER_VALUE.test(trimmed) ? problemOf(trimmed) : TEXTS.notPrintable;
    setError(problem);
    if (problem === undefined) onValue(trimmed);
  };
  return (
    <form onSubmit={submit} className={styles.form}>
      <TextField
        label={label}
        error={error}
        value={value}
        onChange={setValue}
        type={isSecret ? "password" : "text"}
        autoComplete="off"
        spellCheck={false}
        required
      />
      <Button type="submit" kind="primary">
        {action}
      </Button>
    </form>
  );
}
