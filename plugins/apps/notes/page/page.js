const [log, form, input] = ["log", "form", "message"].map((id) => document.getElementById(id));

// The conversation is in the URL, so that it is shown again after a reload.
const thread = () => location.hash.slice(1) || undefined;

async function call(path, body) {
  const headers = { "content-type": "application/json" };
  const post = body && { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(new URL(path, document.baseURI), post);
  const result = await response.json();
  if (result.threadId) location.hash = result.threadId;
  if (!response.ok) throw new Error(result.error ?? result.detail);
  return result;
}

function add(tag, textContent) {
  const element = Object.assign(document.createElement(tag), { textContent });
  log.append(element);
  return element;
}

async function show() {
  const { messages } = await call(`api/threads/${thread()}`);
  log.replaceChildren();
  for (const { role, parts } of messages) {
    const text = parts.map((part) => part.text ?? "").join("");
    if (text) add("p", `${role}: ${text}`);
  }
  const approvals = `api/threads/${thread()}/approvals`;
  for (const { id, payload } of await call(approvals)) {
    add("p", `Delete the note "${payload.arguments.title}"?`);
    add("button", "Yes").onclick = () => send(approvals, { id, approved: true });
    add("button", "No").onclick = () => send(approvals, { id, approved: false });
  }
}

async function send(path, body) {
  document.body.inert = true;
  try {
    if (path) await call(path, body);
    if (thread()) await show();
  } catch (error) {
    add("p", error.message);
  }
  document.body.inert = false;
}

form.onsubmit = (event) => {
  event.preventDefault();
  send("api/chat", { threadId: thread(), message: input.value });
  form.reset();
};

send();
