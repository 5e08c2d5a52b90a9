// A chat page on the unmodified `useChat`, and what somebody who looks at it sees.

import { createElement as h, useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";

const isTool = ({ type }) => type === "dynamic-tool" || type.startsWith("tool-");

/** The card of a tool: its name and state, what it was given and what came of it. */
function ToolCard({ part }) {
  const { type, toolName = type.slice("tool-".length), state, errorText } = part;
  const fields = ["input", "output"].filter((name) => part[name] !== undefined);
  return h("details", { className: "part", "data-type": "tool", "data-tool": toolName,
    "data-state": state },
    fields.map((name) => h("pre", { key: name, className: name }, JSON.stringify(part[name]))),
    errorText && h("p", { className: "failure" }, errorText));
}

function Part({ part }) {
  if (isTool(part)) return h(ToolCard, { part });
  const { type, state, text, data } = part;
  const shown = text ?? JSON.stringify(data);
  return h("p", { className: "part", "data-type": type, "data-state": state }, shown);
}

function Message({ message: { id, role, parts } }) {
  const shown = parts.map((part, index) => h(Part, { key: index, part }));
  return h("li", { className: "message", id, "data-role": role }, shown);
}

/** The page. Who looks at it hears of every change, as soon as it is on the screen. */
function Page({ chat: options, onChange }) {
  const chat = useChat(options);
  useLayoutEffect(() => onChange(chat));
  return h("main", { "data-status": chat.status },
    h("ol", null, chat.messages.map((message) => h(Message, { key: message.id, message }))),
    chat.error && h("p", { role: "alert" }, chat.error.message));
}

function seenPart(element) {
  const { type, state, tool } = element.dataset;
  if (type !== "tool") return { type, state, text: element.textContent || undefined };
  const read = (name) => {
    const text = element.querySelector(`.${name}`)?.textContent;
    return text && JSON.parse(text);
  };
  const error = element.querySelector(".failure")?.textContent;
  return { type, tool, state, input: read("input"), output: read("output"), error };
}

function seenMessage(element) {
  const parts = [...element.querySelectorAll(".part")].map(seenPart);
  return { id: element.id, role: element.dataset.role, parts };
}

/** A page on the screen: what is on it, and what its user can do. */
export class Shown {
  #place = document.body.appendChild(document.createElement("div"));
  #root = createRoot(this.#place);
  #watchers = new Set();
  #statuses = [];
  #chat;

  /** Shows a page; `options` are those of `useChat`. */
  static async open(options) {
    const page = new Shown();
    const changed = page.until(() => true);
    page.#root.render(h(Page, { chat: options, onChange: (chat) => page.#changed(chat) }));
    await changed;
    return page;
  }

  /** Stops the answer. */
  stop() {
    return this.#chat.stop();
  }

  /** Resolves when `what` has changed the status of the page. */
  async after(what) {
    const before = this.#statuses.length;
    what(this.#chat);
    await this.until(({ statuses }) => statuses.length > before);
  }

  /** Everything that is on the screen, and all statuses up to now. */
  see() {
    const main = this.#place.querySelector("main");
    const messages = [...main.querySelectorAll(".message")].map(seenMessage);
    const error = main.querySelector("[role=alert]")?.textContent;
    return { status: main.dataset.status, statuses: [...this.#statuses], messages, error };
  }

  /** Resolves as soon as what is seen fits. */
  until(fits) {
    return new Promise((resolve) => {
      this.#watchers.add({ fits, resolve });
      if (this.#chat) this.#tell();
    });
  }

  close() {
    this.#root.unmount();
    this.#place.remove();
  }

  #changed(chat) {
    this.#chat = chat;
    if (this.#statuses.at(-1) !== chat.status) this.#statuses.push(chat.status);
    this.#tell();
  }

  #tell() {
    const seen = this.see();
    for (const watcher of this.#watchers) {
      if (!watcher.fits(seen)) continue;
      this.#watchers.delete(watcher);
      watcher.resolve();
    }
  }
}
