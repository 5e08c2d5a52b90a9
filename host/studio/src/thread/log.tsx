// The log of a thread as a whole: its export as a file, and the verification of its seals.
import { Button, Panel, saveFile } from "@wattle/page";
import { useState } from "react";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { countText } from "../part/amount.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { Checkbox } from "../part/checkbox.tsx";
import { type Fact, Facts } from "../part/facts.tsx";
import { fileName } from "./file-name.ts";
import { TEXTS } from "./texts.ts";
import styles from "./thread.module.css";

interface LogProps {
  thread: string;
  tenant: string | undefined;
}

type Seals = Schemas["SealDocument"];

/** The type of an export. */
const FILE_TYPE = "application/x-ndjson";

export function Log({ thread, tenant }: LogProps) {
  const [hasBlobs, setHasBlobs] = useState(true);
  const [seals, setSeals] = useState<Seals>();
  const saving = useAttempt(async () => {
    const file = await readExport({ thread, tenant }, hasBlobs);
    saveFile(fileName(thread, "jsonl"), file, FILE_TYPE);
  });
  const verifying = useAttempt(async () => {
    setSeals(undefined);
    setSeals(await readSeals({ thread, tenant }));
  });
  return (
    <Panel title={TEXTS.log}>
      <div className={styles.actions}>
        <Button busy={saving.isBusy} onClick={saving.act}>
          {saving.isBusy ? TEXTS.exporting : TEXTS.export}
        </Button>
        <Checkbox checked={hasBlobs} onChange={setHasBlobs}>
          {TEXTS.withBlobs}
        </Checkbox>
        <Button busy={verifying.isBusy} onClick={verifying.act}>
          {verifying.isBusy ? TEXTS.verifying : TEXTS.verify}
        </Button>
      </div>
      <Refusal error={saving.refusal} />
      <Refusal error={verifying.refusal} />
      <div role="status">{seals !== undefined && <Verified seals={seals} />}</div>
    </Panel>
  );
}

function Verified({ seals: { seal, sealed_after, last_seq } }: { seals: Seals }) {
  if (seal == null) return <p>{TEXTS.noSeals}</p>;
  const facts: Fact[] = [
    [TEXTS.lastSeq, countText(last_seq)],
    [TEXTS.unsealed, sealed_after === 0 ? undefined : countText(sealed_after)],
    [TEXTS.seal, <code key="seal">{seal}</code>],
  ];
  return (
    <>
      <p>{TEXTS.verified}</p>
      <Facts facts={facts} />
    </>
  );
}

function readExport({ thread, tenant }: LogProps, blobs: boolean): Promise<Blob> {
  const params = { path: { thread }, query: blobs ? {} : { blobs } };
  const headers = tenantHeaders(tenant);
  const path = "/api/v1/threads/{thread}/export";
  return ok(api.GET(path, { params, headers, parseAs: "blob" }));
}

function readSeals({ thread, tenant }: LogProps): Promise<Seals> {
  const params = { path: { thread } };
  return ok(api.GET("/api/v1/threads/{thread}/verify", { params, headers: tenantHeaders(tenant) }));
}
