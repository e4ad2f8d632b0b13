// Who asks, and the asking. The token stands behind # in the address, which browsers send to nobody.

import { at } from "/static/elements.js";

import { text } from "/static/texts.js";

const TOKEN = "sqlrun.token";
const PATIENCE = 20_000;

// What the server refuses, or "no answer at all" (status 0). `after`: seconds to wait before asking again.
export class Refused extends Error {
  constructor(status, detail, after = 0) {
    super(detail);
    this.status = status;
    this.after = after;
  }
}

// What the address says behind #: the entity, the window. A token is taken out of it and kept for this tab.
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

// Keep a token until the tab is closed; on this device, where its reader says so.
function signIn(token, stay = false) {
  (stay ? localStorage : sessionStorage).setItem(TOKEN, token.trim());
}

const kept = () => sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);

export function signedIn() {
  return kept() !== null;
}

// Let a page's form and button sign in and out.
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

// Keep what is shown in the address, so that a bookmark shows it again.
export function note(values = {}) {
  for (const [name, value] of Object.entries(values)) wanted.set(name, value);
  history.replaceState(null, "", location.pathname + (wanted.size ? `#${wanted}` : ""));
}

// Ask, and give the answer as it comes in.
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

// A whole number that JavaScript can't hold stays as it is written.
const exact = (key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source ? context.source : value;

// Ask for JSON. With it comes how many seconds old its tick was, and when that was so.
export async function ask(path) {
  const answer = await open(path);
  const [age, stale] = [answer.headers.get("sqlrun-age"), answer.headers.get("sqlrun-stale")];
  try {
    return { ...JSON.parse(await answer.text(), exact), age: Number(age), stale: stale === "true", received: Date.now() };
  } catch {
    throw new Refused(0, text("brokeOff"));
  }
}

// Name a path's parts and what is asked for.
export function path(parts, values = {}) {
  const query = new URLSearchParams(values).toString();
  return `/api/v1/${parts.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}
