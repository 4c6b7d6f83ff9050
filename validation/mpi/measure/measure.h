/* measure.h - what messages and kernels cost on this machine while all ranks are busy, as dlsim's files want it. */
#ifndef DL_MPI_MEASURE_H
#define DL_MPI_MEASURE_H

#include "sim/core/json.h"
#include "sim/core/message_fit.h"

enum { DL_MOST_SIZES = 48 };

/* Messages between neighbours, all pairs at once. */
struct dl_messages {
    double bytes[DL_MOST_SIZES], seconds[DL_MOST_SIZES]; /* one way, of the slowest pair */
    size_t n;
};

struct dl_measured {
    int n_ranks;
    struct dl_messages messages;
    struct dl_message_fit fitted;
    double reduction_s_per_byte, pack_s_per_byte;
    double gemm_flop_per_s, gemm_alone_flop_per_s; /* of a rank, with all at work and alone */
    double slowest_over_mean;                      /* of ranks that wait for each other */
};

/* Everything as JSON; a system file whose ranks are joined by shared memory; the transport that it names. */
json_t *dl_measured_json(const struct dl_measured *m);
json_t *dl_measured_system(const struct dl_measured *m, const char *device, const char *transport);
json_t *dl_measured_transport(const struct dl_measured *m);
/* The other way: from everything as JSON, but for what was fitted. */
enum dl_status dl_measured_read(const char *path, struct dl_measured *out, struct dl_error *err);

#endif
