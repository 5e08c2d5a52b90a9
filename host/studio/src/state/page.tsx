// A checkpoint of a thread, and what differs from the one before or from another one.
import { Button, Panel, TextField } from "@wattle/page";
import { type FormEvent, useState } from "react";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import {
  checkpointRoute,
  RouteLink,
  threadRoute,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name, namespace, wholeNumber } from "../router/search.ts";
import { useTitle } from "../shell/title.ts";
import { CheckpointView } from "./checkpoint.tsx";
import type { GraphPlace } from "./read.ts";
import styles from "./state.module.css";
import { TEXTS } from "./texts.ts";

/** The search parameters of the view. */
const SEARCH = { ns: namespace, against: wholeNumber, tenant: name };

export default function CheckpointPage() {
  const [thread, checkpoint] = [useParam("thread"), useParam("checkpoint")];
  const { ns = "", against, tenant } = useSearchOf(SEARCH);
  const place = { thread, tenant, namespace: ns };
  const title = TEXTS.title(visible(checkpoint));
  useTitle(title);
  return (
    <Panels>
      <p>
        <RouteLink to={threadRoute(thread, tenant)}>
          <Text>{TEXTS.thread(thread)}</Text>
        </RouteLink>
      </p>
      <h2>{title}</h2>
      <Compare key={against} place={place} checkpoint={checkpoint} against={against} />
      <Panel title={TEXTS.content}>
        <div className={styles.content}>
          <CheckpointView place={place} checkpoint={checkpoint} against={against} />
        </div>
      </Panel>
    </Panels>
  );
}

interface CompareProps {
  place: GraphPlace;
  checkpoint: string;
  against: string | undefined;
}

/** A form for the checkpoint to compare with. Without a number, it is the one before. */
function Compare({ place, checkpoint, against }: CompareProps) {
  const go = useGo();
  const [text, setText] = useState(against ?? "");
  const [isRefused, setRefused] = useState(false);
  const compare = (event: FormEvent) => {
    event.preventDefault();
    const number = text.trim();
    const isValid = number === "" || wholeNumber(number) !== undefined;
    setRefused(!isValid);
    if (isValid) go(checkpointRoute(place, checkpoint, { ns: place.namespace, against: number }));
  };
  return (
    <form className={styles.compare} onSubmit={compare}>
      <TextField
        label={TEXTS.compare}
        error={isRefused ? TEXTS.number : undefined}
        value={text}
        inputMode="numeric"
        autoComplete="off"
        onChange={setText}
      />
      <Button type="submit">{TEXTS.compareNow}</Button>
    </form>
  );
}
