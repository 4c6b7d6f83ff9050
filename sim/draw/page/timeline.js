/* timeline.js - what every stage does when, to pan, zoom and search by mouse, touch and keys. */
(() => {
    const spelt = {wait: "waiting", send: "send to another stage", collective: "collective over replicas"};
    const said = (ns) => dl.seconds(ns / 1e9);

    /* What is looked at; `drawn` is called when it has changed. */
    const makeView = (t, s, redraw) => {
        const view = {
            begin: 0,
            end: Math.max(t.step_to, d3.max(s.to) || 1),
            zero: t.step_from,
            from: t.step_from,
            to: t.step_to,
            matches: null,
            chosen: -1
        };
        view.look = (from, to) => {
            const span = Math.min(Math.max(to - from, 100), view.end - view.begin);
            view.from = Math.max(view.begin, Math.min(from, view.end - span));
            view.to = view.from + span;
            redraw();
        };
        view.zoom = (factor, centre = (view.from + view.to) / 2) =>
            view.look(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
        view.pan = (share) =>
            view.look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
        view.whole = () => view.look(t.step_from, t.step_to);
        return view;
    };

    const describe = (s, view, i, now) => {
        const track = s.trackOf(i), kind = s.kindOf(i),
              kernel = now == null ? null : s.kernelsOf(i).find((k) => k.from <= now && now < k.to);
        return [
            dl.make("b", {}, s.nameOf(i)),
            ` · ${spelt[kind] || kind} · stage ${track.stage}` + (s.replicas > 1 ? `, replica ${track.replica}` : "") +
                ` · ${said(s.to[i] - s.from[i])}, from ${said(s.from[i] - view.zero)} to ${said(s.to[i] - view.zero)}`,
            ...(kernel ? [dl.make("br"), `${kernel.name}: ${said(kernel.to - kernel.from)}, ${kernel.cause}`] : [])
        ];
    };

    const makeSearch = (s, view, tell) => {
        const input = dl.make(
            "input", {type: "search", placeholder: "F m3, wait, allreduce …", "aria-label": "Search slices by name"});
        const result = dl.make("span", {"aria-live": "polite"});
        let found = [], at = -1;
        const find = () => {
            const wanted = input.value.trim().toLowerCase();
            view.matches = wanted ? s.names.map((n) => n.toLowerCase().includes(wanted)) : null;
            found = wanted ?
                d3.range(s.n).filter((i) => view.matches[s.name[i]]).sort((a, b) => s.from[a] - s.from[b] || a - b) :
                [];
            at = -1;
            result.replaceChildren(!wanted ? "" : found.length ? dl.count(found.length) + " found" : "nothing found");
            view.look(view.from, view.to);
        };
        const next = (step) => {
            if (!found.length) return;
            at = (at + step + found.length) % found.length;
            const i = found[at], middle = (s.from[i] + s.to[i]) / 2,
                  span = Math.min(view.to - view.from, Math.max(8 * (s.to[i] - s.from[i]), 1000));
            tell(i);
            view.look(middle - span / 2, middle + span / 2);
            result.replaceChildren(`${dl.count(at + 1)} of ${dl.count(found.length)}`);
        };
        input.addEventListener("input", find);
        input.addEventListener("keydown", (e) => {
            if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
            if (e.key === "Escape") {
                input.value = "";
                find();
                input.blur();
            }
        });
        return {input, result};
    };

    const listenToKeys = (view, search) => document.addEventListener("keydown", (e) => {
        if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
        const act = {
            ArrowLeft: () => view.pan(-0.2),
            ArrowRight: () => view.pan(0.2),
            "+": () => view.zoom(0.6),
            "=": () => view.zoom(0.6),
            "-": () => view.zoom(1 / 0.6),
            0: view.whole,
            "/": () => search.focus()
        }[e.key];
        if (!act) return;
        e.preventDefault();
        act();
    });
    /* The wheel scrolls the page until the timeline has been clicked. */
    const listenToPointer = (view, lanes, canvas, tell) => {
        let held = null;
        const release = () => {
            held = null;
        };
        canvas.addEventListener("wheel", (e) => {
            const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
            if (!sideways && !e.ctrlKey && document.activeElement !== canvas) return;
            e.preventDefault();
            if (sideways)
                view.pan(e.deltaX / lanes.width);
            else
                view.zoom(Math.exp(e.deltaY * 0.002), lanes.moment(e.offsetX));
        }, {passive: false});
        canvas.addEventListener("pointerdown", (e) => {
            held = {px: e.offsetX, from: view.from, to: view.to};
            canvas.setPointerCapture(e.pointerId);
        });
        canvas.addEventListener("pointerup", release);
        canvas.addEventListener("pointercancel", release);
        canvas.addEventListener("dblclick", (e) => view.zoom(0.4, lanes.moment(e.offsetX)));
        canvas.addEventListener("pointermove", (e) => {
            const moved = held && ((held.px - e.offsetX) / lanes.width) * (held.to - held.from);
            if (held) return view.look(held.from + moved, held.to + moved);
            tell(lanes.sliceAt(e.offsetX, e.offsetY), lanes.moment(e.offsetX));
            view.look(view.from, view.to);
        });
    };

    const button = (text, label, act) =>
        dl.make("button", {type: "button", "aria-label": label, title: label, onclick: () => act()}, text);
    const keysOf = (...pairs) => dl.make(
        "span", {class: "keys"}, ...pairs.flatMap(([key, what]) => [dl.make("kbd", {}, key), " " + what + " "]));
    const build = (t, s) => (plot, tools) => {
        const canvas = dl.make("canvas", {
            tabindex: "0",
            role: "application",
            "aria-label": `Timeline of ${s.tracks.length} tracks with ${
                dl.count(s.n)} slices. Arrow keys pan, plus and minus zoom, slash searches, 0 shows the whole step.`
        });
        const detail = dl.make("p", {class: "detail", "aria-live": "polite"});
        let asked = 0, lanes;
        const draw = () => {
            asked = 0;
            lanes.draw();
        };
        const view = makeView(t, s, () => {
            asked = asked || requestAnimationFrame(draw);
        });
        const tell = (i, now) => {
            view.chosen = i;
            detail.replaceChildren(
                ...(i < 0 ? ["Point at a slice, or search and press Enter, to read what it is."] :
                            describe(s, view, i, now)));
        };
        const search = makeSearch(s, view, tell);
        tools.append(
            button("−", "Zoom out (-)", () => view.zoom(1 / 0.6)), button("+", "Zoom in (+)", () => view.zoom(0.6)),
            button("◀", "Earlier (left arrow)", () => view.pan(-0.2)),
            button("▶", "Later (right arrow)", () => view.pan(0.2)), button("Whole step", "Whole step (0)", view.whole),
            dl.make("label", {class: "wide"}, search.input, search.result), dl.make("span", {class: "grow"}),
            keysOf(["←", ""], ["→", "pan"], ["+", ""], ["−", "zoom"], ["/", "search"], ["0", "all"]));
        const kinds = t.kinds.filter((_, k) => s.kind.includes(k));
        plot.append(dl.legend(kinds.map((k) => [spelt[k] || k, dl.sliceColours[k]])), canvas, detail);
        lanes = dl.lanes(s, canvas, view);
        const fit = () => {
            lanes.fit();
            lanes.draw();
        };
        tell(-1);
        fit();
        listenToKeys(view, search.input);
        listenToPointer(view, lanes, canvas, tell);
        new ResizeObserver(fit).observe(plot);
        dl.timeline = {view, lanes, n: s.n};
    };

    const table = (s) => () => {
        const by =
            d3.rollups(
                  d3.range(s.n), (v) => ({n: v.length, ns: d3.sum(v, (i) => s.to[i] - s.from[i])}), (i) => s.nameOf(i))
                .sort((a, b) => b[1].ns - a[1].ns);
        return dl.table(
            ["slice", dl.right("how often"), dl.right("seconds in all")],
            by.slice(0, 200).map(([name, v]) => [name, dl.right(dl.count(v.n)), dl.right(dl.number(v.ns / 1e9))]));
    };

    dl.views.timeline = (data) => {
        const t = data.timeline, s = dl.readSlices(t), seconds = {work: 0, wait: 0};
        for (const track of s.tracks.filter((k) => k.stream === "compute"))
            for (let i = s.first[track.i]; i < s.first[track.i + 1]; i++)
                seconds[s.kindOf(i) === "wait" ? "wait" : "work"] += s.to[i] - s.from[i];
        const share = seconds.work / (seconds.work + seconds.wait || 1);
        const stages = new Set(s.tracks.map((k) => k.stage)).size;
        const left_out = [
            t.replicas_left_out ? `; ${dl.count(t.replicas_left_out)} more replicas are left out` : "",
            t.slices_left_out ? `; the last ${dl.count(t.slices_left_out)} slices are left out` : ""
        ].join("");
        dl.figure({
            id: "timeline",
            short: "Timeline",
            build: build(t, s),
            table: table(s),
            title: (stages > 1 ? `The ${stages} stages work` : "The devices work") +
                (share > 0.995 ? " all the time" : ` ${dl.percent(share, 0)} of the time and wait for the rest`),
            what:
                "Each stage has a lane for its work and waiting, and below it thin ones for what it sends to other stages and for collectives over its replicas. F, B and W are forward, backward and weight gradient; m is the micro-batch, c the chunk of the model.",
            caption: `${dl.count(s.n)} slices of simulated time${
                left_out}. Drag to pan. Once clicked, the wheel zooms; a wide slice shows its kernels.`
        });
    };
})();
