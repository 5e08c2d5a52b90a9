const [log, form, input] = ["log", "form", "message"].map((id) => document.getElementById(id));
// The conversation is in the URL, so that it is shown again after a reload.
const thread = () => location.hash.slice(1);

async function call(path, body) {
  const headers = { "content-type": "application/json" };
  const post = body && { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(path, post);
  // The error of a proxy is no JSON.
  const result = await response.json().catch(() => ({}));
  if (result.threadId) location.hash = result.threadId;
  if (!response.ok) throw new Error(result.error ?? result.detail ?? response.statusText);
  return result;
}

const add = (tag, textContent, onclick) =>
  log.append(Object.assign(document.createElement(tag), { textContent, onclick }));
const attempt = (work) => work().catch((error) => add("p", error.message));

function show({ messages, questions = [] }) {
  log.replaceChildren();
  for (const { role, parts } of messages) {
    add("p", `${role}: ${parts.map((part) => part.text ?? "").join("")}`);
  }
  for (const { id, payload } of questions) {
    add("p", `Delete the note "${payload.arguments.title}"?`);
    for (const decision of payload.allowed) {
      const answer = { id, answer: { decision } };
      add("button", decision, () => send(`api/threads/${thread()}/answers`, answer));
    }
  }
}

async function read() {
  if (!thread()) return;
  const conversation = await call(`api/threads/${thread()}`);
  show(conversation);
  if (conversation.status === "running") setTimeout(attempt, 1000, read);
}

async function send(path, body) {
  const [{ reason }] = await Promise.allSettled([call(path, body)]);
  // A message that the host refused stays in its field.
  if (path === "api/chat" && !reason) form.reset();
  // The messages of a failed run are stored as well.
  await attempt(read);
  if (reason) add("p", reason.message);
}

form.onsubmit = () => {
  send("api/chat", { threadId: thread(), message: input.value });
  return false;
};

attempt(read);
