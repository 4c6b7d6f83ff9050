/* validation.js - measured against predicted steps, by family: on the diagonal a prediction is right. */
(() => {
  const scatter = (svg, width, plot, rows, names, chosen) => {
    const side = Math.min(width, 760), left = 58, top = 26, bottom = Math.max(300, side - 60), right = width < 560 ? width - 6 : left + bottom - top;
    const both = d3.extent(rows.flatMap((r) => [r.measured_s, r.predicted_s])), domain = [both[0] / 1.3, both[1] * 1.3];
    const x = d3.scaleLog().domain(domain).range([left, right]), y = d3.scaleLog().domain(domain).range([bottom, top]);
    const powers = d3.range(Math.ceil(Math.log10(domain[0])), Math.floor(Math.log10(domain[1])) + 1).map((p) => 10 ** p);
    const format = (v) => dl.seconds(v).replace(/\.0+(?=\D)/, "");
    for (const p of powers) {
      svg.append("line").attr("class", "grid").attr("x1", left).attr("x2", right).attr("y1", y(p)).attr("y2", y(p));
      svg.append("line").attr("class", "grid").attr("x1", x(p)).attr("x2", x(p)).attr("y1", top).attr("y2", bottom);
      svg.append("text").attr("class", "soft").attr("x", left - 6).attr("y", y(p) + 4).attr("text-anchor", "end").text(format(p));
      svg.append("text").attr("class", "soft").attr("x", x(p)).attr("y", bottom + 16).attr("text-anchor", "middle").text(format(p));
    }
    const clip = (v) => Math.max(domain[0], Math.min(domain[1], v)), band = [[domain[0], 1.1], [domain[1], 1.1], [domain[1], 0.9], [domain[0], 0.9]];
    svg.append("path").attr("d", "M" + band.map(([v, f]) => `${x(v)},${y(clip(v * f))}`).join("L") + "Z").attr("fill", "#e6e3d6");
    svg.append("line").attr("class", "rule").attr("x1", left).attr("y1", bottom).attr("x2", right).attr("y2", top);
    const tip = plot.tip || (plot.tip = dl.tip(plot));
    for (const r of rows) {
      if (chosen.size && !chosen.has(r.family)) continue;
      const i = names.indexOf(r.family);
      const mark = svg.append("path").attr("transform", `translate(${x(r.measured_s)},${y(r.predicted_s)})`).attr("d", dl.shape(i, width < 560 ? 26 : 44)).attr("fill", dl.colour(i)).attr("fill-opacity", 0.85).attr("stroke", "#fff").attr("stroke-width", 0.5);
      dl.hover(mark, tip, (event) => tip.show(event, r.id, `measured ${dl.seconds(r.measured_s)}, predicted ${dl.seconds(r.predicted_s)}: ${dl.signed(r.error)}`, r.system ? `${r.software} on ${r.system}` : ""));
    }
    svg.append("text").attr("class", "soft").attr("x", 0).attr("y", 12).text("predicted step");
    svg.append("text").attr("class", "soft").attr("x", right).attr("y", bottom + 36).attr("text-anchor", "end").text("measured step");
    svg.attr("viewBox", `0 0 ${width} ${bottom + 44}`).attr("height", bottom + 44);
  };

  /* A line of marks for each family: how far predictions are off. */
  const strips = (svg, width, plot, rows, names) => {
    const narrow = width < 560, left = narrow ? 4 : 130, row = narrow ? 32 : 20, most = Math.max(0.2, d3.max(rows, (r) => Math.abs(r.error)));
    const x = d3.scaleLinear().domain([-most, most]).nice().range([left, width - 8]), bottom = names.length * row, tip = plot.tip || (plot.tip = dl.tip(plot));
    svg.append("rect").attr("x", x(-0.1)).attr("width", x(0.1) - x(-0.1)).attr("y", 0).attr("height", bottom).attr("fill", "#e6e3d6");
    svg.append("line").attr("class", "rule").attr("x1", x(0)).attr("x2", x(0)).attr("y1", 0).attr("y2", bottom);
    names.forEach((name, i) => {
      const y = i * row + (narrow ? 23 : row / 2), some = rows.filter((r) => r.family === name);
      svg.append("text").attr("x", narrow ? 0 : left - 10).attr("y", narrow ? y - 11 : y + 4).attr("text-anchor", narrow ? "start" : "end").text(name);
      svg.append("line").attr("class", "grid").attr("x1", left).attr("x2", width - 8).attr("y1", y).attr("y2", y);
      for (const r of some) {
        const mark = svg.append("path").attr("transform", `translate(${x(r.error)},${y})`).attr("d", dl.shape(i, 36)).attr("fill", dl.colour(i)).attr("fill-opacity", 0.7);
        dl.hover(mark, tip, (event) => tip.show(event, r.id, dl.signed(r.error)));
      }
    });
    dl.axisBelow(svg, x, bottom + 2, "predicted less measured, in percent of the measured", (v) => d3.format("~g")(Math.round(1000 * v) / 10));
    svg.attr("viewBox", `0 0 ${width} ${bottom + 42}`).attr("height", bottom + 42);
  };

  dl.views.validation = (data) => {
    const a = data.answer, names = Object.keys(a.families), known = a.rows.filter((r) => r.error != null);
    const steps = known.filter((r) => r.measured_s > 0 && r.predicted_s > 0), chosen = new Set(), s = a.summary;
    const within = steps.filter((r) => Math.abs(r.error) <= 0.1).length;
    dl.head("dlsim validate", `Predicted steps are ${dl.percent(s.mape)} off on average, over ${dl.count(s.n)} measured ones`,
      `${dl.count(s.n)} rows of ${dl.count(names.length)} families, from published measurements; engine ${a.engine}.` + (s.failed ? ` ${dl.count(s.failed)} rows could not be predicted.` : ""),
      [["mean error", dl.percent(s.mape), "of the measured"], ["bias", dl.signed(s.bias), s.bias < 0 ? "too fast on average" : "too slow on average"], ["largest", dl.percent(s.max)],
        ["within 10 %", dl.percent(within / steps.length, 0), `${dl.count(within)} of ${dl.count(steps.length)} steps`], ["right order", s.ordered == null ? "–" : dl.percent(s.ordered), `of ${dl.count(s.pairs)} pairs`]]);
    let plot;
    if (steps.length) {
      const figure = dl.figure({ id: "validation", short: "Measured and predicted", title: `${dl.count(within)} of ${dl.count(steps.length)} predicted steps are within 10 % of the measured`,
        what: "Each mark is a step that someone measured. On the line a prediction is right; the band is 10 % to both sides. Both axes are logarithmic. Choose families in the legend.",
        build: (p) => { plot = p; p.before(dl.seriesLegend(names, chosen, () => figure.redraw())); }, draw: (svg, width) => scatter(svg, width, plot, steps, names, chosen),
        table: () => dl.table(["row", "family", dl.right("measured"), dl.right("predicted"), dl.right("error"), "half"], steps.map((r) => [r.id, r.family, dl.right(dl.seconds(r.measured_s)), dl.right(dl.seconds(r.predicted_s)), dl.right(dl.signed(r.error)), r.half.replace("_", " ")])) });
    }
    const worst = known[d3.leastIndex(known, (x, y) => Math.abs(y.error) - Math.abs(x.error))];
    let second;
    dl.figure({ id: "errors", short: "Errors", title: `The worst row is ${worst.id}, ${dl.signed(worst.error)}`, what: "How far each prediction is off, by family; speed-ups and differences of two runs too.",
      build: (p) => { second = p; }, draw: (svg, width) => strips(svg, width, second, known, names),
      table: () => dl.table(["family", dl.right("rows"), dl.right("mean error"), dl.right("bias"), dl.right("largest"), dl.right("fit"), dl.right("kept out")],
        names.map((n) => { const f = a.families[n]; return [n, dl.right(dl.count(f.n)), dl.right(dl.percent(f.mape)), dl.right(dl.signed(f.bias)), dl.right(dl.percent(f.max)), dl.right(dl.percent(f.fit.mape)), dl.right(dl.percent(f.kept_out.mape))]; })) });
    dl.figure({ id: "sources", short: "Sources", title: "Where the measurements come from",
      build: (p) => p.append(dl.make("div", { class: "scroll", tabindex: "0" }, dl.table(["family", dl.right("rows"), "source"], names.map((n) => [n, dl.right(dl.count(a.families[n].n)), a.families[n].source]), "wide texts"))) });
  };
})();
