// A row that is drawn in the page, undivided and divided, beside what all rows have:
// EXPLORER_TABLE is simulated_rows.json, made by studies/explorer.py.
(() => {
  const table = EXPLORER_TABLE;
  const section = document.getElementById("explorer");
  const form = document.getElementById("explorer-form");
  const part = name => document.getElementById("explorer-" + name);
  const BARS = 64, UNDIVIDED = table.divisors.indexOf("none");
  const language = document.documentElement.lang;

  // --- draws ------------------------------------------------------------------------
  // sfc32 of PractRand
  const state = crypto.getRandomValues(new Uint32Array(4));
  const bits = () => {
    const sum = state[0] + state[1] + state[3]++;
    state[0] = state[1] ^ state[1] >>> 9;
    state[1] = state[2] + (state[2] << 3);
    state[2] = (state[2] << 21 | state[2] >>> 11) + sum;
    return sum >>> 0;
  };
  for (let i = 0; i < 16; i++) bits();
  // Box and Muller, an even number
  const normals = count => {
    const drawn = new Float64Array(count);
    for (let i = 0; i < count; i += 2) {
      const radius = Math.sqrt(-2 * Math.log((bits() + 0.5) / 2 ** 32));
      const angle = 2 * Math.PI * bits() / 2 ** 32;
      drawn[i] = radius * Math.cos(angle);
      drawn[i + 1] = radius * Math.sin(angle);
    }
    return drawn;
  };
  // A query, and the scores of the most keys in standard deviations, given the query.
  let query, scores;
  const draw = () => {
    query = normals(Math.max(...table.d_k));
    scores = normals(Math.max(...table.keys));
  };
  // The weights of a row, the largest first.
  const weigh = (d, n, c) => {
    const s = Math.hypot(...query.subarray(0, d)) / c;
    const sorted = scores.slice(0, n).sort().reverse();
    const weights = sorted.map(z => Math.exp(s * (z - sorted[0])));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return weights.map(weight => weight / sum);
  };

  // --- numbers ----------------------------------------------------------------------
  const write = (value, options) =>
    value.toLocaleString(language, {useGrouping: value >= 1e4, ...options});
  const whole = value => write(value, {maximumFractionDigits: 0});
  const digits = value => value >= 1000 ? whole(value)
    : write(value, {minimumSignificantDigits: 3, maximumSignificantDigits: 3});
  const few = value => value >= 100 ? whole(value)  // drawn, to two digits
    : write(value, {minimumSignificantDigits: 2, maximumSignificantDigits: 2});
  const percent = value => {  // of rows with any weights, neither none nor all
    const sign = value < 0.0005 ? "<" : value > 0.9995 ? ">" : "";
    const shown = sign === "<" ? 0.1 : sign === ">" ? 99.9 : 100 * value;
    const one = {minimumFractionDigits: 1, maximumFractionDigits: 1};
    return (sign && sign + "\u00a0") + write(shown, one) + form.dataset.percent;
  };
  const writers = {saturated: percent, effective_keys: few};
  const show = (name, text) => {
    for (const one of section.querySelectorAll(".explorer-" + name)) one.textContent = text;
  };

  // --- one setting ------------------------------------------------------------------
  const [dimension, keys] = ["d", "n"].map(part);
  dimension.max = table.d_k.length - 1;
  keys.max = table.keys.length - 1;
  dimension.value = table.d_k.indexOf(64);
  keys.value = table.keys.indexOf(128);
  let chosen = "sqrt", timer = 0;

  const divisor = (name, d) =>
    ({none: 1, sqrt: Math.sqrt(d), "2sqrt": 2 * Math.sqrt(d), linear: d})[name];
  const showRow = (name, weights) => {
    const shown = weights.subarray(0, BARS), width = 100 / BARS;
    part(name).querySelector(".bars").setAttribute("d", [...shown].map((weight, i) =>
      `M${(i + 0.08) * width} 100v${-100 * weight}h${0.84 * width}v${100 * weight}z`).join(""));
    return digits(shown[0]);
  };
  const redraw = () => {
    const d = table.d_k[dimension.value], n = table.keys[keys.value];
    for (const [name, input, size] of [["d", dimension, d], ["n", keys, n]]) {
      part(name + "-value").textContent = whole(size);
      input.setAttribute("aria-valuetext", whole(size));
      show(name, whole(size));
    }
    show("c", write(divisor(chosen, d), {maximumSignificantDigits: 4}));
    show("shown", whole(Math.min(BARS, n)));
    for (const button of form.querySelectorAll("[data-divisor]"))
      button.setAttribute("aria-pressed", button.dataset.divisor === chosen);
    const setting = (+keys.value * table.d_k.length + +dimension.value) * table.divisors.length;
    const columns = [UNDIVIDED, table.divisors.indexOf(chosen)];
    table.statistics.forEach((statistic, at) => {
      const cells = section.querySelectorAll(`[data-statistic="${statistic}"] td`);
      columns.forEach((column, i) => {
        const value = table.values[setting + column][at];
        cells[i].textContent = (writers[statistic] || digits)(value);
        cells[i].dataset.value = value;
      });
    });
    const largest = {
      none: showRow("none", weigh(d, n, 1)),
      divided: showRow("divided", weigh(d, n, divisor(chosen, d))),
    };
    const said = form.dataset.status.replace(/\{(\w+)\}/g, (_, name) => largest[name]);
    for (const name of ["none", "divided"]) part(name).setAttribute("aria-label", said);
    clearTimeout(timer);
    timer = setTimeout(() => { part("status").textContent = said; }, 700);
  };
  form.addEventListener("input", redraw);
  form.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.divisor) chosen = button.dataset.divisor;
    else draw();
    redraw();
  });
  form.addEventListener("submit", event => event.preventDefault());
  for (const one of section.querySelectorAll(".script-only")) one.hidden = false;
  // the row that is shown first is a typical one
  const typical = table.values[(table.keys.indexOf(128) * table.d_k.length
    + table.d_k.indexOf(64)) * table.divisors.length][table.statistics.indexOf("weight_max")];
  do draw(); while (Math.abs(weigh(64, 128, 1)[0] - typical) > 0.1);
  redraw();
})();
