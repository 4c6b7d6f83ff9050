/* payload.h - how the values of a collective are encoded; sim/collective/payload.h says how many bytes that is. */
#ifndef DL_PROGRAM_PAYLOAD_H
#define DL_PROGRAM_PAYLOAD_H

#include <stdbool.h>

enum dl_payload_kind { DL_DENSE, DL_QUANTIZED, DL_TOPK };

struct dl_payload {
    enum dl_payload_kind kind;
    double bits;      /* DL_QUANTIZED: per value */
    double ratio;     /* DL_TOPK: values that a rank sends, of all */
    bool has_kernels; /* pack and unpack it: nothing is left of that for who sends it */
};
bool dl_payload_equal(const struct dl_payload *a, const struct dl_payload *b);

#endif
