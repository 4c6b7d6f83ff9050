/* sweep.js - many runs: a heat map over two inputs, curves over one, and the front of those that none other beats. */
(() => {
  const larger = new Set(["samples_per_s", "tokens_per_s", "mfu", "hfu"]);
  const better = (figure, a, b) => (larger.has(figure) ? a > b : a < b);
  const best = (rows, figure) => rows.reduce((a, b) => (!a || better(figure, b[figure], a[figure]) ? b : a), null);
  const values = (rows, input) => {
    const all = [...new Set(rows.map((r) => r[input]))];
    return all.every((v) => typeof v === "number") ? all.sort(d3.ascending) : all;
  };
  const isNumber = (rows, input) => rows.every((r) => typeof r[input] === "number");
  const told = (row, inputs) => inputs.map((i) => `${i} ${row[i]}`).join(", ");

  const heat = (svg, width, plot, rows, state, inputs) => {
    const xs = values(rows, state.x), ys = state.y ? values(rows, state.y) : [""], done = rows.filter((r) => r.status === "done");
    const left = Math.min(width / 3, 16 + d3.max([state.y || "", ...ys], (v) => dl.textWidth(String(v)))), cell = Math.min(110, (width - left - 2) / xs.length), high = Math.max(18, Math.min(34, 480 / ys.length)), top = 40;
    const cells = d3.rollups(rows, (v) => v, (r) => String(r[state.x]) + "\n" + String(state.y ? r[state.y] : ""));
    const tops = cells.map(([key, v]) => [key, best(v.filter((r) => r.status === "done"), state.figure), v]), known = tops.filter((c) => c[1]).map((c) => c[1][state.figure]);
    const scale = d3.scaleLinear().domain(larger.has(state.figure) ? d3.extent(known) : d3.extent(known).reverse()).range([0, 1]);
    const colour = d3.interpolateRgb("#ecf2f8", "#0c4a80"), format = (v) => dl.by(state.figure)(v), tip = plot.tip || (plot.tip = dl.tip(plot));
    svg.append("text").attr("class", "soft").attr("x", left).attr("y", 12).text(state.x);
    if (state.y) svg.append("text").attr("class", "soft").attr("x", 0).attr("y", top - 8).text(dl.cut(state.y, left - 10));
    let free = left;
    xs.forEach((v, i) => {
      const text = dl.cut(String(v), Math.max(cell * 1.6, 30)), at = left + (i + 0.5) * cell, half = dl.textWidth(text) / 2;
      if (at - half < free - 6) return;
      svg.append("text").attr("x", at).attr("y", top - 8).attr("text-anchor", "middle").text(text);
      free = at + half + 10;
    });
    ys.forEach((v, i) => svg.append("text").attr("x", left - 8).attr("y", top + (i + 0.5) * high + 4).attr("text-anchor", "end").text(dl.cut(String(v), left - 8)));
    for (const [key, top1, all] of tops) {
      const [xv, yv] = key.split("\n"), i = xs.findIndex((v) => String(v) === xv), k = ys.findIndex((v) => String(v) === yv);
      const share = top1 ? (known.length > 1 && scale.domain()[0] !== scale.domain()[1] ? scale(top1[state.figure]) : 1) : 0;
      const text = top1 ? format(top1[state.figure]) : all.some((r) => r.status === "does-not-fit") ? "does not fit" : all[0].status;
      const g = svg.append("g").attr("transform", `translate(${left + i * cell},${top + k * high})`);
      const box = g.append("rect").attr("width", cell - 2).attr("height", high - 2).attr("fill", top1 ? colour(share) : "#fff").attr("stroke", top1 ? "none" : "#d9dbde");
      if (dl.textWidth(text) < cell - 6) g.append("text").attr("x", cell / 2 - 1).attr("y", high / 2 + 3).attr("text-anchor", "middle").style("fill", top1 ? (share > 0.5 ? "#fff" : "#1c1c1c") : "#8b9097").style("pointer-events", "none").text(text);
      dl.hover(box, tip, (event) => tip.show(event, top1 ? `${dl.named(state.figure)}: ${text}` : text, top1 ? told(top1, inputs) : told(all[0], inputs), `${all.length} point${all.length > 1 ? "s" : ""}, ${all.filter((r) => r.status === "done").length} done`));
    }
    svg.attr("viewBox", `0 0 ${width} ${top + ys.length * high + 8}`).attr("height", top + ys.length * high + 8);
  };

  const scaleOf = (extent, range) => (extent[0] > 0 && extent[1] / extent[0] >= 30 ? d3.scaleLog().base(2) : d3.scaleLinear()).domain(extent[0] === extent[1] ? [extent[0] * 0.9, extent[1] * 1.1 + 1e-12] : extent).range(range);
  const plain = (figure) => (v) => (dl.unitOf(figure) === "%" ? d3.format("~g")(Math.round(1000 * v) / 10) : d3.format(".3~s")(v));

  const curves = (svg, width, plot, rows, state, inputs) => {
    const left = 52, top = 30, bottom = 330, right = width - 10, done = rows.filter((r) => r.status === "done" && r[state.figure] != null), tip = plot.tip || (plot.tip = dl.tip(plot));
    const series = d3.groups(done, (r) => (state.by ? r[state.by] : "")).map(([name, some]) => ({ name, points: d3.groups(some, (r) => r[state.x]).map(([, v]) => best(v, state.figure)).sort((a, b) => a[state.x] - b[state.x]) }));
    const x = scaleOf(d3.extent(done, (r) => r[state.x]), [left, right]), y = scaleOf(d3.extent(series.flatMap((s) => s.points), (r) => r[state.figure]), [bottom, top]).nice();
    dl.axisLeft(svg, y, left, dl.axisName(state.figure), plain(state.figure), right);
    const seen = values(done, state.x), marked = seen.length <= 12 ? { ticks: () => seen, range: () => x.range() } : x;
    dl.axisBelow(svg, Object.assign(x.copy(), marked === x ? {} : { ticks: marked.ticks }), bottom, state.x, d3.format(".4~s"));
    series.forEach((s) => {
      const i = state.names.indexOf(String(s.name));
      if (state.chosen.size && !state.chosen.has(String(s.name))) return;
      svg.append("path").attr("fill", "none").attr("stroke", dl.colour(i)).attr("stroke-width", 1.5).attr("d", d3.line().x((r) => x(r[state.x])).y((r) => y(r[state.figure]))(s.points));
      for (const r of s.points) {
        const mark = svg.append("path").attr("transform", `translate(${x(r[state.x])},${y(r[state.figure])})`).attr("d", dl.shape(i, 50)).attr("fill", dl.colour(i)).attr("stroke", "#fff");
        dl.hover(mark, tip, (event) => tip.show(event, `${dl.named(state.figure)}: ${dl.by(state.figure)(r[state.figure])}`, told(r, inputs)));
      }
    });
    svg.attr("viewBox", `0 0 ${width} ${bottom + 44}`).attr("height", bottom + 44);
  };

  /* Those that no other point beats in one figure without being worse in the other, from the best in x on. */
  dl.front = (rows, x, y) => {
    const sorted = rows.slice().sort((a, b) => (a[x] === b[x] ? (better(y, a[y], b[y]) ? -1 : 1) : better(x, a[x], b[x]) ? -1 : 1)), out = [];
    for (const r of sorted) if (!out.length || better(y, r[y], out[out.length - 1][y])) out.push(r);
    return out;
  };
  const pareto = (svg, width, plot, rows, front, state, inputs) => {
    const left = 52, top = 30, bottom = 350, right = width - 10, tip = plot.tip || (plot.tip = dl.tip(plot)), most = 4000;
    const x = scaleOf(d3.extent(rows, (r) => r[state.x]), [left, right]).nice(), y = scaleOf(d3.extent(rows, (r) => r[state.y]), [bottom, top]).nice();
    dl.axisLeft(svg, y, left, dl.axisName(state.y), plain(state.y), right);
    dl.axisBelow(svg, x, bottom, dl.axisName(state.x), plain(state.x));
    rows.filter((_, i) => rows.length <= most || i % Math.ceil(rows.length / most) === 0).forEach((r) => {
      const mark = svg.append("circle").attr("cx", x(r[state.x])).attr("cy", y(r[state.y])).attr("r", 2.5).attr("fill", "#8b9097").attr("fill-opacity", 0.5);
      dl.hover(mark, tip, (event) => tip.show(event, told(r, inputs), `${dl.by(state.x)(r[state.x])}, ${dl.by(state.y)(r[state.y])}`));
    });
    svg.append("path").attr("fill", "none").attr("stroke", "#0072b2").attr("stroke-width", 1.5).attr("d", d3.line().curve(d3.curveStepAfter).x((r) => x(r[state.x])).y((r) => y(r[state.y]))(front));
    for (const r of front) {
      const mark = svg.append("circle").attr("cx", x(r[state.x])).attr("cy", y(r[state.y])).attr("r", 5).attr("fill", "#0072b2").attr("stroke", "#fff");
      dl.hover(mark, tip, (event) => tip.show(event, told(r, inputs), `${dl.named(state.x)} ${dl.by(state.x)(r[state.x])}`, `${dl.named(state.y)} ${dl.by(state.y)(r[state.y])}`));
    }
    svg.attr("viewBox", `0 0 ${width} ${bottom + 44}`).attr("height", bottom + 44);
  };

  dl.views.sweep = (data) => {
    const rows = data.rows.map((r) => Object.fromEntries(data.columns.map((c, i) => [c, r[i]]))), inputs = data.varying, by = data.by, done = rows.filter((r) => r.status === "done");
    const figures = data.figures.filter((f) => f !== "fits" && done.some((r) => typeof r[f] === "number")), top = best(done, by), statuses = d3.rollups(rows, (v) => v.length, (r) => r.status).sort((a, b) => b[1] - a[1]);
    dl.head("dlsim sweep", top ? `${data.name}: the best ${dl.named(by)} is ${dl.by(by)(top[by])}` : `${data.name}: no point ended with an answer`,
      (top ? `With ${told(top, inputs)}. ` : "") + `${dl.count(rows.length)} points over ${inputs.length} inputs: ${inputs.join(", ")}.`,
      [...statuses.map(([s, n]) => [s.replace(/-/g, " "), dl.count(n), "points"]), ...(top ? figures.filter((f) => f !== by).slice(0, 3).map((f) => [dl.named(f) + " of the best", dl.by(f)(top[f])]) : [])]);
    if (!top || !inputs.length) return;
    let plots = {};
    const heatState = { x: inputs[1] || inputs[0], y: inputs[1] ? inputs[0] : null, figure: by };
    const tools = (box, id, choices) => choices.forEach(([label, options, state, key]) => box.append(dl.choice(label, options, state[key], (v) => { state[key] = v; id().redraw(); })));
    const first = dl.figure({ id: "heat", short: "Heat map", title: `Dark is best: ${told(top, inputs)}`, what: "Each cell has the best of its points over all other inputs.",
      build: (p, box) => { plots.heat = p; tools(box, () => first, [["figure", figures, heatState, "figure"], ["across", inputs, heatState, "x"], ...(inputs[1] ? [["down", inputs, heatState, "y"]] : [])]); },
      draw: (svg, width) => heat(svg, width, plots.heat, rows, heatState, inputs) });
    const numeric = inputs.filter((i) => isNumber(done, i));
    if (numeric.length) {
      const x = numeric.includes("devices") ? "devices" : numeric[0], others = inputs.filter((i) => i !== x);
      const state = { x, figure: figures.includes("samples_per_s") ? "samples_per_s" : by, by: others[0] || null, chosen: new Set(), names: [] };
      let legend;
      const relist = () => { state.chosen.clear(); state.names = state.by ? values(done, state.by).map(String) : [""]; const list = dl.seriesLegend(state.by ? state.names : [], state.chosen, () => second.redraw()); legend.replaceWith(list); legend = list; };
      const second = dl.figure({ id: "scaling", short: "Scaling", title: `How far ${dl.named(state.figure)} follows ${x}`, what: "The best of the points at each place, a curve for each value of the input in the legend. Axes are logarithmic where values span a factor of 30 or more.",
        build: (p, box) => {
          plots.scaling = p;
          const change = (key) => (v) => { state[key] = v; relist(); second.retitle(`How far ${dl.named(state.figure)} follows ${state.x}`); second.redraw(); };
          box.append(dl.choice("figure", figures, state.figure, change("figure")), dl.choice("over", numeric, state.x, change("x")), ...(others.length ? [dl.choice("curves", inputs, state.by, change("by"))] : []));
          legend = dl.make("ul", { class: "legend" });
          p.before(legend);
          relist();
        }, draw: (svg, width) => curves(svg, width, plots.scaling, rows, state, inputs) });
    }
    if (figures.includes("peak_bytes") && figures.includes("samples_per_s")) {
      const state = { x: "peak_bytes", y: "samples_per_s" }, on = () => dl.front(done.filter((r) => r[state.x] != null && r[state.y] != null), state.x, state.y);
      const says = () => `${dl.count(on().length)} of ${dl.count(done.length)} points are on the front: no other is better in both`;
      const third = dl.figure({ id: "pareto", short: "Pareto front", title: says(), what: "Every point that fits; joined are those that no other point beats in one of the two figures without being worse in the other.",
        build: (p, box) => { plots.pareto = p; const change = (key) => (v) => { state[key] = v; third.retitle(says()); third.redraw(); };
          box.append(dl.choice("across", figures, state.x, change("x")), dl.choice("up", figures, state.y, change("y"))); },
        draw: (svg, width) => pareto(svg, width, plots.pareto, done.filter((r) => r[state.x] != null && r[state.y] != null), on(), state, inputs),
        table: () => dl.table([...inputs, ...figures.map((f) => dl.right(dl.named(f)))], on().map((r) => [...inputs.map((i) => r[i]), ...figures.map((f) => dl.right(dl.by(f)(r[f])))])) });
    }
    const sorted = done.slice().sort((a, b) => (better(by, a[by], b[by]) ? -1 : better(by, b[by], a[by]) ? 1 : a.point - b.point));
    dl.figure({ id: "best", short: "Best points", title: `The ${Math.min(50, sorted.length)} best points by ${dl.named(by)}`,
      build: (p) => p.append(dl.make("div", { class: "scroll", tabindex: "0" }, dl.table(["point", ...inputs, ...figures.map((f) => dl.right(dl.named(f)))], sorted.slice(0, 50).map((r) => [r.point, ...inputs.map((i) => r[i]), ...figures.map((f) => dl.right(dl.by(f)(r[f])))]), "wide"))) });
  };
})();
