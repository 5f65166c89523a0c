/* Curves: one metric each, the run that was discarded faint, the update on the page marked. */

function drawCurves() {
  const names = [...data.panels];
  if (state.curve && !names.includes(state.curve) && data.metrics[state.curve]) names.unshift(state.curve);
  if (state.curve && names.includes(state.curve)) names.sort((a, b) => (b === state.curve) - (a === state.curve));
  find("curves").replaceChildren(...names.slice(0, data.world ? 2 : 4).map(drawnCurve));
}

/** The points of a metric in parts: one for each time that the run went back, and for each stage where the number means
    something else. A lesson does not show what comes later. */
function pointsOf(name) {
  const parts = new Map(), last = state.item < 0 ? data.frames.length : state.frame - (state.phase === null ? 0 : 1);
  for (const [place, frame] of data.frames.entries()) {
    if (place > last) break;
    const value = frame.metrics[name];
    if (value === undefined || value === null) continue;
    const part = data.metrics[name].runsOn ? `${frame.act}` : `${frame.act}.${frame.stage}`;
    if (!parts.has(part)) parts.set(part, { act: frame.act, points: [] });
    parts.get(part).points.push([frame.update, value]);
  }
  return [...parts.values()];
}

function drawnCurve(name, place) {
  const first = place === 0, parts = pointsOf(name), all = parts.flatMap((part) => part.points), metric = data.metrics[name], frame = shownFrame();
  const width = 360, height = 150, left = 34, bottom = 18, top = 6;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const [low, high, ticks] = axis(all.map((point) => point[1]));
  const last = Math.max(1, ...data.frames.map((each) => each.update));
  const x = (update) => left + ((width - left - 8) * update) / last;
  const y = (value) => height - bottom - ((height - bottom - top) * (value - low)) / (high - low);
  for (const tick of ticks) {
    svg.append(drawn("line", { x1: left, x2: width - 8, y1: y(tick), y2: y(tick), stroke: "var(--line)", "stroke-width": 0.5 }));
    svg.append(drawn("text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, number(tick)));
  }
  for (const update of [0, last]) svg.append(drawn("text", { x: x(update), y: height - 4, "text-anchor": update ? "end" : "start" }, update ? `update ${update}` : "0"));
  for (const { act, points } of parts) {
    const now = act === frame.act, line = points.map(([update, value]) => `${x(update)},${y(value)}`).join(" ");
    svg.append(drawn("polyline", {
      points: line, fill: "none", stroke: now ? "var(--curve)" : "var(--quiet)", "stroke-width": now ? 2.5 : 1,
      "stroke-dasharray": now ? "" : "3 3", opacity: now ? 1 : 0.55,
    }));
  }
  const here = frame.metrics[name];
  if (here !== undefined && here !== null && state.phase === null) {
    svg.append(drawn("circle", { cx: x(frame.update), cy: y(here), r: 4.5, fill: "var(--ink)" }));
  }
  svg.append(drawn("title", {}, metric.title));
  const title = element("h2");
  title.append(element("b", "", metric.title), here === undefined ? "" : ` ${number(here)}${metric.unit ? ` ${metric.unit}` : ""}`);
  if (!all.length) title.append(element("span", "quiet", " comes with the first update"));
  if (first && parts.some((part) => part.act !== frame.act)) title.append(element("span", "quiet", " · dashed: before it went back"));
  return element("div", "curve", "", title, svg);
}

/** Ends and ticks of an axis: steps of 1, 2 or 5. */
function axis(values) {
  let low = Math.min(0, ...values), high = Math.max(...values, low + 1e-6);
  if (values.every((value) => value >= 0 && value <= 1)) high = Math.max(high, 0.1);
  const rough = (high - low) / 3, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  low = Math.floor(low / step) * step;
  high = Math.ceil(high / step - 1e-9) * step;
  const ticks = [];
  for (let tick = low; tick <= high + step / 2; tick += step) ticks.push(Math.abs(tick) < step / 1e6 ? 0 : tick);
  return [low, high, ticks];
}
