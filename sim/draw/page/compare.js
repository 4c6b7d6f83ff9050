/* compare.js - two runs side by side: which is faster and how sure that is, causes, memory, and what differs. */
(() => {
    const drawRatio = (svg, width, a, names) => {
        const x = d3.scaleLog()
                      .base(2)
                      .domain([Math.min(a.speedup_low, 1) / 1.08, Math.max(a.speedup_high, 1) * 1.08])
                      .range([8, width - 8]),
              y = 34;
        const bar = (low, high, fill) =>
            dl.put(svg, "rect", {x: x(low), width: x(high) - x(low), y: y - 5, height: 10, fill});
        dl.put(svg, "line", {class: "rule", "stroke-dasharray": "4 3", x1: x(1), x2: x(1), y1: 10, y2: 64});
        bar(a.speedup_low, a.speedup_high, "#56b4e9");
        bar(a.constants_low, a.constants_high, "#0072b2");
        dl.put(svg, "circle", {cx: x(a.speedup), cy: y, r: 6, fill: "#fff", stroke: "#1c1c1c", "stroke-width": 2});
        const ticks = (n) => d3.ticks(x.domain()[0], x.domain()[1], n);
        dl.axisBelow(
            svg, Object.assign(x.copy(), {ticks}), 64,
            dl.cut(`samples a second of ${names[1]} over those of ${names[0]}`, width - 16), d3.format("~g"));
        dl.size(svg, width, 106);
    };

    const flat = (o, path = "") => Object.entries(o || {}).flatMap(
        ([k, v]) => (v && typeof v === "object" && !Array.isArray(v) ? flat(v, path + k + ".") : [[path + k, v]]));
    const shown = (path, v) => (v == null ? "–" : dl.told(path, v));
    const sideBySide = (names, pair, only) => {
        const [a, b] = pair.map((o) => new Map(flat(o))),
                  keys = [...new Set([...a.keys(), ...b.keys()])].filter((k) => !only || only.includes(k));
        return dl.table(
            ["", ...names.map(dl.right)],
            keys.filter((k) => a.get(k) != null || b.get(k) != null)
                .map((k) => ({
                         cells: [k, dl.right(shown(k, a.get(k))), dl.right(shown(k, b.get(k)))],
                         class: JSON.stringify(a.get(k)) === JSON.stringify(b.get(k)) ? null : "differs"
                     })),
            "wide");
    };
    const answers = [
        "step_s", "step_s_low", "step_s_high", "devices", "samples_per_s", "tokens_per_s", "model_flop_per_device_s",
        "mfu", "hfu", "fits", "forward_s", "backward_s", "optimizer_s"
    ];

    const scroll = (table) => dl.make("div", {class: "scroll", tabindex: "0"}, table);

    const head = (a, runs, names) => {
        const verdict =
            !a.told_apart ? "they cannot be told apart" : `${names[1]} is ${a.speedup > 1 ? "faster" : "slower"}`;
        const about = (r, i) =>
            (r.inputs ? `${names[i]}: ${r.inputs.workload} on ${dl.count(r.inputs.devices)} × ${r.inputs.device}, ${
                            dl.ways(r.inputs)}.` :
                        `${names[i]}.`);
        dl.head(
            "dlsim compare",
            `${names[1]} has ${a.speedup.toFixed(3)} times the samples a second of ${names[0]}: ${verdict}`,
            runs.map(about).join(" "), [
                ["ratio", a.speedup.toFixed(3), `95 %: ${a.speedup_low.toFixed(3)} to ${a.speedup_high.toFixed(3)}`],
                ...runs.map(
                    (r, i) =>
                        ["step of " + names[i], dl.seconds(r.step_s),
                         `${dl.seconds(r.step_s_low)} to ${dl.seconds(r.step_s_high)}`]),
                ...runs.map(
                    (r,
                     i) => ["utilization of " + names[i], dl.percent(r.mfu), dl.number(r.samples_per_s) + " samples/s"])
            ]);
    };
    const ratioFigure = (a, names) => dl.figure({
        id: "ratio",
        short: "Ratio",
        title: `The ratio is between ${a.speedup_low.toFixed(2)} and ${a.speedup_high.toFixed(2)} with 95 %` +
            (a.told_apart ? ", which leaves out 1" : ", which holds 1"),
        what:
            "Samples a second of the second run over those of the first. Errors that both runs have in common cancel.",
        draw: (svg, width) => drawRatio(svg, width, a, names),
        caption:
            "The circle is the ratio, the dark bar its interval by the constants of the files, the light bar that and the errors of the model. Dashed: both as fast.",
    });
    const causesFigure = (runs, names) => {
        const causes = Object.keys(runs[0].causes), more = (c) => runs[1].causes[c].exposed - runs[0].causes[c].exposed;
        const most = causes.slice().sort((x, y) => Math.abs(more(y)) - Math.abs(more(x)))[0];
        dl.figure({
            id: "causes",
            short: "Causes",
            title: `They differ most in ${most}: ${names[1]} spends ${dl.seconds(Math.abs(more(most)))} ${
                more(most) > 0 ? "more" : "less"} of its step`,
            what: `Exposed seconds of the step by cause: above ${names[0]}, below and lighter ${names[1]}.`,
            draw: (svg, width) => dl.causeBars(svg, width, runs),
            table: () => dl.table(
                ["cause", ...names.map((n) => dl.right(n + ", s"))],
                causes.map((c) => [c, ...runs.map((r) => dl.right(dl.number(r.causes[c].exposed)))])),
        });
    };
    const memoryFigure = (r, name, i) => {
        const stages = r.memory_bytes, fullest = dl.fullestStage(stages);
        dl.figure({
            id: "memory" + i,
            short: "Memory of " + name,
            title: `${name}: stage ${fullest.stage} holds ${dl.bytes(fullest.peak)} at its fullest moment`,
            build: (plot) => plot.before(dl.memoryLegend(stages)),
            draw: (svg, width) => dl.memoryParts(svg, width, stages, r.inputs && r.inputs.device_memory_bytes),
            table: () => dl.memoryTable(stages),
        });
    };

    /* Reports may be old or made by hand: what they do not have is not shown. */
    dl.views.compare = (data) => {
        const a = data.answer, runs = data.reports,
              names = data.names[0] === data.names[1] ? data.names.map((n, i) => `${n} (${i + 1})`) : data.names;
        head(a, runs, names);
        ratioFigure(a, names);
        if (runs.every((r) => r.causes)) causesFigure(runs, names);
        runs.forEach((r, i) => r.memory_bytes && memoryFigure(r, names[i], i));
        dl.sensitivities("sensitivity", "The ratio", a.sensitivity);
        dl.figure({
            id: "numbers",
            short: "Numbers",
            title: "What was asked and answered, side by side",
            what: "Rows that differ are marked.",
            build: (plot) => plot.append(
                dl.make("h3", {}, "Answered"), scroll(sideBySide(names, runs, answers)), dl.make("h3", {}, "Asked"),
                scroll(sideBySide(names, runs.map((r) => r.inputs))))
        });
    };
})();
