// The keys that were created: their list, new ones, and their end.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, ApiError, Button } from "@wattle/page";
import { useState } from "react";
import { useAccess } from "../access/access.tsx";
import { api, ok, type Schemas } from "../api/client.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { Checkbox } from "../part/checkbox.tsx";
import { Confirm } from "../part/confirm.tsx";
import { Facts, textFact, timeFact } from "../part/facts.tsx";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { Reading } from "../shell/failure.tsx";
import { KeyForm, Made } from "./key-form.tsx";
import styles from "./operations.module.css";
import { SCAN_INTERVAL_MS } from "./read.ts";
import { KEYS, TEXTS } from "./texts.ts";

type Key = Schemas["KeyDocument"];

/** The status of a response that would leave the host without a key. */
const CONFLICT = 409;

export function Keys() {
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: () => ok(api.GET("/api/v1/keys")),
    refetchInterval: SCAN_INTERVAL_MS,
  });
  const { data } = keys;
  // Of a revoked key, those that it created may go on.
  const [left, setLeft] = useState(0);
  return (
    <>
      <Made />
      <KeyForm />
      <p className="w-note">{KEYS.configured}</p>
      {left > 0 && <Alert kind="warning">{KEYS.left(left)}</Alert>}
      <Reading of={keys} />
      {data?.length === 0 && <p>{KEYS.none}</p>}
      {data !== undefined && data.length > 0 && (
        <ul className={styles.items} aria-label={KEYS.list}>
          {data.map((key) => (
            <li key={key.id}>
              <KeyItem item={key} onLeft={setLeft} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface KeyProps {
  item: Key;
  /** Called with the number of keys that a revoked key created and that still work. */
  onLeft: (count: number) => void;
}

function KeyItem({ item, onLeft }: KeyProps) {
  const { id, name, tenant, scopes, rate, created_ms, expires_ms, used_ms, made_by } = item;
  const isOwn = useAccess().key?.id === id;
  const isExpired = expires_ms != null && expires_ms <= Date.now();
  return (
    <article className={styles.item} data-key={id}>
      <h4>
        <Text>{name}</Text> {isExpired && <Status name={KEYS.expired} />}
        {isOwn && ` (${KEYS.own})`}
      </h4>
      <Facts
        facts={[
          [KEYS.id, textFact(id)],
          [KEYS.scope, scopes.map((scope) => KEYS.scopes[scope]).join(", ")],
          [TEXTS.tenant, textFact(tenant)],
          [KEYS.rateLimit, rate ?? undefined],
          [TEXTS.created, timeFact(created_ms)],
          [KEYS.expires, timeFact(expires_ms)],
          [KEYS.used, timeFact(used_ms) ?? KEYS.unused],
          [KEYS.madeBy, textFact(made_by)],
        ]}
      />
      <Revoke item={item} isOwn={isOwn} onLeft={onLeft} />
    </article>
  );
}

/** The end of a key, which a user confirms. */
function Revoke({ item: { id, name }, isOwn, onLeft }: KeyProps & { isOwn: boolean }) {
  const client = useQueryClient();
  const { is_operator } = useAccess();
  const [isOpen, setOpen] = useState(false);
  const [withMade, setWithMade] = useState(false);
  const [isOpening, setOpening] = useState(false);
  const { act, isBusy, refusal, forget } = useAttempt(async (open: boolean) => {
    const query = { ...(withMade ? { made: true } : {}), ...(open ? { open: true } : {}) };
    const params = { path: { key: id }, query };
    const { left } = await ok(api.DELETE("/api/v1/keys/{key}", { params }));
    onLeft(left.length);
    setOpen(false);
    await client.invalidateQueries({ queryKey: ["keys"] });
  });
  // Without its last key, a host is open.
  const isLast = refusal instanceof ApiError && refusal.status === CONFLICT && is_operator;
  const choose = (value: boolean) => {
    forget();
    setWithMade(value);
    setOpening(false);
  };
  const ask = () => {
    choose(false);
    setOpen(true);
  };
  const revoke = () => {
    // A user opens the host by one more choice, which a further click on the button does not make.
    act(isLast && isOpening);
    setOpening(false);
  };
  return (
    <>
      <p className={styles.buttons}>
        <Button kind="danger" aria-label={KEYS.revokeName(visible(name))} onClick={ask}>
          {KEYS.revoke}
        </Button>
      </p>
      <Confirm
        open={isOpen}
        title={KEYS.revokeTitle(visible(name))}
        name={KEYS.revoke}
        isBusy={isBusy}
        onConfirm={revoke}
        onClose={() => setOpen(false)}
      >
        <div className={styles.question}>
          <p>{isOwn ? KEYS.confirmOwn : KEYS.confirm}</p>
          <Checkbox checked={withMade} onChange={choose}>
            {KEYS.withMade}
          </Checkbox>
          <Refusal error={refusal} />
          {isLast && (
            <>
              <Alert kind="warning">{KEYS.lastNote}</Alert>
              <Checkbox checked={isOpening} onChange={setOpening}>
                {KEYS.last}
              </Checkbox>
            </>
          )}
        </div>
      </Confirm>
    </>
  );
}
