const [log, form, input] = ["log", "form", "message"].map((id) => document.getElementById(id));
// The conversation is in the URL, so that it is shown again after a reload.
const thread = () => location.hash.slice(1);

async function call(path, body) {
  const headers = { "content-type": "application/json" };
  const post = body && { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(path, post);
  const result = await response.json();
  if (result.threadId) location.hash = result.threadId;
  if (!response.ok) throw new Error(result.error ?? result.detail);
  return result;
}

function add(tag, textContent, onclick) {
  log.append(Object.assign(document.createElement(tag), { textContent, onclick }));
}

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

async function send(path, body) {
  try {
    if (path) await call(path, body);
    // A message that the host refused stays in its field.
    if (path === "api/chat") form.reset();
    if (thread()) show(await call(`api/threads/${thread()}`));
  } catch (error) {
    add("p", error.message);
  }
}

form.onsubmit = () => {
  send("api/chat", { threadId: thread(), message: input.value });
  return false;
};

send();
