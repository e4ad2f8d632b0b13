// A dialog with a search, to choose one of the entities that the token may see.

import { at, make } from "/static/elements.js";
import { ask, path } from "/static/session.js";
import { text } from "/static/texts.js";

const A_PAGE = 1000;
const MOST_SHOWN = 50;

const plain = (words) => words.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const title = (entity) => entity.name || entity.id;

// Request all entities, page by page.
async function all({ api, entity }) {
  const found = [];
  for (let cursor = null; ; ) {
    const answer = await ask(path([api], { limit: A_PAGE, ...(cursor && { cursor }) }));
    found.push(...answer[entity.plural]);
    cursor = answer.next;
    if (!cursor) break;
  }
  return found.map((one) => ({ ...one, place: one[entity.place] ?? "", find: plain(`${title(one)} ${one[entity.place] ?? ""} ${one.id}`) }));
}

// Connect the dialog to a dashboard. `chosen` is called with an entity's id.
export function chooser(board, chosen) {
  const [dialog, search, list, told] = ["chooser", "search", "found", "found-count"].map(at);
  let known = null;

  function show() {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    const found = known.filter((one) => words.every((word) => one.find.includes(word)));
    list.replaceChildren(
      ...found.slice(0, MOST_SHOWN).map((one) =>
        make("li", {}, make("button", { type: "button", value: one.id },
          make("b", {}, title(one)), make("span", { class: "dim" }, [one.place, one.id].filter(Boolean).join(" · "))))),
    );
    const more = found.length > MOST_SHOWN ? text("first", { n: MOST_SHOWN }) : "";
    told.textContent = found.length ? text("found", { n: found.length }) + more : text("noneFound");
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
    if (!known) told.textContent = text("loading");
    try {
      known = await all(board);
      show();
    } catch (error) {
      told.textContent = error.message;
    }
  });
}
