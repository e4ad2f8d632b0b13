// The token and the requests. The token is after # in the address, a part that browsers never send.

import { at } from "/static/elements.js";

import { text } from "/static/texts.js";

const TOKEN = "sqlrun.token";
const PATIENCE = 20_000;

// An error answer of the server; status 0 if there is no answer. `after`: seconds to wait before a retry.
export class Refused extends Error {
  constructor(status, detail, after = 0) {
    super(detail);
    this.status = status;
    this.after = after;
  }
}

// The parameters after # in the address: entity and window. A token there moves to the tab's storage.
export const wanted = new URLSearchParams(location.hash.slice(1));
if (wanted.get("token")) signIn(wanted.get("token"));
wanted.delete("token");
note();
addEventListener("hashchange", () => {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  signIn(token);
  location.hash = "";
  location.reload();
});

// Store a token until the tab closes; with `stay`, permanently on this device.
function signIn(token, stay = false) {
  (stay ? localStorage : sessionStorage).setItem(TOKEN, token.trim());
}

const kept = () => sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);

export function signedIn() {
  return kept() !== null;
}

// Connect a page's form and button for signing in and out.
export function signing() {
  at("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(at("token").value, at("stay")?.checked);
    location.reload();
  });
  at("sign-out").addEventListener("click", () => {
    sessionStorage.removeItem(TOKEN);
    localStorage.removeItem(TOKEN);
    location.reload();
  });
  at("sign-out").hidden = !signedIn();
}

// Write the shown entity and window to the address, so that a bookmark restores them.
export function note(values = {}) {
  for (const [name, value] of Object.entries(values)) wanted.set(name, value);
  history.replaceState(null, "", location.pathname + (wanted.size ? `#${wanted}` : ""));
}

// Send a request, and return the response as soon as it starts.
export async function open(path, signal = AbortSignal.timeout(PATIENCE)) {
  const token = kept();
  let answer;
  try {
    answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, signal });
  } catch {
    throw new Refused(0, text("silent"));
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, told.detail || answer.statusText, Number(answer.headers.get("retry-after")) || 0);
}

// Return an integer that JavaScript can't represent exactly as its source text.
const exact = (key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source ? context.source : value;

// Request JSON. The result includes the tick's age in seconds, and the time when the answer arrived.
export async function ask(path) {
  const answer = await open(path);
  const [age, stale] = [answer.headers.get("sqlrun-age"), answer.headers.get("sqlrun-stale")];
  try {
    return { ...JSON.parse(await answer.text(), exact), age: Number(age), stale: stale === "true", received: Date.now() };
  } catch {
    throw new Refused(0, text("brokeOff"));
  }
}

// Return the address of an API path with its query.
export function path(parts, values = {}) {
  const query = new URLSearchParams(values).toString();
  return `/api/v1/${parts.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}
