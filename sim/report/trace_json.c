/* trace_json.c - the trace event format: {"traceEvents": [...]}, one object a slice ("ph": "X"), counter value ("C") or
 * name ("M").
 *
 * Perfetto counts in whole nanoseconds; dates are rounded to them before they are subtracted, so that slices that touch
 * still touch, and slices inside of others stay there. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/program/segments.h"
#include "sim/report/trace.h"

struct text {
    char *bytes;
    size_t n, capacity;
};

/* ---- text ---- */

static void make_room(struct text *t, size_t more)
{
    if (t->n + more <= t->capacity) return;
    t->capacity = 2 * t->capacity + more;
    t->bytes = dl_realloc(t->bytes, t->capacity);
}

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    make_room(t, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(t->bytes + t->n, (size_t)length + 1, format, args);
    va_end(args);
    t->n += (size_t)length;
}

/* As a JSON string with its quotes. */
static void add_quoted(struct text *t, const char *text)
{
    make_room(t, 6 * strlen(text) + 3); /* \u00xx is the longest that one byte can become */
    t->bytes[t->n++] = '"';
    for (; *text; text++) {
        if ((unsigned char)*text < ' ') {
            t->n += (size_t)snprintf(t->bytes + t->n, 7, "\\u%04x", *text);
            continue;
        }
        if (*text == '"' || *text == '\\') t->bytes[t->n++] = '\\';
        t->bytes[t->n++] = *text;
    }
    t->bytes[t->n++] = '"';
}

static int64_t nanoseconds(double date_s) { return (int64_t)llround(date_s * 1e9); }

static void add_microseconds(struct text *out, const char *key, int64_t ns)
{
    add(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void begin_event(struct text *out, const char *phase, uint32_t process, uint32_t track)
{
    add(out, "%s{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", out->n && out->bytes[out->n - 1] == '}' ? ",\n" : "", phase,
        process, track);
}

/* ---- slices ---- */

/* From 1 on, as tracks are: 0 means something else to Perfetto. */
static uint32_t process_of(const struct dl_timeline *t, const struct dl_slice *s)
{
    return s->stage * t->n_replicas + s->replica + 1;
}

static uint32_t process_of_network(const struct dl_timeline *t) { return dl_timeline_stages(t) * t->n_replicas + 1; }

static void add_dates(struct text *out, double from_s, double to_s)
{
    const int64_t from = nanoseconds(from_s), to = nanoseconds(to_s);
    add_microseconds(out, "ts", from);
    add_microseconds(out, "dur", to - from);
}

/* The seconds of each cause, as they are booked. */
static void add_causes(struct text *out, const struct dl_slice *s)
{
    const double share = dl_slice_whole_s(s) > 0 ? (s->to_s - s->from_s) / dl_slice_whole_s(s) : 0;
    const char *comma = "";
    for (int cause = 0; cause < DL_N_CAUSES; cause++) {
        const double more_s = cause == DL_CAUSE_HOST           ? s->host_s
                              : cause == DL_CAUSE_INTERFERENCE ? s->interference_s
                                                               : 0;
        const double seconds = share * (dl_segment_slowed_s(&s->part->segment, (enum dl_cause)cause, s->pace) + more_s);
        if (seconds <= 0) continue;
        add(out, "%s\"%s_s\":%.9g", comma, dl_cause_name((enum dl_cause)cause), seconds);
        comma = ",";
    }
}

static void add_arguments(struct text *out, const struct dl_timeline *t, const struct dl_slice *s)
{
    char item[DL_SLICE_NAME];
    add(out, ",\"args\":{");
    if (s->kind == DL_SLICE_WORK) add_causes(out, s);
    if (s->kind == DL_SLICE_WAIT) {
        add(out, "\"before\":\"%s\",\"%s_s\":%.9g", dl_item_name(s->item, item), dl_cause_name(s->cause),
            s->to_s - s->from_s);
    }
    if (s->kind == DL_SLICE_EXCHANGE)
        add(out, "\"cause\":\"%s\",\"bytes\":%.9g", dl_cause_name(s->cause), t->request.step.calls[s->call].bytes);
    add(out, "}}");
}

static void tell_slice(struct text *out, const struct dl_timeline *t, const struct dl_slice *s, uint32_t track)
{
    char name[DL_SLICE_NAME];
    static const char *const categories[] = {"work", "wait", "send", "exchange"};
    begin_event(out, "X", process_of(t, s), track);
    add(out, ",\"name\":\"%s\",\"cat\":\"%s\"", dl_slice_name(t, s, name), categories[s->kind]);
    add_dates(out, s->from_s, s->to_s);
    add_arguments(out, t, s);
}

/* ---- instructions ---- */

static bool has_instructions(const struct dl_slice *s)
{
    return s->kind == DL_SLICE_WORK && !dl_template_is_single(s->running); /* a single one would say the same again */
}

static uint64_t count_of(const struct dl_slice *s)
{
    uint64_t n = 0;
    struct dl_priced_work work;
    for (size_t i = s->part->first; i < s->part->end; i++) {
        dl_priced_work(s->running, dl_template_at(s->running, i), s->running->calls, &work);
        n += work.n;
    }
    return n;
}

static uint64_t count_instructions(const struct dl_timeline *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n_slices; i++) {
        if (!has_instructions(&t->slices[i])) continue;
        n += count_of(&t->slices[i]);
    }
    return n;
}

/* Host and device side by side, as dl_template_fuse has it; interference is spread over all of the part. */
static void tell_instructions(struct text *out, const struct dl_timeline *t, const struct dl_slice *s, uint32_t track)
{
    const double planned_s = dl_slice_whole_s(s) - s->interference_s,
                 stretch = planned_s > 0 ? dl_slice_whole_s(s) / planned_s : 1;
    double launched_s = s->host_from_s - s->from_s, at_s = 0;
    struct dl_priced_work work;
    for (size_t i = s->part->first; i < s->part->end; i++) {
        dl_priced_work(s->running, dl_template_at(s->running, i), s->running->calls, &work);
        for (size_t k = 0; k < work.n; k++) {
            const struct dl_instruction *const now = &work.items[k];
            launched_s += now->host_s * s->pace;
            const double from_s = fmax(at_s, launched_s);
            at_s = from_s + now->device_s * (work.is_network && k == 0 ? 1 : s->pace);
            begin_event(out, "X", process_of(t, s), track);
            add(out, ",\"name\":");
            add_quoted(out, now->name);
            add(out, ",\"cat\":\"%s\"", dl_cause_name(now->cause));
            add_dates(out, fmin(s->from_s + from_s * stretch, s->to_s), fmin(s->from_s + at_s * stretch, s->to_s));
            add(out, "}");
        }
    }
}

/* ---- names and counters ---- */

static void tell_name(struct text *out, const char *what, uint32_t process, uint32_t track, const char *name)
{
    begin_event(out, "M", process, track);
    add(out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    add_quoted(out, name);
    add(out, "}}");
}

static void tell_names(struct text *out, const struct dl_timeline *t, size_t index)
{
    static const char *const tracks[] = {"compute", "compute", "sends", "exchanges"};
    const struct dl_slice *const s = &t->slices[index];
    const uint32_t process = process_of(t, s), track = t->track[index];
    char name[60];
    snprintf(name, sizeof name, t->n_replicas > 1 ? "stage %u, replica %u" : "stage %u", s->stage, s->replica);
    if (!index || process_of(t, s - 1) != process) tell_name(out, "process_name", process, track, name);
    tell_name(out, "thread_name", process, track, tracks[s->kind]);
}

/* Each track is named where it first comes. */
static bool opens_track(const struct dl_timeline *t, size_t index, uint32_t *n_named)
{
    const bool new_process = !index || process_of(t, &t->slices[index - 1]) != process_of(t, &t->slices[index]);
    if (new_process) *n_named = 0;
    if (!new_process && t->track[index] < *n_named) return false;
    *n_named = t->track[index] + 1;
    return true;
}

static void tell_counter(struct text *out, const struct dl_timeline *t, const struct dl_counter *c)
{
    for (size_t bin = 0; bin < DL_TAP_BINS; bin++) {
        if (bin && c->bytes[bin] == c->bytes[bin - 1]) continue;
        begin_event(out, "C", process_of_network(t), 1);
        add(out, ",\"name\":");
        add_quoted(out, c->name);
        add_microseconds(out, "ts", nanoseconds((double)bin * t->bin_s));
        add(out, ",\"args\":{\"bytes_per_s\":%.9g}}", c->bytes[bin] / t->bin_s);
    }
}

static void tell(const struct dl_timeline *t, bool with_instructions, struct text *out)
{
    uint32_t n_named = 0;
    add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    if (t->n_counters) tell_name(out, "process_name", process_of_network(t), 1, "busiest links");
    for (size_t i = 0; i < t->n_slices; i++) {
        if (opens_track(t, i, &n_named)) tell_names(out, t, i);
        tell_slice(out, t, &t->slices[i], t->track[i]);
        if (with_instructions && has_instructions(&t->slices[i])) tell_instructions(out, t, &t->slices[i], t->track[i]);
    }
    for (size_t i = 0; i < t->n_counters; i++) tell_counter(out, t, &t->counters[i]);
    add(out, "\n]}\n");
}

enum dl_status dl_trace_write(const struct dl_timeline *t, const char *path, uint64_t *left_out, struct dl_error *err)
{
    const uint64_t n_instructions = count_instructions(t);
    const bool all_fit = t->n_slices + n_instructions <= t->request.most_slices;
    struct text text = {0};
    tell(t, all_fit, &text);
    *left_out = all_fit ? 0 : n_instructions;
    dl_write_json_text(path, text.bytes, text.n, err);
    dl_free(text.bytes);
    return err->status;
}
