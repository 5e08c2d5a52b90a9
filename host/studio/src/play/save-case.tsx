// Saves a run as a case of a data set, and its thread as a test.
import { Button, saveFile, TextField } from "@wattle/page";
import { useId, useState } from "react";
import type { RunPlace } from "../api/log.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { JsonEditor } from "../part/json-editor.tsx";
import { parsed } from "../part/parse-json.ts";
import { jsonText } from "../part/schema-form/draft.ts";
import { fileName } from "../thread/file-name.ts";
import { type CaseRun, caseLine, expectationsOf, isCaseName, readExpectations } from "./case.ts";
import styles from "./play.module.css";
import { readTest } from "./read.ts";
import { CASE } from "./texts.ts";

/** The type of the files. */
const FILE_TYPE = "application/x-ndjson";

interface SaveCaseProps {
  place: RunPlace;
  /** The run; `undefined` if its thread had others before, and no case makes them again. */
  run: CaseRun | undefined;
}

/** What a run can be saved as. */
export function SaveCase({ place, run }: SaveCaseProps) {
  const [isOpen, setOpen] = useState(false);
  const form = useId();
  return (
    <section className={styles.part} aria-label={CASE.title}>
      <div className={styles.buttons}>
        {run !== undefined && (
          <Button aria-expanded={isOpen} aria-controls={form} onClick={() => setOpen(!isOpen)}>
            {CASE.open}
          </Button>
        )}
        <SaveTest place={place} />
      </div>
      <div id={form}>{isOpen && run !== undefined && <CaseForm run={run} />}</div>
    </section>
  );
}

/** A form for the case of a run. */
export function CaseForm({ run }: { run: CaseRun }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(() => jsonText(expectationsOf(run)));
  const [isChecked, setChecked] = useState(false);
  const found = parsed(text);
  const expect = "value" in found ? readExpectations(found.value) : undefined;
  const save = () => {
    setChecked(true);
    if (!isCaseName(name) || expect === undefined) return;
    saveFile(`${name}.jsonl`, caseLine(name, run, expect), FILE_TYPE);
  };
  return (
    <form
      className={styles.form}
      aria-label={CASE.title}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <p className="w-note">{CASE.note}</p>
      <TextField
        label={CASE.name}
        error={isChecked && !isCaseName(name) ? CASE.wrongName : undefined}
        value={name}
        onChange={setName}
        autoComplete="off"
        spellCheck={false}
      />
      <JsonEditor
        label={CASE.expect}
        text={text}
        onText={setText}
        error={isChecked && expect === undefined ? CASE.wrongExpect : undefined}
      />
      <div className={styles.buttons}>
        <Button type="submit" kind="primary">
          {CASE.save}
        </Button>
      </div>
    </form>
  );
}

/** A button that saves the thread as a test of later code. */
function SaveTest({ place }: { place: RunPlace }) {
  const saving = useAttempt(async () => {
    saveFile(fileName(place.thread, "thread"), await readTest(place), FILE_TYPE);
  });
  return (
    <>
      <Button busy={saving.isBusy} title={CASE.threadNote} onClick={saving.act}>
        {saving.isBusy ? CASE.saving : CASE.saveTest}
      </Button>
      <Refusal error={saving.refusal} />
    </>
  );
}
