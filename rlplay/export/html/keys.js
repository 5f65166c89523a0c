/* Keys, clicks, and the presenter's mode. */

const SHOWN = () => (data.world ? ["map", "answers", "curves"] : ["answers", "token", "curves"]);
const PERIOD = 900;
let timer = null;

function play() {
  if (timer) { clearInterval(timer); timer = null; }
  else {
    if (state.frame >= data.frames.length - 1) show(0);
    timer = setInterval(() => (state.frame >= data.frames.length - 1 ? play() : show(state.frame + 1)), PERIOD);
  }
  find("run").textContent = timer ? "❚❚" : "▶";
}

function nextLens() {
  const known = lensesNow();
  if (known.length) state.lens = known[(known.indexOf(lensNow()) + 1) % known.length];
  paint();
}

/** One panel after the other, large; then all of them again. */
function present() {
  const panels = SHOWN(), now = panels.findIndex((name) => find(name).classList.contains("shown"));
  panels.forEach((name) => find(name).classList.remove("shown"));
  document.body.classList.toggle("present", now + 1 < panels.length);
  if (now + 1 < panels.length) find(panels[now + 1]).classList.add("shown");
  paint();
}

const KEYS = {
  " ": [play, "play or pause"], "]": [() => show(state.frame + 1), "newer update"], "[": [() => show(state.frame - 1), "older update"],
  t: [() => step(1), "lesson: next (also PageDown)"], T: [() => step(-1), "lesson: back (also PageUp)"], c: [nextLens, "colour by the next statistic"],
  x: [() => goToExtreme(1), "token with the largest value"], X: [() => goToExtreme(-1), "token with the smallest value"],
  p: [present, "present: one panel, large"], ArrowLeft: [() => moveCursor(0, -1), "token before"], ArrowRight: [() => moveCursor(0, 1), "next token"],
  ArrowUp: [() => moveCursor(-1, 0), "answer before"], ArrowDown: [() => moveCursor(1, 0), "next answer"], "?": [() => find("help").showModal(), "all keys"],
};
const ALSO = { PageDown: "t", PageUp: "T" };
const IN_FOOTER = [" ", "[", "]", "t", "c", "p", "?"];
const NAMES = { " ": "space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || find("help").open) return;
  if (/^[1-9]$/.test(event.key)) choose(Number(event.key) - 1);
  const key = KEYS[ALSO[event.key] || event.key];
  const own = { BUTTON: [" "], INPUT: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown"] };
  if (!key || own[event.target.tagName]?.includes(event.key)) return;
  event.preventDefault();
  key[0]();
});
find("answers").addEventListener("click", (event) => {
  const { answer, token } = event.target.dataset;
  if (token === undefined) return;
  [state.answer, state.token] = [Number(answer), Number(token)];
  paint();
});
find("slider").addEventListener("input", (event) => show(Number(event.target.value)));
find("older").addEventListener("click", () => show(state.frame - 1));
find("newer").addEventListener("click", () => show(state.frame + 1));
find("run").addEventListener("click", play);

function begin() {
  find("title").textContent = data.title;
  find("question").textContent = [data.question, data.about, "recorded"].filter(Boolean).join(" · ");
  find("slider").max = data.frames.length - 1;
  document.body.classList.toggle("world", Boolean(data.world));
  const footer = find("keys"), list = element("dl");
  for (const name of IN_FOOTER) footer.append(element("b", "", NAMES[name] || name), ` ${KEYS[name][1]}   `);
  for (const [name, [, title]] of Object.entries(KEYS)) list.append(element("dt", "", "", element("kbd", "", NAMES[name] || name)), element("dd", "", title));
  find("help").append(element("h2", "", "Keys"), list, element("p", "quiet", `Made by rlplay ${data.version}.${data.play ? ` To train it yourself: ${data.play}` : ""}`));
  show(data.frames.findIndex((frame) => answersOf(frame).length));
}
begin();
