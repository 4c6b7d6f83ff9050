/* marks.js - colour and shape of many series: both change from one to the next, and no two of 42 have the same pair. */
(() => {
    const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1c1c1c"];
    const shapes =
        [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar];
    dl.colour = (i) => colours[i % colours.length];
    dl.shape = (i, size = 40) => d3.symbol().type(shapes[i % shapes.length]).size(size)();

    /* With a button for each series that shows it alone; `chosen` is the set of those shown, empty: all. */
    dl.seriesLegend = (names, chosen, changed) => {
        const list = dl.make("ul", {class: "legend"});
        const paint = () => list.replaceChildren(...names.map((name, i) => {
            const svg = d3.create("svg").attr("viewBox", "-6 -6 12 12").attr("aria-hidden", "true");
            svg.append("path").attr("d", dl.shape(i)).attr("fill", dl.colour(i));
            const toggle = () => {
                chosen.has(name) ? chosen.delete(name) : chosen.add(name);
                paint();
                changed();
            };
            return dl.make(
                "li", {class: chosen.size && !chosen.has(name) ? "off" : null},
                dl.make(
                    "button", {type: "button", "aria-pressed": String(chosen.has(name)), onclick: toggle}, svg.node(),
                    name));
        }));
        paint();
        return list;
    };
    dl.choice = (label, options, value, changed) => {
        const select = dl.make(
            "select", {onchange: () => changed(select.value)},
            ...options.map((o) => dl.make("option", {value: o, selected: o === value ? "" : null}, o)));
        return dl.make("label", {}, label, select);
    };
})();
