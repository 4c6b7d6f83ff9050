/* memory.js - bytes on a device of each stage: over the step, and what they are at the fullest moment. */
(() => {
  const parts = { parameters: "#0072b2", gradients: "#56b4e9", optimizer: "#e69f00", activations: "#009e73", buffers: "#cc79a7",
    workspace: "#f0e442", fragmentation: "#8b9097" };
  const sum = (m) => m.peak + (m.fragmentation || 0);

  dl.memoryParts = (svg, width, stages, capacity) => {
    const left = 62, row = Math.max(7, Math.min(22, 420 / stages.length)), most = Math.max(capacity || 0, d3.max(stages, sum));
    const x = d3.scaleLinear().domain([0, most / 1e9]).nice().range([left, width - 4]);
    const bottom = stages.length * row;
    let free = -1;
    stages.forEach((m, i) => {
      let from = 0;
      if (i * row >= free) {
        svg.append("text").attr("x", left - 8).attr("y", i * row + row / 2 + 3).attr("text-anchor", "end").text("stage " + m.stage);
        free = i * row + 15;
      }
      for (const part of Object.keys(parts)) {
        if (!(m[part] > 0)) continue;
        svg.append("rect").attr("x", x(from / 1e9)).attr("y", i * row).attr("height", row - (row > 9 ? 2 : 1))
          .attr("width", Math.max(0, x((from + m[part]) / 1e9) - x(from / 1e9) - 0.5)).attr("fill", parts[part])
          .append("title").text(`stage ${m.stage}, ${part}: ${dl.bytes(m[part])}`);
        from += m[part];
      }
    });
    if (capacity) svg.append("line").attr("class", "rule").attr("stroke-dasharray", "4 3").attr("x1", x(capacity / 1e9)).attr("x2", x(capacity / 1e9)).attr("y1", 0).attr("y2", bottom + 4);
    dl.axisBelow(svg, x, bottom + 4, "memory of a device, GB" + (capacity ? "; dashed: what it has" : ""), d3.format("~g"));
    svg.attr("viewBox", `0 0 ${width} ${bottom + 46}`).attr("height", bottom + 46);
  };
  dl.memoryLegend = (plot, stages) =>
    plot.before(dl.make("ul", { class: "legend" }, ...Object.keys(parts).filter((p) => stages.some((m) => m[p] > 0))
      .map((p) => dl.make("li", {}, dl.make("i", { style: "background:" + parts[p] }), p))));
  dl.memoryTable = (stages) => {
    const names = Object.keys(parts).filter((p) => stages.some((m) => m[p] > 0));
    return dl.table(["stage", ...names.map(dl.right), dl.right("peak")],
      stages.map((m) => [m.stage, ...names.map((p) => dl.right(dl.bytes(m[p]))), dl.right(dl.bytes(m.peak))]));
  };

  /* From light to dark by stage, the ends named on the line. */
  const overStep = (svg, width, plot, series, capacity, step) => {
    const left = 46, right = width < 560 ? 8 : 70, top = 24, bottom = 300;
    const most = d3.max(series, (s) => d3.max(s.bytes)), near = capacity && capacity < 1.6 * most;
    const x = d3.scaleLinear().domain([0, step]).range([left, width - right]);
    const y = d3.scaleLinear().domain([0, Math.max(most, near ? capacity : 0) / 1e9]).nice().range([bottom, top]);
    const colour = (i) => d3.interpolateRgbBasis(["#e69f00", "#d55e00", "#cc79a7", "#0072b2", "#56b4e9"])(series.length > 1 ? i / (series.length - 1) : 0.75);
    dl.axisLeft(svg, y, left, "memory of a device, GB", d3.format("~g"), width - right);
    dl.axisBelow(svg, x, bottom, "time in the step, s", d3.format("~g"));
    if (near) svg.append("line").attr("class", "rule").attr("stroke-dasharray", "4 3").attr("x1", left).attr("x2", width - right).attr("y1", y(capacity / 1e9)).attr("y2", y(capacity / 1e9));
    series.forEach((s, i) => {
      const points = s.time_s.map((time, k) => [time, s.bytes[k]]);
      points.push([step, s.bytes[s.bytes.length - 1]]);
      svg.append("path").attr("fill", "none").attr("stroke", colour(i)).attr("stroke-width", series.length > 16 ? 1 : 1.5)
        .attr("d", d3.line().curve(d3.curveStepAfter).x((p) => x(p[0])).y((p) => y(p[1] / 1e9))(points));
    });
    /* Names where the lines end, spread so that none covers another; as many as have room. */
    const each = Math.ceil(series.length / Math.floor((bottom - top) / 16));
    const named = series.map((s, i) => ({ s, i, y: y(s.bytes[s.bytes.length - 1] / 1e9) })).filter((n) => n.i % each === 0 && right > 8).sort((a, b) => a.y - b.y);
    named.forEach((n, k) => { n.y = Math.max(n.y, k ? named[k - 1].y + 14 : top); });
    const over = named.length ? named[named.length - 1].y - bottom : 0;
    for (const n of named) svg.append("text").attr("x", width - right + 6).attr("y", n.y - Math.max(0, over) + 4).style("fill", colour(n.i)).text("stage " + n.s.stage);
    const tip = plot.tip || (plot.tip = dl.tip(plot));
    dl.hover(svg, tip, (event) => {
      const box = svg.node().getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top, time = x.invert(px);
      if (time < 0 || time > step) return tip.hide();
      const at = series.map((s) => ({ s, bytes: s.bytes[Math.max(0, d3.bisectRight(s.time_s, time) - 1)] }));
      const nearest = at[d3.leastIndex(at, (a, b) => Math.abs(y(a.bytes / 1e9) - py) - Math.abs(y(b.bytes / 1e9) - py))];
      tip.show(event, `stage ${nearest.s.stage}: ${dl.bytes(nearest.bytes)}`, "at " + dl.seconds(time));
    });
    svg.attr("viewBox", `0 0 ${width} ${bottom + 42}`).attr("height", bottom + 42);
  };

  dl.views.memory = (data) => {
    const a = data.answer, stages = a.memory_bytes, capacity = a.inputs.device_memory_bytes, fullest = stages[d3.leastIndex(stages, (x, y) => sum(y) - sum(x))];
    const says = (stages.length > 1 ? `Stage ${fullest.stage} is the fullest: ` : "A device holds at most ") + dl.bytes(fullest.peak) + (capacity ? ` of ${dl.bytes(capacity)}` : "");
    if (data.memory && data.memory.length) {
      let plot;
      dl.figure({ id: "memory", short: "Memory", title: says + (a.fits ? "" : ", which does not fit"),
        what: "Memory that a device of each stage holds while the step goes on: a forward leaves activations, its backward frees them." + (data.memory.length > 1 ? ` Lines go from orange, stage 0, over purple and blue to light blue, stage ${data.memory.length - 1}.` : ""),
        build: (p) => { plot = p; }, draw: (svg, width) => overStep(svg, width, plot, data.memory, capacity, (data.timeline.step_to - data.timeline.step_from) / 1e9),
        caption: "While a forward or backward runs it counts with its fullest moment, and then with what it leaves; so the highest point is the peak of the report.",
        table: () => dl.table(["stage", dl.right("least"), dl.right("most")], data.memory.map((s) => [s.stage, dl.right(dl.bytes(d3.min(s.bytes))), dl.right(dl.bytes(d3.max(s.bytes)))])) });
    }
    const largest = Object.keys(parts).sort((p, q) => (fullest[q] || 0) - (fullest[p] || 0))[0];
    dl.figure({ id: "peak", short: "Peak memory", title: `At its fullest moment ${stages.length > 1 ? "stage " + fullest.stage : "a device"} holds most of all ${largest}: ${dl.bytes(fullest[largest])}`,
      what: "What the memory of a device of each stage holds at its fullest moment.", build: (plot) => dl.memoryLegend(plot, stages),
      draw: (svg, width) => dl.memoryParts(svg, width, stages, capacity), table: () => dl.memoryTable(stages) });
  };
})();
