/* numbers.js - the answer's figures, what was asked, and every number of the files that were read with its source. */
(() => {
  const flat = (object, path = "") => Object.entries(object).flatMap(([k, v]) =>
    v && typeof v === "object" && !Array.isArray(v) ? flat(v, path + k + ".") : [[path + k, v]]);
  const leaf = (path) => path.split(".").pop();
  dl.told = (path, v) => (leaf(path) === "sha256" ? v.slice(0, 12) + "…" : Array.isArray(v) ? v.join(", ") || "–" : typeof v === "boolean" ? (v ? "yes" : "no") : dl.by(leaf(path))(v));

  const numbersOf = (a) => flat({ ...a, inputs: undefined, host: undefined, files: undefined, causes: undefined, verdict: undefined })
    .filter(([, v]) => v != null && !Array.isArray(v));

  /* By the last key of a path that has a unit: peak_flop_per_s.fp16. */
  const valueOf = (path, x) => dl.by(path.split(/[./]/).reverse().find((key) => dl.unitOf(key)) || "")(x);

  /* The constants that move the step most, with their intervals. */
  dl.sensitivities = (id, what, list) => {
    if (!list || !list.length) return;
    const items = list.filter((e) => Math.abs(e.elasticity) > 1e-4).slice(0, 14), first = items[0];
    if (!first) return;
    dl.figure({ id, short: "Sensitivity", title: `${what} depends most on ${first.path}: ${(first.elasticity < 0 ? "−" : "+") + Math.abs(first.elasticity).toFixed(2)} % for 1 % more`,
      what: `How much ${what.toLowerCase()} changes, in percent, if a constant is one percent larger.`,
      draw: (svg, width) => {
        const row = 32, most = d3.max(items, (e) => Math.abs(e.elasticity)), x = d3.scaleLinear().domain([-most, most]).nice().range([4, width - 4]);
        items.forEach((e, i) => {
          svg.append("text").attr("x", 0).attr("y", i * row + 12).text(dl.cut(`${e.path}: ${valueOf(e.path, e.value)} (${valueOf(e.path, e.low)} to ${valueOf(e.path, e.high)})`, width - 4));
          svg.append("rect").attr("x", Math.min(x(0), x(e.elasticity))).attr("y", i * row + 17).attr("height", 9).attr("width", Math.max(1, Math.abs(x(e.elasticity) - x(0))))
            .attr("fill", e.elasticity < 0 ? "#0072b2" : "#d55e00");
        });
        const bottom = items.length * row;
        svg.append("line").attr("class", "rule").attr("x1", x(0)).attr("x2", x(0)).attr("y1", 16).attr("y2", bottom).attr("stroke-opacity", 0.3);
        dl.axisBelow(svg, x, bottom + 2, "percent for one percent more", d3.format("~g"));
        svg.attr("viewBox", `0 0 ${width} ${bottom + 42}`).attr("height", bottom + 42);
      },
      table: () => dl.table(["constant", dl.right("value"), dl.right("low"), dl.right("high"), dl.right("elasticity"), "grade"],
        list.map((e) => [e.path, ...[e.value, e.low, e.high].map((v) => dl.right(valueOf(e.path, v))), dl.right(e.elasticity.toFixed(4)), e.grade || ""])) });
  };

  dl.views.numbers = (data) => {
    const a = data.answer;
    dl.sensitivities("sensitivity", "The step", a.sensitivity);
    dl.figure({ id: "numbers", short: "Numbers", title: "What was asked, and what was answered",
      build: (plot) => plot.append(dl.make("div", { class: "two" },
        dl.make("div", {}, dl.make("h3", {}, "Asked"), dl.make("div", { class: "scroll", tabindex: "0" }, dl.table(["input", "value"], flat(a.inputs).filter(([, v]) => v != null && v !== "").map(([k, v]) => [k, dl.told(k, v)])))),
        dl.make("div", {}, dl.make("h3", {}, "Answered"), dl.make("div", { class: "scroll", tabindex: "0" }, dl.table(["figure", dl.right("value")], numbersOf(a).map(([k, v]) => [k, dl.right(dl.told(k, v))])))))) });
    if (!data.sources || !data.sources.length) return;
    const counts = d3.rollups(data.sources, (v) => v.length, (s) => s.grade).sort((x, y) => y[1] - x[1]);
    dl.figure({ id: "sources", short: "Sources", title: `${dl.count(data.sources.length)} numbers went in: ` + counts.map(([grade, n]) => `${dl.count(n)} ${grade}`).join(", "),
      what: "Every number of the files that this run read, how sure it is, and where it comes from.",
      build: (plot, tools) => {
        const box = dl.make("div", { class: "scroll", tabindex: "0" }), find = dl.make("input", { type: "search", placeholder: "bandwidth, assumed …", "aria-label": "Search numbers and sources" });
        const fill = () => {
          const wanted = find.value.trim().toLowerCase();
          const some = data.sources.filter((s) => !wanted || (s.where + " " + s.grade + " " + s.source).toLowerCase().includes(wanted));
          box.replaceChildren(dl.table(["number", dl.right("value"), "grade", "source"], some.slice(0, 400).map((s) => [s.where.replace(/[/_]/g, "$&\u200b"), dl.right(valueOf(s.where, s.value)), s.grade, s.source]), "wide texts"));
        };
        find.addEventListener("input", fill);
        tools.append(find);
        plot.append(box);
        fill();
      } });
  };
})();
