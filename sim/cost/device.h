/* device.h - what a kernel costs on a device: a pure function of (shape, device, precision), with where the price
 * comes from.
 *
 * A price is the time that the kernel keeps the device busy if it runs alone. The host time to launch it belongs to
 * the engine, and what other kernels of a step do to the clock belongs to power.h. To add a device model: one file
 * with a const struct dl_device_model, one line in the table of device_models.c. */
#ifndef DL_COST_DEVICE_H
#define DL_COST_DEVICE_H

#include "sim/program/program.h"
#include "workloads/workload.h"

enum dl_precision { DL_FP32, DL_TF32, DL_FP16, DL_BF16, DL_FP8, DL_MXFP8, DL_NVFP4, DL_N_PRECISIONS };
extern const char *const dl_precision_names[]; /* they end with NULL */
const char *dl_precision_name(enum dl_precision p);
double dl_precision_bytes(enum dl_precision p);         /* of an activation; training in fp8 keeps them in bf16 */
bool dl_precision_is_mixed(enum dl_precision p);        /* narrower than parameters, which stay in fp32 */
double dl_precision_operand_bytes(enum dl_precision p); /* of what goes into a matrix product, with its scales */
bool dl_precision_is_quantised(enum dl_precision p);    /* operands are narrower than what they are made of */
double dl_precision_value_bytes(enum dl_precision p);   /* the same without scales, which lie apart */

struct dl_device {
    const char *name;
    const struct dl_device_model *model;
    const void *options;                     /* the model's own figures, from the file */
    double peak_flop_per_s[DL_N_PRECISIONS]; /* dense; 0: not supported */
    double memory_bytes, memory_bytes_per_s;
    const struct dl_measured *measured;   /* NULL: nothing was timed on it */
    const struct dl_device *timed;        /* what was timed instead of it, see dl_device_read_other; NULL: itself */
    const char *convolutions_as;          /* name of a device whose timed convolutions stand for its own; NULL: none */
    const struct dl_device *convolutions; /* that device, see dl_device_take_convolutions; NULL: by its model */
    const struct dl_device *convolutions_modelled; /* the same without times, by the kernels that this one has */
    const char *same_chip_as;             /* name of a device of the same chip, with faster memory; NULL: none */
    const struct dl_device *chip;         /* that device, see dl_device_take_chip; NULL: not asked */
    const char *instructions_as;          /* name of a device of another chip; NULL: none */
    const struct dl_device *instructions; /* that device, see dl_device_take_instructions; NULL: not asked */
    const struct dl_power *power;         /* NULL: what it draws is not known */
    double launch_s;                      /* least time between the starts of two kernels on the device */
    struct dl_taken taken_by_exchanges;   /* from kernels, while a collective goes on */
    struct dl_taken taken_by_sends;       /* the same of a pipeline send */
    bool waits_for_collectives;           /* it executes no kernel during one, whatever the software */
    double older_kernels_fraction;        /* of the rate of its own kernels, by those for the generation before it */
    double gemm_workspace_bytes;          /* that libraries want for its products, kept by each caller; 0: not known */
};

struct dl_price {
    double seconds;
    double flop;
    enum dl_ground ground;
};

struct dl_device_model {
    const char *name, *doc;
    bool streams_weights;          /* they come from outside for each use, and gradients go there; prices have both */
    const struct dl_field *fields; /* its own keys in the device file, below "figures" */
    size_t n_fields, options_size;
    const void *defaults;
    const char *(*fault)(const void *options); /* OPTIONAL: what is wrong with its figures together; NULL: nothing */
    struct dl_price (*price)(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);
    double (*clocks_per_s)(const void *options); /* OPTIONAL: of all its units together; NULL: it has no such units */
    void (*take_kernels)(void *options, const void *of); /* OPTIONAL: libraries have for it what they have for `of` */
};
size_t dl_device_model_count(void);
const struct dl_device_model *dl_device_model_get(size_t index);

/* Schema dlsim/device/1. Tables that are in files of their own are put into the document. */
enum dl_status dl_device_read(struct dl_json doc, struct dl_arena *arena, struct dl_device *out, struct dl_error *err);

/* One that is like the device that was timed but for some of its figures, such as twice the peak: what a kernel takes
 * on it is what it takes on the other, times the ratio of their models. */
enum dl_status dl_device_read_other(struct dl_json doc, struct dl_json timed, struct dl_arena *arena,
                                    struct dl_device *out, struct dl_error *err);

/* From now on a convolution is as far from the model as it is on that device, which must have been timed. The document
 * is that of the device called convolutions_as; what is not needed of its tables is taken out of it. */
enum dl_status dl_device_take_convolutions(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                           struct dl_error *err);

/* From now on attention, and kernels that only PyTorch has, take at least as long as on that device, which must have
 * been timed: its chip is the same and its memory faster. Other kernels that move data differ by library, and the
 * tables have PyTorch's. The document is that of the device called same_chip_as; what is not needed of its
 * tables is taken out of it. */
enum dl_status dl_device_take_chip(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                   struct dl_error *err);

/* From now on kernels that only PyTorch has and that are bound by their instructions take at least as many clocks of
 * all units as on that device, which must have been timed. The document is that of the device called instructions_as;
 * what is not needed of its tables is taken out of it. */
enum dl_status dl_device_take_instructions(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                           struct dl_error *err);

/* Whether its clock follows the power of a step. */
bool dl_device_throttles(const struct dl_device *d);

bool dl_device_supports(const struct dl_device *d, enum dl_precision precision);
/* "fp32, fp16": those that it supports. */
const char *dl_device_precisions(const struct dl_device *d, struct dl_arena *arena);

/* "cuBLAS 13.0, cuDNN 9.2": whose kernels were timed on it; "" if nothing was. */
const char *dl_device_libraries(const struct dl_device *d);

/* In which precision a kernel is done in training with products in `precision`: those that must be more exact than that
 * stay in the precision of activations. */
enum dl_precision dl_kernel_precision(const struct dl_device *d, const struct dl_kernel *k,
                                      enum dl_precision precision);

/* The precision must be one that the device supports. */
struct dl_price dl_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);

/* Time of the products inside a kernel that moves memory (scans of state spaces) on what multiplies matrices, at its
 * peak; for devices that nobody timed such kernels on. */
double dl_inner_products_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);

/* Bytes that must come from or go to memory at least: every operand and every result once; of a convolution every
 * pixel, however many windows it is in. */
double dl_kernel_bytes(const struct dl_kernel *k, enum dl_precision precision);

/* Of a convolution: channels of a group, 0 if its window is not known; its filters; and whether libraries copy both
 * images around it, as cuDNN does (tensorTransformGeneric), which has kernels only for groups of powers of two. */
double dl_kernel_channels(const struct dl_kernel *k);
double dl_kernel_filters(const struct dl_kernel *k);
bool dl_kernel_is_regrouped(const struct dl_kernel *k);
/* Of a depthwise one, a channel and a filter a group: whether libraries compute it in this precision without a product,
 * by a thread for each result. */
bool dl_kernel_is_without_product(const struct dl_kernel *k, enum dl_precision precision);

/* How the rows of a product's operands and results begin: libraries have their fastest kernels only for rows that can
 * be read 16 bytes at a time, and others for 4. Rows are n and k long, but for the gradient of weights, which reads its
 * operands across: m and n. */
enum dl_alignment { DL_ALIGNED, DL_HALF_ALIGNED, DL_UNALIGNED };
enum dl_alignment dl_kernel_alignment(const struct dl_kernel *k, enum dl_precision precision);

#endif
