// A region's last hour: records per second, channels, and those of a replay.

import { s, h, seconds, clock, whole } from "./dom.js";
import { runs } from "./load.js";

const WIDE = 800, TALL = 92;

// `steps`: a replay's; none of another time is drawn.
export function hour(samples, now, most, steps) {
  if (samples.length < 2) return h("p", { class: "soft" }, "The first minutes are still being measured.");
  const first = samples[0].time, last = samples.at(-1).time;
  const label = `Last hour: now ${whole(now?.inputRate)} records per second on ${whole(now?.width)} channels`;
  const plot = s("svg", { class: "plot", viewBox: `0 0 ${WIDE} ${TALL}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const top = Math.max(...samples.map((sample) => sample.inputRate ?? 0), 1) * 1.1;
  const x = (sample) => (((sample.time - first) / (last - first || 1)) * WIDE).toFixed(1);
  const rate = (sample) => (TALL - 2 - (sample.inputRate / top) * (TALL - 12)).toFixed(1);
  const level = (count) => (TALL - 2 - (count / most) * (TALL - 12)).toFixed(1);
  const stairs = (run) => run.map((sample, index) => `${index ? "H" : "M"}${x(sample)}${index ? "V" : " "}${level(sample.width)}`).join("");
  for (const run of runs(samples)) {
    const line = run.map((sample) => `${x(sample)} ${rate(sample)}`).join("L");
    plot.append(s("path", { class: "area", d: `M${x(run[0])} ${TALL}L${line}L${x(run.at(-1))} ${TALL}Z` }), s("path", { class: "rate", d: `M${line}` }));
  }
  plot.append(s("path", { class: "width", d: stairs(samples) }));
  const shown = steps.filter((step) => step.time >= first && step.time <= last);
  for (const run of runs(shown, () => true)) plot.append(s("path", { class: "guess", d: stairs(run) }));
  return plot;
}

// A width change as a bar: new channels warm up, shards move, old channels close.
export function timeline(change) {
  const at = (name) => (change[name] ? Date.parse(change[name]) / 1000 : null);
  const begun = at("requestedAt"), decided = at("decidedAt"), serving = at("servingAt"), ended = at("finishedAt");
  const end = ended ?? serving ?? decided ?? Date.now() / 1000;
  const parts = [
    ["warm", "warm-up", begun, decided ?? end], ["move", "shards move", decided, serving ?? end], ["close", "old channels close", serving, end],
  ].filter(([, , from, to]) => from !== null && to !== null && to > from);
  const words = parts.map(([, name, from, to]) => `${name} ${seconds(to - from)}`).join(", ") || "just begun";
  const bar = parts.map(([kind, , from, to]) => h("i", { class: kind, vars: { flex: String(Math.max(to - from, 0.05)) } }));
  return h("li", { class: "change" },
    h("span", {}, h("b", {}, `${change.fromWidth} → ${change.toWidth}`), h("span", { class: "soft" }, ` at ${clock(change.requestedAt)}`)),
    h("span", { class: "span", role: "img", "aria-label": words, title: words }, bar),
    h("span", { class: "soft" }, outcome(change, ended)));
}

function outcome(change, ended) {
  if (change.failure) return `rolled back: ${change.failure}`;
  if (typeof change.pauseSecondsMax === "number") return `longest pause ${seconds(change.pauseSecondsMax)}`;
  return ended ? "no shard moved" : "under way";
}
