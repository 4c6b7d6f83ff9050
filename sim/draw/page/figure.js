/* figure.js - what all views share: a figure with its title, caption, table and a way to save it; axes; a tooltip. */
(() => {
    const make = (name, attributes = {}, ...children) => {
        const e = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) {
            if (key.startsWith("on"))
                e.addEventListener(key.slice(2), value);
            else if (value != null)
                e.setAttribute(key, value);
        }
        e.append(...children.filter((c) => c != null));
        return e;
    };
    dl.make = make;

    /* Append an element to a selection of d3, with attributes and a text. */
    dl.put = (parent, name, attributes = {}, text = null) => {
        const e = parent.append(name);
        for (const [key, value] of Object.entries(attributes))
            if (value != null) e.attr(key, value);
        return text == null ? e : e.text(text);
    };
    /* The same with a text that shows where the mouse points. */
    dl.putTitled = (parent, name, attributes, title) => dl.put(dl.put(parent, name, attributes), "title", {}, title);
    dl.size = (svg, width, height) => svg.attr("viewBox", `0 0 ${width} ${height}`).attr("height", height);
    dl.legend = (pairs) => make(
        "ul", {class: "legend"},
        ...pairs.map(([name, colour]) => make("li", {}, make("i", {style: "background:" + colour}), name)));

    /* Cells are text or {text, n: right-aligned}; a row may be {cells, class}. */
    dl.table = (head, rows, name = "") => {
        const cell = (tag, c) => make(
            tag, {class: c && c.n ? "n" : null, scope: tag === "th" ? "col" : null},
            c && typeof c === "object" ? c.text :
                c == null              ? "–" :
                                         String(c));
        const row = (r) => make("tr", {class: r.class || null}, ...(r.cells || r).map((c) => cell("td", c)));
        return make(
            "table", {class: name}, make("thead", {}, make("tr", {}, ...head.map((c) => cell("th", c)))),
            make("tbody", {}, ...rows.map(row)));
    };
    dl.right = (text) => ({text, n: true});

    /* A picture as a file of its own: the rules of the page's style that it needs go with it. */
    const save = (svg, name) => {
        const copy = svg.cloneNode(true);
        const css =
            "text{fill:#1c1c1c}.soft,.axis text{fill:#5a5f66}.title{font-weight:600}.axis path,.axis line{stroke:#d9dbde;fill:none}" +
            ".grid{stroke:#ebecee}.rule{stroke:#1c1c1c;fill:none}";
        copy.setAttribute("font-family", "sans-serif");
        copy.setAttribute("font-size", "12");
        copy.insertAdjacentHTML(
            "afterbegin", "<style>" + css + "</style><rect width='100%' height='100%' fill='#fff'/>");
        const link = make("a", {
            download: name + ".svg",
            href: URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"}))
        });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };

    /* {id, short, title, what, caption, table} and draw(svg, width), which is called again when the width changes, or
     * build(plot), which makes something else than one SVG. Returns {node, redraw, retitle}. */
    dl.figure = (f) => {
        const plot = make("div", {class: "plot"}), tools = make("div", {class: "tools"});
        const title = make("h2", {id: f.id + "-title"}, f.title);
        const table = f.table &&
            make("details", {ontoggle: () => fill()}, make("summary", {}, "The same as a table"),
                 make("div", {class: "scroll", tabindex: "0"}));
        const fill = () => table && table.open && table.lastChild.replaceChildren(f.table());
        const keep = f.draw &&
            make("button", {class: "quiet", type: "button", onclick: () => save(plot.querySelector("svg"), f.id)},
                 "Save as SVG");
        const node = make(
            "figure", {id: f.id, "aria-labelledby": f.id + "-title"}, title,
            f.what ? make("p", {class: "what"}, f.what) : null, tools, plot, make("figcaption", {}, f.caption || ""),
            make("div", {class: "below"}, table || null, keep || null));
        document.getElementById("views").append(node);
        document.getElementById("contents").append(make("a", {href: "#" + f.id}, f.short));
        let drawn = 0;
        const redraw = (width = plot.clientWidth) => {
            drawn = width;
            fill();
            if (!f.draw || !width) return; /* there will be a width: see below */
            const svg = d3.create("svg").attr("role", "img").attr("aria-label", () => title.textContent);
            f.draw(svg, width);
            plot.querySelector("svg")?.remove();
            plot.prepend(svg.node());
        };
        if (f.build) f.build(plot, tools, node);
        if (f.draw) {
            redraw();
            new ResizeObserver(() => plot.clientWidth !== drawn && redraw()).observe(plot);
        }
        return {node, plot, redraw, retitle: (text) => title.replaceChildren(text)};
    };

    /* A box beside the pointer. */
    dl.tip = (plot) => {
        const box = plot.appendChild(make("div", {class: "tip", hidden: ""}));
        return {
            show(event, ...lines) {
                const at = plot.getBoundingClientRect();
                box.replaceChildren(...lines.map((l, i) => make(i ? "div" : "b", {}, l)));
                box.hidden = false;
                const x = event.clientX - at.left + 12, y = event.clientY - at.top + 12;
                box.style.left = Math.max(0, Math.min(x, plot.clientWidth - box.offsetWidth)) + "px";
                box.style.top = y + "px";
            },
            hide() {
                box.hidden = true;
            },
        };
    };

    /* d3 hands events over in another way in each of its versions, the browser does not. */
    dl.hover = (selection, tip, show) => {
        selection.node().addEventListener("pointermove", show);
        selection.node().addEventListener("pointerleave", tip.hide);
    };

    /* As wide as the text will be. */
    const measure = document.createElement("canvas").getContext("2d");
    dl.textWidth = (text, font = "12px " + getComputedStyle(document.documentElement).getPropertyValue("--sans")) => {
        measure.font = font;
        return measure.measureText(text).width;
    };
    /* What of it has room, with dots for the rest. */
    dl.cut = (text, width, font) => {
        if (dl.textWidth(text, font) <= width) return text;
        let n = text.length;
        while (n > 1 && dl.textWidth(text.slice(0, n) + "…", font) > width) n--;
        return text.slice(0, n) + "…";
    };

    /* An axis below: as few ticks as have room. */
    dl.axisBelow = (svg, scale, y, name, format, width = scale.range()[1] - scale.range()[0]) => {
        let ticks = scale.ticks ? scale.ticks(Math.max(2, Math.floor(width / 80))) : scale.domain();
        const widest = () => d3.max(ticks, (t) => dl.textWidth(format(t))) + 10;
        const least = () => d3.min(d3.pairs(ticks), ([a, b]) => Math.abs(scale(b) - scale(a)));
        while (ticks.length > 2 && least() < widest()) ticks = ticks.filter((_, i) => i % 2 === 0);
        svg.append("g")
            .attr("class", "axis")
            .attr("transform", `translate(0,${y})`)
            .call(d3.axisBottom(scale).tickValues(ticks).tickFormat(format).tickSize(4).tickSizeOuter(0));
        if (name) dl.put(svg, "text", {class: "soft", x: d3.max(scale.range()), y: y + 34, "text-anchor": "end"}, name);
    };
    dl.axisLeft = (svg, scale, x, name, format, right) => {
        const height = Math.abs(scale.range()[1] - scale.range()[0]);
        let ticks = scale.ticks(Math.max(2, Math.floor(height / 40)));
        while (ticks.length > 2 && d3.min(d3.pairs(ticks), ([a, b]) => Math.abs(scale(b) - scale(a))) < 15)
            ticks = ticks.filter((_, i) => i % 2 === 0);
        for (const t of ticks) dl.put(svg, "line", {class: "grid", x1: x, x2: right, y1: scale(t), y2: scale(t)});
        svg.append("g")
            .attr("class", "axis")
            .attr("transform", `translate(${x},0)`)
            .call(d3.axisLeft(scale).tickValues(ticks).tickFormat(format).tickSize(0).tickPadding(6))
            .call((g) => g.select(".domain").remove());
        if (name) dl.put(svg, "text", {class: "soft", x: 0, y: d3.min(scale.range()) - 12}, name);
    };
})();
