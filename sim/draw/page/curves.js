/* curves.js - a figure of a sweep over one input, a curve for each value of another, and the Pareto front of two
 * figures. */
(() => {
    /* The best point at each place of each curve. */
    const seriesOf = (done, state) =>
        d3.groups(done, (r) => (state.by ? r[state.by] : ""))
            .map(([name, some]) => ({
                     name: String(name),
                     points: d3.groups(some, (r) => r[state.x])
                                 .map(([, v]) => dl.bestOf(v, state.figure))
                                 .sort((a, b) => a[state.x] - b[state.x])
                 }));

    dl.drawCurves = (svg, width, plot, rows, state, inputs) => {
        const left = 52, top = 30, bottom = 330, right = width - 10,
              done = rows.filter((r) => r.status === "done" && r[state.figure] != null),
              tip = plot.tip || (plot.tip = dl.tip(plot));
        const series = seriesOf(done, state), seen = dl.valuesOf(done, state.x);
        const x = dl.scaleOf(d3.extent(seen), [left, right]),
              y = dl.scaleOf(d3.extent(series.flatMap((s) => s.points), (r) => r[state.figure]), [bottom, top]).nice();
        dl.axisLeft(svg, y, left, dl.axisName(state.figure), dl.tickOf(state.figure), right);
        dl.axisBelow(
            svg, seen.length > 12 ? x : Object.assign(x.copy(), {ticks: () => seen}), bottom, state.x,
            d3.format(".4~s"));
        for (const s of series.filter((one) => !state.chosen.size || state.chosen.has(one.name))) {
            const i = state.names.indexOf(s.name);
            dl.put(svg, "path", {
                fill: "none",
                stroke: dl.colour(i),
                "stroke-width": 1.5,
                d: d3.line().x((r) => x(r[state.x])).y((r) => y(r[state.figure]))(s.points)
            });
            for (const r of s.points) {
                const mark = dl.put(svg, "path", {
                    transform: `translate(${x(r[state.x])},${y(r[state.figure])})`,
                    d: dl.shape(i, 50),
                    fill: dl.colour(i),
                    stroke: "#fff"
                });
                dl.hover(
                    mark, tip,
                    (event) => tip.show(
                        event, `${dl.named(state.figure)}: ${dl.by(state.figure)(r[state.figure])}`,
                        dl.inputsOf(r, inputs)));
            }
        }
        dl.size(svg, width, bottom + 44);
    };

    dl.drawFront = (svg, width, plot, rows, state, inputs) => {
        const left = 52, top = 30, bottom = 350, right = width - 10, most = 4000,
              front = dl.front(rows, state.x, state.y), tip = plot.tip || (plot.tip = dl.tip(plot));
        const x = dl.scaleOf(d3.extent(rows, (r) => r[state.x]), [left, right]).nice(),
              y = dl.scaleOf(d3.extent(rows, (r) => r[state.y]), [bottom, top]).nice();
        const dot = (r, look) => {
            const mark = dl.put(svg, "circle", {cx: x(r[state.x]), cy: y(r[state.y]), ...look});
            dl.hover(
                mark, tip,
                (event) => tip.show(
                    event, dl.inputsOf(r, inputs),
                    ...[state.x, state.y].map((f) => `${dl.named(f)} ${dl.by(f)(r[f])}`)));
        };
        dl.axisLeft(svg, y, left, dl.axisName(state.y), dl.tickOf(state.y), right);
        dl.axisBelow(svg, x, bottom, dl.axisName(state.x), dl.tickOf(state.x));
        const each = Math.ceil(rows.length / most); /* of very many points, some */
        rows.filter((_, i) => i % each === 0).forEach((r) => dot(r, {r: 2.5, fill: "#8b9097", "fill-opacity": 0.5}));
        dl.put(svg, "path", {
            fill: "none",
            stroke: "#0072b2",
            "stroke-width": 1.5,
            d: d3.line().curve(d3.curveStepAfter).x((r) => x(r[state.x])).y((r) => y(r[state.y]))(front)
        });
        front.forEach((r) => dot(r, {r: 5, fill: "#0072b2", stroke: "#fff"}));
        dl.size(svg, width, bottom + 44);
    };
})();
