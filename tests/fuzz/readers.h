/* readers.h - one input of the fuzzer, and the readers that it may go to. */
#ifndef DL_TESTS_FUZZ_READERS_H
#define DL_TESTS_FUZZ_READERS_H

#include "sim/core/json.h"
#include "topologies/topology.h"

struct input {
    const char *text; /* ends with a NUL that `bytes` does not count */
    size_t bytes;
    struct dl_arena *arena;
    struct dl_error err;
};

/* A machine of four nodes with two devices each. */
struct dl_topology *open_small_system(struct input *in, struct dl_json *doc);

/* training_readers.c */
void read_workload(struct input *in);
void read_device(struct input *in);
void read_software(struct input *in);
void read_strategy(struct input *in);
void read_scenario(struct input *in);
void read_rows(struct input *in);
void read_steps(struct input *in);
void read_log(struct input *in);

#endif
