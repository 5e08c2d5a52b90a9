// The model routes of the host, and the prices of models.
import { useQuery } from "@tanstack/react-query";
import { Panel } from "@wattle/page";
import type { ReactNode } from "react";
import { Guarded } from "../access/access.tsx";
import { api, ok, type Schemas } from "../api/client.ts";
import { Panels } from "../part/panels.tsx";
import { Text } from "../part/text.tsx";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import styles from "./models.module.css";
import { TEXTS } from "./texts.ts";

type Models = Schemas["ModelsDocument"];
type Price = Models["prices"][string];

/** The most digits of a price after the point. */
const PRICE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

export default function ModelsPage() {
  useTitle(TEXTS.title);
  return (
    <Panels>
      <h2>{TEXTS.title}</h2>
      <Guarded need="operator" otherwise={<p>{TEXTS.forbidden}</p>}>
        <Read />
      </Guarded>
    </Panels>
  );
}

function Read() {
  const models = useQuery({
    queryKey: ["models"],
    queryFn: () => ok(api.GET("/api/v1/models")),
  });
  const { data, error } = models;
  if (error === null && data !== undefined) return <Tables models={data} />;
  return <Reading of={models} text={TEXTS.reading} />;
}

function Tables({ models: { routes, prices } }: { models: Models }) {
  const rows = Object.entries(routes).flatMap(([route, { models }]) =>
    models.map((model) => ({ route, model, price: prices[model] })),
  );
  const used = new Set(rows.map(({ model }) => model));
  const others = Object.entries(prices).filter(([model]) => !used.has(model));
  return (
    <>
      <Panel title={TEXTS.routes}>
        {rows.length === 0 ? (
          <p>{TEXTS.noRoutes}</p>
        ) : (
          <>
            <Table label={TEXTS.routes}>
              <Head first={TEXTS.route} />
              <tbody>
                {rows.map(({ route, model, price }) => (
                  <tr key={JSON.stringify([route, model])}>
                    <th scope="row">
                      <Text>{route}</Text>
                    </th>
                    <td>
                      <Text>{model}</Text>
                    </td>
                    <Prices price={price} />
                  </tr>
                ))}
              </tbody>
            </Table>
            <p className="w-note">{TEXTS.routesNote}</p>
          </>
        )}
        {rows.some(({ price }) => price === undefined) && (
          <p className="w-note">{TEXTS.noPriceNote}</p>
        )}
      </Panel>
      {others.length > 0 && (
        <Panel title={TEXTS.others}>
          <Table label={TEXTS.others}>
            <Head />
            <tbody>
              {others.map(([model, price]) => (
                <tr key={model}>
                  <th scope="row">
                    <Text>{model}</Text>
                  </th>
                  <Prices price={price} />
                </tr>
              ))}
            </tbody>
          </Table>
        </Panel>
      )}
    </>
  );
}

/** A table in a frame that scrolls. */
function Table({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields.
    <div className={styles.frame} role="group" aria-label={label} tabIndex={0}>
      <table className={styles.table} aria-label={label}>
        {children}
      </table>
    </div>
  );
}

function Head({ first }: { first?: string }) {
  return (
    <thead>
      <tr>
        {first !== undefined && <th scope="col">{first}</th>}
        <th scope="col">{TEXTS.model}</th>
        <th scope="col" className={styles.price}>
          {TEXTS.input}
        </th>
        <th scope="col" className={styles.price}>
          {TEXTS.output}
        </th>
      </tr>
    </thead>
  );
}

function Prices({ price }: { price: Price | undefined }) {
  const text = (value: number | undefined) =>
    value === undefined ? TEXTS.noPrice : PRICE.format(value);
  return (
    <>
      <td className={styles.price}>{text(price?.input)}</td>
      <td className={styles.price}>{text(price?.output)}</td>
    </>
  );
}
