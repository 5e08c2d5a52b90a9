// The app's endpoints, below wherever this page is: at `/apps/reasoning`, or at the root of the
// app's own address.

const SESSIONS = `${location.pathname.replace(/\/(ui\/?)?$/, "")}/api/v1/reasoning/sessions`;

/** An answer that is not what was asked for. */
class Refused extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** Sends a request and returns the data of the envelope around its answer. */
async function call(method, path, body) {
  const request = { method, cache: "no-store" };
  if (body !== undefined) {
    request.headers = { "content-type": "application/json" };
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(SESSIONS + path, request);
  } catch {
    throw new Refused("无法连接到服务，请检查网络后重试。", "network");
  }
  // What stands between page and app may answer in its own words.
  const answer = await response.json().catch(() => ({}));
  if (response.ok && answer.code === 0) return answer.data;
  const message = answer.message ?? answer.detail ?? "服务没有给出可读的回答。";
  throw new Refused(message, `${response.status}${answer.code ? ` / ${answer.code}` : ""}`);
}

const session = (id, what = "") => `/${encodeURIComponent(id)}${what}`;

const api = {
  create: (text) => call("POST", "", { user_input: text }),
  show: (id) => call("GET", session(id)),
  run: (id, body) => call("POST", session(id, "/run"), body),
  cancel: (id) => call("POST", session(id, "/cancel"), {}),
  trace: (id, after) => call("GET", session(id, `/trace?after=${after}`)),
  clarify: (id, text) =>
    call("POST", session(id, "/clarify"), { answer: { type: "clarification", text } }),
};
