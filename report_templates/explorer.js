// Rows drawn in the page, beside what theory gives exactly: TABLE is explorer.json, made
// by studies/explorer.py.
(() => {
  const table = EXPLORER_TABLE;
  const form = document.getElementById("explorer-form");
  const part = name => document.getElementById("explorer-" + name);
  const ROWS = 400, BARS = 64, BINS = 48, FIRST = 12, PER_FRAME = 5;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const language = document.documentElement.lang;

  // --- exact values -----------------------------------------------------------------
  // Clenshaw's recurrence for a Chebyshev polynomial
  const polynomial = (coefficients, x) => {
    let [next, after] = [0, 0];
    for (let k = coefficients.length - 1; k > 0; k--)
      [next, after] = [2 * x * next - after + coefficients[k], next];
    return table.unit * (x * next - after + coefficients[0]);
  };
  // Means over |q| = sqrt(d) exp(y), whose density over y is proportional to
  // exp(d (y - exp(2y)/2)), by the trapezoidal rule: it converges exponentially.
  const exact = (functions, d, c) => {
    const spread = 1 / Math.sqrt(2 * d), means = functions.map(() => 0);
    let mass = 0;
    for (let y = -9 * spread - 18 / d; y < 9 * spread; y += spread / 4) {
      const weight = Math.exp(d * (y - Math.expm1(2 * y) / 2));
      const s = Math.min(Math.sqrt(d) * Math.exp(y) / c, table.top);
      const x = 2 * Math.asinh(s) / Math.asinh(table.top) - 1;
      const [largest, entropy, share, jacobian, along] = functions.map(f => polynomial(f, x));
      [Math.exp(largest), entropy, share, Math.exp(jacobian), Math.exp(along)]
        .forEach((value, i) => { means[i] += weight * value; });
      mass += weight;
    }
    const [largest, entropy, share, jacobian, along] = means.map(sum => sum / mass);
    return {
      largest, keys: Math.exp(entropy), share: Math.min(Math.max(share, 0), 1),
      jacobian: Math.sqrt(jacobian), gradient: Math.sqrt((d - 1) * jacobian + along),
    };
  };

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
  // Box and Muller
  const normals = count => {
    const drawn = new Float64Array(count);
    for (let i = 0; i < count; i += 2) {
      const radius = Math.sqrt(-2 * Math.log((bits() + 0.5) / 2 ** 32));
      const angle = 2 * Math.PI * bits() / 2 ** 32;
      drawn[i] = radius * Math.cos(angle);
      drawn[i + 1] = radius * Math.sin(angle);  // beyond the end of an odd one: nothing
    }
    return drawn;
  };
  const drawWeights = ({d, n, c}) => {
    const s = Math.hypot(...normals(d)) / c;
    const weights = normals(n);
    let [most, sum] = [-Infinity, 0];
    for (const z of weights) if (z > most) most = z;
    for (let i = 0; i < n; i++) sum += weights[i] = Math.exp(s * (weights[i] - most));
    for (let i = 0; i < n; i++) weights[i] /= sum;
    return {weights, largest: 1 / sum};
  };

  // --- numbers ----------------------------------------------------------------------
  const write = (value, options) =>
    value.toLocaleString(language, {useGrouping: value >= 1e4, ...options});
  const whole = value => write(value, {maximumFractionDigits: 0});
  const digits = (value, count = 3) => value >= 1000 ? whole(value)
    : write(value, {minimumSignificantDigits: count, maximumSignificantDigits: count});
  const decimals = (value, count) =>
    write(value, {minimumFractionDigits: count, maximumFractionDigits: count});
  const percent = value => {  // of rows with any weights, neither none nor all
    const sign = value < 0.0005 ? "<" : value > 0.9995 ? ">" : "";
    const shown = sign === "<" ? 0.1 : sign === ">" ? 99.9 : 100 * value;
    return (sign && sign + "\u00a0") + decimals(shown, 1) + form.dataset.percent;
  };
  const show = (name, text, value) => {
    part(name).textContent = text;
    part(name).dataset.value = value;
  };
  const showExact = found => {
    show("exact", digits(found.largest), found.largest);
    show("largest", digits(found.largest), found.largest);
    show("keys", digits(found.keys), found.keys);
    show("share", percent(found.share), found.share);
    show("jacobian", digits(found.jacobian), found.jacobian);
    show("gradient", digits(found.gradient), found.gradient);
  };

  // --- pictures: 100 wide and 100 high ----------------------------------------------
  const bars = (name, heights) => {
    const width = 100 / heights.length;
    part(name).setAttribute("d", [...heights].map((height, i) =>
      `M${(i + 0.08) * width} 100v${-100 * height}h${0.84 * width}v${100 * height}z`).join(""));
  };
  const mark = (name, places) => {
    part(name).replaceChildren(...places.map(([at, text]) => {
      const label = document.createElement("span");
      label.textContent = text;
      label.style.left = 100 * at + "%";
      return label;
    }));
  };
  const drawRow = ({weights}) => {
    const sorted = weights.sort().reverse().subarray(0, BARS);
    let top = 10 ** Math.ceil(Math.log10(sorted[0]));
    top *= [0.2, 0.5, 1].find(share => sorted[0] <= share * top);
    bars("row", sorted.map(weight => weight / top));
    part("row-top").textContent = write(top, {maximumSignificantDigits: 1});
    mark("row-ticks", [[0, "1"], [1, sorted.length]]);
  };
  const logarithmic = (value, n) => Math.min(Math.max(1 + Math.log(value) / Math.log(n), 0), 1);

  // --- one setting ------------------------------------------------------------------
  const sizes = [...new Set([...Array(41).keys()].map(i => Math.round(2 ** (i / 4))))];
  const [dimension, keys, exponent] = ["d", "n", "a"].map(part);
  dimension.max = sizes.length - 1;
  keys.max = table.keys.length - 1;
  dimension.value = sizes.indexOf(64);
  keys.value = table.keys.indexOf(128);
  let [factor, power] = [1, 0], timer = 0, frame = 0;

  const setting = () => {
    const d = sizes[dimension.value], n = table.keys[keys.value];
    return {d, n, c: factor * d ** power};
  };
  const showSetting = ({d, n, c}) => {
    show("d-value", whole(d), d);
    show("n-value", whole(n), n);
    show("c-value", digits(c), c);
    if (d > 1) exponent.value = 100 * Math.log(c) / Math.log(d);
    dimension.setAttribute("aria-valuetext", whole(d));
    keys.setAttribute("aria-valuetext", whole(n));
    exponent.setAttribute("aria-valuetext",
      `${decimals(exponent.value / 100, 2)}, c = ${digits(c)}`);
    for (const button of form.querySelectorAll("[data-power]"))
      button.setAttribute("aria-pressed",
        +button.dataset.power === power && +button.dataset.factor === factor);
  };

  const collect = (asked, found, animated) => {
    const counts = new Array(BINS).fill(0), trace = [];
    let count = 0, mean = 0, squares = 0, reach = 0;
    const add = largest => {
      counts[Math.min(Math.floor(BINS * logarithmic(largest, asked.n)), BINS - 1)]++;
      const off = largest - mean;
      mean += off / ++count;
      squares += off * (largest - mean);
      const error = Math.sqrt(squares / (count - 1) / count);
      if (count === FIRST)  // the height of the picture, kept from here on
        reach = Math.max(3 * error, 2 * Math.abs(mean - found.largest), 1e-12);
      if (count === FIRST) part("trace-top").textContent = digits(found.largest + reach, 2);
      if (count >= FIRST) trace.push([mean, error]);
    };
    const line = shift => trace.map(([middle, error], i) => {
      const up = (middle + shift * error - found.largest) / reach;
      return `${100 * (i + FIRST) / ROWS} ${50 - 50 * Math.min(Math.max(up, -1), 1)}`;
    });
    const picture = () => {
      const most = Math.max(...counts);
      bars("histogram", counts.map(number => 0.92 * number / most));
      const [middle, error] = trace[trace.length - 1];
      part("trace").setAttribute("d", "M" + line(0).join("L"));
      part("band").setAttribute("d", `M${[...line(1), ...line(-1).reverse()].join("L")}z`);
      const places = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 9);
      show("drawn", decimals(middle, places), middle);
      show("error", decimals(error, places), error);
      show("count", whole(count), count);
    };
    const more = () => {
      const start = performance.now(), goal = animated ? count + PER_FRAME : ROWS;
      do add(drawWeights(asked).largest);
      while (count < ROWS && (count < FIRST || count < goal)
        && !(animated && count >= FIRST && performance.now() - start > 12));
      picture();
      if (count < ROWS) frame = requestAnimationFrame(more);
      else timer = setTimeout(announce, 700);
    };
    more();
  };
  const announce = () => {
    const said = name => part(name).textContent;
    part("status").textContent = form.dataset.status.replace("{drawn}", said("drawn"))
      .replace("{error}", said("error")).replace("{exact}", said("exact"));
  };

  const redraw = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    const asked = setting(), {n} = asked;
    const found = exact(table.functions[keys.value], asked.d, asked.c);
    showSetting(asked);
    showExact(found);
    drawRow(drawWeights(asked));
    const at = 100 * logarithmic(found.largest, n);
    part("line").setAttribute("d", `M${at} 0V100`);
    const powers = [0.001, 0.01, 0.1].filter(power => power * n > 2);
    mark("trace-ticks", [[0, "1"], [1, ROWS]]);
    mark("ticks", [[0, "1/" + whole(n)], ...powers.map(p => [logarithmic(p, n), digits(p, 1)]), [1, "1"]]);
    collect(asked, found, !still.matches);
  };
  form.addEventListener("input", event => {
    if (event.target === exponent) [factor, power] = [1, exponent.value / 100];
    redraw();
  });
  form.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.power)
      [factor, power] = [+button.dataset.factor, +button.dataset.power];
    redraw();
  });
  form.addEventListener("submit", event => event.preventDefault());
  part("picture").hidden = true;
  form.hidden = false;
  redraw();
})();
