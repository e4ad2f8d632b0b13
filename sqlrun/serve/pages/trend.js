// The hours of a restaurant, one by one, and which of them a new tick has moved.

const HOUR = 3_600_000;
const start = (time) => Math.floor(+new Date(time) / HOUR) * HOUR;

// Make of an answer one entry for each hour, those without orders too: [{at, orders, sales, running}].
export function hours(answer) {
  const known = new Map(answer.hour_at.map((at, place) => [+new Date(at), place]));
  const end = +new Date(answer.as_of);
  const found = [];
  for (let at = start(answer.from); at < end; at += HOUR) {
    const place = known.get(at);
    found.push({
      at,
      orders: place === undefined ? 0 : answer.n_orders[place],
      sales: place === undefined ? 0 : Number(answer.total_sales[place]),
      running: at + HOUR > end,
    });
  }
  return found;
}

// List the hours that were over in the tick before and are told otherwise now: late, corrected or cancelled orders.
export function moved(before, now) {
  if (!before || before.restaurant.id !== now.restaurant.id || before.tick >= now.tick) return [];
  const was = new Map(hours(before).filter((hour) => !hour.running).map((hour) => [hour.at, hour]));
  return hours(now).flatMap((hour) => {
    const old = was.get(hour.at);
    if (!old) return [];
    const [orders, cents] = [hour.orders - old.orders, Math.round(100 * (hour.sales - old.sales))];
    return orders || cents ? [{ at: hour.at, orders, sales: cents / 100, was: old, is: hour }] : [];
  });
}
