/* page_timeline.c - the slices of a timeline as columns of numbers, each a text with spaces between them: a tenth of
 * what an object a slice would take. Times are in nanoseconds from the beginning of the timeline; those of slices are
 * whole, so that slices that touch still touch. */
#define _GNU_SOURCE /* open_memstream */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/draw/run_page.h"
#include "sim/program/segments.h"

/* Texts that come again and again, each with its number. */
struct names {
    json_t *number, *list;
};

static struct names names_new(void) { return (struct names){json_object(), json_array()}; }

static json_int_t number_of(struct names *n, const char *name)
{
    const json_t *const known = json_object_get(n->number, name);
    if (known) return json_integer_value(known);
    const json_int_t next = (json_int_t)json_array_size(n->list);
    json_object_set_new(n->number, name, json_integer(next));
    json_array_append_new(n->list, json_string(name));
    return next;
}

/* The list, for the page. */
static json_t *names_end(struct names *n)
{
    json_decref(n->number);
    return n->list;
}

struct columns {
    const struct dl_timeline *t;
    struct names names, kernels;
    const struct dl_part **parts; /* whose kernels are told: once for each, however often it runs */
    size_t n_parts, parts_capacity;
    json_t *kernels_of_parts;
};

/* ---- kernels ---- */

static json_t *kernels_json(struct columns *c, const struct dl_template *running, const struct dl_part *part)
{
    json_t *const list = json_array();
    struct dl_priced_work work;
    for (size_t i = part->first; i < part->end; i++) {
        dl_priced_work(running, dl_template_at(running, i), running->calls, &work);
        for (size_t k = 0; k < work.n; k++) {
            const struct dl_instruction *const now = &work.items[k];
            json_array_append_new(list, dl_json_pack("[I, I, f, f, i]", number_of(&c->kernels, now->name),
                                                     (json_int_t)now->cause, 1e9 * now->host_s, 1e9 * now->device_s,
                                                     work.is_network && k == 0));
        }
    }
    return list;
}

/* -1: it has no kernels, or only one, which would say the same again. The latest parts are those of this stage. */
static int64_t part_of(struct columns *c, const struct dl_slice *s)
{
    if (s->kind != DL_SLICE_WORK || dl_template_is_single(s->running)) return -1;
    const struct dl_part *const part = s->part;
    for (size_t i = c->n_parts; i-- > 0;)
        if (c->parts[i] == part) return (int64_t)i;
    DL_GROW(c->parts, c->n_parts, c->parts_capacity);
    c->parts[c->n_parts] = part;
    json_array_append_new(c->kernels_of_parts, kernels_json(c, s->running, part));
    return (int64_t)c->n_parts++;
}

/* ---- columns ---- */

static int64_t nanoseconds(double date_s) { return (int64_t)llround(1e9 * date_s); }

static double stage(struct columns *c, size_t i) { return c->t->slices[i].stage; }
static double replica(struct columns *c, size_t i) { return c->t->slices[i].replica; }
static double track(struct columns *c, size_t i) { return c->t->track[i]; }
static double from(struct columns *c, size_t i) { return (double)nanoseconds(c->t->slices[i].from_s); }
static double length(struct columns *c, size_t i)
{
    return (double)(nanoseconds(c->t->slices[i].to_s) - nanoseconds(c->t->slices[i].from_s));
}

static double name(struct columns *c, size_t i)
{
    char text[DL_SLICE_NAME];
    return (double)number_of(&c->names, dl_slice_name(c->t, &c->t->slices[i], text));
}

static const char *const kinds[] = {"forward", "backward", "weight gradient", "end of step",
                                    "wait",    "send",     "collective",      NULL};

static double kind(struct columns *c, size_t i)
{
    static const int of_item[] = {[DL_ITEM_F] = 0, [DL_ITEM_B] = 1, [DL_ITEM_W] = 2};
    static const int of_slice[] = {
        [DL_SLICE_WORK] = 3, [DL_SLICE_WAIT] = 4, [DL_SLICE_SEND] = 5, [DL_SLICE_EXCHANGE] = 6};
    const struct dl_slice *const s = &c->t->slices[i];
    return s->kind == DL_SLICE_WORK && s->item ? of_item[s->item->kind] : of_slice[s->kind];
}

static double part(struct columns *c, size_t i) { return (double)part_of(c, &c->t->slices[i]); }
static double pace(struct columns *c, size_t i)
{
    return c->t->slices[i].kind == DL_SLICE_WORK ? c->t->slices[i].pace : 0;
}
/* How much later than the device the host began. */
static double lead(struct columns *c, size_t i)
{
    const struct dl_slice *const s = &c->t->slices[i];
    return s->kind == DL_SLICE_WORK ? 1e9 * (s->host_from_s - s->from_s) : 0;
}
/* By interference, which is spread over all of the part. */
static double stretch(struct columns *c, size_t i)
{
    const struct dl_slice *const s = &c->t->slices[i];
    const double whole_s = s->kind == DL_SLICE_WORK ? dl_slice_whole_s(s) : 0, planned_s = whole_s - s->interference_s;
    return planned_s > 0 ? whole_s / planned_s : 1;
}

static const struct column {
    const char *key;
    double (*value)(struct columns *c, size_t slice);
    int digits;
} all[] = {{"stage", stage, 10}, {"replica", replica, 10}, {"track", track, 10},   {"kind", kind, 10},
           {"from", from, 17},   {"length", length, 17},   {"name", name, 10},     {"part", part, 10},
           {"pace", pace, 7},    {"lead", lead, 9},        {"stretch", stretch, 7}};

static json_t *column_json(struct columns *c, const struct column *column)
{
    char *text = NULL;
    size_t bytes;
    FILE *const to = open_memstream(&text, &bytes);
    for (size_t i = 0; i < c->t->n_slices; i++)
        fprintf(to, "%s%.*g", i ? " " : "", column->digits, column->value(c, i));
    fclose(to);
    json_t *const json = json_stringn(text, bytes);
    free(text);
    return json;
}

static json_t *texts_json(const char *const *texts)
{
    json_t *const list = json_array();
    for (; *texts; texts++) json_array_append_new(list, json_string(*texts));
    return list;
}

static json_t *causes_json(void)
{
    json_t *const list = json_array();
    for (int i = 0; i < DL_N_CAUSES; i++) json_array_append_new(list, json_string(dl_cause_name((enum dl_cause)i)));
    return list;
}

json_t *dl_page_timeline(const struct dl_timeline *t, const struct dl_time_axis *step)
{
    struct columns c = {.t = t, .names = names_new(), .kernels = names_new(), .kernels_of_parts = json_array()};
    json_t *const json =
        dl_json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "step_from", (json_int_t)nanoseconds(step->from_s),
                     "step_to", (json_int_t)nanoseconds(step->to_s), "replicas", (json_int_t)t->n_replicas,
                     "replicas_left_out", (json_int_t)t->left_out.replicas, "slices_left_out",
                     (json_int_t)t->left_out.slices, "kinds", texts_json(kinds), "causes", causes_json());
    for (size_t i = 0; i < DL_COUNT(all); i++) json_object_set_new(json, all[i].key, column_json(&c, &all[i]));
    json_object_set_new(json, "names", names_end(&c.names));
    json_object_set_new(json, "kernels", names_end(&c.kernels));
    json_object_set_new(json, "parts", c.kernels_of_parts);
    dl_free(c.parts);
    return json;
}
