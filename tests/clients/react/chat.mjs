// A chat page on the unmodified `useStream`, of either package.
//
// The query says whose hook (`react` or `sdk`), which graph and where the server is; the fragment
// is the thread, so that a page that is loaded again finds it. What was on the page is in
// `window.shown`.

import * as sdk from "@langchain/langgraph-sdk/react";
import * as react from "@langchain/react";
import { createElement as h, useLayoutEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);

/** What all hooks want to know. */
function useOptions() {
  const [threadId, setThreadId] = useState(location.hash.slice(1) || null);
  const onThreadId = (id) => {
    history.replaceState(null, "", `#${id}`);
    setThreadId(id);
  };
  return { apiUrl: query.get("server"), assistantId: query.get("graph"), threadId, onThreadId };
}

window.shown = [];

function textOf({ content }) {
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? "").join("");
}

function kindOf(message) {
  return message.type ?? message.getType();
}

function Chat({ stream, answer }) {
  const [text, setText] = useState("");
  const { messages, interrupt, isLoading, error } = stream;
  const lines = messages.map((message) => [kindOf(message), textOf(message)]);
  useLayoutEffect(() => {
    window.shown.push(lines);
  });
  const send = (event) => {
    event.preventDefault();
    stream.submit({ messages: [{ type: "human", content: text }] });
    setText("");
  };
  return h("main", { "data-working": String(isLoading) },
    h("ol", null, lines.map(([kind, line], index) =>
      h("li", { key: index, "data-kind": kind }, line))),
    interrupt && h("p", { className: "question" }, String(interrupt.value)),
    interrupt && h("button", { onClick: answer }, "Yes"),
    isLoading && h("button", { onClick: () => stream.stop() }, "Stop"),
    error && h("p", { role: "alert" }, String(error)),
    h("form", { onSubmit: send },
      h("input", { value: text, onChange: (event) => setText(event.target.value) })));
}

/** On the hook of the package for React. */
function OfReact() {
  const stream = react.useStream(useOptions());
  // Without an id the hook knows no question yet that it has read from the state of the thread and shows.
  const answer = () => stream.respond("yes", { interruptId: stream.interrupt.id });
  return h(Chat, { stream, answer });
}

/**
 * On the hook of the client, which the package for React also had before its version 1.
 *
 * React reads each field of an object among the properties in development. A field that was not
 * requested, such as `history`, throws in older hooks, so the page passes only what it uses.
 */
function OfClient({ useStream }) {
  const { messages, interrupt, isLoading, error, submit, stop } =
    useStream({ ...useOptions(), reconnectOnMount: true });
  const stream = { messages, interrupt, isLoading, error, submit, stop };
  const answer = () => submit(null, { command: { resume: "yes" } });
  return h(Chat, { stream, answer });
}

const pages = {
  react: "useMessages" in react ? h(OfReact) : h(OfClient, { useStream: react.useStream }),
  sdk: h(OfClient, { useStream: sdk.useStream }),
};

createRoot(document.body.appendChild(document.createElement("div")))
  .render(pages[query.get("hook")]);
