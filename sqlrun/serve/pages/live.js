// Server-sent events about new ticks, read by fetch, since EventSource can't send a token.

import { open } from "/static/session.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
// Milliseconds of silence before a reconnect. The server sends at least a comment every 15 seconds.
const QUIET = 40_000;

// Return the complete events of a received text, and the rest: [[{event, data}], rest].
export function events(text) {
  const parts = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = parts.pop();
  const found = parts.map((part) => {
    const event = { event: "message", data: "" };
    for (const line of part.split("\n")) {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name) event[name] = value;
    }
    return event;
  });
  return [found.filter((event) => event.data), rest];
}

// Listen until the page closes. `tick` is called with each tick, `state` with "open", or with the error (or null) that
// closed the stream. After status 401 or 403 there is no reconnect.
export function listen(tick, state) {
  let wait = FIRST_WAIT;
  let wake = () => {};
  let controller = null;

  async function once() {
    controller = new AbortController();
    let alarm = setTimeout(() => controller.abort(), QUIET);
    try {
      const answer = await open("/api/v1/ticks/events", controller.signal);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(alarm);
        alarm = setTimeout(() => controller.abort(), QUIET);
        wait = FIRST_WAIT;
        state("open");
        let found;
        [found, text] = events(text + value);
        for (const event of found) if (event.event === "tick") tick(JSON.parse(event.data));
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  async function run() {
    for (;;) {
      let after = 0;
      try {
        await once();
        state(null);
      } catch (error) {
        state(error);
        if (error.status === 401 || error.status === 403) return;
        after = 1000 * (error.after ?? 0);
      }
      // A random pause, so that not all pages reconnect at once after a restart of the server.
      const pause = Math.max(after, wait * (0.5 + Math.random() / 2));
      await new Promise((done) => {
        wake = done;
        setTimeout(done, pause);
      });
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  const again = () => {
    wait = FIRST_WAIT;
    wake();
  };
  addEventListener("online", again);
  document.addEventListener("visibilitychange", () => document.hidden || again());
  addEventListener("pagehide", () => controller?.abort());
  run();
}
