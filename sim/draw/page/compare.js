/* compare.js - two runs side by side: which is faster and how sure that is, causes, memory, and what differs. */
(() => {
  const interval = (svg, width, a, names) => {
    const low = Math.min(a.speedup_low, 1), high = Math.max(a.speedup_high, 1), left = 8, y = 34;
    const x = d3.scaleLog().base(2).domain([low / 1.08, high * 1.08]).range([left, width - 8]);
    svg.append("line").attr("class", "rule").attr("stroke-dasharray", "4 3").attr("x1", x(1)).attr("x2", x(1)).attr("y1", 10).attr("y2", 64);
    svg.append("rect").attr("x", x(a.speedup_low)).attr("width", x(a.speedup_high) - x(a.speedup_low)).attr("y", y - 5).attr("height", 10).attr("fill", "#56b4e9");
    svg.append("rect").attr("x", x(a.constants_low)).attr("width", x(a.constants_high) - x(a.constants_low)).attr("y", y - 5).attr("height", 10).attr("fill", "#0072b2");
    svg.append("circle").attr("cx", x(a.speedup)).attr("cy", y).attr("r", 6).attr("fill", "#fff").attr("stroke", "#1c1c1c").attr("stroke-width", 2);
    const ticks = d3.ticks(x.domain()[0], x.domain()[1], Math.max(2, Math.floor(width / 90)));
    svg.append("g").attr("class", "axis").attr("transform", "translate(0,64)").call(d3.axisBottom(x).tickValues(ticks).tickFormat(d3.format("~g")).tickSizeOuter(0).tickSize(4));
    svg.append("text").attr("class", "soft").attr("x", width - 8).attr("y", 98).attr("text-anchor", "end").text(dl.cut(`samples a second of ${names[1]} over those of ${names[0]}`, width - 16));
    svg.attr("viewBox", `0 0 ${width} 106`).attr("height", 106);
  };

  const flat = (o, path = "") => Object.entries(o || {}).flatMap(([k, v]) => (v && typeof v === "object" && !Array.isArray(v) ? flat(v, path + k + ".") : [[path + k, v]]));
  const shown = (path, v) => (v == null ? "–" : dl.told(path, v));
  const sideBySide = (names, pair, only) => {
    const [a, b] = pair.map((o) => new Map(flat(o))), keys = [...new Set([...a.keys(), ...b.keys()])].filter((k) => !only || only.includes(k));
    return dl.table(["", ...names.map(dl.right)], keys.filter((k) => a.get(k) != null || b.get(k) != null)
      .map((k) => ({ cells: [k, dl.right(shown(k, a.get(k))), dl.right(shown(k, b.get(k)))], class: JSON.stringify(a.get(k)) === JSON.stringify(b.get(k)) ? null : "differs" })), "wide");
  };
  const answers = ["step_s", "step_s_low", "step_s_high", "devices", "samples_per_s", "tokens_per_s", "model_flop_per_device_s", "mfu", "hfu", "fits", "forward_s", "backward_s", "optimizer_s"];

  dl.views.compare = (data) => {
    const a = data.answer, runs = data.reports, names = data.names[0] === data.names[1] ? data.names.map((n, i) => `${n} (${i + 1})`) : data.names;
    const verdict = !a.told_apart ? "cannot be told apart" : a.speedup > 1 ? `${names[1]} is faster` : `${names[1]} is slower`;
    dl.head("dlsim compare", `${names[1]} has ${a.speedup.toFixed(3)} times the samples a second of ${names[0]}: ${a.told_apart ? verdict : "they cannot be told apart"}`,
      runs.map((r, i) => r.inputs ? `${names[i]}: ${r.inputs.workload} on ${dl.count(r.inputs.devices)} × ${r.inputs.device}, ${dl.ways(r.inputs)}.` : `${names[i]}.`).join(" "),
      [["ratio", a.speedup.toFixed(3), `95 %: ${a.speedup_low.toFixed(3)} to ${a.speedup_high.toFixed(3)}`],
        ...runs.map((r, i) => ["step of " + names[i], dl.seconds(r.step_s), `${dl.seconds(r.step_s_low)} to ${dl.seconds(r.step_s_high)}`]),
        ...runs.map((r, i) => ["utilization of " + names[i], dl.percent(r.mfu), dl.number(r.samples_per_s) + " samples/s"])]);
    dl.figure({ id: "ratio", short: "Ratio", title: `The ratio is between ${a.speedup_low.toFixed(2)} and ${a.speedup_high.toFixed(2)} with 95 %` + (a.told_apart ? ", which leaves out 1" : ", which holds 1"),
      what: "Samples a second of the second run over those of the first. Errors that both runs have in common cancel.",
      draw: (svg, width) => interval(svg, width, a, names),
      caption: "The circle is the ratio, the dark bar its interval by the constants of the files, the light bar that and the errors of the model. Dashed: both as fast." });
    const differ = Object.keys(runs[0].causes).map((c) => [c, runs[1].causes[c].exposed - runs[0].causes[c].exposed]).sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]))[0];
    dl.figure({ id: "causes", short: "Causes", title: `They differ most in ${differ[0]}: ${names[1]} spends ${dl.seconds(Math.abs(differ[1]))} ${differ[1] > 0 ? "more" : "less"} of its step`,
      what: `Exposed seconds of the step by cause: above ${names[0]}, below and lighter ${names[1]}.`, draw: (svg, width) => dl.causeBars(svg, width, runs),
      table: () => dl.table(["cause", ...names.map((n) => dl.right(n + ", s"))], Object.keys(runs[0].causes).map((c) => [c, ...runs.map((r) => dl.right(dl.number(r.causes[c].exposed)))])) });
    runs.forEach((r, i) => {
      const fullest = r.memory_bytes[d3.leastIndex(r.memory_bytes, (x, y) => y.peak - x.peak)];
      dl.figure({ id: "memory" + i, short: "Memory of " + names[i], title: `${names[i]}: stage ${fullest.stage} holds ${dl.bytes(fullest.peak)} at its fullest moment`, build: (plot) => dl.memoryLegend(plot, r.memory_bytes),
        draw: (svg, width) => dl.memoryParts(svg, width, r.memory_bytes, r.inputs && r.inputs.device_memory_bytes), table: () => dl.memoryTable(r.memory_bytes) });
    });
    dl.sensitivities("sensitivity", "The ratio", a.sensitivity);
    dl.figure({ id: "numbers", short: "Numbers", title: "What was asked and answered, side by side", what: "Rows that differ are marked.",
      build: (plot) => plot.append(dl.make("h3", {}, "Answered"), dl.make("div", { class: "scroll", tabindex: "0" }, sideBySide(names, runs, answers)),
        dl.make("h3", {}, "Asked"), dl.make("div", { class: "scroll", tabindex: "0" }, sideBySide(names, runs.map((r) => r.inputs)))) });
  };
})();
