/* convolution.c - convolutions as a product with the unrolled image (im2col), and maximum pooling. A row is one sample,
 * channel by channel. The last row of parameters, where there is one, is the bias. */
#include <float.h>
#include <string.h>

#include "validation/mpi/layers/gemm.h"
#include "validation/mpi/layers/units.h"

static size_t pixels(const struct dl_image *image) { return image->height * image->width; }

/* Calls for every element of the unrolled image that is not padding. */
struct walk {
    const struct dl_window *w;
    size_t row, col; /* of the unrolled image: channel and place in the window, output pixel */
    size_t at;       /* in the image */
};
typedef void (*visit_fn)(const struct walk *walk, dl_real *image, dl_real *unrolled);

static void walk_row(struct walk *k, size_t dy, size_t dx, size_t channel, visit_fn visit, dl_real *image,
                     dl_real *unrolled)
{
    const struct dl_window *const w = k->w;
    for (size_t i = 0; i < pixels(&w->out); i++) {
        const size_t y = i / w->out.width * w->stride + dy - w->pad, x = i % w->out.width * w->stride + dx - w->pad;
        if (y >= w->in.height || x >= w->in.width) continue; /* padding; below 0 is above everything */
        k->col = i;
        k->at = (channel * w->in.height + y) * w->in.width + x;
        visit(k, image, unrolled);
    }
}

static void walk_all(const struct dl_window *w, visit_fn visit, dl_real *image, dl_real *unrolled)
{
    struct walk k = {.w = w};
    for (size_t channel = 0; channel < w->in.channels; channel++)
        for (size_t dy = 0; dy < w->side; dy++)
            for (size_t dx = 0; dx < w->side; dx++, k.row++) walk_row(&k, dy, dx, channel, visit, image, unrolled);
}

static void copy_out(const struct walk *k, dl_real *image, dl_real *unrolled)
{
    unrolled[k->row * pixels(&k->w->out) + k->col] = image[k->at];
}

static void add_back(const struct walk *k, dl_real *image, dl_real *unrolled)
{
    image[k->at] += unrolled[k->row * pixels(&k->w->out) + k->col];
}

/* Of one sample; the row after the windows, if the unit has a bias, is of ones. */
static void unroll(const struct dl_unit *u, dl_real *image, dl_real *unrolled)
{
    const struct dl_window *const w = u->more;
    const size_t n = pixels(&w->out), rows = w->in.channels * w->side * w->side;
    memset(unrolled, 0, u->inputs * n * sizeof *unrolled);
    walk_all(w, copy_out, image, unrolled);
    for (size_t i = 0; i < n && rows < u->inputs; i++) unrolled[rows * n + i] = 1;
}

static dl_real *unrolled_new(const struct dl_unit *u)
{
    return dl_alloc(u->inputs * pixels(&((const struct dl_window *)u->more)->out) * sizeof(dl_real));
}

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_window *const w = u->more;
    const int n = (int)pixels(&w->out);
    const struct dl_rows y = dl_rows_new(x.n, u->outputs * (size_t)n);
    dl_real *const unrolled = unrolled_new(u);
    (void)t;
    for (size_t i = 0; i < x.n; i++) {
        unroll(u, x.at + i * x.width, unrolled);
        dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)u->outputs, n, (int)u->inputs, 1, u->values,
                (int)u->outputs, unrolled, n, 0, y.at + i * y.width, n);
    }
    dl_free(unrolled);
    memo->given = x;
    return y;
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const struct dl_window *const w = u->more;
    const int n = (int)pixels(&w->out);
    (void)t;
    memo->gradient = dy;
    if (u->is_first) return (struct dl_rows){0};
    const struct dl_rows dx = dl_rows_new(dy.n, memo->given.width);
    dl_real *const unrolled = unrolled_new(u);
    for (size_t i = 0; i < dy.n; i++) {
        dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)u->inputs, n, (int)u->outputs, 1, u->values,
                (int)u->outputs, dy.at + i * dy.width, n, 0, unrolled, n);
        walk_all(w, add_back, dx.at + i * dx.width, unrolled);
    }
    dl_free(unrolled);
    return dx;
}

static void weights(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_window *const w = u->more;
    const struct dl_rows x = memo->given, dy = memo->gradient;
    const int n = (int)pixels(&w->out);
    dl_real *const unrolled = unrolled_new(u);
    (void)t;
    for (size_t i = 0; i < x.n; i++) {
        unroll(u, x.at + i * x.width, unrolled);
        dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)u->inputs, (int)u->outputs, n, 1, unrolled, n,
                dy.at + i * dy.width, n, 1, u->gradients, (int)u->outputs);
    }
    dl_free(unrolled);
}

const struct dl_unit_kind dl_unit_conv = {"conv", forward, backward, weights};

/* ---- pooling ---- */

/* The place of the largest value of a window; padding is never the largest. */
static size_t largest(const struct dl_window *w, const dl_real *image, size_t channel, size_t pixel)
{
    dl_real most = -(dl_real)FLT_MAX;
    size_t found = 0;
    for (size_t i = 0; i < w->side * w->side; i++) {
        const size_t y = pixel / w->out.width * w->stride + i / w->side - w->pad;
        const size_t x = pixel % w->out.width * w->stride + i % w->side - w->pad;
        if (y >= w->in.height || x >= w->in.width) continue;
        const size_t at = (channel * w->in.height + y) * w->in.width + x;
        if (image[at] <= most) continue;
        most = image[at];
        found = at;
    }
    return found;
}

static struct dl_rows pool(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_window *const w = u->more;
    const size_t n = pixels(&w->out);
    const struct dl_rows y = dl_rows_new(x.n, w->out.channels * n);
    (void)t;
    memo->counts = dl_alloc(x.n * y.width * sizeof *memo->counts);
    for (size_t i = 0; i < x.n; i++)
        for (size_t j = 0; j < y.width; j++) {
            const size_t at = largest(w, x.at + i * x.width, j / n, j % n);
            memo->counts[i * y.width + j] = at;
            y.at[i * y.width + j] = x.at[i * x.width + at];
        }
    dl_rows_free(&x);
    return y;
}

static struct dl_rows unpool(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const struct dl_window *const w = u->more;
    const struct dl_rows dx = dl_rows_new(dy.n, w->in.channels * pixels(&w->in));
    (void)t;
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++)
            dx.at[i * dx.width + memo->counts[i * dy.width + j]] += dy.at[i * dy.width + j];
    dl_rows_free(&dy);
    return dx;
}

const struct dl_unit_kind dl_unit_max_pool = {"max_pool", pool, unpool, NULL};
