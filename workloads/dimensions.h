/* dimensions.h - the dimensions of tensors by name: kernels say which theirs are, and layouts which of them are cut. */
#ifndef DL_WORKLOADS_DIMENSIONS_H
#define DL_WORKLOADS_DIMENSIONS_H

#include <stdint.h>

enum dl_tensor_dimension {
    DL_SAMPLE,
    DL_TOKEN,   /* of a sample; rows of what has no sequence */
    DL_WIDTH,   /* of what goes from layer to layer: columns that every token has */
    DL_INNER,   /* of what is between two products: heads x their size, hidden units, words of the vocabulary */
    DL_EXPERT,  /* of which each has a part of the tokens */
    DL_HEIGHT,  /* of an image: rows */
    DL_ACROSS,  /* of an image: pixels of a row */
    DL_CHANNEL, /* that a convolution is given, and that go from element to element */
    DL_FILTER,  /* that it has: channels that it makes */
    DL_N_DIMENSIONS,
};

/* A set of them: the bit 1 << d for dimension d. */
typedef uint32_t dl_dimensions;
enum {
    DL_BY_SAMPLE = 1 << DL_SAMPLE,
    DL_BY_TOKEN = 1 << DL_TOKEN,
    DL_BY_WIDTH = 1 << DL_WIDTH,
    DL_BY_INNER = 1 << DL_INNER,
    DL_BY_EXPERT = 1 << DL_EXPERT,
    DL_BY_HEIGHT = 1 << DL_HEIGHT,
    DL_BY_ACROSS = 1 << DL_ACROSS,
    DL_BY_CHANNEL = 1 << DL_CHANNEL,
    DL_BY_FILTER = 1 << DL_FILTER,
    DL_ROWS = DL_BY_SAMPLE | DL_BY_TOKEN,
    DL_ACTIVATION = DL_ROWS | DL_BY_WIDTH, /* goes from layer to layer: outside */
    DL_INSIDE = DL_ROWS | DL_BY_INNER,     /* is between two products */
    DL_PIXELS = DL_BY_SAMPLE | DL_BY_HEIGHT | DL_BY_ACROSS,
    DL_IMAGE = DL_PIXELS | DL_BY_CHANNEL, /* goes from element to element of a convolutional network */
};

/* Those of a kernel, one set for each number that says how large it is. */
struct dl_kernel_dimensions {
    dl_dimensions batch, m, n, k, elements;
};

#endif
