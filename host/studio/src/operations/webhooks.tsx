// The webhooks that were not delivered.
import { Segments } from "@wattle/page";
import { api, ok, type Schemas } from "../api/client.ts";
import { countText } from "../part/amount.ts";
import { Facts, textFact, timeFact } from "../part/facts.tsx";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { runRoute } from "../router/links.tsx";
import type { OperationsFilter } from "./filter.ts";
import { Filters, useSet } from "./filters.tsx";
import { Paged } from "./list.tsx";
import styles from "./operations.module.css";
import { usePages } from "./read.ts";
import { TEXTS, WEBHOOKS } from "./texts.ts";

type Webhook = Schemas["WebhookDocument"];

const STATUSES = (["pending", "abandoned"] as const).map((value) => ({
  value,
  name: WEBHOOKS.statuses[value],
}));

export function Webhooks({ filter }: { filter: OperationsFilter }) {
  const { status = "pending", tenant } = filter;
  const set = useSet(filter);
  const list = usePages(["webhooks", status], tenant, (page) =>
    ok(api.GET("/api/v1/webhooks", { params: { query: { ...page, status } } })),
  );
  const none = status === "pending" ? WEBHOOKS.nonePending : WEBHOOKS.noneAbandoned;
  return (
    <>
      <Filters filter={filter}>
        <Segments label={TEXTS.status} options={STATUSES} value={status} onChange={set("status")} />
      </Filters>
      <Paged list={list} none={none}>
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
  const { run, thread, url, attempts, last_error, next_ms, abandoned_ms, host } = webhook;
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
          [TEXTS.tenant, textFact(tenant)],
          [WEBHOOKS.host, textFact(host)],
        ]}
      />
    </article>
  );
}
