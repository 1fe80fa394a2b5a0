"use strict";
// Conveniences only: everything on the page can be read and reached without them.
(() => {
  const cards = () => [...document.querySelectorAll("details.card")].filter((card) => card.offsetParent !== null);

  for (const element of document.querySelectorAll(".controls, .copy")) element.hidden = false;

  const go = (step) => {
    const all = cards();
    if (all.length === 0) return;
    const here = document.activeElement && document.activeElement.closest("details.card");
    const place = all.indexOf(here);
    const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + step, 0), all.length - 1);
    const summary = all[next].querySelector("summary");
    summary.focus({ preventScroll: true });
    all[next].scrollIntoView({ block: "start" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else return;
    event.preventDefault();
  });

  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const element of document.querySelectorAll("[data-op]")) {
      element.hidden = !element.dataset.op.toLowerCase().includes(wanted);
    }
  });

  const setAll = (open) => cards().forEach((card) => { card.open = open; });
  document.getElementById("expand").addEventListener("click", () => setAll(true));
  document.getElementById("collapse").addEventListener("click", () => setAll(false));

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    const selection = getSelection();
    selection.selectAllChildren(code);
    const done = () => { button.textContent = "Copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, () => {});
    else if (document.execCommand("copy")) done();
  });

  const numbers = (text) => text.split(",").map(Number);
  const span = (first, step, size) => {
    const last = Math.min(first + step, size) - 1;
    return first === last ? String(first) : `${first}–${last}`;
  };
  const words = document.body.dataset.levels.split("|");
  document.addEventListener("pointermove", (event) => {
    const map = event.target.closest && event.target.closest("svg[data-levels]");
    if (!map) return;
    const { levels, width, origin, cell, step, size } = map.dataset;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    const [left, top] = numbers(origin);
    const [wide, high] = numbers(cell);
    const [rowStep, columnStep] = numbers(step);
    const [rows, columns] = numbers(size);
    const across = Math.floor((point.x - left) / wide);
    const down = Math.floor((point.y - top) / high);
    const inside = across >= 0 && across < Number(width) && down >= 0 && down * rowStep < rows;
    const readout = map.closest("figure").querySelector(".readout");
    if (!inside) { readout.textContent = ""; return; }
    const level = levels[down * Number(width) + across];
    const row = rows > 1 ? `row ${span(down * rowStep, rowStep, rows)}, ` : "";
    readout.textContent = `${row}column ${span(across * columnStep, columnStep, columns)}: ${words[level]}`;
  });
})();
