/* machine.js - the part of the machine that the job uses: what is between nodes, and the inside of the busiest node.
 *
 * Boxes come with their places, as in pictures of a run; a box may stand for many parts, and a line for the busiest
 * link between two boxes. */
(() => {
    const load = d3.scaleLinear()
                     .domain([0, 0.25, 0.5, 0.75, 1])
                     .range(["#fed976", "#feb24c", "#fd8d3c", "#f03b20", "#960020"])
                     .clamp(true);
    const unused = "#d0d0d0";

    /* Whether a third box lies on the straight line between two. */
    const isBlocked = (glyphs, a, b) => {
        const dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
        return glyphs.some((c) => {
            if (c === a || c === b || (a.y !== b.y && (c.y === a.y || c.y === b.y))) return false;
            const along = ((c.x - a.x) * dx + (c.y - a.y) * dy) / square;
            const aside = Math.abs((c.x - a.x) * dy - (c.y - a.y) * dx) / Math.sqrt(square);
            return along > 0 && along < 1 && aside < c.height / 3;
        });
    };
    const curve = (a, b) => {
        const bend = Math.min(0.18, 88 / Math.hypot(b.x - a.x, b.y - a.y));
        return `M${a.x},${a.y}Q${(a.x + b.x) / 2 + (b.y - a.y) * bend},${(a.y + b.y) / 2 - (b.x - a.x) * bend} ${b.x},${
            b.y}`;
    };
    /* To this width; rows keep a distance that leaves room for their names, other pictures their shape, and a usual
     * height. */
    const scaled = (picture, width, full) => {
        const hasRows = picture.rows.length > 0,
              across = Math.min(width / full, hasRows ? Infinity : 640 / picture.height),
              down = hasRows ? Math.max(across, 0.75) : across;
        return {
            ...picture,
            height: picture.height * down,
            rows: picture.rows.map((r) => ({...r, y: r.y * down})),
            glyphs: picture.glyphs.map((g) => ({
                                           ...g,
                                           x: g.x * across,
                                           y: g.y * down,
                                           width: g.width * across,
                                           height: g.height * (g.is_round ? across : down)
                                       }))
        };
    };

    const drawLines = (g, picture, machine, tip) => {
        const known = !machine.unknown, glyphs = picture.glyphs,
              thickest = picture.lines.length > 300 ? 1.2 :
            picture.lines.length > 60               ? 1.6 :
                                                      2.6;
        for (const [i, j, share, n] of picture.lines.slice().sort((p, q) => p[2] - q[2])) {
            if (i === j) continue;
            const a = glyphs[i], b = glyphs[j], part = machine.most > 0 ? share / machine.most : 0,
                  used = known && share > 0;
            const path = dl.put(g, "path", {
                fill: "none",
                stroke: used ? load(part) : unused,
                "stroke-width": used ? thickest * (0.4 + 0.6 * part) : 0.8,
                d: isBlocked(glyphs, a, b) ? curve(a, b) : `M${a.x},${a.y}L${b.x},${b.y}`
            });
            dl.hover(
                path, tip,
                (event) => tip.show(
                    event, `${a.name} and ${b.name}`,
                    used ? `${n > 2 ? "the busiest link is " : ""}busy ${dl.percent(share)} of the step` :
                           `${dl.count(n)} links`));
        }
    };
    const drawGlyphs = (g, picture, machine, tip) => {
        const inside = new Map(picture.lines.filter(([i, j]) => i === j).map(([i, , share]) => [i, share]));
        picture.glyphs.forEach((b, i) => {
            const share = inside.get(i) || 0, used = !machine.unknown && share > 0, wide = b.width, high = b.height;
            const shape = dl.put(g, "rect", {
                x: b.x - wide / 2,
                y: b.y - high / 2,
                width: wide,
                height: high,
                rx: b.is_round ? wide / 2 : 2,
                fill: used ? load(share / machine.most) : "#fff",
                stroke: "#5a5f66",
                "stroke-width": 0.8
            });
            dl.hover(
                shape, tip,
                (event) =>
                    tip.show(event, b.name, ...(used ? [`the busiest link inside is busy ${dl.percent(share)}`] : [])));
            if (dl.textWidth(b.label, "11px sans-serif") >= wide - 2 || high <= 12) return;
            const ink = used && share / machine.most > 0.6 ? "#fff" : "#1c1c1c";
            dl.put(
                g, "text", {
                    x: b.x,
                    y: b.y + 4,
                    "text-anchor": "middle",
                    "font-size": 11,
                    style: `fill:${ink};pointer-events:none`
                },
                b.label);
        });
    };
    /* Returns how high it is. */
    const drawPicture = (svg, y, width, whole, machine, tip) => {
        const narrow = width < 560, left = whole.rows.length && !narrow ? 90 : 0, top = narrow ? 26 : 16,
              picture = scaled(whole, width - left - 2, machine.width);
        const g = dl.put(svg, "g", {transform: `translate(${left + 1},${y + top})`});
        drawLines(g, picture, machine, tip);
        drawGlyphs(g, picture, machine, tip);
        let free = -Infinity;
        for (const row of picture.rows.slice().sort((a, b) => a.y - b.y)) {
            const at = row.y + (narrow ? -13 : 4);
            if (at < free) continue;
            dl.put(
                g, "text", {class: "soft halo", x: narrow ? 0 : -8, y: at, "text-anchor": narrow ? "start" : "end"},
                dl.cut(row.name, narrow ? 120 : 80));
            free = at + 15;
        }
        return picture.height + top + 8;
    };
    const drawKey = (svg, y, width, machine) => {
        const n = 40, wide = Math.min(220, width - 10), g = dl.put(svg, "g", {transform: `translate(0,${y})`});
        for (let i = 0; i < n; i++)
            dl.put(g, "rect", {x: (i * wide) / n, width: wide / n + 0.5, height: 8, fill: load(i / (n - 1))});
        dl.put(g, "text", {class: "soft", y: 24}, "busy 0 %");
        dl.put(
            g, "text", {class: "soft", x: wide, y: 24, "text-anchor": "end"},
            dl.percent(machine.most) + " of the step");
        return 34;
    };
    const draw = (svg, width, plot, machine) => {
        const tip = plot.tip || (plot.tip = dl.tip(plot));
        let y = 0;
        for (const picture of [machine.network, machine.node])
            if (picture) y += drawPicture(svg, y, width, picture, machine, tip) + 14;
        if (machine.most > 0) y += drawKey(svg, y, width, machine);
        dl.size(svg, width, y);
    };

    const title = (machine) => machine.unknown ?
        `The job uses ${dl.count(machine.used)} links; what they carried is not known` :
        machine.links.length ?
        `The busiest link, ${machine.links[0].name}, is busy ${dl.percent(machine.links[0].busy_share)} of the step` :
        "Nothing was sent over links";

    dl.views.machine = (data) => {
        const machine = data.machine, pictures = [machine.network, machine.node].filter((p) => p);
        let plot;
        if (!pictures.length) return;
        machine.most = d3.max(pictures.flatMap((p) => p.lines), (l) => l[2]) || 0;
        dl.figure({
            id: "machine",
            short: "Machine",
            title: title(machine),
            what: `The part of ${data.answer.inputs.topology} that the job uses. ` +
                pictures.map((p) => p.caption).join(" "),
            caption: machine.unknown ||
                "Colours are the time that a link is busy, by bytes over bandwidth; of several links that a line stands for, the busiest. Collectives that were priced without contention are on no link.",
            build: (p) => {
                plot = p;
            },
            draw: (svg, width) => draw(svg, width, plot, machine),
            table: machine.links.length ?
                () => dl.table(
                    ["link", dl.right("busy"), dl.right("bytes")],
                    machine.links.map(
                        (l) => [l.name, dl.right(dl.percent(l.busy_share)), dl.right(dl.bytes(l.bytes))])) :
                null
        });
    };
})();
