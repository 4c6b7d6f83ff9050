/* validation.js - measured against predicted steps, by family: on the diagonal a prediction is right. */
(() => {
    const band = 0.1, shade = "#e6e3d6";

    const powerText = (power) => dl.seconds(10 ** power).replace(/\.0+(?=\D)/, "");

    /* Both axes are logarithmic and the same. Below, as many powers are named as have room. */
    const drawAxes = (svg, x, y) => {
        const [left, right] = x.range(), [bottom, top] = y.range(), [low, high] = x.domain();
        const powers = d3.range(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)) + 1),
              widest = d3.max(powers, (power) => dl.textWidth(powerText(power))) + 10,
              every = Math.ceil(widest / ((right - left) / Math.log10(high / low)));
        for (const power of powers) {
            const value = 10 ** power, text = powerText(power);
            dl.put(svg, "line", {class: "grid", x1: left, x2: right, y1: y(value), y2: y(value)});
            dl.put(svg, "line", {class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom});
            dl.put(svg, "text", {class: "soft", x: left - 6, y: y(value) + 4, "text-anchor": "end"}, text);
            if (power % every === 0)
                dl.put(svg, "text", {class: "soft", x: x(value), y: bottom + 16, "text-anchor": "middle"}, text);
        }
        const inside = (v) => Math.max(low, Math.min(high, v)),
              corners = [[low, 1 + band], [high, 1 + band], [high, 1 - band], [low, 1 - band]];
        dl.put(
            svg, "path",
            {d: "M" + corners.map(([v, f]) => `${x(v)},${y(inside(v * f))}`).join("L") + "Z", fill: shade});
        dl.put(svg, "line", {class: "rule", x1: left, y1: bottom, x2: right, y2: top});
        dl.put(svg, "text", {class: "soft", x: 0, y: 12}, "predicted step");
        dl.put(svg, "text", {class: "soft", x: right, y: bottom + 36, "text-anchor": "end"}, "measured step");
    };
    const scatter = (svg, width, plot, rows, names, chosen) => {
        const narrow = width < 560, left = 58, top = 26, bottom = Math.max(300, Math.min(width, 760) - 60),
              right = narrow ? width - 6 : left + bottom - top;
        const [least, most] = d3.extent(rows.flatMap((r) => [r.measured_s, r.predicted_s])),
                      domain = [least / 1.3, most * 1.3];
        const x = d3.scaleLog().domain(domain).range([left, right]),
              y = d3.scaleLog().domain(domain).range([bottom, top]), tip = plot.tip || (plot.tip = dl.tip(plot));
        drawAxes(svg, x, y);
        for (const r of rows.filter((row) => !chosen.size || chosen.has(row.family))) {
            const i = names.indexOf(r.family), place = `translate(${x(r.measured_s)},${y(r.predicted_s)})`;
            const mark = dl.put(svg, "path", {
                transform: place,
                d: dl.shape(i, narrow ? 26 : 44),
                fill: dl.colour(i),
                "fill-opacity": 0.85,
                stroke: "#fff",
                "stroke-width": 0.5
            });
            const told =
                `measured ${dl.seconds(r.measured_s)}, predicted ${dl.seconds(r.predicted_s)}: ${dl.signed(r.error)}`;
            dl.hover(mark, tip, (event) => tip.show(event, r.id, told, r.system ? `${r.software} on ${r.system}` : ""));
        }
        dl.size(svg, width, bottom + 44);
    };

    /* A line of marks for each family: how far predictions are off. */
    const strips = (svg, width, plot, rows, names) => {
        const narrow = width < 560, left = narrow ? 4 : 130, row = narrow ? 32 : 20, bottom = names.length * row,
              tip = plot.tip || (plot.tip = dl.tip(plot));
        const most = Math.max(0.2, d3.max(rows, (r) => Math.abs(r.error))),
              x = d3.scaleLinear().domain([-most, most]).nice().range([left, width - 8]);
        dl.put(svg, "rect", {x: x(-band), width: x(band) - x(-band), y: 0, height: bottom, fill: shade});
        dl.put(svg, "line", {class: "rule", x1: x(0), x2: x(0), y1: 0, y2: bottom});
        names.forEach((name, i) => {
            const y = i * row + (narrow ? 23 : row / 2);
            dl.put(
                svg, "text",
                {x: narrow ? 0 : left - 10, y: narrow ? y - 11 : y + 4, "text-anchor": narrow ? "start" : "end"}, name);
            dl.put(svg, "line", {class: "grid", x1: left, x2: width - 8, y1: y, y2: y});
            for (const r of rows.filter((other) => other.family === name)) {
                const mark = dl.put(svg, "path", {
                    transform: `translate(${x(r.error)},${y})`,
                    d: dl.shape(i, 36),
                    fill: dl.colour(i),
                    "fill-opacity": 0.7
                });
                dl.hover(mark, tip, (event) => tip.show(event, r.id, dl.signed(r.error)));
            }
        });
        dl.axisBelow(
            svg, x, bottom + 2, "predicted less measured, in percent of the measured",
            (v) => d3.format("~g")(Math.round(1000 * v) / 10));
        dl.size(svg, width, bottom + 42);
    };

    const rowsTable = (rows) => dl.table(
        ["row", "family", dl.right("measured"), dl.right("predicted"), dl.right("error"), "half"],
        rows.map(
            (r) =>
                [r.id, r.family, dl.right(dl.seconds(r.measured_s)), dl.right(dl.seconds(r.predicted_s)),
                 dl.right(dl.signed(r.error)), r.half.replace("_", " ")]));
    const familiesTable = (families) => dl.table(
        ["family", dl.right("rows"), ...["mean error", "bias", "largest", "fit", "kept out"].map(dl.right)],
        Object.entries(families).map(
            ([name, f]) =>
                [name, dl.right(dl.count(f.n)),
                 ...[dl.percent(f.mape), dl.signed(f.bias), dl.percent(f.max), dl.percent(f.fit.mape),
                     dl.percent(f.kept_out.mape)]
                     .map(dl.right)]));
    const sourcesTable = (families) => dl.table(
        ["family", dl.right("rows"), "source"],
        Object.entries(families).map(([name, f]) => [name, dl.right(dl.count(f.n)), f.source]), "wide texts");

    const stepsFigure = (steps, names, within) => {
        const chosen = new Set();
        let plot;
        const figure = dl.figure({
            id: "validation",
            short: "Measured and predicted",
            title: `${dl.count(within)} of ${dl.count(steps.length)} predicted steps are within 10 % of the measured`,
            what:
                "Each mark is a step that someone measured. On the line a prediction is right; the band is 10 % to both sides. Both axes are logarithmic. Choose families in the legend.",
            build: (p) => {
                plot = p;
                p.before(dl.seriesLegend(names, chosen, () => figure.redraw()));
            },
            draw: (svg, width) => scatter(svg, width, plot, steps, names, chosen),
            table: () => rowsTable(steps),
        });
    };
    const errorsFigure = (rows, names, families) => {
        const worst = rows[d3.leastIndex(rows, (x, y) => Math.abs(y.error) - Math.abs(x.error))];
        let plot;
        dl.figure({
            id: "errors",
            short: "Errors",
            title: `The worst row is ${worst.id}, ${dl.signed(worst.error)}`,
            what: "How far each prediction is off, by family; speed-ups and differences of two runs too.",
            build: (p) => {
                plot = p;
            },
            draw: (svg, width) => strips(svg, width, plot, rows, names),
            table: () => familiesTable(families),
        });
    };
    const head = (a, steps, within) => {
        const s = a.summary, n = Object.keys(a.families).length;
        dl.head(
            "dlsim validate",
            `Predicted steps are ${dl.percent(s.mape)} off on average, over ${dl.count(s.n)} measured ones`,
            `${dl.count(s.n)} rows of ${dl.count(n)} ${n > 1 ? "families" : "family"}; engine ${a.engine}.` +
                (s.failed ? ` ${dl.count(s.failed)} rows could not be predicted.` : ""),
            [
                ["mean error", dl.percent(s.mape), "of the measured"],
                ["bias", dl.signed(s.bias), s.bias < 0 ? "too fast on average" : "too slow on average"],
                ["largest", dl.percent(s.max)],
                [
                    "within 10 %", dl.percent(within / steps.length, 0),
                    `${dl.count(within)} of ${dl.count(steps.length)} steps`
                ],
                ["right order", dl.percent(s.ordered), `of ${dl.count(s.pairs)} pairs`]
            ]);
    };

    dl.views.validation = (data) => {
        const a = data.answer, names = Object.keys(a.families), known = a.rows.filter((r) => r.error != null),
              steps = known.filter((r) => r.measured_s > 0 && r.predicted_s > 0);
        const within = steps.filter((r) => Math.abs(r.error) <= band).length;
        head(a, steps, within);
        if (steps.length) stepsFigure(steps, names, within);
        if (known.length) errorsFigure(known, names, a.families);
        dl.figure({
            id: "sources",
            short: "Sources",
            title: "Where the measurements come from",
            build: (p) => p.append(dl.make("div", {class: "scroll", tabindex: "0"}, sourcesTable(a.families)))
        });
    };
})();
