// The front page: which applications are there, what they do, and what to try.
import { Alert, Button, copyText, Shell, toast, useConnection } from "@wattle/page";
import { nativeApi } from "@wattle/page/native";
import { useCallback, useEffect, useRef, useState } from "react";
import { type LoadedApp, type Shown, type Status, shownApps, tryAddress } from "./apps.ts";
import "./page.css";

/** How often the page looks for applications that came or went. */
const LOOK_MS = 10_000;

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
  const { loaded, isUnread, read } = useApps();
  const apps = shownApps(loaded);
  const ready = apps.filter(({ status }) => status === "ready").length;
  return (
    <Shell title="Wattle 应用">
      <div className="f-page">
        <p className="f-about">
          每个应用是一张由智能体节点组成的图，节点和工具都是 WebAssembly
          组件，只能做获准的事。选一个示例试试。
        </p>
        {isUnread ? (
          <Alert kind="warning" actions={<Button onClick={read}>重试</Button>}>
            {UNREAD}
          </Alert>
        ) : (
          <p className="f-count" role="status">
            {loaded === undefined ? "正在读取应用列表…" : `${ready} 个应用可用`}
          </p>
        )}
        <ul className="f-apps" aria-label="应用">
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

/** The loaded applications, read again from time to time while somebody looks. */
function useApps() {
  const [loaded, setLoaded] = useState<readonly LoadedApp[]>();
  const [isUnread, setUnread] = useState(false);
  const reading = useRef(false);
  const read = useCallback(async () => {
    if (reading.current) return;
    reading.current = true;
    try {
      const { data } = await nativeApi().GET("/api/v1/apps");
      if (data !== undefined) setLoaded(data);
      setUnread(data === undefined);
    } catch {
      // Without a connection: what was read last stays, and the banner says the rest.
      setUnread(true);
    } finally {
      reading.current = false;
    }
  }, []);
  useConnection(() => void read());
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === "visible") void read();
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [read]);
  return { loaded, isUnread, read: () => void read() };
}

function Card({ app }: { app: Shown }) {
  const { name, title, about, watch, examples, version, path, status } = app;
  const hint = HINT[status];
  return (
    <article className="f-card" data-app={name} aria-label={title}>
      <header>
        <h2>{path === undefined ? title : <a href={path}>{title}</a>}</h2>
        <span className="f-status" data-status={status}>
          {STATUS[status]}
        </span>
      </header>
      <p>{about}</p>
      {watch !== undefined && <p className="f-watch">{watch}</p>}
      {hint !== undefined && <p className="f-watch">{hint}</p>}
      {examples.length > 0 && (
        <ul aria-label={`${title}：试一试`}>
          {examples.map((example) => (
            <li key={example}>
              <Example title={title} example={example} path={path} />
            </li>
          ))}
        </ul>
      )}
      <p className="f-name">
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

/** An example opens the application with it; it is copied as well, to be pasted anywhere. */
function Example({ title, example, path }: ExampleProps) {
  const copy = async () => {
    const isCopied = await copyText(example).then(
      () => true,
      () => false,
    );
    toast(isCopied ? "已复制" : "浏览器不允许复制", isCopied ? "info" : "error");
  };
  return (
    <>
      {path === undefined ? (
        <span className="f-example">{example}</span>
      ) : (
        <a className="f-example" href={tryAddress(path, example)} title={`用它打开 ${title}`}>
          {example}
        </a>
      )}
      <button
        type="button"
        className="w-button f-copy"
        aria-label={`复制：${example}`}
        onClick={() => void copy()}
      >
        复制
      </button>
    </>
  );
}
