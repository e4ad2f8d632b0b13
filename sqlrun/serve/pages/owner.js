// The token stands behind # in the address: browsers send that part to nobody.
"use strict";
const TOKEN = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token") || "";
if (TOKEN) sessionStorage.setItem("token", TOKEN);
if (location.hash) history.replaceState(null, "", location.pathname);
const HEADERS = TOKEN ? { Authorization: "Bearer " + TOKEN } : {};
const HOURS = [1, 24, 168];
const at = (id) => document.getElementById(id);
let hours = 24;
let restaurant = null;

async function ask(path) {
  const answer = await fetch(path, { headers: HEADERS });
  if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
  return answer.json();
}

function money(amount, currency) {
  return currency ? new Intl.NumberFormat(undefined, { style: "currency", currency }).format(amount) : amount;
}

async function show() {
  try {
    restaurant = restaurant || (await ask("/api/v1/restaurants?limit=1")).restaurants[0];
    if (!restaurant) throw new Error("There is no restaurant to show.");
    const found = await ask(`/api/v1/restaurants/${encodeURIComponent(restaurant.id)}/windows?hours=${hours}`);
    const currency = found.restaurant.currency;
    at("name").textContent = found.restaurant.name || found.restaurant.id;
    at("orders").textContent = found.n_orders;
    at("sales").textContent = money(found.total_sales, currency);
    at("average").textContent = found.n_orders ? money(found.total_sales / found.n_orders, currency) : "–";
    at("dishes").replaceChildren(
      ...found.top_dishes.map((dish) => {
        const item = document.createElement("li");
        item.textContent = `${dish.dish_name || dish.dish_id}: ${dish.quantity}`;
        return item;
      }),
    );
    at("numbers").hidden = at("best").hidden = false;
    at("state").textContent = "As of " + new Date(found.as_of).toLocaleString();
  } catch (error) {
    at("state").textContent = error.message;
  }
  for (const button of at("windows").children) button.setAttribute("aria-pressed", String(+button.value === hours));
}

async function listen() {
  for (;;) {
    try {
      const answer = await fetch("/api/v1/ticks/events", { headers: HEADERS });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        if (part.value.includes("event: tick")) await show();
      }
    } catch {
      // Asked again below.
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

for (const each of HOURS) {
  const button = document.createElement("button");
  button.value = each;
  button.textContent = each === 168 ? "7 days" : each === 1 ? "1 hour" : "24 hours";
  button.addEventListener("click", () => {
    hours = each;
    show();
  });
  at("windows").append(button);
}
show();
listen();
