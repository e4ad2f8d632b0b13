// Chooses one of the restaurants that may be seen: a dialog with a search.

import { at, make } from "/static/elements.js";
import { ask, path } from "/static/session.js";

const A_PAGE = 1000;
const MOST_SHOWN = 50;

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const title = (restaurant) => restaurant.name || restaurant.id;

// Ask for all restaurants, page by page.
async function all() {
  const found = [];
  for (let cursor = null; ; ) {
    const answer = await ask(path(["restaurants"], { limit: A_PAGE, ...(cursor && { cursor }) }));
    found.push(...answer.restaurants);
    cursor = answer.next;
    if (!cursor) break;
  }
  return found.map((one) => ({ ...one, find: plain(`${title(one)} ${one.city ?? ""} ${one.id}`) }));
}

// Make the dialog work; `chosen` is told of a restaurant's id.
export function chooser(chosen) {
  const [dialog, search, list, told] = ["chooser", "search", "found", "found-count"].map(at);
  let known = null;

  function show() {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    const found = known.filter((one) => words.every((word) => one.find.includes(word)));
    list.replaceChildren(
      ...found.slice(0, MOST_SHOWN).map((one) =>
        make("li", {}, make("button", { type: "button", value: one.id },
          make("b", {}, title(one)), make("span", { class: "dim" }, [one.city, one.id].filter(Boolean).join(" · "))))),
    );
    const more = found.length > MOST_SHOWN ? `; the first ${MOST_SHOWN} are shown` : "";
    told.textContent = found.length ? `${found.length} found${more}` : "None is called so.";
  }
  search.addEventListener("input", () => known && show());
  list.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    dialog.close();
    chosen(button.value);
  });
  at("close-chooser").addEventListener("click", () => dialog.close());
  at("choose").addEventListener("click", async () => {
    search.value = "";
    dialog.showModal();
    search.focus();
    if (!known) told.textContent = "Loading …";
    try {
      known = await all();
      show();
    } catch (error) {
      told.textContent = error.message;
    }
  });
}
