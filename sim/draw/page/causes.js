/* causes.js - where the step goes: seconds by cause, as the mean of all stages, and stage by stage. */
(() => {
  /* Causes that mean the same to a reader have one colour. */
  const groups = [
    { name: "compute", causes: ["compute"], colour: "#0072b2" },
    { name: "recomputation", causes: ["recompute"], colour: "#f0e442" },
    { name: "optimizer", causes: ["optimizer"], colour: "#e69f00" },
    { name: "collectives inside layers", causes: ["tensor", "sequence", "context", "expert"], colour: "#d55e00" },
    { name: "sends between stages", causes: ["pipeline"], colour: "#cc79a7" },
    { name: "collectives over replicas", causes: ["data"], colour: "#009e73" },
    { name: "offload", causes: ["offload"], colour: "#56b4e9" },
    { name: "host, interference, stragglers", causes: ["host", "interference", "straggler"], colour: "#5a5f66" },
    { name: "pipeline bubble", causes: ["bubble"], colour: "#d3d6da" },
  ];
  const groupOf = (cause) => groups.find((g) => g.causes.includes(cause)) || groups[7];
  dl.causeGroups = groups;

  /* Rows of {cause, seconds}, of one or two runs. */
  dl.causeBars = (svg, width, runs) => {
    const causes = Object.keys(runs[0].causes).filter((c) => runs.some((r) => r.causes[c].exposed > 0.0005 * r.step_s));
    const narrow = width < 560, left = narrow ? 0 : 110, right = narrow ? 8 : 120;
    const bar = runs.length > 1 ? 9 : 14, row = (narrow ? 18 : 6) + runs.length * (bar + 2) + 4;
    const most = d3.max(runs, (r) => d3.max(causes, (c) => r.causes[c].exposed));
    const x = d3.scaleLinear().domain([0, most]).nice().range([left, width - right]);
    const height = causes.length * row;
    causes.forEach((cause, i) => {
      const y = i * row + (narrow ? 16 : 2);
      const told = runs.map((r) => dl.seconds(r.causes[cause].exposed) + (runs.length > 1 ? "" : " · " + dl.percent(r.causes[cause].exposed / r.step_s)));
      svg.append("text").attr("x", narrow ? 0 : left - 8).attr("y", narrow ? y - 5 : y + (runs.length * (bar + 2)) / 2 + 3)
        .attr("text-anchor", narrow ? "start" : "end").text(cause + (narrow ? "  " + told.join(", ") : ""));
      runs.forEach((r, k) => {
        const g = svg.append("g");
        g.append("rect").attr("x", left).attr("y", y + k * (bar + 2)).attr("height", bar).attr("width", Math.max(1, x(r.causes[cause].exposed) - left))
          .attr("fill", groupOf(cause).colour).attr("fill-opacity", k ? 0.55 : 1)
          .append("title").text(`${cause}: ${told[k]}`);
        if (!narrow) g.append("text").attr("class", "soft").attr("x", x(r.causes[cause].exposed) + 6).attr("y", y + k * (bar + 2) + bar - 2)
          .attr("font-size", runs.length > 1 ? 10 : 12).text(told[k]);
      });
    });
    svg.append("line").attr("class", "rule").attr("x1", left).attr("x2", left).attr("y1", 0).attr("y2", height);
    dl.axisBelow(svg, x, height + 4, "seconds of the step", d3.format("~g"));
    svg.attr("viewBox", `0 0 ${width} ${height + 46}`).attr("height", height + 46);
  };

  const byStage = (svg, width, stages) => {
    const left = 62, n = stages.length, row = Math.max(7, Math.min(22, 420 / n)), most = d3.max(stages, (s) => d3.sum(Object.values(s.exposed)));
    const x = d3.scaleLinear().domain([0, most]).range([left, width - 4]);
    let free = -1;
    stages.forEach((s, i) => {
      let from = 0;
      if (i * row >= free) {
        svg.append("text").attr("x", left - 8).attr("y", i * row + row / 2 + 3).attr("text-anchor", "end").text("stage " + s.stage);
        free = i * row + 15;
      }
      for (const g of groups) {
        const seconds = d3.sum(g.causes, (c) => s.exposed[c] || 0);
        if (seconds > 0) svg.append("rect").attr("x", x(from)).attr("y", i * row).attr("height", row - (row > 9 ? 2 : 1))
          .attr("width", Math.max(0, x(from + seconds) - x(from) - 0.5)).attr("fill", g.colour)
          .append("title").text(`stage ${s.stage}, ${g.name}: ${dl.seconds(seconds)}`);
        from += seconds;
      }
    });
    dl.axisBelow(svg, x, n * row + 4, "seconds of the step", d3.format("~g"));
    svg.attr("viewBox", `0 0 ${width} ${n * row + 46}`).attr("height", n * row + 46);
  };

  dl.views.causes = (data) => {
    const a = data.answer, all = Object.entries(a.causes).sort((x, y) => y[1].exposed - x[1].exposed);
    const second = all.find(([c, v]) => c !== "compute" && v.exposed > 0);
    dl.figure({ id: "causes", short: "Causes",
      title: `Computing takes ${dl.percent(a.causes.compute.exposed / a.step_s, 0)} of the step` + (second ? `; the next largest cause is ${second[0]}, ${dl.percent(second[1].exposed / a.step_s, 0)}` : ""),
      what: "Exposed seconds of the step by cause, as the mean of all stages: what overlaps with computing is not counted.",
      draw: (svg, width) => dl.causeBars(svg, width, [a]),
      table: () => dl.table(["cause", dl.right("exposed, s"), dl.right("share of the step"), dl.right("busy, s")],
        Object.entries(a.causes).map(([c, v]) => [c, dl.right(dl.number(v.exposed)), dl.right(dl.percent(v.exposed / a.step_s)), dl.right(dl.number(v.busy))])) });
    const stages = a.causes_by_stage || [];
    if (stages.length < 2) return;
    const waits = stages.map((s) => (s.exposed.bubble || 0) + (s.exposed.pipeline || 0)), least = d3.leastIndex(waits), most = d3.leastIndex(waits, (x, y) => y - x);
    const used = groups.filter((g) => stages.some((s) => g.causes.some((c) => s.exposed[c] > 0)));
    dl.figure({ id: "stages", short: "Stages",
      title: `Stage ${stages[least].stage} waits least for others (${dl.seconds(waits[least])}), stage ${stages[most].stage} most (${dl.seconds(waits[most])})`,
      what: "The step of each stage, from cause to cause.",
      build: (plot) => plot.before(dl.make("ul", { class: "legend" }, ...used.map((g) => dl.make("li", {}, dl.make("i", { style: "background:" + g.colour }), g.name)))),
      draw: (svg, width) => byStage(svg, width, stages),
      table: () => { const names = Object.keys(stages[0].exposed).filter((c) => stages.some((s) => s.exposed[c] > 0));
        return dl.table(["stage", ...names.map((n) => dl.right(n + ", s"))], stages.map((s) => [s.stage, ...names.map((n) => dl.right(dl.number(s.exposed[n])))])); } });
  };
})();
