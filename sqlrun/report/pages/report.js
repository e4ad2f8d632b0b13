// Filters the report's checks. Without it, or with nothing selected, all are shown.
"use strict";
(() => {
  const box = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const choices = [...box.querySelectorAll("select")];
  const items = [...document.querySelectorAll("[data-model]")];
  const rows = items.filter((item) => item.tagName === "TR");
  const blocks = [...document.querySelectorAll("#checks .checks, #checks .group, main > section:has(article)")];
  const overviews = [...document.querySelectorAll(".overview")]; // they link to what may be hidden
  const folds = [...document.querySelectorAll("#checks details, section:has(article) > details")];
  const open = folds.map((fold) => fold.open);

  // An item without an attribute stays: a model that could not be built has no severity.
  const fits = (item) => choices.every(({ name, value }) => !value || !item.dataset[name] || item.dataset[name] === value);
  const seen = (block) => [...block.querySelectorAll("[data-model]")].some((item) => !item.hidden);

  function choose() {
    const any = choices.some(({ value }) => value);
    for (const item of items) item.hidden = !fits(item);
    for (const block of blocks) block.hidden = any && !seen(block);
    for (const overview of overviews) overview.hidden = any;
    folds.forEach((fold, place) => {
      fold.hidden = any && !seen(fold);
      fold.open = any ? !fold.hidden : open[place];
    });
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = any ? `${left.toLocaleString("en")} of ${rows.length.toLocaleString("en")} checks` : "";
  }

  box.addEventListener("change", choose);
  box.addEventListener("reset", () => setTimeout(choose));
  box.hidden = false;
  choose(); // after "back" a browser restores the selection
})();
