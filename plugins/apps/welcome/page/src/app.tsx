// The front page: which applications are there, what they do, and what to try.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button, copyText, Segments, Shell, toast } from "@wattle/page";
import { nativeApi } from "@wattle/page/native";
import { type LoadedApp, type Shown, shownApps, tryAddress } from "./apps.ts";
import { useLanguage } from "./language.ts";
import styles from "./page.module.css";
import { TEXTS, type Texts } from "./texts.ts";

/** Interval at which a visible page reads the list of applications, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Path of the studio. */
const STUDIO = "/studio/";

export function App() {
  const [language, setLanguage] = useLanguage();
  const texts = TEXTS[language];
  const {
    data: loaded,
    dataUpdatedAt,
    errorUpdatedAt,
    refetch,
  } = useQuery({
    queryKey: ["apps"],
    queryFn: readApps,
    refetchInterval: INTERVAL_MS,
  });
  const { data: hasStudio = false } = useQuery({
    queryKey: ["studio"],
    queryFn: readHasStudio,
    // An address that does not tell its applications has no studio for this page either.
    enabled: loaded !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  // The error itself is absent while the list is read again.
  const isUnread = errorUpdatedAt > dataUpdatedAt;
  const apps = shownApps(loaded, texts);
  const ready = apps.filter(({ status }) => status === "ready").length;
  const languages = (
    <Segments
      label={texts.language}
      value={language}
      onChange={setLanguage}
      options={[
        { value: "zh", name: "中文" },
        { value: "en", name: "English" },
      ]}
    />
  );
  return (
    <Shell title={texts.title} actions={languages}>
      <div className={styles.page}>
        <p>
          {texts.about} {hasStudio && <a href={STUDIO}>{texts.studio}</a>}
        </p>
        {isUnread ? (
          <Alert
            kind="warning"
            actions={<Button onClick={() => void refetch()}>{texts.retry}</Button>}
          >
            {texts.unread}
          </Alert>
        ) : (
          <p className={styles.count} role="status">
            {loaded === undefined ? texts.reading : texts.ready(ready)}
          </p>
        )}
        <ul className={styles.apps} aria-label={texts.apps}>
          {apps.map((app) => (
            <li key={app.name}>
              <Card app={app} texts={texts} hasStudio={hasStudio} />
            </li>
          ))}
        </ul>
      </div>
    </Shell>
  );
}

async function readApps(): Promise<LoadedApp[]> {
  const { data, response } = await nativeApi().GET("/api/v1/apps");
  if (data === undefined) throw new Error(`the list of applications: status ${response.status}`);
  return data;
}

/** Returns true if this address serves the studio. */
async function readHasStudio(): Promise<boolean> {
  const { data, response } = await nativeApi().GET("/api/v1/access");
  if (data === undefined) throw new Error(`what the address serves: status ${response.status}`);
  return data.studio;
}

interface CardProps {
  app: Shown;
  texts: Texts;
  hasStudio: boolean;
}

function Card({ app, texts, hasStudio }: CardProps) {
  const { name, title, about, watch, examples, version, path, status } = app;
  const hint = texts.hints[status];
  return (
    <article className={styles.card} data-app={name} aria-label={title}>
      <header>
        <h2>{path === undefined ? title : <a href={path}>{title}</a>}</h2>
        <span className={styles.status} data-status={status}>
          {texts.status[status]}
        </span>
      </header>
      <p>{about}</p>
      {watch !== undefined && <p className={styles.watch}>{watch}</p>}
      {hint !== undefined && <p className={styles.watch}>{hint}</p>}
      {examples.length > 0 && (
        <ul aria-label={texts.examples(title)}>
          {examples.map((example) => (
            <li key={example}>
              <Example title={title} example={example} path={path} texts={texts} />
            </li>
          ))}
        </ul>
      )}
      <p className={styles.name}>
        {name}
        {version !== undefined && ` ${version}`}{" "}
        {hasStudio && version !== undefined && <a href={runsAddress(name)}>{texts.runs}</a>}
      </p>
    </article>
  );
}

/** Returns the address of the runs of an application in the studio. */
function runsAddress(app: string): string {
  return `${STUDIO}runs?app=${encodeURIComponent(app)}`;
}

/** Returns the language of an example in Chinese if that of the page is another one. */
function languageOf(example: string, { lang }: Texts): string | undefined {
  const chinese = TEXTS.zh.lang;
  return lang !== chinese && /\p{Script=Han}/u.test(example) ? chinese : undefined;
}

interface ExampleProps {
  title: string;
  example: string;
  path: string | undefined;
  texts: Texts;
}

/** A link to the application with an example, and a button that copies the example. */
function Example({ title, example, path, texts }: ExampleProps) {
  const copy = () =>
    copyText(example).then(
      () => toast(texts.copied),
      () => toast(texts.notCopied, "error"),
    );
  const text = <span lang={languageOf(example, texts)}>{example}</span>;
  return (
    <>
      {path === undefined ? (
        <span className={styles.example}>{text}</span>
      ) : (
        <a className={styles.example} href={tryAddress(path, example)} title={texts.open(title)}>
          {text}
        </a>
      )}
      <Button
        className={styles.copy}
        aria-label={texts.copyExample(example)}
        onClick={() => void copy()}
      >
        {texts.copy}
      </Button>
    </>
  );
}
