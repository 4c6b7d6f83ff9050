/* lanes.js - the picture of the timeline on a canvas: one lane for the work and waiting of a stage, thin ones for its
 * sends and collectives.
 *
 * A frame looks only at the slices in sight, and those narrower than a pixel are drawn together. */
(() => {
    /* As blocks.c has them. */
    const colours = {
        forward: "#56b4e9",
        backward: "#e69f00",
        "weight gradient": "#009e73",
        "end of step": "#cc79a7",
        wait: "#e4e5e7",
        send: "#c9b900",
        collective: "#d55e00"
    };
    const darkText = new Set(["forward", "backward", "end of step", "recompute"]);
    const ofKernels =
        {compute: "#0072b2", recompute: "#56b4e9", optimizer: "#cc79a7", host: "#5a5f66", interference: "#5a5f66"};
    const top = 26, foot = 14, room = 520;
    dl.sliceColours = colours;

    /* Where tracks stand: those of one stage and replica together, several of one stream share its lane. */
    const layOut = (s) => {
        const groups = d3.groups(s.tracks, (t) => t.stage + " " + t.replica),
              high = Math.max(7, Math.min(24, room / groups.length - 14));
        const lanes = {tracks: [], groups: []};
        let y = top;
        for (const [, tracks] of groups) {
            const group = {stage: tracks[0].stage, replica: tracks[0].replica, y};
            for (const stream of ["compute", "sends", "collectives"]) {
                const some = tracks.filter((t) => t.stream === stream),
                      height = stream === "compute" ? high : Math.max(4, Math.min(7, high / 3));
                some.forEach(
                    (t, i) => lanes.tracks.push(
                        {...t, y: y + (i * height) / some.length, height: Math.max(1, height / some.length)}));
                if (some.length) y += height + 2;
            }
            group.height = y - group.y;
            lanes.groups.push(group);
            y += high < 10 ? 2 : 6;
        }
        return {...lanes, bottom: y};
    };

    /* A colour as the bytes of a pixel, mixed with so much white. */
    const bytes = (colour, white = 0) => {
        const {r, g, b} = d3.rgb(d3.interpolateRgb(colour, "#fff")(white));
        return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
    };

    /* view: from, to, in nanoseconds; matches: by name, which are found, or null; chosen: a slice, or -1. */
    dl.lanes = (s, canvas, view) => {
        const context = canvas.getContext("2d"), sans = getComputedStyle(document.body).getPropertyValue("--sans"),
              lanes = layOut(s);
        const paints = Uint32Array.from(
            s.kinds.flatMap((k) => [bytes(colours[k]), bytes(colours[k], 0.84)])); /* 2 x kind + whether it is faint */
        const weight = new Float64Array(paints.length);
        let width = 0, left = 0, ratio = 1, image = null, pixels = null;
        const x = (moment) => left + ((moment - view.from) / (view.to - view.from)) * (width - left);
        const moment = (px) => view.from + ((px - left) / (width - left)) * (view.to - view.from);

        /* Bars are set pixel by pixel, which is ten times faster than drawing them one by one. */
        const fill = (a, b, y, height, paint) => {
            const from = Math.round(a * ratio), to = Math.max(Math.round(b * ratio), from + 1),
                  top0 = Math.round(y * ratio), end = Math.round((y + height) * ratio);
            for (let row = top0; row < end; row++) pixels.fill(paint, row * image.width + from, row * image.width + to);
        };
        const write = (text, x0, y, colour) => {
            context.fillStyle = colour;
            context.fillText(text, x0, y);
        };
        const writeInside = (text, a, b, y, colour) =>
            b - a > 22 && write(dl.cut(text, b - a - 8, context.font), a + 4, y + 0.5, colour);

        /* The dates, and lines through the lanes; what must be written is returned. */
        const layAxis = () => {
            const ticks = d3.scaleLinear()
                              .domain([view.from - view.zero, view.to - view.zero])
                              .ticks(Math.max(2, Math.floor((width - left) / 110)));
            const span = view.to - view.from,
                  [unit, name] = span >= 1e9 ? [1e9, "s"] :
                span >= 1e6                  ? [1e6, "ms"] :
                                               [1e3, "µs"];
            const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10((ticks[1] - ticks[0]) / unit) + 1e-9))),
                  labels = [["time, " + name, 0]];
            let free = dl.textWidth("time, " + name) + 8;
            for (const tick of ticks) {
                const at = x(tick + view.zero), text = (tick / unit).toFixed(digits), half = dl.textWidth(text) / 2;
                if (at < width - 1) fill(at, at + 1, top - 6, lanes.bottom - top + 4, bytes("#ebecee"));
                if (at - half < free || at + half > width) continue;
                labels.push([text, at - half]);
                free = at + half + 10;
            }
            return labels;
        };
        const drawNames = (labels) => {
            context.font = "12px " + sans;
            context.textBaseline = "alphabetic";
            for (const [text, at] of labels) write(text, at, 14, "#5a5f66");
            context.textBaseline = "middle";
            let free = 0;
            for (const group of lanes.groups) {
                const y = group.y + group.height / 2;
                if (y - 7 < free) continue;
                write(
                    (left < 60 ? "" : "stage ") + group.stage + (s.replicas > 1 ? "." + group.replica : ""), 0, y,
                    "#1c1c1c");
                free = y + 8;
            }
        };

        /* Of slices narrower than a pixel the kind that has most of it; pixels of one kind are filled together. */
        const crumbs = (lane) => {
            let pixel = -1, from = 0, to = 0, key = -1;
            const paint = () => {
                if (key >= 0) fill(from, to, lane.y, lane.height, paints[key]);
                key = -1;
            };
            const close = () => {
                if (pixel < 0) return;
                let most = -1;
                for (let k = 0; k < weight.length; k++)
                    if (weight[k] > 0 && (most < 0 || weight[k] > weight[most])) most = k;
                if (most !== key || pixel > to) {
                    paint();
                    from = pixel;
                    key = most;
                }
                to = pixel + 1;
                weight.fill(0);
                pixel = -1;
            };
            return {
                add(a, b, k) {
                    const at = Math.floor(a);
                    if (at !== pixel) {
                        close();
                        pixel = at;
                    }
                    weight[k] += (b - a + 1e-6) * (k & 1 ? 1 : 1e6); /* what is found comes before what is not */
                },
                end() {
                    close();
                    paint();
                },
            };
        };
        /* Returns the slices that have room for their names. */
        const layLane = (lane) => {
            const scale = (width - left) / (view.to - view.from), zero = left - view.from * scale,
                  end = s.first[lane.i + 1], small = crumbs(lane), wide = [];
            for (let i = s.firstAfter(lane.i, view.from); i < end && s.from[i] < view.to; i++) {
                const a = Math.max(s.from[i] * scale + zero, left), b = Math.min(s.to[i] * scale + zero, width);
                const k = 2 * s.kind[i] + (view.matches !== null && !view.matches[s.name[i]]);
                if (b - a < 1.5) {
                    small.add(a, b, k);
                } else {
                    small.end();
                    fill(a, b - (b - a > 4 ? 1 : 0), lane.y, lane.height, paints[k]);
                }
                if (b - a > 22 || i === view.chosen) wide.push([i, a, b, k & 1]);
            }
            small.end();
            return wide;
        };
        const drawKernels = (lane, i) => {
            for (const k of s.kernelsOf(i)) {
                const a = Math.max(x(k.from), left), b = Math.min(x(k.to), width), y = lane.y + lane.height / 2;
                if (b - a < 0.3) continue;
                context.fillStyle = ofKernels[k.cause] || "#d55e00";
                context.fillRect(a, y, Math.max(b - a - (b - a > 4 ? 0.8 : 0), 0.6), lane.height / 2);
                if (lane.height > 18)
                    writeInside(k.name, a, b, y + lane.height / 4, darkText.has(k.cause) ? "#1c1c1c" : "#fff");
            }
        };
        const drawInside = (lane, [i, a, b, faint]) => {
            const kind = s.kindOf(i), hasKernels = b - a > 120 && s.part[i] >= 0 && !faint;
            if (hasKernels) drawKernels(lane, i);
            if (lane.height >= 14 && kind !== "wait" && !faint)
                writeInside(
                    s.nameOf(i), a, b, lane.y + lane.height * (hasKernels ? 0.25 : 0.5),
                    darkText.has(kind) ? "#1c1c1c" : "#fff");
            if (i !== view.chosen) return;
            context.strokeStyle = "#1c1c1c";
            context.lineWidth = 1.5;
            context.strokeRect(a, lane.y - 0.5, Math.max(b - a - 1, 1), lane.height + 1);
        };
        const layWindow = () => {
            const share = (width - left) / (view.end - view.begin), from = left + (view.from - view.begin) * share;
            fill(left, width, lanes.bottom + 4, 4, bytes("#ebecee"));
            fill(
                from, Math.min(width, from + Math.max(3, (view.to - view.from) * share)), lanes.bottom + 4, 4,
                bytes("#8b9097"));
        };
        return {
            moment,
            get width() {
                return width - left;
            },
            draw() {
                if (!image) return; /* the page has no width yet */
                pixels.fill(0);
                const labels = layAxis(), wide = lanes.tracks.map(layLane);
                layWindow();
                context.putImageData(image, 0, 0);
                context.setTransform(ratio, 0, 0, ratio, 0, 0);
                drawNames(labels);
                context.font = "11px " + sans;
                lanes.tracks.forEach((lane, k) => wide[k].forEach((slice) => drawInside(lane, slice)));
            },
            /* To the width that it has now. */
            fit() {
                width = canvas.parentNode.clientWidth;
                ratio = window.devicePixelRatio || 1;
                left = width < 560 ? 30 : s.replicas > 1 ? 74 : 62;
                canvas.width = Math.round(width * ratio);
                canvas.height = Math.round((lanes.bottom + foot) * ratio);
                canvas.style.height = lanes.bottom + foot + "px";
                image = width ? context.createImageData(canvas.width, canvas.height) : null;
                pixels = image && new Uint32Array(image.data.buffer);
            },
            /* The slice at a place of the canvas, or -1. */
            sliceAt(px, py) {
                const lane = lanes.tracks.find((k) => py >= k.y - 1 && py <= k.y + k.height + 1);
                if (!lane || px < left) return -1;
                const now = moment(px), i = s.firstAfter(lane.i, now);
                return i < s.first[lane.i + 1] && s.from[i] <= now + (view.to - view.from) / (width - left) ? i : -1;
            },
        };
    };
})();
