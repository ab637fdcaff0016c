// The live graph: a box per stage, a cell per processing element, dashes where records flow.

import { s, whole, percent } from "./dom.js";

const WIDE = 186, GAP = 56, ROW = 26, END = 108;

// Side of a cell, and cells in a row: many are small.
function cells(stage) {
  const side = stage.pes.length > 60 ? 6 : 13;
  return { side, step: side + 2, inRow: Math.floor((WIDE - 22) / (side + 2)) };
}

// Column of each stage: the longest way to it. Streams form no circle.
function columns(stages, streams) {
  const column = new Map(stages.map((stage) => [stage.name, 0]));
  for (let round = 0; round < stages.length; round++) {
    for (const { from, to } of streams) {
      if (from && to && from !== to) column.set(to, Math.max(column.get(to) ?? 0, (column.get(from) ?? 0) + 1));
    }
  }
  return column;
}

function tall(stage) {
  const { step, inRow } = cells(stage);
  return 60 + Math.max(1, Math.ceil(stage.pes.length / inRow)) * step;
}

export function layout(stages, streams) {
  const column = columns(stages, streams), heights = [], places = new Map();
  for (const stage of stages) {
    const x = column.get(stage.name);
    heights[x] ??= 0;
    places.set(stage.name, { x: END + x * (WIDE + GAP), y: 8 + heights[x], height: tall(stage) });
    heights[x] += tall(stage) + ROW;
  }
  const most = Math.max(...heights, 80);
  for (const [name, place] of places) place.y += (most - heights[column.get(name)]) / 2;
  return { places, width: 2 * END + heights.length * (WIDE + GAP) - GAP, height: most };
}

// Streams whose ends are in the picture: amid an edit there are such of stages that come or go.
function drawable(job) {
  const known = new Set(job.stages.map((stage) => stage.name));
  return job.streams.filter(({ from, to }) => (from || to) && (!from || known.has(from)) && (!to || known.has(to)));
}

export function graph(job, chosen, choose) {
  const streams = drawable(job), { places, width, height } = layout(job.stages, streams);
  const label = `Graph of ${job.name}: ${job.stages.length} stages`;
  const picture = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  const flowing = new Set(job.stages.filter((stage) => stage.pes.some((pe) => pe.busy > 0.005)).map((stage) => stage.name));
  for (const stream of streams) picture.append(...edge(stream, places, flowing));
  for (const stage of job.stages) picture.append(node(stage, places.get(stage.name), job, chosen, choose));
  return picture;
}

function edge({ from, to, topic }, places, flowing) {
  const a = places.get(from), b = places.get(to);
  const flows = flowing.has(to) || (!to && flowing.has(from));
  const start = a ? [a.x + WIDE, a.y + a.height / 2] : [b.x - 50, b.y + b.height / 2];
  const end = b ? [b.x, b.y + b.height / 2] : [a.x + WIDE + 50, a.y + a.height / 2];
  const middle = (start[0] + end[0]) / 2;
  const d = `M${start} C${middle},${start[1]} ${middle},${end[1]} ${end}`;
  const path = s("path", { class: flows ? "edge flows" : "edge", d }, s("title", {}, topic));
  if (a && b) return [path];
  const place = b ? { x: 6, y: start[1] - 10 } : { x: start[0] + 8, y: end[1] - 10 };
  return [path, s("text", { class: "end", ...place }, topic.length > 14 ? `${topic.slice(0, 13)}…` : topic)];
}

function kind(stage, region) {
  if (region) return `${region.serving} of ${region.maxWidth} channels`;
  return stage.realTime ? "real time" : "no region";
}

function node(stage, place, job, chosen, choose) {
  const what = kind(stage, job.regions.find((item) => item.region === stage.region));
  const lag = stage.pes.reduce((sum, pe) => sum + (pe.lag ?? 0), 0);
  const busy = Math.max(...stage.pes.map((pe) => pe.busy ?? 0), 0);
  const label = `Stage ${stage.name}, ${what}, busiest ${percent(busy)}, ${whole(lag)} records wait`;
  const pick = () => choose(stage.name);
  const pressed = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  };
  const { side, step, inRow } = cells(stage);
  const drawn = stage.pes.map((pe, index) => s("rect", {
    class: `cell ${pe.phase}`, width: side, height: side, rx: side / 4, vars: { "--share": Math.min(1, pe.busy ?? 0) },
    x: 12 + (index % inRow) * step, y: 50 + Math.floor(index / inRow) * step,
  }, s("title", {}, `${pe.name}: ${pe.phase}, ${percent(pe.busy)} busy, ${whole(pe.lag)} wait`)));
  return s("g", {
    class: "node", tabindex: 0, role: "button", "aria-label": label, "aria-pressed": String(stage.name === chosen),
    "data-key": `stage-${stage.name}`, transform: `translate(${place.x} ${place.y})`, onclick: pick, onkeydown: pressed,
  },
  s("rect", { class: "box", width: WIDE, height: place.height }),
  s("text", { x: 12, y: 22 }, stage.name.length > 24 ? `${stage.name.slice(0, 23)}…` : stage.name),
  s("text", { class: "sub", x: 12, y: 39 }, `${what} · ${percent(busy)} busy`), ...drawn);
}
