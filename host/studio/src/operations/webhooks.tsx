// Webhooks with their deliveries: those that wait, and those that were abandoned or delivered.
import { Segments } from "@wattle/page";
import { api, ok, type Schemas } from "../api/client.ts";
import { countText, msText } from "../part/amount.ts";
import { Facts, textFact, timeFact } from "../part/facts.tsx";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time } from "../part/time.tsx";
import { runRoute } from "../router/links.tsx";
import type { OperationsFilter } from "./filter.ts";
import { Filters, useSet } from "./filters.tsx";
import { Paged } from "./list.tsx";
import styles from "./operations.module.css";
import { usePages } from "./read.ts";
import { TEXTS, WEBHOOKS } from "./texts.ts";

type Webhook = Schemas["WebhookDocument"];

type Attempt = Schemas["WebhookAttemptDocument"];

const STATUSES = (["pending", "abandoned", "delivered"] as const).map((value) => ({
  value,
  name: WEBHOOKS.statuses[value],
}));

export function Webhooks({ filter }: { filter: OperationsFilter }) {
  const { status = "pending", tenant } = filter;
  const set = useSet(filter);
  const list = usePages(["webhooks", status], tenant, (page) =>
    ok(api.GET("/api/v1/webhooks", { params: { query: { ...page, status } } })),
  );
  const none = WEBHOOKS.none[status];
  return (
    <>
      <Filters filter={filter}>
        <Segments label={TEXTS.status} options={STATUSES} value={status} onChange={set("status")} />
      </Filters>
      <Paged list={list} none={list.isComplete ? none : TEXTS.noneFound}>
        {(rows) => (
          <ul className={styles.items} aria-label={WEBHOOKS.list}>
            {rows.map((webhook) => (
              <li key={webhook.run}>
                <WebhookItem webhook={webhook} />
              </li>
            ))}
          </ul>
        )}
      </Paged>
    </>
  );
}

function WebhookItem({ webhook }: { webhook: Webhook }) {
  const { run, thread, url, attempts, last_error, next_ms, host } = webhook;
  const { abandoned_ms, delivered_ms, attempt_log = [] } = webhook;
  const tenant = webhook.tenant ?? undefined;
  return (
    <article className={styles.item} data-webhook={run}>
      <h4>
        <ThreadLink to={runRoute({ thread, run, tenant })} tenant={tenant}>
          <Text>{run}</Text>
        </ThreadLink>
      </h4>
      {!webhook.has_ended && <p>{WEBHOOKS.waits}</p>}
      {last_error != null && (
        <p className={styles.error}>
          {WEBHOOKS.error}: <Text>{last_error}</Text>
        </p>
      )}
      <Facts
        facts={[
          [WEBHOOKS.url, textFact(url)],
          [WEBHOOKS.attempts, countText(attempts)],
          [WEBHOOKS.next, timeFact(next_ms)],
          [WEBHOOKS.abandoned, timeFact(abandoned_ms)],
          [WEBHOOKS.delivered, timeFact(delivered_ms)],
          [TEXTS.tenant, textFact(tenant)],
          [WEBHOOKS.host, textFact(host)],
        ]}
      />
      {attempt_log.length > 0 && <Attempts attempts={attempt_log} />}
    </article>
  );
}

/** The newest attempts to deliver a webhook, oldest first. */
function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  return (
    <section className={styles.attempts} aria-label={WEBHOOKS.log}>
      <h5>{WEBHOOKS.log}</h5>
      <ol>
        {attempts.map(({ at_ms, duration_ms, status, error }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an attempt has no other name.
          <li key={index} data-status={status}>
            <Time ms={at_ms} />
            <span>{status == null ? WEBHOOKS.noResponse : WEBHOOKS.response(status)}</span>
            <span>{msText(duration_ms)}</span>
            {error != null && <Text>{error}</Text>}
          </li>
        ))}
      </ol>
    </section>
  );
}
