/* The map of a world: what each square is, the policy's moves, values, and the path of the episode under the cursor. */

const TURN = { "↑": [0, -1], "→": [1, 0], "↓": [0, 1], "←": [-1, 0] };

function drawMap(frame) {
  const title = element("h2", "", "", element("b", "", "Map"), " · arrows: how likely each move is · shade: visits · number: value V · line: the episode under the cursor");
  find("map").replaceChildren(title, data.world.rows.length ? grid(frame) : arms(frame));
}

function grid(frame) {
  const rows = data.world.rows, size = 100;
  const svg = drawn("svg", { viewBox: `0 0 ${rows[0].length * size} ${rows.length * size}`, role: "img" });
  const squares = new Map((frame.map?.squares || []).map((square) => [square.at.join(), square]));
  const most = Math.max(1, ...[...squares.values()].map((square) => square.visits));
  const arrows = [];
  rows.forEach((row, top) => [...row].forEach((kind, left) => {
    const square = squares.get([top, left].join());
    svg.append(...drawnSquare(kind, left * size, top * size, size, square, most));
    if (square && !/[GO#]/.test(kind)) arrows.push(...drawnMoves(square, left * size + size / 2, top * size + size / 2));
  }));
  const path = frame.map?.paths[state.answer] || [], at = new Map([...squares.values()].map((square) => [square.name, square.at]));
  const places = path.filter((name) => at.has(name)).map((name) => at.get(name).map((each) => each * size + size / 2));
  const line = places.map(([top, left]) => `${left},${top}`).join(" ");
  svg.append(drawn("polyline", { points: line, fill: "none", stroke: "var(--warn)", "stroke-width": 14, "stroke-opacity": 0.45, "stroke-linejoin": "round" }), ...arrows);
  return svg;
}

function drawnSquare(kind, x, y, size, square, most) {
  const wall = kind === "#", visits = square ? square.visits / most : 0;
  const parts = [drawn("rect", {
    x: x + 2, y: y + 2, width: size - 4, height: size - 4, rx: 8, stroke: "var(--line)",
    fill: wall ? "var(--line)" : `rgba(var(--amount), ${(0.5 * visits).toFixed(3)})`,
  })];
  const end = kind === "G" || kind === "O";
  const mark = { S: "start", G: "★", O: "○" }[kind] || (/[1-9]/.test(kind) ? `+${kind}` : "");
  if (mark) parts.push(drawn("text", { class: end ? "mark end" : "mark", x: x + size / 2, y: y + (end ? size / 2 + 15 : 18), "text-anchor": "middle" }, mark));
  if (!square || end || wall) return parts;
  if (square.value !== null) parts.push(drawn("text", { class: "value", x: x + size - 8, y: y + size - 9, "text-anchor": "end" }, number(square.value)));
  return parts;
}

/** A stroke for each likely move, as long and as thick as the move is likely. */
function drawnMoves(square, cx, cy) {
  const strokes = [];
  for (const [move, chance] of Object.entries(square.moves || {})) {
    const turn = TURN[move];
    if (!turn || chance < 0.02) continue;
    const reach = 10 + 34 * chance;
    strokes.push(drawn("line", {
      x1: cx, y1: cy, x2: cx + turn[0] * reach, y2: cy + turn[1] * reach, stroke: "var(--ink)",
      "stroke-width": 2 + 6 * chance, "stroke-linecap": "round", "stroke-opacity": 0.35 + 0.65 * chance,
    }));
  }
  return strokes;
}

function arms(frame) {
  const bars = element("div", "bars"), moves = frame.map?.squares[0]?.moves || {};
  for (const [arm, reward] of Object.entries(data.world.arms)) {
    const track = element("span", "track"), bar = element("span", "new");
    bar.style.width = `${100 * (moves[arm] || 0)}%`;
    bar.style.backgroundColor = "rgb(var(--amount))";
    track.append(bar);
    bars.append(element("span", "name", arm), track, element("span", "number", `${number(moves[arm])} · pays ${number(reward, true)}`));
  }
  return bars;
}
