// Installs a plugin from a file that is dropped on the page or chosen. The host checks the file
// first and says what the plugin would need.
import { useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Panel, TextField, toast, useOnce } from "@wattle/page";
import { type FormEvent, useEffect, useEffectEvent, useId, useState } from "react";
import { toError } from "../api/error.ts";
import { bytesText } from "../part/amount.ts";
import { Facts, textFact } from "../part/facts.tsx";
import { Text, visible } from "../part/text.tsx";
import { pluginRoute, useGoLater } from "../router/links.tsx";
import { type Checked, check, install, MOST_BYTES, pluginNameOf } from "./install.ts";
import { Permissions } from "./permissions.tsx";
import styles from "./plugins.module.css";
import { exportsOf, PLUGINS_KEY } from "./read.ts";
import { DROP, PAGE, TEXTS } from "./texts.ts";

/** What the host said of a file under a name. */
type Answer = { name: string } & ({ checked: Checked } | { refusal: string });

export function DropZone() {
  const [file, setFile] = useState<File>();
  const [problem, setProblem] = useState<string>();
  const input = useId();
  const take = (files: ArrayLike<File> | null | undefined) => {
    const [first, second] = Array.from(files ?? []);
    if (first === undefined) return;
    const found = second === undefined ? problemOf(first) : DROP.several;
    setProblem(found);
    setFile(found === undefined ? first : undefined);
  };
  const isOver = useDrop(take);
  return (
    <Panel title={DROP.title}>
      <div className={styles.drop} data-over={isOver}>
        <label htmlFor={input}>{DROP.label}</label>
        <input
          id={input}
          type="file"
          accept=".wasm,application/wasm"
          onChange={({ target }) => {
            take(target.files);
            // The same file can be chosen again after it was built again.
            target.value = "";
          }}
        />
      </div>
      {problem !== undefined && <Alert>{problem}</Alert>}
      {file !== undefined && <Candidate key={keyOf(file)} file={file} />}
    </Panel>
  );
}

function keyOf({ name, size, lastModified }: File): string {
  return JSON.stringify([name, size, lastModified]);
}

function problemOf({ name, size }: File): string | undefined {
  if (!/\.wasm$/i.test(name)) return DROP.noWasm(visible(name));
  return size > MOST_BYTES ? DROP.large(bytesText(MOST_BYTES)) : undefined;
}

/**
 * Takes files that are dropped anywhere on the page, which the browser would open otherwise.
 * Returns true while files are over it.
 */
function useDrop(onFiles: (files: FileList | undefined) => void): boolean {
  const [isOver, setOver] = useState(false);
  const drop = useEffectEvent((event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFiles(event.dataTransfer?.files);
  });
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = ({ relatedTarget }: DragEvent) => {
      if (relatedTarget === null) setOver(false);
    };
    const dropped = (event: DragEvent) => drop(event);
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", dropped);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", dropped);
    };
  }, []);
  return isOver;
}

/** A file with the name of its plugin, and what the host says of it. */
function Candidate({ file }: { file: File }) {
  const client = useQueryClient();
  const goLater = useGoLater();
  const [name, setName] = useState(() => pluginNameOf(file.name));
  const [answer, setAnswer] = useState<Answer>();
  const [send, isBusy] = useOnce(async (work: typeof check, plugin: string) => {
    try {
      const checked = await work(plugin, file);
      setAnswer({ name: plugin, checked });
      return checked;
    } catch (error) {
      setAnswer({ name: plugin, refusal: toError(error).message });
      return undefined;
    }
  });
  const examine = useEffectEvent(() => void send(check, name));
  useEffect(() => examine(), []);
  const isCurrent = answer?.name === name;
  const isReady = isCurrent && "checked" in answer;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) return send(check, name);
    await send(async (plugin, component) => {
      const go = goLater();
      const checked = await install(plugin, component);
      void client.invalidateQueries({ queryKey: PLUGINS_KEY });
      void client.invalidateQueries({ queryKey: ["plugin", plugin] });
      toast(DROP.installed(visible(plugin)), "ok");
      go(pluginRoute(plugin));
      return checked;
    }, name);
  };
  return (
    <form className={styles.candidate} onSubmit={(event) => void submit(event)}>
      <p>
        <Text>{file.name}</Text>, {bytesText(file.size)}
      </p>
      <TextField label={DROP.name} value={name} onChange={setName} autoComplete="off" required />
      {isBusy && <p role="status">{DROP.working}</p>}
      {!isBusy && isCurrent && "refusal" in answer && (
        <Alert>
          <span className={styles.refusal}>
            <Text>{answer.refusal}</Text>
          </span>
        </Alert>
      )}
      {isReady && <Preview checked={answer.checked} />}
      <Button type="submit" kind={isReady ? "primary" : "plain"} busy={isBusy}>
        {isReady ? nameOf(answer.checked) : DROP.check}
      </Button>
    </form>
  );
}

/** Returns the name of the button that installs a component. */
function nameOf({ plugin, replaces }: Checked): string {
  return replaces == null ? DROP.install(visible(plugin.name)) : DROP.replace(visible(plugin.name));
}

/** What the plugin would be. */
function Preview({ checked: { plugin, replaces } }: { checked: Checked }) {
  const { nodes, tools, contract } = plugin;
  return (
    <section className={styles.preview} aria-label={DROP.preview}>
      <Facts
        facts={[
          [TEXTS.exports, exportsOf(plugin) || TEXTS.nothing],
          [PAGE.nodes, textFact(nodes.map((node) => node.name).join(", "))],
          [PAGE.tools, textFact(tools.join(", "))],
          [PAGE.contract, contract === "" ? PAGE.typed : <Text key="contract">{contract}</Text>],
        ]}
      />
      {replaces === plugin.digest && <p>{DROP.same}</p>}
      {replaces != null && replaces !== plugin.digest && <p>{DROP.replaces}</p>}
      <Permissions plugin={plugin} />
    </section>
  );
}
