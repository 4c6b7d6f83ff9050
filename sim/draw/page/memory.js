/* memory.js - bytes on a device of each stage: over the step, and what they are at the fullest moment. */
(() => {
    const colours = {
        parameters: "#0072b2",
        gradients: "#009e73",
        optimizer: "#cc79a7",
        activations: "#e69f00",
        buffers: "#f0e442",
        workspace: "#56b4e9",
        fragmentation: "#8b9097"
    };
    const partsOf = (stages) => Object.keys(colours).filter((p) => stages.some((m) => m[p] > 0));
    const sum = (m) => m.peak + (m.fragmentation || 0);
    const inGB = d3.format("~g");
    dl.fullestStage = (stages) => stages[d3.leastIndex(stages, (x, y) => sum(y) - sum(x))];

    /* ---- at the fullest moment ---- */

    dl.memoryParts = (svg, width, stages, capacity) => {
        const bars = stages.map(
            (m) =>
                ({stage: m.stage, parts: partsOf([m]).map((name) => ({name, value: m[name], colour: colours[name]}))}));
        const most = Math.max(capacity || 0, d3.max(stages, sum)),
              {x, bottom} = dl.stageBars(svg, width, bars, most * 1.02, dl.bytes);
        if (capacity)
            dl.put(
                svg, "line",
                {class: "rule", "stroke-dasharray": "4 3", x1: x(capacity), x2: x(capacity), y1: 0, y2: bottom + 4});
        const gigabytes = x.copy().domain(x.domain().map((v) => v / 1e9));
        dl.axisBelow(
            svg, gigabytes, bottom + 4, "memory of a device, GB" + (capacity ? "; dashed: what it has" : ""), inGB);
        dl.size(svg, width, bottom + 46);
    };
    dl.memoryLegend = (stages) => dl.legend(partsOf(stages).map((p) => [p, colours[p]]));
    dl.memoryTable = (stages) => dl.table(
        ["stage", ...partsOf(stages).map(dl.right), dl.right("peak")],
        stages.map(
            (m) => [m.stage, ...partsOf(stages).map((p) => dl.right(dl.bytes(m[p]))), dl.right(dl.bytes(m.peak))]));

    /* ---- over the step ---- */

    const colourOf = (i, n) =>
        d3.interpolateRgbBasis(["#e69f00", "#d55e00", "#cc79a7", "#0072b2", "#56b4e9"])(n > 1 ? i / (n - 1) : 0.75);

    /* Names where the lines end, spread so that none covers another; as many as have room. */
    const nameLines = (svg, series, {x, y, right}) => {
        const [bottom, top] = y.range(), each = Math.ceil(series.length / Math.floor((bottom - top) / 16));
        const names = series.map((s, i) => ({i, stage: s.stage, y: y(s.bytes[s.bytes.length - 1] / 1e9)}))
                          .filter((n) => n.i % each === 0)
                          .sort((a, b) => a.y - b.y);
        names.forEach((n, k) => {
            n.y = Math.max(n.y, k ? names[k - 1].y + 14 : top);
        });
        const over = Math.max(0, names[names.length - 1].y - bottom);
        for (const n of names)
            dl.put(
                svg, "text", {x: right + 6, y: n.y - over + 4, style: "fill:" + colourOf(n.i, series.length)},
                "stage " + n.stage);
    };
    const pointAt = (svg, plot, series, {x, y, step}) => {
        const tip = plot.tip || (plot.tip = dl.tip(plot));
        dl.hover(svg, tip, (event) => {
            const box = svg.node().getBoundingClientRect(), time = x.invert(event.clientX - box.left),
                  height = event.clientY - box.top;
            if (time < 0 || time > step) return tip.hide();
            const held =
                series.map((s) => ({stage: s.stage, bytes: s.bytes[Math.max(0, d3.bisectRight(s.time_s, time) - 1)]}));
            const off = (h) => Math.abs(y(h.bytes / 1e9) - height),
                  nearest = held[d3.leastIndex(held, (a, b) => off(a) - off(b))];
            tip.show(event, `stage ${nearest.stage}: ${dl.bytes(nearest.bytes)}`, "at " + dl.seconds(time));
        });
    };
    const overStep = (svg, width, plot, series, capacity, step) => {
        const left = 46, narrow = width < 560, right = width - (narrow ? 8 : 70), bottom = 300,
              most = d3.max(series, (s) => d3.max(s.bytes));
        const shown = capacity && capacity < 1.6 * most ? capacity : 0;
        const x = d3.scaleLinear().domain([0, step]).range([left, right]),
              y = d3.scaleLinear().domain([0, Math.max(most, shown) / 1e9]).nice().range([bottom, 24]);
        dl.axisLeft(svg, y, left, "memory of a device, GB" + (shown ? "; dashed: what it has" : ""), inGB, right);
        dl.axisBelow(svg, x, bottom, "time in the step, s", inGB);
        if (shown)
            dl.put(svg, "line", {
                class: "rule",
                "stroke-dasharray": "4 3",
                x1: left,
                x2: right,
                y1: y(shown / 1e9),
                y2: y(shown / 1e9)
            });
        const line = d3.line().curve(d3.curveStepAfter).x((p) => x(p[0])).y((p) => y(p[1] / 1e9));
        series.forEach((s, i) => dl.put(svg, "path", {
            fill: "none",
            stroke: colourOf(i, series.length),
            "stroke-width": series.length > 16 ? 1 : 1.5,
            d: line([...s.time_s.map((time, k) => [time, s.bytes[k]]), [step, s.bytes[s.bytes.length - 1]]])
        }));
        if (!narrow) nameLines(svg, series, {x, y, right});
        pointAt(svg, plot, series, {x, y, step});
        dl.size(svg, width, bottom + 42);
    };

    const overStepFigure = (data, says) => {
        const series = data.memory, step = (data.timeline.step_to - data.timeline.step_from) / 1e9;
        let plot;
        dl.figure({
            id: "memory",
            short: "Memory",
            title: says + (data.answer.fits ? "" : ", which does not fit"),
            what:
                "Memory that a device of each stage holds while the step goes on: a forward leaves activations, its backward frees them." +
                (series.length > 1 ?
                     ` Lines go from orange, stage 0, over purple and blue to light blue, stage ${series.length - 1}.` :
                     ""),
            build: (p) => {
                plot = p;
            },
            draw: (svg, width) => overStep(svg, width, plot, series, data.answer.inputs.device_memory_bytes, step),
            caption:
                "While a forward or backward runs it counts with its fullest moment, and then with what it leaves; so the highest point is the peak of the report.",
            table: () => dl.table(
                ["stage", dl.right("least"), dl.right("most")],
                series.map((s) => [s.stage, dl.right(dl.bytes(d3.min(s.bytes))), dl.right(dl.bytes(d3.max(s.bytes)))])),
        });
    };

    dl.views.memory = (data) => {
        const stages = data.answer.memory_bytes, capacity = data.answer.inputs.device_memory_bytes,
              fullest = dl.fullestStage(stages), several = stages.length > 1;
        const largest = partsOf(stages).sort((p, q) => (fullest[q] || 0) - (fullest[p] || 0))[0];
        overStepFigure(
            data,
            (several ? `Stage ${fullest.stage} is the fullest: ` : "A device holds at most ") + dl.bytes(fullest.peak) +
                (capacity ? ` of ${dl.bytes(capacity)}` : ""));
        dl.figure({
            id: "peak",
            short: "Peak memory",
            title: `At its fullest moment ${several ? "stage " + fullest.stage : "a device"} holds most of all ${
                largest}: ${dl.bytes(fullest[largest])}`,
            what: "What the memory of a device of each stage holds at its fullest moment.",
            build: (plot) => plot.before(dl.memoryLegend(stages)),
            draw: (svg, width) => dl.memoryParts(svg, width, stages, capacity),
            table: () => dl.memoryTable(stages),
        });
    };
})();
