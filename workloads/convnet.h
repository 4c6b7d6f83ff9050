/* convnet.h - what the two halves of the convnet builder share: the elements of its list, and the network so far. */
#ifndef DL_WORKLOADS_CONVNET_H
#define DL_WORKLOADS_CONVNET_H

#include "workloads/tape.h"

/* An element of "layers"; which of these keys it has is its kind's matter. */
struct dl_element {
    const char *where;
    const char *kind, *name;
    int64_t filters, outputs, window, stride, pad, output_pad, groups, times;
    bool bias, batchnorm, relu, leaky_relu, relu6, round_up, mean, keeps_parts;
    struct dl_json layers, branches;
};

/* What flows from one element to the next. */
struct dl_tensor {
    double channels, depth, height, width; /* depth 1: a picture, not a volume */
    double parts;   /* that it was joined from and that are still there: gradients are added to each */
    bool is_saved;  /* backward has it already */
    bool from_relu; /* whose backward needs its sign, even if who gets it next does not */
    bool is_loss;   /* nothing can follow */
};

struct dl_net {
    const struct dl_build *build;
    struct dl_tape tape;
    struct dl_tensor at;
    bool is_volume;   /* windows have a depth, too */
    bool has_weights; /* so that someone needs the gradient of what flows here */
    size_t n_elements;
    struct dl_layer *layers;
    size_t n_layers, capacity;
};

/* Bits, so that a key can say which elements have it. */
enum dl_element_bit {
    DL_CONV = 1 << 0,
    DL_DECONV = 1 << 1,
    DL_POOL = 1 << 2,
    DL_GLOBAL_POOL = 1 << 3,
    DL_FC = 1 << 4,
    DL_BATCHNORM = 1 << 5,
    DL_RELU_ALONE = 1 << 6,
    DL_LRN = 1 << 7,
    DL_DROPOUT = 1 << 8,
    DL_ADD = 1 << 9,
    DL_CONCAT = 1 << 10,
    DL_SIDE = 1 << 11,
    DL_REPEAT = 1 << 12,
    DL_CROSS_ENTROPY = 1 << 13,
    DL_ALL_ELEMENTS = (1 << 14) - 1,
};

/* One kind of element: adds its work to the tape and changes what flows. */
struct dl_element_kind {
    const char *name;
    enum dl_element_bit bit;
    enum dl_status (*add)(struct dl_net *net, const struct dl_element *element, struct dl_error *err);
};
extern const struct dl_element_kind dl_element_kinds[];
extern const size_t dl_n_element_kinds;

/* In one part, nothing done with it yet. */
struct dl_tensor dl_tensor_of(double channels, double depth, double height, double width);

double dl_net_elements(const struct dl_net *net, const struct dl_tensor *tensor);

/* So many elements more, or gradients of parts that are added; refused if these are far too many. */
enum dl_status dl_net_count(struct dl_net *net, size_t n, const char *where, struct dl_error *err);

/* Keep what flows here for backward, unless that is done already. */
void dl_net_save(struct dl_net *net);

/* The elements of a list in a row, within the layer that is being written down. */
enum dl_status dl_net_add_list(struct dl_net *net, struct dl_json list, struct dl_error *err);

#endif
