// The hours of an entity, and the hours that a new tick has changed.

const HOUR = 3_600_000;
const start = (time) => Math.floor(+new Date(time) / HOUR) * HOUR;

// Return one entry for each hour of an answer, including hours without rows: [{at, values by measure, running}].
export function hours(answer, measures) {
  const known = new Map(answer.hour_at.map((at, place) => [+new Date(at), place]));
  const end = +new Date(answer.as_of);
  const found = [];
  for (let at = start(answer.from); at < end; at += HOUR) {
    const place = known.get(at);
    const values = Object.fromEntries(measures.map(({ name }) => [name, place === undefined ? 0 : answer[name][place]]));
    found.push({ at, values, running: at + HOUR > end });
  }
  return found;
}

// Return the hours that were complete in the tick before and have changed since, by late or corrected rows.
export function moved(before, now, entity, measures) {
  if (!before || !now || before[entity].id !== now[entity].id || before.tick >= now.tick) return [];
  const was = new Map(hours(before, measures).filter((hour) => !hour.running).map((hour) => [hour.at, hour]));
  return hours(now, measures).flatMap((hour) => {
    const old = was.get(hour.at);
    if (!old) return [];
    const by = Object.fromEntries(measures.map(({ name }) => [name, Math.round(100 * (hour.values[name] - old.values[name])) / 100]));
    return Object.values(by).some(Boolean) ? [{ at: hour.at, by, was: old, is: hour }] : [];
  });
}
