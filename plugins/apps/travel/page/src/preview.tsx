// The page of a guide, as a window of a certain width shows it.
import { address, Segments } from "@wattle/page";
import { useState } from "react";
import type { SessionView, StateView } from "./api.ts";
import styles from "./page.module.css";

const WIDTHS = [
  { value: 375, name: "手机 375" },
  { value: 720, name: "桌面 720" },
  { value: 1280, name: "宽屏 1280" },
] as const;

type Width = (typeof WIDTHS)[number]["value"];

/** Width of the window in pixels below which a desktop does not fit. */
const NARROW = 720;

/**
 * Permissions of the framed page: links open in windows of their own. A model made the page, so it
 * has no scripts and no origin.
 */
const SANDBOX = "allow-popups allow-popups-to-escape-sandbox";

/** Returns the URL of the page in a frame, which changes with the page. */
export function guideAddress(id: string, { handbookVersion, handbookHtml }: StateView): string {
  const version = `${handbookVersion}.${handbookHtml?.length ?? 0}`;
  return address(`api/guide/${encodeURIComponent(id)}?v=${version}`);
}

export function Preview({ session, state }: { session: SessionView; state: StateView }) {
  const [width, setWidth] = useState<Width>(innerWidth < NARROW ? 375 : 720);
  if (state.handbookHtml === null) {
    return <p className={styles.empty}>手册页面生成后会显示在这里。</p>;
  }
  const link = address(`api/guide/${encodeURIComponent(session.id)}`);
  return (
    <div className={styles.preview}>
      <div className={styles.bar}>
        <Segments label="预览宽度" value={width} onChange={setWidth} options={WIDTHS} />
        <a href={link} target="_blank" rel="noopener noreferrer">
          在新窗口打开
        </a>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields. */}
      <div className={styles.stage} role="group" aria-label="手册预览" tabIndex={0}>
        <div className={styles.window} style={{ width }}>
          <div className={styles.windowBar} aria-hidden="true">
            <i />
            <i />
            <i />
            <span>{link}</span>
          </div>
          <iframe
            title={`手册：${session.title}`}
            src={guideAddress(session.id, state)}
            sandbox={SANDBOX}
          />
        </div>
      </div>
    </div>
  );
}
