// The front page: which applications are there, what they do, and what to try.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button, copyText, Shell, toast } from "@wattle/page";
import { nativeApi } from "@wattle/page/native";
import { type LoadedApp, type Shown, type Status, shownApps, tryAddress } from "./apps.ts";
import styles from "./page.module.css";

/** Interval at which a visible page reads the list of applications, in milliseconds. */
const INTERVAL_MS = 10_000;

const STATUS: Record<Status, string> = {
  ready: "可用",
  unbuilt: "页面未构建",
  bare: "没有页面",
  missing: "未加载",
  unknown: "状态未知",
};

const HINT: Partial<Record<Status, string>> = {
  unbuilt: "运行 cargo xtask pages 构建页面（需要 Node.js 20.19 或更新版本）。",
  missing: "把应用放进 plugins 文件夹，它就会被加载。",
};

const UNREAD = "暂时读不到应用列表，下面的状态可能不是最新的。";

export function App() {
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
  // The error itself is absent while the list is read again.
  const isUnread = errorUpdatedAt > dataUpdatedAt;
  const apps = shownApps(loaded);
  const ready = apps.filter(({ status }) => status === "ready").length;
  return (
    <Shell title="Wattle 应用">
      <div className={styles.page}>
        <p>
          每个应用是一张由智能体节点组成的图，节点和工具都是 WebAssembly
          组件，只能做获准的事。选一个示例试试。
        </p>
        {isUnread ? (
          <Alert kind="warning" actions={<Button onClick={() => void refetch()}>重试</Button>}>
            {UNREAD}
          </Alert>
        ) : (
          <p className={styles.count} role="status">
            {loaded === undefined ? "正在读取应用列表…" : `${ready} 个应用可用`}
          </p>
        )}
        <ul className={styles.apps} aria-label="应用">
          {apps.map((app) => (
            <li key={app.name}>
              <Card app={app} />
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

function Card({ app }: { app: Shown }) {
  const { name, title, about, watch, examples, version, path, status } = app;
  const hint = HINT[status];
  return (
    <article className={styles.card} data-app={name} aria-label={title}>
      <header>
        <h2>{path === undefined ? title : <a href={path}>{title}</a>}</h2>
        <span className={styles.status} data-status={status}>
          {STATUS[status]}
        </span>
      </header>
      <p>{about}</p>
      {watch !== undefined && <p className={styles.watch}>{watch}</p>}
      {hint !== undefined && <p className={styles.watch}>{hint}</p>}
      {examples.length > 0 && (
        <ul aria-label={`${title}：试一试`}>
          {examples.map((example) => (
            <li key={example}>
              <Example title={title} example={example} path={path} />
            </li>
          ))}
        </ul>
      )}
      <p className={styles.name}>
        {name}
        {version !== undefined && ` ${version}`}
      </p>
    </article>
  );
}

interface ExampleProps {
  title: string;
  example: string;
  path: string | undefined;
}

/** A link to the application with an example, and a button that copies the example. */
function Example({ title, example, path }: ExampleProps) {
  const copy = () =>
    copyText(example).then(
      () => toast("已复制"),
      () => toast("浏览器不允许复制", "error"),
    );
  return (
    <>
      {path === undefined ? (
        <span className={styles.example}>{example}</span>
      ) : (
        <a className={styles.example} href={tryAddress(path, example)} title={`用它打开 ${title}`}>
          {example}
        </a>
      )}
      <Button className={styles.copy} aria-label={`复制：${example}`} onClick={() => void copy()}>
        复制
      </Button>
    </>
  );
}
