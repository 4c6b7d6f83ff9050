#include "sim/cost/measured_points.h"

#include <math.h>
#include <string.h>

/* The field of the kernel that the column names. */
static double column_of(const struct dl_kernel *k, enum dl_column column)
{
    switch (column) {
    case DL_BATCH: return k->batch;
    case DL_M: return k->m;
    case DL_N: return k->n;
    case DL_K: return k->k;
    case DL_ELEMENTS: return k->elements;
    case DL_CAUSAL: return k->causal;
    case DL_KV_SHARE: return k->kv_share;
    case DL_ACCUMULATES: return k->accumulates;
    case DL_WINDOW: return k->window;
    case DL_STRIDE: return k->stride;
    case DL_DROPS: return k->drops;
    case DL_N_COLUMNS: break;
    }
    return NAN;
}

/* The largest power of two that divides it, to what matters to memories and caches, as a logarithm to base 2. */
static double grain(double bytes, double largest)
{
    double power = 1, log2_power = 0;
    for (; power < largest && fmod(bytes, 2 * power) == 0; power *= 2) log2_power++;
    return log2_power;
}

/* Attention says its pass in `backward`. */
static enum dl_kernel_pass pass_of(const struct dl_kernel *k)
{
    return k->backward && k->pass == DL_PASS_FORWARD ? DL_PASS_INPUT_GRADIENT : k->pass;
}

/* How many windows of a convolution an element of its input is in, on average: 1 where they lie side by side. */
static double overlap(const struct dl_kernel *k)
{
    return k->window > 0 && k->stride > 0 ? k->window * k->window / (k->stride * k->stride) : 1;
}

struct dl_point dl_point_at(const struct dl_measured_points *of, const struct dl_kernel *k, enum dl_precision precision)
{
    const bool is_product = k->kind != DL_KERNEL_MEMORY, reads_across = k->pass == DL_PASS_WEIGHT_GRADIENT;
    const double bytes = dl_precision_value_bytes(precision), largest = of->by->grain_bytes;
    return (struct dl_point){
        .at = {log(is_product ? k->batch * k->m : dl_kernel_bytes(k, precision)), log(k->n), is_product ? log(k->k) : 0,
               log(overlap(k))},
        .grain = {grain(k->n * bytes, largest), grain((reads_across ? k->m : k->k) * bytes, largest),
                  grain((reads_across ? k->k : k->m) * bytes, largest)},
        .kind.pass = (unsigned char)(is_product ? pass_of(k) : DL_PASS_FORWARD), /* a curve has its own */
        .kind.alignment =
            (unsigned char)(k->kind == DL_KERNEL_ATTENTION ? DL_ALIGNED : dl_kernel_alignment(k, precision)),
        .kind.is_causal = k->causal,
        .kind.drops = k->kind == DL_KERNEL_ATTENTION && k->drops,
        .kind.is_grouped = dl_kernel_is_of_experts(k)};
}

const char *dl_device_libraries(const struct dl_device *d) { return d->measured ? d->measured->libraries : ""; }

/* At a point's place and of its kind. */
static bool was_timed(const struct dl_measured_points *of, size_t i, const struct dl_kernel *k)
{
    const struct dl_timed *const t = &of->timed[i];
    for (int c = 0; c < DL_N_COLUMNS; c++)
        if (t->known >> c & 1 && t->column[c] != column_of(k, (enum dl_column)c)) return false;
    return true;
}

static double squared(double x) { return x * x; }

/* Between kernels of different kinds; most points are of the same, which is found out first. */
static double kinds_apart2(const struct dl_interpolation *by, const struct dl_point *a, const struct dl_point *b)
{
    if (memcmp(&a->kind, &b->kind, sizeof a->kind) == 0) return 0;
    const double of_kind2 = squared(by->other_kind_distance);
    return (a->kind.pass == b->kind.pass ? 0 : squared(by->other_pass_distance)) +
           (a->kind.alignment == b->kind.alignment ? 0 : squared(by->other_alignment_distance)) +
           (a->kind.is_causal == b->kind.is_causal ? 0 : of_kind2) + (a->kind.drops == b->kind.drops ? 0 : of_kind2) +
           (a->kind.is_grouped == b->kind.is_grouped ? 0 : of_kind2);
}

static double sizes_apart2(const struct dl_interpolation *by, const struct dl_point *a, const struct dl_point *b)
{
    return squared(a->at[0] - b->at[0]) + squared(a->at[1] - b->at[1]) + squared(a->at[2] - b->at[2]) +
           squared(a->at[3] - b->at[3]) + kinds_apart2(by, a, b);
}

static double grains_apart2(const struct dl_point *a, const struct dl_point *b)
{
    return squared(a->grain[0] - b->grain[0]) + squared(a->grain[1] - b->grain[1]) + squared(a->grain[2] - b->grain[2]);
}

double dl_points_apart2(const struct dl_measured_points *of, const struct dl_point *a, const struct dl_point *b)
{
    return sizes_apart2(of->by, a, b) + squared(of->by->grain_distance) * grains_apart2(a, b);
}

/* Among the nearest so far, in their order; of two that are as near, the first stays before. */
static void add_neighbour(struct dl_neighbours *near, size_t most, size_t which, double d2)
{
    if (near->n == most && d2 >= near->d2[near->n - 1]) return;
    size_t at = near->n < most ? near->n++ : near->n - 1;
    for (; at > 0 && near->d2[at - 1] > d2; at--) {
        near->d2[at] = near->d2[at - 1];
        near->which[at] = near->which[at - 1];
    }
    near->d2[at] = d2;
    near->which[at] = which;
}

struct dl_advice dl_points_ask(const struct dl_measured_points *of, const struct dl_kernel *k,
                               enum dl_precision precision)
{
    const size_t n_asked = (size_t)of->by->neighbours;
    struct dl_point place = dl_point_at(of, k, precision);
    while (place.kind.alignment > DL_ALIGNED && !of->has[place.kind.alignment]) place.kind.alignment--;
    if (!of->has_windows) place.at[3] = 0;
    struct dl_neighbours near = {0};
    double nearest2 = INFINITY, timed_s = 0, n_timed = 0;
    for (size_t i = 0; i < of->n; i++) {
        const double sizes2 = sizes_apart2(of->by, &place, &of->points[i]);
        if (sizes2 == 0 && was_timed(of, i, k)) timed_s += of->timed[i].seconds, n_timed++;
        nearest2 = sizes2 < nearest2 ? sizes2 : nearest2;
        add_neighbour(&near, n_asked, i,
                      sizes2 + squared(of->by->grain_distance) * grains_apart2(&place, &of->points[i]));
    }
    if (n_timed > 0) return (struct dl_advice){.timed_s = timed_s / n_timed};
    return (struct dl_advice){.log_ratio = dl_points_log_ratio(of, &place, &near), .nearest2 = nearest2};
}

/* fp16 and bf16 are the same to a device that computes as fast in both. */
static bool alike(const struct dl_device *d, enum dl_precision a, enum dl_precision b)
{
    return dl_precision_bytes(a) == dl_precision_bytes(b) &&
           dl_precision_operand_bytes(a) == dl_precision_operand_bytes(b) &&
           d->peak_flop_per_s[a] == d->peak_flop_per_s[b];
}

int dl_points_index(const struct dl_kernel *k, enum dl_precision precision)
{
    if (dl_kernel_is_without_product(k, precision)) return dl_without_product;
    return k->kind == DL_KERNEL_CONV && dl_kernel_is_regrouped(k) ? dl_regrouped : (int)k->kind;
}

/* In the precision itself if anything was timed in it, else in one that is alike; NULL: none. */
static const struct dl_measured_points *timed_points(const struct dl_device *d, int product,
                                                     enum dl_precision precision)
{
    const struct dl_measured_points *const points = d->measured->points[product];
    if (points[precision].n) return &points[precision];
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (points[p].n && alike(dl_measured_on(d), precision, (enum dl_precision)p)) return &points[p];
    return NULL;
}

/* NULL: none says anything of it. Regrouped convolutions are still products, as others of their kind. */
static const struct dl_measured_points *points_for(const struct dl_device *d, const struct dl_kernel *k,
                                                   enum dl_precision precision)
{
    const int index = dl_points_index(k, precision);
    const struct dl_measured_points *const own = timed_points(d, index, precision);
    return own || index != dl_regrouped ? own : timed_points(d, (int)k->kind, precision);
}

/* On the device that was timed. */
static struct dl_price product_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                     const struct dl_price *modelled)
{
    const struct dl_measured_points *const points = points_for(d, k, precision);
    if (!points) return *modelled;
    const struct dl_advice advice = dl_points_ask(points, k, precision);
    if (advice.timed_s > 0) return (struct dl_price){advice.timed_s, modelled->flop, DL_GROUND_MEASURED};
    const double least_s = modelled->flop / dl_measured_on(d)->peak_flop_per_s[precision];
    return (struct dl_price){.seconds = fmax(modelled->seconds * exp(advice.log_ratio), least_s),
                             .flop = modelled->flop,
                             .ground = advice.nearest2 <= squared(dl_known_distance(d->measured->by))
                                           ? DL_GROUND_INTERPOLATED
                                           : DL_GROUND_MODELLED};
}

static struct dl_price timed_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                   const struct dl_price *modelled)
{
    if (k->kind == DL_KERNEL_MEMORY) return dl_curve_price(d, k, precision, modelled);
    if (k->by_whole_heads) return *modelled; /* what was timed goes by blocks */
    return product_price(d, k, precision, modelled);
}

/* Nobody has timed it there. */
static struct dl_price other_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                   const struct dl_price *modelled)
{
    if (!dl_device_supports(d->timed, precision)) return *modelled;
    const struct dl_price there = d->timed->model->price(d->timed, k, precision);
    struct dl_price price = timed_price(d, k, precision, &there);
    if (modelled->seconds == there.seconds) return price;
    price.seconds *= modelled->seconds / there.seconds;
    price.ground = DL_GROUND_MODELLED;
    return price;
}

struct dl_price dl_measured_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *modelled)
{
    return d->timed ? other_price(d, k, precision, modelled) : timed_price(d, k, precision, modelled);
}
