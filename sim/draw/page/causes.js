/* causes.js - where the step goes: seconds by cause, as the mean of all stages, and stage by stage. */
(() => {
    /* Causes that mean the same to a reader have one colour. */
    const groups = [
        {name: "compute", causes: ["compute"], colour: "#0072b2"},
        {name: "recomputation", causes: ["recompute"], colour: "#56b4e9"},
        {name: "optimizer", causes: ["optimizer"], colour: "#cc79a7"},
        {name: "collectives inside layers", causes: ["tensor", "sequence", "context", "expert"], colour: "#d55e00"},
        {name: "sends between stages", causes: ["pipeline"], colour: "#f0e442"},
        {name: "collectives over replicas", causes: ["data"], colour: "#e69f00"},
        {name: "offload", causes: ["offload"], colour: "#009e73"},
        {name: "pipeline bubble", causes: ["bubble"], colour: "#d3d6da"},
        {name: "host, interference, stragglers", causes: ["host", "interference", "straggler"], colour: "#5a5f66"},
    ];
    const colourOf = (cause) => (groups.find((g) => g.causes.includes(cause)) || groups[groups.length - 1]).colour;

    /* The bars of one cause, a run each; where there is little room the name stands above them, with the figures. */
    const drawCause = (svg, place, cause, runs) => {
        const {left, x, y, bar, narrow} = place;
        const told = runs.map(
            (r) => dl.seconds(r.causes[cause].exposed) +
                (runs.length > 1 ? "" : " · " + dl.percent(r.causes[cause].exposed / r.step_s)));
        if (narrow)
            dl.put(svg, "text", {x: 0, y: y - 5}, cause + "  " + told.join(", "));
        else
            dl.put(svg, "text", {x: left - 8, y: y + (runs.length * (bar + 2)) / 2 + 3, "text-anchor": "end"}, cause);
        runs.forEach((r, k) => {
            const end = x(r.causes[cause].exposed), at = y + k * (bar + 2);
            dl.putTitled(
                svg, "rect", {
                    x: left,
                    y: at,
                    height: bar,
                    width: Math.max(1, end - left),
                    fill: colourOf(cause),
                    "fill-opacity": k ? 0.55 : 1
                },
                `${cause}: ${told[k]}`);
            if (!narrow)
                dl.put(
                    svg, "text", {class: "soft", x: end + 6, y: at + bar - 2, "font-size": runs.length > 1 ? 10 : 12},
                    told[k]);
        });
    };
    /* Of one run or two. */
    dl.causeBars = (svg, width, runs) => {
        const causes =
            Object.keys(runs[0].causes).filter((c) => runs.some((r) => r.causes[c].exposed > 0.0005 * r.step_s));
        const narrow = width < 560, left = narrow ? 0 : 110, bar = runs.length > 1 ? 9 : 14,
              row = (narrow ? 22 : 10) + runs.length * (bar + 2);
        const most = d3.max(runs, (r) => d3.max(causes, (c) => r.causes[c].exposed)), height = causes.length * row;
        const x = d3.scaleLinear().domain([0, most]).nice().range([left, width - (narrow ? 8 : 120)]);
        causes.forEach(
            (cause, i) => drawCause(svg, {left, x, bar, narrow, y: i * row + (narrow ? 16 : 2)}, cause, runs));
        dl.put(svg, "line", {class: "rule", x1: left, x2: left, y1: 0, y2: height});
        dl.axisBelow(svg, x, height + 4, "seconds of the step", d3.format("~g"));
        dl.size(svg, width, height + 46);
    };

    const secondsOf = (stage, group) => d3.sum(group.causes, (c) => stage.exposed[c] || 0);
    const drawStages = (svg, width, stages) => {
        const bars = stages.map((s) => ({
                                    stage: s.stage,
                                    parts: groups.map((g) => ({name: g.name, colour: g.colour, value: secondsOf(s, g)}))
                                               .filter((p) => p.value > 0)
                                }));
        const {x, bottom} =
            dl.stageBars(svg, width, bars, d3.max(stages, (s) => d3.sum(Object.values(s.exposed))), dl.seconds);
        dl.axisBelow(svg, x, bottom + 4, "seconds of the step", d3.format("~g"));
        dl.size(svg, width, bottom + 46);
    };
    const stagesTable = (stages) => {
        const names = Object.keys(stages[0].exposed).filter((c) => stages.some((s) => s.exposed[c] > 0));
        return dl.table(
            ["stage", ...names.map((n) => dl.right(n + ", s"))],
            stages.map((s) => [s.stage, ...names.map((n) => dl.right(dl.number(s.exposed[n])))]));
    };
    const stagesFigure = (stages) => {
        const waits = stages.map((s) => (s.exposed.bubble || 0) + (s.exposed.pipeline || 0)),
              least = d3.leastIndex(waits), most = d3.leastIndex(waits, (x, y) => y - x);
        const used = groups.filter((g) => stages.some((s) => secondsOf(s, g) > 0));
        dl.figure({
            id: "stages",
            short: "Stages",
            title: `Stage ${stages[least].stage} waits least for others (${dl.seconds(waits[least])}), stage ${
                stages[most].stage} most (${dl.seconds(waits[most])})`,
            what: "The step of each stage, from cause to cause.",
            build: (plot) => plot.before(dl.legend(used.map((g) => [g.name, g.colour]))),
            draw: (svg, width) => drawStages(svg, width, stages),
            table: () => stagesTable(stages),
        });
    };

    dl.views.causes = (data) => {
        const a = data.answer, share = (cause) => dl.percent(a.causes[cause].exposed / a.step_s, 0);
        const next = Object.keys(a.causes)
                         .filter((c) => c !== "compute" && a.causes[c].exposed > 0)
                         .sort((x, y) => a.causes[y].exposed - a.causes[x].exposed)[0];
        dl.figure({
            id: "causes",
            short: "Causes",
            title: `Computing takes ${share("compute")} of the step` +
                (next ? `; the next largest cause is ${next}, ${share(next)}` : ""),
            what:
                "Exposed seconds of the step by cause, as the mean of all stages: what overlaps with computing is not counted.",
            draw: (svg, width) => dl.causeBars(svg, width, [a]),
            table: () => dl.table(
                ["cause", dl.right("exposed, s"), dl.right("share of the step"), dl.right("busy, s")],
                Object.entries(a.causes).map(
                    ([c, v]) =>
                        [c, dl.right(dl.number(v.exposed)), dl.right(dl.percent(v.exposed / a.step_s)),
                         dl.right(dl.number(v.busy))])),
        });
        if ((a.causes_by_stage || []).length > 1) stagesFigure(a.causes_by_stage);
    };
})();
